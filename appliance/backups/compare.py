"""Compare a snapshot with its copy, file by file: every name, type, size, mode, owner, time
and attribute; and contents.

A scrub proves that the disks give back what was written. That the right thing was written only the files can prove:
faults of sending have produced wrong files that a scrub approves (openzfs/zfs#4809, #6224, #12762).
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from appliance.message import Message

PART = 1024 * 1024
MOST_NAMED = 20


class Sample(msgspec.Struct, frozen=True):
    """Whose contents are read: a rotating part of all files, ``turn`` of ``cycle``, and those changed since ``since``
    (seconds since 1970). A cycle of 1 is everything."""

    turn: int = 0
    cycle: int = 1
    since: float = 0.0

    def takes(self, path: str, changed: float) -> bool:
        if self.since and changed >= self.since:
            return True
        return zlib.crc32(os.fsencode(path)) % self.cycle == self.turn % self.cycle


class TreeComparison(msgspec.Struct):
    """What was compared so far. ``files``: those whose contents were read;
    ``differences``: the first of them, by path."""

    entries: int = 0
    files: int = 0
    size: int = 0
    total: int = 0  # bytes of all files
    different: int = 0
    differences: list[str] = msgspec.field(default_factory=list)

    def differs(self, path: str, how: str) -> None:
        """Note a path and how it differs; ``reason_after_name`` reads the line where it was stored."""
        self.different += 1
        if len(self.differences) < MOST_NAMED:
            self.differences.append(Message("{name}: {reason}", name=as_text(path), reason=how))


def as_text(path: str) -> str:
    """A path that can be written anywhere: bytes that are no text become a question mark, control characters too."""
    found = os.fsencode(path).decode(errors="replace")
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in found)


def compare_trees(
    original: int, copy: int, sample: Sample, result: TreeComparison, tell: Callable[[TreeComparison], None]
) -> None:
    """Compare what two descriptors of top folders hold.
    ``tell`` is called for each folder and each part read; it may raise."""
    compare_entry(original, copy, ".", "the folder itself", sample, result, tell)
    for path, folders, files, handle in os.fwalk(".", dir_fd=original, follow_symlinks=False):
        tell(result)
        at = path.removeprefix(".").removeprefix("/")
        there = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=copy)
        try:
            names, copied = {*folders, *files}, {entry.name for entry in os.scandir(there)}
            for name in sorted(names - copied):
                result.differs(joined(at, name), Message("missing in the copy"))
            for name in sorted(copied - names):
                result.differs(joined(at, name), Message("only in the copy"))
            both = names & copied
            for name in sorted(both):
                compare_entry(handle, there, name, joined(at, name), sample, result, tell)
            # A folder that is none in the copy cannot be gone into; it has been told.
            folders[:] = [name for name in folders if name in both and is_folder(there, name)]
        finally:
            os.close(there)


def joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def is_folder(handle: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)


def compare_entry(
    original: int,
    copy: int,
    name: str,
    path: str,
    sample: Sample,
    result: TreeComparison,
    tell: Callable[[TreeComparison], None],
) -> None:
    """Compare one entry of two folders, and its contents where the sample takes it."""
    result.entries += 1
    ours, theirs = (os.stat(name, dir_fd=one, follow_symlinks=False) for one in (original, copy))
    if how := next(describe_difference(ours, theirs), ""):
        result.differs(path, how)
        return
    if stat.S_ISLNK(ours.st_mode) and os.readlink(name, dir_fd=original) != os.readlink(name, dir_fd=copy):
        result.differs(path, Message("points elsewhere"))
    if attributes_of(original, name) != attributes_of(copy, name):
        result.differs(path, Message("has different attributes or access rights"))
    if stat.S_ISREG(ours.st_mode):
        result.total += ours.st_size
        if sample.takes(path, max(ours.st_mtime, ours.st_ctime)):
            result.files += 1
            if not same_contents(original, copy, name, result, tell):
                result.differs(path, Message("has different contents"))


def describe_difference(ours: os.stat_result, theirs: os.stat_result) -> Iterator[str]:
    if stat.S_IFMT(ours.st_mode) != stat.S_IFMT(theirs.st_mode):
        yield Message("is of a different kind")
    if ours.st_mode != theirs.st_mode:
        yield Message("has different access rights")
    if (ours.st_uid, ours.st_gid) != (theirs.st_uid, theirs.st_gid):
        yield Message("has a different owner")
    if stat.S_ISREG(ours.st_mode) and ours.st_size != theirs.st_size:
        yield Message("has a different size")
    if ours.st_mtime_ns != theirs.st_mtime_ns:
        yield Message("has a different time")
    if not stat.S_ISDIR(ours.st_mode) and ours.st_nlink != theirs.st_nlink:
        yield Message("has a different number of entries")


def attributes_of(folder: int, name: str) -> dict[str, bytes]:
    """The extended attributes of an entry, POSIX access rights among them; never those of what a link leads to."""
    path = f"/proc/self/fd/{folder}/{name}"
    found: dict[str, bytes] = {}
    with suppress(OSError):  # a file system or a kind of file without attributes
        for key in os.listxattr(path, follow_symlinks=False):
            found[key] = os.getxattr(path, key, follow_symlinks=False)
    return found


def same_contents(
    original: int, copy: int, name: str, result: TreeComparison, tell: Callable[[TreeComparison], None]
) -> bool:
    """Whether two files hold the same bytes. One that cannot be read is different."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handles: list[int] = []
    try:
        for folder in (original, copy):
            handles.append(os.open(name, flags, dir_fd=folder))
        while True:
            ours, theirs = (os.read(handle, PART) for handle in handles)
            if ours != theirs:
                return False
            if not ours:
                return True
            result.size += len(ours)
            tell(result)
    except OSError:
        return False
    finally:
        for handle in handles:
            os.close(handle)
