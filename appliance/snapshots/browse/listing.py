"""The content of a snapshot: a folder's entries, compared with the folder of now, and its files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import msgspec

from appliance import names
from appliance.errors import Failed, Reason, Refused
from appliance.facts.datasets import Dataset
from appliance.files import traversal
from appliance.snapshots.take import dataset_missing
from appliance.zfs import private_mount, status, system_datasets

AT_ONCE = 200  # entries a page
GONE = -1  # in place of the descriptor of a folder that does not exist any more


class FolderEntry(msgspec.Struct, frozen=True):
    """One entry of a folder. ``name`` is percent-encoded, ``mtime`` in seconds since 1970.

    ``now``: same, changed, gone, or empty if it cannot be compared.
    """

    name: str
    kind: str  # folder, file, link, other
    size: int
    mtime: float
    now: str = ""


class Listing(msgspec.Struct, frozen=True):
    """A page of a folder's entries, folders first. ``next``: where the next page begins, empty on the last."""

    entries: tuple[FolderEntry, ...]
    total: int
    next: str = ""


def kind_of(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "other"


def encode_position(folder: bool, name: bytes) -> str:
    """An entry's position in the order, for the address of a page."""
    return f"{0 if folder else 1}{names.encode_relative_path([name])}"


def sort_key(folder: bool, name: bytes) -> tuple[bool, bytes, bytes]:
    return not folder, name.lower(), name


def decode_position(after: str) -> tuple[bool, bytes, bytes]:
    """The inverse of ``encode_position``. Raises Refused."""
    parts = names.parse_relative_path(after[1:], field="after")
    if after[:1] not in {"0", "1"} or len(parts) != 1:
        raise Refused(Reason("list-position-invalid", "That is not a position in the list.", field="after"))
    return sort_key(after[0] == "0", parts[0])


@contextmanager
def open_live_folder(dataset: Dataset | None) -> Iterator[int | None]:
    """A descriptor of a dataset's top folder as it is now; None if it is not mounted."""
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


def list_entries(root: int, parts: tuple[bytes, ...], after: str, now: int | None) -> Listing:
    """A page of a snapshot's folder. ``now``: the dataset's top folder as it is now. Raises Refused."""
    try:
        with private_mount.open_beneath(root, parts) as found:
            if not stat.S_ISDIR(os.fstat(found).st_mode):
                raise Refused(Reason("not-a-folder", "That is not a folder. Choose a folder."))
            folder = private_mount.reopen_for_reading(found, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise Refused(Reason("folder-not-in-snapshot", "There is no such folder in this snapshot.")) from error
    start = decode_position(after) if after else None
    with ExitStack() as stack:
        stack.callback(os.close, folder)
        with os.scandir(folder) as entries:
            every = sorted(sort_key(entry.is_dir(follow_symlinks=False), os.fsencode(entry.name)) for entry in entries)
        rest = [key for key in every if start is None or key > start]
        current = stack.enter_context(open_current_folder(now, parts))
        page = tuple(entry_of(folder, name, current) for _kind, _lower, name in rest[:AT_ONCE])
    last = rest[AT_ONCE - 1] if len(rest) > AT_ONCE else None
    return Listing(page, len(every), encode_position(not last[0], last[2]) if last else "")


@contextmanager
def open_current_folder(root: int | None, parts: tuple[bytes, ...]) -> Iterator[int | None]:
    """A descriptor of the same folder as it is now; None without a root, ``GONE`` if it does not exist any more."""
    with ExitStack() as stack:
        handle: int | None = None
        if root is not None:
            try:
                handle = stack.enter_context(private_mount.open_beneath(root, parts))
            except (OSError, Refused):
                handle = GONE
        yield handle


def entry_of(folder: int, name: bytes, current: int | None) -> FolderEntry:
    then = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return FolderEntry(
        names.encode_relative_path([name]),
        kind_of(then.st_mode),
        then.st_size,
        then.st_mtime,
        compare_entry(then, name, current),
    )


def compare_entry(then: os.stat_result, name: bytes, current: int | None) -> str:
    """``FolderEntry.now`` of an entry, given the descriptor of the folder of now."""
    if current is None:
        return ""
    if current == GONE:
        return "gone"
    try:
        now = os.stat(name, dir_fd=current, follow_symlinks=False)
    except OSError:
        return "gone"
    if kind_of(now.st_mode) != kind_of(then.st_mode):
        return "changed"
    if stat.S_ISDIR(then.st_mode):
        return "same"
    return "same" if is_same_file(then, now) else "changed"


def is_same_file(then: os.stat_result, now: os.stat_result) -> bool:
    """Whether two stats are of the same content: ZFS keeps inode numbers, and any write changes size or mtime."""
    return (then.st_ino, then.st_size, then.st_mtime_ns) == (now.st_ino, now.st_size, now.st_mtime_ns)


def open_file(root: int, parts: tuple[bytes, ...]) -> int:
    """Open a file of a snapshot for reading. Raises Refused if there is none; links are not followed."""
    try:
        with private_mount.open_beneath(root, parts) as found:
            if not stat.S_ISREG(os.fstat(found).st_mode):
                raise Refused(
                    Reason("not-a-file", "That is a link or a special file. Larder shows only ordinary files.")
                )
            return private_mount.reopen_for_reading(found, os.O_RDONLY)
    except FileNotFoundError as error:
        raise Refused(Reason("file-not-in-snapshot", "There is no such file in this snapshot.")) from error


def dataset_now(name: str) -> Dataset:
    """The dataset as it is now. Raises Refused if Larder does not show its files."""
    datasets = status.read_datasets()
    dataset = next((one for one in datasets if one.name == name), None)
    if dataset is None:
        raise Refused(dataset_missing(name))
    if dataset.kind != "filesystem":
        raise Refused(is_volume(name))
    if dataset.locked:
        raise Refused(is_locked(name))
    if dataset.mountpoint == "/" or system_datasets.is_of_system(dataset, datasets):
        raise Refused(
            Reason("system-files-not-shown", "This is one of the system's own folders. Larder does not show its files.")
        )
    return dataset


def is_volume(dataset: str) -> Reason:
    return Reason("dataset-is-volume", "{dataset} is a volume: it holds a disk, not files.", dataset=dataset)


def is_locked(dataset: str) -> Reason:
    return Reason("dataset-locked", "{dataset} is locked. Unlock it first.", dataset=dataset)


def not_mounted(dataset: str) -> Reason:
    return Reason("dataset-not-mounted", "{dataset} is not mounted. Mount it first.", dataset=dataset)
