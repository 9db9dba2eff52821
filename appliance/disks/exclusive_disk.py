"""A whole disk that is written to while nothing else may use it."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
import struct
from collections.abc import Callable, Iterator

from appliance.errors import Bug, Failed
from appliance.formatting import disk_size, time_left
from appliance.layout.geometry import MIB
from appliance.message import Message, join_messages

BLOCK = 4 * MIB  # one write; a multiple of every sector size
ENDS = 16 * MIB  # partition tables, labels and superblocks lie within this of either end
SMALL = 4096  # where a large write fails, bad sectors are found by writes of this size
MOST_BAD = 64
GONE = Message("The disk no longer answers: it was taken out, or its cable or its power failed")
SECONDS_BETWEEN_WORDS = 2.0
BLKGETSIZE64 = 0x80081272


def progress_text(done: int, size: int, seconds: float) -> str:
    """The progress in words, with the time left once it can be estimated."""
    words = Message("{done} of {size} written", done=disk_size(done), size=disk_size(size))
    known = seconds >= 10 and done >= 64 * MIB
    left = time_left(round((size - done) * seconds / done)) if known else Message("estimating the time left")
    return join_messages([words, left], ", ")


class ExclusiveDisk:
    """A disk opened exclusively (O_EXCL): the kernel refuses while another user has it, and other users meanwhile.

    Writes bypass the page cache where possible (O_DIRECT), so they evict nothing else.
    """

    def __init__(self, path: str, size_of: Callable[[int], int] | None = None) -> None:
        self.path, self.size_of = path, size_of or device_size
        self.handle, self.size, self.direct = -1, 0, False
        self.bad: list[int] = []
        self.zeros = mmap.mmap(-1, BLOCK)  # of whole pages: aligned as O_DIRECT wants it

    def __enter__(self) -> ExclusiveDisk:
        flags = os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC
        try:
            self.handle = self.open_direct(flags)
        except OSError as error:
            busy = Message("Something has begun to use this disk. Nothing more was written to it")
            unopened = Message("The disk could not be opened")
            raise Failed(busy if error.errno == errno.EBUSY else unopened, str(error)) from error
        try:
            self.size = self.size_of(self.handle)
        except OSError as error:
            os.close(self.handle)
            raise Failed(Message("The disk does not report its size"), str(error)) from error
        return self

    def open_direct(self, flags: int) -> int:
        try:
            handle = os.open(self.path, flags | os.O_DIRECT)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return os.open(self.path, flags)
        self.direct = True
        return handle

    def __exit__(self, *_details: object) -> None:
        os.close(self.handle)
        self.zeros.close()

    def write_zeros(self, start: int, end: int) -> Iterator[int]:
        """Write zeros from ``start`` to ``end``; yields the position after each write. Raises Failed."""
        at, unsynced = start, 0
        while at < end:
            length = min(BLOCK, end - at)
            written = self.write_block(at, length)
            if not written:
                self.find_bad(at, length)
                written = length
            at += written
            unsynced += written
            if not self.direct and unsynced >= 16 * BLOCK:
                self.sync_range(start, at)
                unsynced = 0
            yield at
        self.sync_range(start, end)

    def write_block(self, at: int, length: int) -> int:
        """Write ``length`` zeros; returns the bytes written, 0 where a sector cannot be written. Raises Failed."""
        with memoryview(self.zeros) as whole, whole[:length] as part:
            try:
                return os.pwrite(self.handle, part, at)
            except OSError as error:
                if self.is_gone():
                    raise Failed(GONE, str(error)) from error
                if error.errno != errno.EIO:
                    raise Failed(Message("The disk accepts no more writes"), str(error)) from error
                return 0

    def is_gone(self) -> bool:
        """Whether the disk was removed: the kernel then gives an open one the size 0 (bdev_mark_dead)."""
        try:
            return self.size_of(self.handle) != self.size
        except OSError:
            return True

    def find_bad(self, at: int, length: int) -> None:
        """Write a range sector by sector and collect those that cannot be written.
        Raises Failed where they are many."""
        for offset in range(at, at + length, SMALL):
            if self.write_block(offset, min(SMALL, at + length - offset)):
                continue
            self.bad.append(offset)
            if len(self.bad) >= MOST_BAD:
                raise Failed(
                    Message(
                        "{most_bad} sectors could not be written; the disk is failing. Do not use it again",
                        most_bad=MOST_BAD,
                    )
                )

    def require_written(self) -> None:
        """Raises Failed where a sector kept what it held."""
        if self.bad:
            raise Failed(
                Message(
                    "{count} sectors could not be written even once. Do not use this disk again", count=len(self.bad)
                )
            )

    def sync_range(self, start: int, end: int) -> None:
        try:
            os.fdatasync(self.handle)
        except OSError as error:
            raise Failed(
                GONE if self.is_gone() else Message("The disk lost what was written to it"), str(error)
            ) from error
        if not self.direct:
            os.posix_fadvise(self.handle, start, end - start, os.POSIX_FADV_DONTNEED)


def device_size(handle: int) -> int:
    """The size in bytes of an open block device. Raises OSError, and Bug for any other file."""
    if not stat.S_ISBLK(os.fstat(handle).st_mode):
        raise Bug("only a disk is erased")
    size: int = struct.unpack("Q", fcntl.ioctl(handle, BLKGETSIZE64, b"\0" * 8))[0]
    return size
