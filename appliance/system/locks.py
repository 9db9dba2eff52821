"""Locks on pools, disks, folders and other names, held by the kernel (flock) and freed when their last holder ends.

An exclusive lock keeps everybody else out, a shared one only those who want it exclusively. All locks
of a job are taken together, in sorted order, or none: while one is another's, nothing is held, so two
jobs cannot wait for each other.

A command that a job starts holds the job's locks too. Where it hangs in the kernel and cannot be ended, the locks
outlive the job, and the next job on the same pool or disk is refused instead of leaving a second command that hangs.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from appliance import command
from appliance.errors import Reason, Refused
from appliance.message import Message, as_json_argument, from_json_argument
from appliance.system import paths

SECONDS_BETWEEN_TRIES = 0.2
SECONDS_TO_END = 20.0  # a command whose job has died is given so long to end before it counts as hanging
FILES = "files"
KERNEL_LOCKS = Path("/proc/locks")


class Busy(Exception):
    """Another job holds one of the locks; ``name`` says which."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


def files_of(dataset: str) -> str:
    """The lock on the files of a dataset and of all below it; of every pool for an empty name."""
    return f"{FILES} {dataset}".rstrip()


def locks_above(name: str) -> Iterator[str]:
    """The locks on the datasets above, which the holder of a lock on a dataset's files has to share."""
    if name.startswith(f"{FILES} "):
        parts = name.split("/")
        yield from (FILES, *("/".join(parts[:depth]) for depth in range(1, len(parts))))


@contextmanager
def hold_locks(
    names: Iterable[str], waiting: Callable[[str], None] | None = None, *, shared: Iterable[str] = (), who: str = ""
) -> Iterator[None]:
    """Hold the locks of all names, those of ``shared`` together with others who share them.

    ``waiting`` is called with a name while it is another's; ``who`` is what others are told meanwhile. Raises Refused
    where a command of an earlier job hangs and holds one of them.
    """
    paths.LOCKS.mkdir(parents=True, exist_ok=True, mode=0o700)
    alone, together = set(names), set(shared)
    together = {*together, *(up for name in alone | together for up in locks_above(name))} - alone
    note = paths.LOCKS / f"{os.getpid()}.who"
    orphaned: dict[str, float] = {}
    while True:
        with ExitStack() as stack:
            try:
                take_locks(stack, alone, together)
            except Busy as busy:
                name = busy.name
            else:
                if who:
                    note.write_text(json.dumps(as_json_argument(who)))
                    stack.callback(note.unlink, missing_ok=True)
                yield
                return
        refuse_where_it_hangs(name, orphaned)
        if waiting:
            waiting(name)
        time.sleep(SECONDS_BETWEEN_TRIES)


def take_locks(stack: ExitStack, alone: set[str], together: set[str]) -> None:
    """Take all of them, to be let go of with the stack. Raises Busy."""
    for name in sorted(alone | together):
        handle = os.open(path_of(name), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        stack.callback(os.close, handle)
        try:
            fcntl.flock(handle, (fcntl.LOCK_EX if name in alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(name) from error
        command.HELD_BY_ALL.add(handle)
        stack.callback(command.HELD_BY_ALL.discard, handle)


def path_of(name: str) -> Path:
    return paths.LOCKS / hashlib.sha256(name.encode()).hexdigest()[:32]


def refuse_where_it_hangs(name: str, orphaned: dict[str, float]) -> None:
    """Raise Refused where those who took the lock have ended for a while and it is held all the same.

    ``orphaned`` remembers since when that is so, by the clock of this process.
    """
    pids = lock_holders(name)
    if not pids or any(Path(f"/proc/{pid}").exists() for pid in pids):
        orphaned.pop(name, None)
    elif time.monotonic() - orphaned.setdefault(name, time.monotonic()) > SECONDS_TO_END:
        raise Refused(
            Reason(
                "disk-not-answering",
                "An earlier command on {name} still waits in the kernel for a disk that does not answer, so "
                "nothing more is started there. Put the disk back or look at its cables. If that does not "
                "help, restart the box.",
                name=words_for(name),
            )
        )


def lock_holders(name: str) -> tuple[int, ...]:
    """The numbers of the processes that took the lock, as the kernel says; empty where none
    holds it or it cannot be read."""
    try:
        found = path_of(name).stat()
        lines = KERNEL_LOCKS.read_text().splitlines()
    except OSError:
        return ()
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    rows = [line.split() for line in lines if " FLOCK " in line and "->" not in line]
    return tuple(int(row[4]) for row in rows if len(row) > 5 and row[5] == wanted)


def holder_text(name: str) -> str:
    """What the holder of a lock is doing, as it said; empty where it did not."""
    for pid in lock_holders(name):
        try:
            said: str = from_json_argument(json.loads((paths.LOCKS / f"{pid}.who").read_text()))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        return said
    return ""


def words_for(name: str) -> str:
    """A lock's name as it is shown to people."""
    if name == FILES:
        return Message("files")
    return Message("the files of {name}", name=name.removeprefix(f"{FILES} ")) if name.startswith(f"{FILES} ") else name


def any_held() -> bool:
    """Whether some job holds a lock now, alone or shared."""
    return any(is_taken(path, fcntl.LOCK_EX) for path in paths.LOCKS.glob("*"))


def is_taken(path: Path, wanted: int = fcntl.LOCK_SH) -> bool:
    """Whether some process keeps the file's lock from being had in that way.
    Raises OSError where it cannot be opened."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, wanted | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
