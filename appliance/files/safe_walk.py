"""Go through every file of one file system by descriptor, so that nothing swapped in on the way leads elsewhere.

Whoever may write below can replace a folder by a symbolic link between two looks of ours. So no name is looked at
twice: each is opened once, relative to its folder and without following a link, and everything is done to what that
descriptor holds. Links, other file systems and ``.zfs`` are left alone.
"""

from __future__ import annotations

import os
import resource
import stat
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import Failed, Reason, Refused
from appliance.formatting import time_left
from appliance.operation import Work

BOUND = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 2000  # folders within folders; each level holds a descriptor
SECONDS_BETWEEN_WORDS = 0.5
SECONDS_UNTIL_PACE = 5.0
MOUNTS = Path("/proc/self/mountinfo")


@dataclass(frozen=True)
class OpenEntry:
    """A folder or ordinary file, held open; ``link`` is a path that leads to it whatever its name has become."""

    handle: int
    status: os.stat_result

    @property
    def link(self) -> str:
        return f"/proc/self/fd/{self.handle}"

    @property
    def folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


@contextmanager
def held(path: str) -> Iterator[int]:
    """A descriptor of the folder at an absolute path, reached without any symbolic link. Raises Failed."""
    handle = os.open("/", BOUND | os.O_DIRECTORY)
    try:
        for part in Path(path).parts[1:]:
            below = os.open(part, BOUND | os.O_DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    except OSError as error:
        raise Failed(f"{path} could not be gone through", f"{error.filename or path}: {error.strerror}") from error
    finally:
        os.close(handle)


def dataset_of(handle: int) -> str:
    """The mounted dataset that a descriptor lies on, as the kernel's list of mounts says; empty where it is no ZFS."""
    device = os.fstat(handle).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in MOUNTS.read_text().splitlines():
        before, _, after = line.partition(" - ")
        if before.split(" ")[2] == wanted and after.startswith("zfs "):
            return after.split(" ")[1].replace("\\040", " ")
    return ""


def everything(root: int) -> Generator[OpenEntry]:
    """The folder ``root`` itself, then every folder and ordinary file below on its file system, folders before contents.

    Each is held open until the next is asked for. What vanishes meanwhile is passed over. Raises Failed too deep down.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 3 * DEEPEST) if hard > 0 else 3 * DEEPEST, hard))
    device = os.fstat(root).st_dev
    yield OpenEntry(root, os.fstat(root))
    stack = [listing(root)]
    try:
        while stack:
            entry = next(stack[-1][1], None)
            if entry is None:
                close(stack.pop())
                continue
            if len(stack) == 1 and entry.name == ".zfs":
                continue
            try:
                handle = os.open(entry.name, BOUND, dir_fd=stack[-1][0])
            except (FileNotFoundError, NotADirectoryError):
                continue
            try:
                status = os.fstat(handle)
                if status.st_dev != device or not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
                    continue
                yield OpenEntry(handle, status)
                if stat.S_ISDIR(status.st_mode):
                    if len(stack) > DEEPEST:
                        raise Failed(f"There are more than {DEEPEST} folders within one another")
                    stack.append(listing(handle))
            finally:
                os.close(handle)
    finally:
        for level in stack:
            close(level)


Level = tuple[int, "os._ScandirIterator[str]"]


def listing(handle: int) -> Level:
    """The folder opened for reading, through its descriptor, and its entries."""
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
    try:
        return opened, os.scandir(opened)
    except OSError:
        os.close(opened)
        raise


def close(level: Level) -> None:
    level[1].close()
    os.close(level[0])


class WalkProgress:
    """Tells a job how far a walk is. How many files there are, ZFS knows: it counts the objects of a dataset."""

    def __init__(self, work: Work, handle: int) -> None:
        room = os.statvfs(handle)
        self.work, self.total = work, max(room.f_files - room.f_ffree, 1)
        self.done, self.began, self.told = 0, time.monotonic(), 0.0

    def step(self) -> None:
        """One more is done. Raises Cancelled where the person asked to stop."""
        self.done += 1
        now = time.monotonic()
        if now - self.told < SECONDS_BETWEEN_WORDS:
            return
        self.told = now
        self.work.stop_if_asked()
        passed, left = now - self.began, max(self.total - self.done, 0)
        said = f"{self.done} files and folders"
        if passed > SECONDS_UNTIL_PACE and left:
            said += f", {time_left(int(passed * left / self.done))}"
        self.work.progress(min(99, self.done * 100 // self.total), said)


def refuse_unless_of(handle: int, dataset: str) -> None:
    """Raise Refused where a descriptor does not lie on that dataset: locked, or something else is mounted there."""
    if dataset_of(handle) != dataset:
        raise Refused(Reason("", f"{dataset} is not mounted where it should be. Make it available first."))
