"""The report of an import: a text file beside its settings that only root can read, since it has names of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from appliance import schedule
from appliance.backups.remote import settings
from appliance.facts.file_import import Count, FileImport, ImportResult
from appliance.formatting import size_text
from appliance.request import Request
from appliance.system import paths

MOST_LINES = 2000
LARGEST = 2 * 1024**2  # bytes


def file_of(key: str) -> Path:
    return paths.SSH / f"{settings.check_key(key)}.report"


def write_report(
    task: FileImport,
    count: Count,
    result: ImportResult,
    missed: Sequence[str],
    vanished: Sequence[str],
    different: Sequence[str],
) -> None:
    """Raises Failed."""
    lines = [
        f"Import of {task.source} into {task.dataset}",
        f"Ended {result.at.astimezone(schedule.box_zone()):%Y-%m-%d %H:%M %Z}",
        "",
        (
            f"{count.files} files ({size_text(count.size)}), {count.folders} folders and {count.links} links at "
            "the source."
        ),
        f"{count.new} files ({size_text(count.new_size)}) were to be copied.",
        f"{result.compared} files were compared, {result.different} are not as at the source."
        if result.compared
        else "Files were not compared.",
        "Groups and access lists of the other NAS were not copied: the rules of the folder apply.",
        *section("Could not be copied", missed, len(missed)),
        *section("Deleted at the source during the run", vanished, len(vanished)),
        *section(
            "Not as at the source (changed since, or another file of that name was here)", different, result.different
        ),
        *section("Left out", count.named, count.left_out),
    ]
    settings.write_file(file_of(task.id), "\n".join(lines)[:LARGEST] + "\n", mode=0o600)


def section(heading: str, lines: Sequence[str], count: int) -> list[str]:
    if not count:
        return []
    more = [f"… and {count - min(len(lines), MOST_LINES)} more"] if count > min(len(lines), MOST_LINES) else []
    return ["", f"{heading}: {count}", *(f"  {line}" for line in lines[:MOST_LINES]), *more]


class ReadImportReport(Request, tag="read-import-report"):
    """The report of an import's latest run; empty where it has none."""

    task: str

    def __post_init__(self) -> None:
        settings.check_key(self.task, field="task")

    def read(self) -> object:
        try:
            return {"text": file_of(self.task).read_text()[:LARGEST]}
        except FileNotFoundError:
            return {"text": ""}
