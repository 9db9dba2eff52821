"""What a snapshot holds: the entries of one of its folders, compared with the folder of now, and its files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from appliance import names
from appliance.errors import Failed, Reason, Refused
from appliance.facts.datasets import Dataset
from appliance.files import traversal
from appliance.zfs import private_mount, status, system_datasets

AT_ONCE = 200  # entries a page


@dataclass(frozen=True)
class FolderEntry:
    """One name in a folder. ``name`` is percent-encoded; ``mtime`` in seconds since 1970; ``now``: same, changed, gone, or
    empty where nothing can be compared."""

    name: str
    kind: str  # folder, file, link, other
    size: int
    mtime: float
    now: str = ""


@dataclass(frozen=True)
class Listing:
    """A page of a folder's entries, folders first. ``next`` is where the following page begins, empty on the last."""

    entries: tuple[FolderEntry, ...]
    total: int
    next: str = ""


def kind_of(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "other"


def place(folder: bool, name: bytes) -> str:
    """Where an entry stands in the order, as the address of a page says it: folders first, then by name."""
    return f"{0 if folder else 1}{names.encode_relative_path([name])}"


def order(folder: bool, name: bytes) -> tuple[bool, bytes, bytes]:
    return not folder, name.lower(), name


def position(after: str) -> tuple[bool, bytes, bytes]:
    """The inverse of ``place``. Raises Refused."""
    parts = names.parse_relative_path(after[1:], field="after")
    if after[:1] not in {"0", "1"} or len(parts) != 1:
        raise names.refuse("That is not a place in the list.", "after")
    return order(after[0] == "0", parts[0])


@contextmanager
def live(dataset: Dataset | None) -> Iterator[int | None]:
    """The top folder of a dataset as it is now; None where it is not mounted."""
    with ExitStack() as stack:
        handle = None
        if dataset and dataset.mounted and dataset.mountpoint.startswith("/"):
            try:
                handle = stack.enter_context(traversal.open_dir_nofollow(dataset.mountpoint))
                if traversal.dataset_of(handle) != dataset.name:
                    handle = None
            except Failed:
                handle = None
        yield handle


def entries(root: int, parts: tuple[bytes, ...], after: str, now: int | None) -> Listing:
    """A page of what a folder of a snapshot holds. Raises Refused where there is no such folder."""
    try:
        with private_mount.beneath(root, parts) as found:
            if not stat.S_ISDIR(os.fstat(found).st_mode):
                raise Refused(Reason("", "That is not a folder."))
            folder = private_mount.opened(found, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise Refused(Reason("", "There is no such folder in this snapshot.")) from error
    start = position(after) if after else None
    with ExitStack() as stack:
        stack.callback(os.close, folder)
        with os.scandir(folder) as listed:
            every = sorted(order(entry.is_dir(follow_symlinks=False), os.fsencode(entry.name)) for entry in listed)
        rest = [one for one in every if start is None or one > start]
        beside = stack.enter_context(beside_now(now, parts))
        page = tuple(entry_of(folder, name, beside) for _kind, _lower, name in rest[:AT_ONCE])
    last = rest[AT_ONCE - 1] if len(rest) > AT_ONCE else None
    return Listing(page, len(every), place(not last[0], last[2]) if last else "")


@contextmanager
def beside_now(root: int | None, parts: tuple[bytes, ...]) -> Iterator[int | None]:
    """The same folder as it is now: None where that cannot be told, -1 where it is not there any more."""
    with ExitStack() as stack:
        handle: int | None = None
        if root is not None:
            try:
                handle = stack.enter_context(private_mount.beneath(root, parts))
            except (OSError, Refused):
                handle = -1
        yield handle


def entry_of(folder: int, name: bytes, beside: int | None) -> FolderEntry:
    then = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return FolderEntry(
        names.encode_relative_path([name]),
        kind_of(then.st_mode),
        then.st_size,
        then.st_mtime,
        compared(then, name, beside),
    )


def compared(then: os.stat_result, name: bytes, beside: int | None) -> str:
    if beside is None:
        return ""
    try:
        if beside < 0:
            return "gone"
        now = os.stat(name, dir_fd=beside, follow_symlinks=False)
    except OSError:
        return "gone"
    if kind_of(now.st_mode) != kind_of(then.st_mode):
        return "changed"
    if stat.S_ISDIR(then.st_mode):
        return "same"
    return "same" if same(then, now) else "changed"


def same(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether two looks at a file show the same content: ZFS keeps inode numbers, and moves ctime at any change."""
    return (one.st_ino, one.st_size, one.st_mtime_ns) == (other.st_ino, other.st_size, other.st_mtime_ns)


def file(root: int, parts: tuple[bytes, ...]) -> int:
    """A file of a snapshot, opened for reading only. Raises Refused where there is none: links are not followed."""
    try:
        with private_mount.beneath(root, parts) as found:
            if not stat.S_ISREG(os.fstat(found).st_mode):
                raise Refused(Reason("", "That is not a file that can be shown: Larder follows no links."))
            return private_mount.opened(found, os.O_RDONLY)
    except FileNotFoundError as error:
        raise Refused(Reason("", "There is no such file in this snapshot.")) from error


def dataset_now(name: str) -> Dataset:
    """The dataset as it is now. Raises Refused where it is none whose files Larder shows."""
    every = status.read_datasets()
    found = next((one for one in every if one.name == name), None)
    if found is None:
        raise Refused(Reason("", f"{name} is no longer there."))
    if found.kind != "filesystem":
        raise Refused(Reason("", f"{name} is a volume: it holds a disk, not files."))
    if found.locked:
        raise Refused(Reason("", f"{name} is locked. Unlock it first."))
    if found.mountpoint == "/" or system_datasets.is_of_system(found, every):
        raise Refused(Reason("", "This is a part of the system's own folders. Larder does not show what is in it."))
    return found
