"""What the steps of an import do."""

from __future__ import annotations

import os
import time

import msgspec

from appliance import command
from appliance.datasets.access_note import valid_note
from appliance.datasets.permissions import apply_note
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.file_import import Count, FileImport
from appliance.files.leftover import remove_leftover, scratch_folder
from appliance.formatting import rate_text, size_text, time_left
from appliance.imports import exit_status, report, rsync
from appliance.imports.base import open_folder, open_session
from appliance.imports.rsync import RsyncListing, RsyncTransfer
from appliance.imports.sources import source_of
from appliance.imports.sources.base import SourceAway
from appliance.imports.try_import import MOST_SAID, count_files, explain
from appliance.message import Message, join_messages
from appliance.operation import Work

SPARE = 64 * 1024**2  # bytes that have to stay free
MOST_ATTEMPTS = 10  # after a lost connection, without a byte more than before
SECONDS_TO_WAIT = 600  # for the other NAS to answer again
SECONDS_BETWEEN_ASKING = 10
SECONDS_OF_PACE = 5


class ImportRun(msgspec.Struct):
    """What the steps tell each other."""

    count: Count = msgspec.field(default_factory=Count)
    owners: list[tuple[str, int]] = msgspec.field(default_factory=list)
    missed: list[str] = msgspec.field(default_factory=list)
    vanished: list[str] = msgspec.field(default_factory=list)
    listing: RsyncListing = msgspec.field(default_factory=RsyncListing)


def find_owners(task: FileImport, facts: Facts) -> list[tuple[str, int]]:
    """Users there, each with the number of the one here who gets their files."""
    return [(old, found.uid) for old, name in task.owners if (found := facts.account(name))]


def count_again(task: FileImport, run: ImportRun, work: Work) -> None:
    """Count now, and refuse what does not fit or would mix with files that are here. Raises Refused, Failed."""
    with open_folder(task) as handle:
        remove_leftover(rsync.SCRATCH.encode(), handle)
        if task.existing == "none" and not task.began and is_filled(handle):
            raise Refused(
                Reason(
                    "import-folder-not-empty",
                    "{dataset} is not empty. Choose an empty folder, or set up the import so that it copies "
                    "beside what is there.",
                    dataset=task.dataset,
                )
            )
    task = count_files(task, work)
    run.count = task.found or Count()
    if run.count.new_size + SPARE > task.free:
        raise Refused(
            Reason(
                "import-no-room",
                "{needed} have to be copied, and {dataset} has {free} of free space. Make room, or choose "
                "another folder.",
                needed=size_text(run.count.new_size),
                dataset=task.dataset,
                free=size_text(task.free),
            )
        )
    work.note(
        Message(
            "{new} files to copy, {new_size}; {left_out} left out",
            new=run.count.new,
            new_size=size_text(run.count.new_size),
            left_out=run.count.left_out,
        )
    )


def is_filled(handle: int) -> bool:
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
    try:
        with os.scandir(opened) as entries:
            return any(entry.name != ".zfs" for entry in entries)
    finally:
        os.close(opened)


def copy_once(task: FileImport, run: ImportRun, before: int, moment: str, work: Work) -> tuple[command.Result, int]:
    """One connection: how rsync ended, and the bytes that it copied. Raises Cancelled."""
    transfer, began, total = RsyncTransfer(), time.monotonic(), run.count.new_size

    def look() -> None:
        work.stop_if_asked()
        session.check()
        done, passed = before + transfer.done, max(time.monotonic() - began, 0.1)
        parts = [
            Message("{done} of {total}", done=size_text(done), total=size_text(total)),
            rate_text(round(transfer.done / passed)),
        ]
        if passed > SECONDS_OF_PACE and 0 < transfer.done < total - before:
            parts.append(time_left(int((total - done) * passed / transfer.done)))
        work.progress(min(99, done * 100 // max(total, 1)), join_messages(parts, ", "))

    with open_folder(task) as handle, scratch_folder(rsync.SCRATCH.encode(), handle):
        try:
            with open_session(task, handle, writable=True) as session:
                argv = [*session.words, *rsync.copy_argv(task, moment, run.owners)]
                result = command.watch(argv, take=transfer.take, look=look, most_said=MOST_SAID)
        except SourceAway as away:
            result = command.Result(("rsync",), exit_status.SILENT, "", str(away), 0.0)
    return result, transfer.done


def give_back_top(task: FileImport) -> None:
    """Where owners are mapped, rsync gives the folder itself to its owner over there. It stays with its own
    owner, who may change everybody's rights. The number was noted before the first run, so a run that was killed
    changes nothing for good."""
    if task.owners:
        with open_folder(task) as handle:
            os.chown(f"/proc/self/fd/{handle}/.", task.top_owner, -1)


def wait_for_answer(task: FileImport, work: Work) -> None:
    """Wait until the other NAS answers again, for some minutes.
    Raises Cancelled; the next attempt says what is wrong."""
    until = time.monotonic() + SECONDS_TO_WAIT
    while time.monotonic() < until:
        work.stop_if_asked()
        try:
            source_of(task).ask(task)
        except Failed:
            work.progress(0, Message("{host} does not answer; waiting for it", host=task.host))
            time.sleep(SECONDS_BETWEEN_ASKING)
        else:
            return


def give_access(name: str, facts: Facts, work: Work) -> None:
    """Apply what is set for the folder; a folder without rules of its own hands on its access list already."""
    dataset = facts.dataset(name)
    note = valid_note(dataset, facts) if dataset else None
    if dataset is None or note is None:
        work.note(Message("The folder has no rules for users. Set them on its page, and they apply to these files too"))
        return
    apply_note(dataset, note, facts, work)


def compare_files(task: FileImport, run: ImportRun, work: Work) -> None:
    """Read every file on both sides. What differs is reported at the end. Raises Failed, Cancelled."""
    run.listing = listing = RsyncListing(most=report.MOST_LINES)
    total = max(run.count.files, 1)

    def look() -> None:
        work.stop_if_asked()
        session.check()
        work.progress(
            min(99, listing.files * 100 // total),
            Message("{files} of {total} files compared", files=listing.files, total=total),
        )

    with open_folder(task) as handle, open_session(task, handle, writable=False) as session:
        argv = [*session.words, *rsync.compare_argv(task)]
        result = command.watch(argv, take=listing.take, look=look, most_said=MOST_SAID)
    if result.status not in {0, exit_status.PARTLY, exit_status.VANISHED}:
        raise explain(task, result)
    run.missed = list(dict.fromkeys([*run.missed, *rsync.complaints(result.stderr)]))
    run.vanished = list(dict.fromkeys([*run.vanished, *rsync.vanished(result.stderr)]))
