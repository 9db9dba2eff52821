"""Changes in a folder between two snapshots, or since one: ``zfs diff``, parsed for pages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

import msgspec

from appliance import command, names
from appliance.errors import Reason, Refused
from appliance.facts.copy_mark import parse_copy_mark
from appliance.request import Request
from appliance.snapshots.browse import listing

MOST = 2000  # changes shown
SECONDS = 60  # that a user waits at most
# zfs-diff(8)
WHAT = {"+": "new", "-": "gone", "M": "changed", "R": "moved"}
KINDS = {"/": "folder", "F": "file", "@": "link"}


class Change(msgspec.Struct, frozen=True):
    """One change. ``path`` and ``to``, the new path, are percent-encoded and relative to the dataset's top folder."""

    what: str  # new, gone, changed, moved
    kind: str  # folder, file, link, other
    path: str
    to: str = ""


class Difference(msgspec.Struct, frozen=True):
    """Changes by path; not ``complete`` if there are more, or ZFS took too long to find them."""

    changes: tuple[Change, ...]
    complete: bool


def unescape_path(text: bytes) -> bytes:
    """Decode a path of ``zfs diff``, which writes special bytes as a backslash and four octal digits (2.3.9)."""
    return re.sub(rb"\\(0[0-7]{3})", lambda match: bytes([int(match[1], 8) & 0xFF]), text)


def relative_path(path: bytes, top: bytes) -> str:
    """A full path relative to the dataset's top folder, percent-encoded; empty for the top folder itself."""
    rest = path.removeprefix(top).strip(b"/")
    return names.encode_relative_path(rest.split(b"/")) if rest else ""


def changes_from(lines: Iterable[bytes], top: str) -> Iterator[Change]:
    """Parse lines of ``zfs diff -F -H``: what happened, the kind, the path, and the new path if it was moved."""
    start = os.fsencode(top)
    for line in lines:
        what, kind, path, to = [*line.split(b"\t"), b"", b"", b"", b""][:4]
        change, relative = WHAT.get(what.decode(errors="replace")), relative_path(unescape_path(path), start)
        if change is None or (not relative and change == "changed"):
            continue
        kind_word = KINDS.get(kind.decode(errors="replace"), "other")
        yield Change(change, kind_word, relative, relative_path(unescape_path(to), start))


def read_diff(snapshot: str, until: str = "", seconds: int = SECONDS) -> Difference:
    """Compare a snapshot with a later one of the same dataset, or with the files of now, within so many seconds.

    Raises Refused, Failed.
    """
    name = snapshot.partition("@")[0]
    if until and until.partition("@")[0] != name:
        raise Refused(Reason("snapshots-of-several-datasets", "Choose two snapshots of the same folder."))
    dataset = listing.dataset_now(name)
    if not dataset.mounted:
        raise Refused(copy_not_compared(name) if parse_copy_mark(dataset.copy_of) else listing.not_mounted(name))
    argv = ["zfs", "diff", "-F", "-H", "--", snapshot, until or name]
    lines, complete = command.first_lines(argv, MOST, timeout=seconds)
    return Difference(tuple(sort_changes(changes_from(lines, dataset.mountpoint))), complete)


def copy_not_compared(copy: str) -> Reason:
    """``zfs diff`` needs a mounted folder, and the copies of backups are kept from being one."""
    return Reason(
        "copy-not-compared",
        "{copy} belongs to the copies of backups, which are never mounted, so its snapshots cannot be "
        "compared. Look at the files of each snapshot instead.",
        copy=copy,
    )


def sort_changes(found: Iterable[Change]) -> list[Change]:
    """Sort by path, without folders that changed only because of listed names in them."""
    changes = list(found)
    parents = {change.path.rpartition("/")[0] for change in changes}
    parents |= {change.to.rpartition("/")[0] for change in changes if change.to}
    return sorted(
        (
            change
            for change in changes
            if not (change.what == "changed" and change.kind == "folder" and change.path in parents)
        ),
        key=lambda change: change.path,
    )


class ReadDifference(Request, tag="read-difference"):
    """What changed from a snapshot to a later one of the same dataset, or until now, as far as
    it is found in that time."""

    snapshot: str
    until: str = ""
    seconds: int = SECONDS

    def __post_init__(self) -> None:
        names.existing_snapshot(self.snapshot)
        if not 1 <= self.seconds <= SECONDS:
            raise Refused(Reason("wait-out-of-range", "That is not a time to wait."))
        if self.until:
            names.existing_snapshot(self.until)

    def read(self) -> object:
        return read_diff(self.snapshot, self.until, self.seconds)
