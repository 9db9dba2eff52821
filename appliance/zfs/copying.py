"""Copy a file or a whole folder out of a snapshot, by descriptors alone, with times, modes, owners and attributes.

What is copied into is reachable to nobody until it is complete: it is made with no rights for anybody, under a name of
its own, and gets its rights last. So nobody can swap something into it on the way. Links are copied as links.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from appliance.errors import Failed
from appliance.operation import Work
from appliance.words import size_text
from appliance.zfs import looking

CHUNK = 1 << 20
DEEPEST = 150  # folders within folders: each level holds a few descriptors
NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Copying:
    """One copy under way: counts first, so that it can say how far it is."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.files = self.bytes = self.done_files = self.done_bytes = self.left_out = self.depth = 0

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
        try:
            with self.deeper():
                for entry, below in entries(source):
                    self.copy(below, entry, made)
            read = looking.opened(source, os.O_RDONLY | os.O_DIRECTORY)
            try:
                attributes(read, made, look)
            finally:
                os.close(read)
        finally:
            os.close(made)

    def file(self, source: int, name: bytes, into: int, look: os.stat_result) -> None:
        read = looking.opened(source, os.O_RDONLY)
        made = -1
        try:
            made = os.open(name, NEW, 0o600, dir_fd=into)
            while part := os.read(read, CHUNK):
                view = memoryview(part)
                while view:
                    view = view[os.write(made, view) :]
                self.told(len(part))
            attributes(read, made, look)
            os.fsync(made)
        finally:
            os.close(read)
            if made >= 0:
                os.close(made)


def entries(handle: int) -> Iterator[tuple[bytes, int]]:
    """The names in a folder, each with an O_PATH descriptor that is open until the next is asked for."""
    folder = looking.opened(handle, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(folder) as listed:
            names = [os.fsencode(entry.name) for entry in listed]
        for name in names:
            below = os.open(name, looking.WAY, dir_fd=folder)
            try:
                yield name, below
            finally:
                os.close(below)
    finally:
        os.close(folder)


def attributes(source: int, made: int, look: os.stat_result) -> None:
    """Give what was made the owner, extended attributes (with them the ACL), mode and times of its source, in this order."""
    os.fchown(made, look.st_uid, look.st_gid)
    wanted = set(os.listxattr(source))
    for name in set(os.listxattr(made)) - wanted:
        os.removexattr(made, name)  # an ACL that it got from the folder it was made in
    for name in sorted(wanted):
        os.setxattr(made, name, os.getxattr(source, name))
    os.fchmod(made, stat.S_IMODE(look.st_mode))
    os.utime(made, ns=(look.st_atime_ns, look.st_mtime_ns))
