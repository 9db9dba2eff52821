"""One question to a disk at a time, and none while an earlier one hangs.

A command that waits in the kernel cannot be ended, so it outlives whoever started it. Each name of a disk has a file in
memory that is locked (flock) while a question is under way, and the command holds that lock too: the kernel lets go of it
when the last of them has ended. So nothing has to be remembered from one process of the agent to the next, no number of
a process can be taken for another's, and a disk has at most one command that hangs.
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
from appliance.disks.smart import UNANSWERED
from appliance.errors import Failed
from appliance.schedule import box_zone
from appliance.system import paths

SECONDS_BETWEEN_TRIES = 0.2
LONGEST_NOTE = 4096


class Note(msgspec.Struct, frozen=True):
    """What stands in the file until there is an answer: since when one is owed, and how long it is waited for, by the
    clock that counts from the start of the box, as the folder does."""

    since: datetime
    until: float


class Silent(Failed):
    """A question to the disk was not answered in its time, this one or one that still hangs."""

    def __init__(self, since: datetime) -> None:
        super().__init__(f"{UNANSWERED} {since.astimezone(box_zone()):%d %B %Y at %H:%M}.")


def query_disk(
    path: str, argv: Sequence[str], *, timeout: float, given: str | None = None, part: str = ""
) -> command.Result:
    """Ask the disk at a by-id path something by a command, after those who ask it at this moment.

    ``part``: of what belongs to the disk and answers by itself, such as the lamp of its bay, which has turns of its own.
    Any exit status is an answer, for smartctl's is a bit mask. Raises Silent, without starting anything where an earlier
    command hangs; CommandFailed where it was ended from outside, CommandMissing.
    """
    if not Path(path).exists():
        return command.run(argv, timeout=timeout, accept=range(256))  # which says so, and cannot hang
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
    """The disk's file, open and locked. Raises Silent where it is not to be had in the time of who has it."""
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
        # No unlocking: a command that could not be ended holds it on.
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
        return None  # nothing is owed, or it is just being written


def write_note(handle: int, note: Note | None) -> None:
    os.ftruncate(handle, 0)
    if note:
        os.pwrite(handle, msgspec.json.encode(note), 0)
