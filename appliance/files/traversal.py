"""Walk every file of one file system by descriptor, so that a swapped-in symbolic link leads nowhere.

A user who may write in a folder can replace a subfolder by a symbolic link between two of our calls. So each name is
opened once, relative to its folder and without following a link, and all work is done on that descriptor. Links, other
file systems and ``.zfs`` are skipped.
"""

from __future__ import annotations

import os
import resource
import stat
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from appliance.errors import Failed, Reason, Refused
from appliance.formatting import time_left
from appliance.message import Message, join_messages
from appliance.operation import Work

BOUND = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 2000  # nested folders; each level holds a descriptor
SECONDS_BETWEEN_REPORTS = 0.5
SECONDS_UNTIL_ESTIMATE = 5.0
MOUNTS = Path("/proc/self/mountinfo")


class OpenEntry(msgspec.Struct, frozen=True):
    """An open folder or regular file. ``link`` is a path to it that stays valid when it is renamed.
    ``name``: the one it was found under; empty for the root."""

    handle: int
    status: os.stat_result
    name: str = ""

    @property
    def link(self) -> str:
        return f"/proc/self/fd/{self.handle}"

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


@contextmanager
def open_dir_nofollow(path: str) -> Iterator[int]:
    """Open the folder at an absolute path without following any symbolic link. Raises Failed."""
    handle = os.open("/", BOUND | os.O_DIRECTORY)
    try:
        for part in Path(path).parts[1:]:
            below = os.open(part, BOUND | os.O_DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    except OSError as error:
        raise Failed(
            Message("{path} could not be opened", path=path), f"{error.filename or path}: {error.strerror}"
        ) from error
    finally:
        os.close(handle)


def dataset_of(handle: int) -> str:
    """The mounted dataset that a descriptor lies on, from the kernel's mount table; empty if it is not ZFS."""
    device = os.fstat(handle).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in read_mounts():
        before, _, after = line.partition(" - ")
        if before.split(" ")[2] == wanted and after.startswith("zfs "):
            return after.split(" ")[1].replace("\\040", " ")
    return ""


def read_mounts() -> list[str]:
    """The lines of the kernel's mount table. A folder's name need not be UTF-8, its other bytes come as surrogates, and
    it may hold any line break but the one of the table."""
    return MOUNTS.read_bytes().decode(errors="surrogateescape").rstrip("\n").split("\n")


def walk_tree(root: int) -> Generator[OpenEntry]:
    """Yield ``root``, then every folder and regular file below it on its file system, folders before their contents.

    Each is open until the next is requested. What disappears meanwhile is skipped. Raises Failed beyond ``DEEPEST``.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 3 * DEEPEST) if hard > 0 else 3 * DEEPEST, hard))
    device = os.fstat(root).st_dev
    yield OpenEntry(root, os.fstat(root))
    stack = [open_listing(root)]
    try:
        while stack:
            entry = next(stack[-1][1], None)
            if entry is None:
                close_level(stack.pop())
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
                yield OpenEntry(handle, status, entry.name)
                if stat.S_ISDIR(status.st_mode):
                    if len(stack) > DEEPEST:
                        raise Failed(Message("Folders are nested more than {deepest} levels deep", deepest=DEEPEST))
                    stack.append(open_listing(handle))
            finally:
                os.close(handle)
    finally:
        for level in stack:
            close_level(level)


Level = tuple[int, "os._ScandirIterator[str]"]


def open_listing(handle: int) -> Level:
    """Open a folder for reading through its descriptor. Returns the new descriptor and its entries."""
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
    try:
        return opened, os.scandir(opened)
    except OSError:
        os.close(opened)
        raise


def close_level(level: Level) -> None:
    level[1].close()
    os.close(level[0])


class WalkProgress:
    """Reports a walk's progress to a job. The total is the number of objects that ZFS counts in the dataset."""

    def __init__(self, work: Work, handle: int) -> None:
        room = os.statvfs(handle)
        self.work, self.total = work, max(room.f_files - room.f_ffree, 1)
        self.done, self.began, self.reported = 0, time.monotonic(), 0.0

    def count_one(self) -> None:
        """Count one more file. Raises Cancelled if the user asked to stop."""
        self.done += 1
        now = time.monotonic()
        if now - self.reported < SECONDS_BETWEEN_REPORTS:
            return
        self.reported = now
        self.work.stop_if_asked()
        passed, left = now - self.began, max(self.total - self.done, 0)
        known = passed > SECONDS_UNTIL_ESTIMATE and left
        text = Message("{count} files and folders", count=self.done)
        words = [text, time_left(int(passed * left / self.done)) if known else ""]
        self.work.progress(min(99, self.done * 100 // self.total), join_messages(words, ", "))


def refuse_unless_of(handle: int, dataset: str) -> None:
    """Raise Refused if a descriptor does not lie on that dataset: it is locked, or something else is mounted there."""
    if dataset_of(handle) != dataset:
        raise Refused(not_at_mountpoint(dataset))


def not_at_mountpoint(dataset: str) -> Reason:
    """The reason to leave a dataset's files alone while something else is at its mountpoint."""
    return Reason(
        "dataset-not-at-mountpoint",
        "{dataset} is not mounted at its mountpoint. Unlock or mount it first.",
        dataset=dataset,
    )
