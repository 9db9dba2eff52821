"""The agent's memory of jobs: one file per job id, appended to and synced before and after each step.

The file's existence makes an id run at most once; an exclusive lock on it says that its process lives; its lines say
how far it came. So after ``kill -9`` or a power cut the truth can be told.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from appliance.agent.former_tags import with_tag_of_today
from appliance.errors import Refused
from appliance.message import Message
from appliance.names import job_id
from appliance.system import atomic_file, locks, paths

KEPT = 2000
OUTDATED = "outdated"  # the outcome of a job without a journal: its plan, which nobody has seen, is another by now


class AlreadyKnown(Exception):
    """A journal of that job exists: it runs or has run."""


class Record(msgspec.Struct, frozen=True):
    """What a journal says. ``state`` is running, waiting, interrupted, or how it ended: done,
    failed, refused, cancelled."""

    job: str
    state: str
    operation: dict[str, Any]
    steps: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    text: str = ""
    notes: tuple[str, ...] = ()
    ended: bool = False  # its end is written down and stays as it is
    # Until when it waits for want of a proof; see delayed_jobs.py.
    waiting: dict[str, Any] = msgspec.field(default_factory=dict)
    messages: dict[str, Any] = msgspec.field(default_factory=dict)  # by the English text in ``text`` and ``notes``

    @property
    def unfinished(self) -> str:
        """The step that was begun and not done; empty where it stopped between steps."""
        return next((step for step in self.begun if step not in self.done), "")


class Journal:
    """An open journal; the lock is held until ``close`` or death."""

    def __init__(self, job: str, handle: int) -> None:
        self.job, self.handle = job, handle

    @classmethod
    def begin(cls, job: str) -> Journal:
        """Make the journal of a new job. Raises AlreadyKnown, Refused for an id that is none."""
        paths.JOURNALS.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = file_of(job)
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except FileExistsError as error:
            raise AlreadyKnown(job) from error
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_size:
            # Between making and locking it someone took it for a dead job's and settled it.
            os.close(handle)
            raise AlreadyKnown(job)
        atomic_file.sync_folder(path.parent)
        return cls(job, handle)

    def write(self, entry: str, **more: object) -> None:
        """Append a line and wait until it is on the disk."""
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "entry": entry, **more}
        if isinstance(text := more.get("text"), Message):
            line["message"] = text.as_json()
        os.write(self.handle, json.dumps(line).encode() + b"\n")
        os.fsync(self.handle)

    def forget(self) -> None:
        """Remove the journal of a job of which nothing was done, so that its id may come again.
        Until ``close`` it is locked."""
        file_of(self.job).unlink()

    def close(self) -> None:
        os.close(self.handle)


def file_of(job: str) -> Path:
    return paths.JOURNALS / f"{job_id(job)}.jsonl"


def alive(job: str) -> bool:
    """Whether the process that writes the journal lives."""
    return locks.is_taken(file_of(job))


def lines(job: str) -> Iterator[dict[str, Any]]:
    """The complete lines of a journal; a half-written last one (power cut) is passed over."""
    for line in file_of(job).read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry


def read_journal(job: str) -> Record | None:
    """What is known of a job; None where its journal does not exist. Raises Refused for an id that is none."""
    if not file_of(job).exists():
        return None
    running = alive(job)
    operation: dict[str, Any] = {}
    steps: tuple[str, ...] = ()
    begun, done, notes = [], [], []
    under_way = "running" if running else "interrupted"
    state, text, ended = under_way, "", False
    waiting: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    for entry in lines(job):
        if "message" in entry:
            messages[entry["text"]] = entry["message"]
        match entry.get("entry"):
            case "began":
                operation, steps = with_tag_of_today(entry["operation"]), tuple(entry["steps"])
                state, waiting = under_way, {}
            case "waiting":
                state, waiting = "waiting", entry
            case "step begun":
                begun.append(entry["step"])
            case "step done":
                done.append(entry["step"])
            case "note":
                notes.append(entry["text"])
            case "ended":
                state, text, ended, waiting = entry["state"], entry["text"], True, {}
    return Record(job, state, operation, steps, tuple(begun), tuple(done), text, tuple(notes), ended, waiting, messages)


def outcome(known: Record | None) -> dict[str, Any]:
    """A journal's answer as it travels to the worker."""
    if known is None:
        return {"state": "unknown", "text": "", "done": [], "steps": [], "notes": []}
    return {
        "state": known.state,
        "text": known.text,
        "done": list(known.done),
        "steps": list(known.steps),
        "notes": list(known.notes)[-200:],
        "until": known.waiting.get("until", ""),
        "messages": {
            text: known.messages[text] for text in (known.text, *known.notes[-200:]) if text in known.messages
        },
    }


def take(job: str) -> Journal | None:
    """The journal of a job that no process is at, locked; None where one is. Close it."""
    handle = os.open(file_of(job), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    # A power cut may have left half a line; what follows begins on a line of its own.
    os.write(handle, b"\n")
    return Journal(job, handle)


@contextmanager
def taken_over(job: str) -> Iterator[Journal | None]:
    """The journal of a job whose process has died, locked for settling; None where it lives or is being settled."""
    journal = take(job)
    try:
        yield journal
    finally:
        if journal:
            journal.close()


def prune() -> None:
    """Forget the oldest journals beyond what anyone will ask for, never one of a job that runs or has no end yet.

    Others begin, settle and prune at the same moment, so what is gone meanwhile is passed over.
    """
    known = sorted(((at, path) for path in paths.JOURNALS.glob("*.jsonl") if (at := modified(path))), reverse=True)
    for _at, path in known[KEPT:]:
        try:
            found = read_journal(path.stem)
        except (OSError, Refused):
            continue
        if found and found.ended:
            path.unlink(missing_ok=True)


def modified(path: Path) -> int:
    """When a file was written last, in nanoseconds; 0 where it is gone."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
