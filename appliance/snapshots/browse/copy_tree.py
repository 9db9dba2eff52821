"""Copy a file or a folder tree out of a snapshot by descriptors, with times, modes, owners and extended attributes.

Nobody else can enter the copy until it is complete: it is made without rights, under a temporary name, and gets its
rights last. So nobody can swap something into it meanwhile. Links are copied as links.

Holes stay holes, a file with several hard links is copied once, and ZFS may share blocks with the snapshot instead of
writing them again (copy_file_range(2)).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from appliance.errors import Failed
from appliance.formatting import size_text
from appliance.message import Message
from appliance.operation import Work
from appliance.zfs import private_mount

CHUNK = 1 << 20
CLONED = 1 << 26  # bytes that the kernel copies in one call
# Errors that mean that the kernel cannot copy between these files, which are then read and written.
CANNOT = {errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EBADF}
PRIVILEGES = stat.S_ISUID | stat.S_ISGID
CAPABILITIES = "security.capability"
DEEPEST = 150  # nested folders; each level holds a few descriptors
NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeCopy:
    """One copy in progress. It counts everything first to report progress."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.files = self.bytes = self.done_files = self.done_bytes = self.left_out = self.depth = self.stripped = 0
        self.top = -1  # the topmost folder of the copy, which nobody else can enter before it is complete
        self.way: list[bytes] = []  # path from there to the folder being filled
        self.names: dict[tuple[int, int], bytes] = {}  # of files with several hard links: the copy's path from the top

    def count_tree(self, handle: int) -> None:
        """Count the files and bytes below an O_PATH descriptor."""
        status = os.fstat(handle)
        self.files += 1
        self.bytes += status.st_size if stat.S_ISREG(status.st_mode) else 0
        if stat.S_ISDIR(status.st_mode):
            with self.enter_level():
                for _name, below in open_entries(handle):
                    self.count_tree(below)
            self.work.stop_if_asked()

    @contextmanager
    def enter_level(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Failed(Message("Folders are nested more than {deepest} levels deep", deepest=DEEPEST))
        yield
        self.depth -= 1

    def report_bytes(self, more: int) -> None:
        self.done_bytes += more
        whole = max(self.bytes + self.files, 1)
        text = Message(
            "{done_files} of {files}, {done} of {size}",
            done_files=self.done_files,
            files=self.files,
            done=size_text(self.done_bytes),
            size=size_text(self.bytes),
        )
        self.work.progress(min(99, (self.done_bytes + self.done_files) * 100 // whole), text)
        self.work.stop_if_asked()

    def copy_entry(self, source: int, name: bytes, into: int) -> None:
        """Copy what ``source`` (O_PATH) holds to ``name`` in the folder ``into``. Raises FileExistsError, OSError."""
        status = os.fstat(source)
        self.done_files += 1
        if stat.S_ISDIR(status.st_mode):
            self.copy_folder(source, name, into, status)
        elif stat.S_ISREG(status.st_mode):
            self.copy_file(source, name, into, status)
        elif stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(b"", dir_fd=source), name, dir_fd=into)
            os.chown(name, status.st_uid, status.st_gid, dir_fd=into, follow_symlinks=False)
            os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=into, follow_symlinks=False)
        else:
            self.left_out += 1  # a pipe, socket or device

    def copy_folder(self, source: int, name: bytes, into: int, status: os.stat_result) -> None:
        os.mkdir(name, 0o700, dir_fd=into)
        made = os.open(name, FOLDER, dir_fd=into)
        first = self.top < 0
        try:
            if first:
                self.top = made
            else:
                self.way.append(name)
            with self.enter_level():
                for entry, below in open_entries(source):
                    self.copy_entry(below, entry, made)
            read = private_mount.reopen_for_reading(source, os.O_RDONLY | os.O_DIRECTORY)
            try:
                copy_attributes(read, made, status)
            finally:
                os.close(read)
        finally:
            if first:
                self.top = -1
            else:
                self.way.pop()
            os.close(made)

    def copy_file(self, source: int, name: bytes, into: int, status: os.stat_result) -> None:
        if self.link_copied(name, into, status):
            self.report_bytes(status.st_size)
            return
        read = private_mount.reopen_for_reading(source, os.O_RDONLY)
        made = -1
        try:
            made = os.open(name, NEW, 0o600, dir_fd=into)
            self.copy_content(read, made, status.st_size)
            self.stripped += copy_attributes(read, made, status)
            os.fsync(made)
        finally:
            os.close(read)
            if made >= 0:
                os.close(made)

    def link_copied(self, name: bytes, into: int, status: os.stat_result) -> bool:
        """Make a hard link to a file that is copied already. Returns whether it was."""
        if status.st_nlink < 2 or self.top < 0:
            return False
        key = (status.st_dev, status.st_ino)
        if known := self.names.get(key):
            os.link(known, name, src_dir_fd=self.top, dst_dir_fd=into, follow_symlinks=False)
            return True
        self.names[key] = b"/".join((*self.way, name))
        return False

    def copy_content(self, read: int, made: int, size: int) -> None:
        """Copy a file's data and keep its holes."""
        at = 0
        while at < size:
            begins, ends = find_data(read, at, size)
            self.report_bytes(begins - at)
            at = begins
            while at < ends:
                done = copy_bytes(read, made, at, ends - at)
                if not done:
                    break
                at += done
                self.report_bytes(done)
            if at < ends:
                break  # shorter than its size says
        os.ftruncate(made, size)


def find_data(read: int, at: int, size: int) -> tuple[int, int]:
    """Where a file's next data begin and end; both are its size if only a hole follows."""
    try:
        begins = os.lseek(read, at, os.SEEK_DATA)
        return begins, min(os.lseek(read, begins, os.SEEK_HOLE), size)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size, size
        if error.errno in CANNOT:
            return at, size
        raise


def copy_bytes(read: int, made: int, at: int, most: int) -> int:
    """Copy some bytes from one file to the same offset of another. Returns how many, 0 at the end."""
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


def open_entries(handle: int) -> Iterator[tuple[bytes, int]]:
    """The names in a folder, each with an O_PATH descriptor that stays open until the next is requested."""
    folder = private_mount.reopen_for_reading(handle, os.O_RDONLY | os.O_DIRECTORY)
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


def copy_attributes(source: int, made: int, status: os.stat_result) -> bool:
    """Copy owner, extended attributes (including the ACL), mode and times, in this order.

    Set-uid, set-gid and capabilities of files are dropped, since the user who had them then may not have them any more.
    Returns whether there were any.
    """
    os.fchown(made, status.st_uid, status.st_gid)
    wanted, mode, had = set(os.listxattr(source)), stat.S_IMODE(status.st_mode), False
    if not stat.S_ISDIR(status.st_mode):
        had = bool(mode & PRIVILEGES) or CAPABILITIES in wanted
        mode &= ~PRIVILEGES
        wanted.discard(CAPABILITIES)
    for name in set(os.listxattr(made)) - wanted:
        os.removexattr(made, name)  # an ACL inherited from the parent folder
    for name in sorted(wanted):
        os.setxattr(made, name, os.getxattr(source, name))
    os.fchmod(made, mode)
    os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))
    return had
