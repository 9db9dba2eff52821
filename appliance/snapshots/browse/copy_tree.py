"""Copy a file or a whole folder out of a snapshot, by descriptors alone, with times, modes, owners and attributes.

What is copied into is reachable to nobody until it is complete: it is made with no rights for anybody, under a name of
its own, and gets its rights last. So nobody can swap something into it on the way. Links are copied as links.

Holes stay holes, a file with several names is copied once, and ZFS may share the blocks with the snapshot instead of writing
them again (copy_file_range(2)).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from appliance.errors import Failed
from appliance.formatting import size_text
from appliance.operation import Work
from appliance.zfs import private_mount

CHUNK = 1 << 20
CLONED = 1 << 26  # bytes that the kernel is asked to copy at once
# It cannot copy between these two, or not at all: they are then read and written.
CANNOT = {errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EBADF}
PRIVILEGES = stat.S_ISUID | stat.S_ISGID
CAPABILITIES = "security.capability"
DEEPEST = 150  # folders within folders: each level holds a few descriptors
NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Copying:
    """One copy under way: counts first, so that it can say how far it is."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.files = self.bytes = self.done_files = self.done_bytes = self.left_out = self.depth = self.stripped = 0
        self.top = -1  # the topmost folder of the copy, which nobody else can enter before it is complete
        self.way: list[bytes] = []  # from there to the folder that is being filled
        self.names: dict[tuple[int, int], bytes] = {}  # of files with several names: where the copy is, from the top

    def count(self, handle: int) -> None:
        """How much lies in what an O_PATH descriptor holds."""
        look = os.fstat(handle)
        self.files += 1
        self.bytes += look.st_size if stat.S_ISREG(look.st_mode) else 0
        if stat.S_ISDIR(look.st_mode):
            with self.deeper():
                for _name, below in entries(handle):
                    self.count(below)
            self.work.stop_if_asked()

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Failed(f"There are more than {DEEPEST} folders within one another")
        yield
        self.depth -= 1

    def told(self, more: int) -> None:
        self.done_bytes += more
        whole = max(self.bytes + self.files, 1)
        said = f"{self.done_files} of {self.files}, {size_text(self.done_bytes)} of {size_text(self.bytes)}"
        self.work.progress(min(99, (self.done_bytes + self.done_files) * 100 // whole), said)
        self.work.stop_if_asked()

    def copy(self, source: int, name: bytes, into: int) -> None:
        """Make ``name`` in the folder ``into`` be what ``source`` (O_PATH) holds. Raises FileExistsError, OSError."""
        look = os.fstat(source)
        self.done_files += 1
        if stat.S_ISDIR(look.st_mode):
            self.folder(source, name, into, look)
        elif stat.S_ISREG(look.st_mode):
            self.file(source, name, into, look)
        elif stat.S_ISLNK(look.st_mode):
            os.symlink(os.readlink(b"", dir_fd=source), name, dir_fd=into)
            os.chown(name, look.st_uid, look.st_gid, dir_fd=into, follow_symlinks=False)
            os.utime(name, ns=(look.st_atime_ns, look.st_mtime_ns), dir_fd=into, follow_symlinks=False)
        else:
            self.left_out += 1  # a pipe, a socket, a device: nobody's document

    def folder(self, source: int, name: bytes, into: int, look: os.stat_result) -> None:
        os.mkdir(name, 0o700, dir_fd=into)
        made = os.open(name, FOLDER, dir_fd=into)
        first = self.top < 0
        try:
            if first:
                self.top = made
            else:
                self.way.append(name)
            with self.deeper():
                for entry, below in entries(source):
                    self.copy(below, entry, made)
            read = private_mount.opened(source, os.O_RDONLY | os.O_DIRECTORY)
            try:
                attributes(read, made, look)
            finally:
                os.close(read)
        finally:
            if first:
                self.top = -1
            else:
                self.way.pop()
            os.close(made)

    def file(self, source: int, name: bytes, into: int, look: os.stat_result) -> None:
        if self.linked(name, into, look):
            self.told(look.st_size)
            return
        read = private_mount.opened(source, os.O_RDONLY)
        made = -1
        try:
            made = os.open(name, NEW, 0o600, dir_fd=into)
            self.content(read, made, look.st_size)
            self.stripped += attributes(read, made, look)
            os.fsync(made)
        finally:
            os.close(read)
            if made >= 0:
                os.close(made)

    def linked(self, name: bytes, into: int, look: os.stat_result) -> bool:
        """Give a file that is copied already another name, as it had; whether it was."""
        if look.st_nlink < 2 or self.top < 0:
            return False
        key = (look.st_dev, look.st_ino)
        if known := self.names.get(key):
            os.link(known, name, src_dir_fd=self.top, dst_dir_fd=into, follow_symlinks=False)
            return True
        self.names[key] = b"/".join((*self.way, name))
        return False

    def content(self, read: int, made: int, size: int) -> None:
        """Copy what a file holds, and leave out what it does not."""
        at = 0
        while at < size:
            begins, ends = data_from(read, at, size)
            self.told(begins - at)
            at = begins
            while at < ends:
                done = moved(read, made, at, ends - at)
                if not done:
                    break
                at += done
                self.told(done)
            if at < ends:
                break  # it is shorter than it said
        os.ftruncate(made, size)


def data_from(read: int, at: int, size: int) -> tuple[int, int]:
    """Where the next data of a file begin, and where they end; both its size where only a hole follows."""
    try:
        begins = os.lseek(read, at, os.SEEK_DATA)
        return begins, min(os.lseek(read, begins, os.SEEK_HOLE), size)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size, size
        if error.errno in CANNOT:
            return at, size
        raise


def moved(read: int, made: int, at: int, most: int) -> int:
    """Copy some bytes from one file to the same place in another; how many, none at the end."""
    try:
        if done := os.copy_file_range(read, made, min(most, CLONED), at, at):
            return done
    except OSError as error:
        if error.errno not in CANNOT:
            raise
    part = os.pread(read, min(most, CHUNK), at)
    done = 0
    while done < len(part):
        done += os.pwrite(made, part[done:], at + done)
    return done


def entries(handle: int) -> Iterator[tuple[bytes, int]]:
    """The names in a folder, each with an O_PATH descriptor that is open until the next is asked for."""
    folder = private_mount.opened(handle, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(folder) as listed:
            names = [os.fsencode(entry.name) for entry in listed]
        for name in names:
            below = os.open(name, private_mount.WAY, dir_fd=folder)
            try:
                yield name, below
            finally:
                os.close(below)
    finally:
        os.close(folder)


def attributes(source: int, made: int, look: os.stat_result) -> bool:
    """Give what was made the owner, extended attributes (with them the ACL), mode and times of its source, in this order.

    A file gets no right to run as somebody else, nor capabilities: whoever had them then may have them no more. Whether it
    had any.
    """
    os.fchown(made, look.st_uid, look.st_gid)
    wanted, mode, had = set(os.listxattr(source)), stat.S_IMODE(look.st_mode), False
    if not stat.S_ISDIR(look.st_mode):
        had = bool(mode & PRIVILEGES) or CAPABILITIES in wanted
        mode &= ~PRIVILEGES
        wanted.discard(CAPABILITIES)
    for name in set(os.listxattr(made)) - wanted:
        os.removexattr(made, name)  # an ACL that it got from the folder it was made in
    for name in sorted(wanted):
        os.setxattr(made, name, os.getxattr(source, name))
    os.fchmod(made, mode)
    os.utime(made, ns=(look.st_atime_ns, look.st_mtime_ns))
    return had
