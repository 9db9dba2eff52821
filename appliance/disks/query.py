"""Run commands that query a disk one at a time, and none while an earlier one hangs.

A command that waits in the kernel cannot be killed, so it outlives the process that started it. Each disk name has a
file in memory that is locked (flock) during a query. The command inherits the lock, and the kernel releases it when
the last holder has ended. So the agent needs no memory across its processes, reused process ids do no harm, and at
most one command hangs per disk.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from appliance import command
from appliance.disks.smart import SILENT
from appliance.errors import Failed
from appliance.formatting import day_text
from appliance.message import Message
from appliance.schedule import box_zone
from appliance.system import paths

SECONDS_BETWEEN_TRIES = 0.2
LONGEST_NOTE = 4096


class Note(msgspec.Struct, frozen=True):
    """The content of the file during a query: since when an answer is due, and until when to
    wait on the monotonic clock."""

    since: datetime
    until: float


class Silent(Failed):
    """This query, or an earlier one that still hangs, was not answered in time."""

    def __init__(self, since: datetime) -> None:
        local = since.astimezone(box_zone())
        super().__init__(Message(SILENT, day=day_text(local), time=f"{local:%H:%M}"))


def query_disk(
    path: str, argv: Sequence[str], *, timeout: float, given: str | None = None, part: str = ""
) -> command.Result:
    """Run a command that queries the disk at a by-id path, after the queries under way.

    ``part`` has its own lock, for something that answers separately such as the light of the bay. Any exit status is an
    answer, because smartctl's is a bit mask. Raises Silent, without starting anything where an earlier command hangs;
    CommandFailed where it was killed; CommandMissing.
    """
    if not Path(path).exists():
        return command.run(argv, timeout=timeout, accept=range(256))  # it fails at once and cannot hang
    with lock_disk(path, part) as handle:
        before = read_note(handle)
        note = Note(before.since if before else datetime.now(UTC), time.monotonic() + timeout + command.SECONDS_TO_DIE)
        write_note(handle, note)
        try:
            result = command.run(argv, timeout=timeout, accept=range(256), holding=handle, given=given)
        except command.CommandTimedOut as error:
            raise Silent(note.since) from error
        write_note(handle, None)
        return result


@contextmanager
def lock_disk(path: str, part: str = "") -> Iterator[int]:
    """Open and lock the disk's file. Raises Silent where its holder does not release it in time."""
    paths.ASKED.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(paths.ASKED / f"{Path(path).name}{part}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        while not try_lock(handle):
            note = read_note(handle)
            if note and time.monotonic() > note.until:
                raise Silent(note.since)
            time.sleep(SECONDS_BETWEEN_TRIES)
        yield handle
    finally:
        # Not unlocked: a command that could not be killed keeps the lock.
        os.close(handle)


def try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_note(handle: int) -> Note | None:
    try:
        return msgspec.json.decode(os.pread(handle, LONGEST_NOTE, 0), type=Note)
    except msgspec.MsgspecError:
        return None  # no query is under way, or the note is being written


def write_note(handle: int, note: Note | None) -> None:
    os.ftruncate(handle, 0)
    if note:
        os.pwrite(handle, msgspec.json.encode(note), 0)
