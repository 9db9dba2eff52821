"""What changed in a folder between two snapshots, or since one: ``zfs diff`` in a form that pages can show."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from appliance import command, names
from appliance.errors import Reason, Refused
from appliance.snapshots.browse import listing

MOST = 2000  # changes that are shown
SECONDS = 60  # that a person waits at most
# zfs-diff(8)
WHAT = {"+": "new", "-": "gone", "M": "changed", "R": "moved"}
KINDS = {"/": "folder", "F": "file", "@": "link"}


@dataclass(frozen=True)
class Change:
    """``path`` and ``to`` are percent-encoded and below the dataset's top folder; ``to``: where it was moved."""

    what: str  # new, gone, changed, moved
    kind: str  # folder, file, link, other
    path: str
    to: str = ""


@dataclass(frozen=True)
class Difference:
    changes: tuple[Change, ...]
    complete: bool


def unescaped(text: bytes) -> bytes:
    """A path as ``zfs diff`` writes it: anything unusual is a backslash and four octal digits (2.3.9)."""
    return re.sub(rb"\\(0[0-7]{3})", lambda found: bytes([int(found[1], 8) & 0xFF]), text)


def below(path: bytes, top: bytes) -> str:
    """A full path as the way down from the dataset's top folder; empty for the top folder itself."""
    rest = path.removeprefix(top).strip(b"/")
    return names.encode_relative_path(rest.split(b"/")) if rest else ""


def changes_from(lines: Iterable[bytes], top: str) -> Iterator[Change]:
    """Of ``zfs diff -F -H``: what happened, the kind, the path, and for what was moved the new path."""
    start = os.fsencode(top)
    for line in lines:
        what, kind, path, to = [*line.split(b"\t"), b"", b"", b"", b""][:4]
        said, way = WHAT.get(what.decode(errors="replace")), below(unescaped(path), start)
        if said is None or (not way and said == "changed"):
            continue
        yield Change(said, KINDS.get(kind.decode(errors="replace"), "other"), way, below(unescaped(to), start))


def read_diff(snapshot: str, until: str = "", seconds: int = SECONDS) -> Difference:
    """What changed from a snapshot to a later one of the same dataset, or until now; not complete where the time was too
    short. Raises Refused, Failed."""
    name = snapshot.partition("@")[0]
    if until and until.partition("@")[0] != name:
        raise Refused(Reason("", "Both have to be snapshots of the same folder."))
    dataset = listing.dataset_now(name)
    if not dataset.mounted:
        raise Refused(Reason("", f"{name} is not mounted. Mount it first: ZFS compares only folders that are in use."))
    argv = ["zfs", "diff", "-F", "-H", "--", snapshot, until or name]
    lines, complete = command.first_lines(argv, MOST, timeout=seconds)
    return Difference(tuple(sort(changes_from(lines, dataset.mountpoint))), complete)


def sort(found: Iterable[Change]) -> list[Change]:
    """By path. A folder in which only names came or went is told by those names."""
    changes = list(found)
    told = {one.path.rpartition("/")[0] for one in changes} | {one.to.rpartition("/")[0] for one in changes if one.to}
    return sorted(
        (one for one in changes if not (one.what == "changed" and one.kind == "folder" and one.path in told)),
        key=lambda one: one.path,
    )
