"""Detect manual changes of the files that Larder writes: how they differ, and what adopting each would set.

Nothing here changes anything. Whether a file was edited is seen without asking any daemon (``on_disk``), so
collectors may look often; what Larder would write in its place only root can tell (``read``), since it
depends on what was agreed to.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from appliance.facts.box import Facts
from appliance.request import Request
from appliance.shares import discovery, publish
from appliance.shares.drift import parse
from appliance.shares.owned_file import MARK, OwnedFile, content_fingerprint
from appliance.shares.set_share import SetShare
from appliance.zfs import status

MOST_LINES = 400
LONGEST_LINE = 300
UNREADABLE = "unreadable"  # a fingerprint that none is: somebody took away the right to read the file
BY_HAND = ".by-hand-"
ANNOUNCEMENT = re.compile(r"larder(-nfs-[0-9]{1,20})?\.service")


class OnDisk(msgspec.Struct, frozen=True):
    """An owned file that was changed by hand (``seen`` is its fingerprint, else empty), and copies of earlier edits."""

    key: str
    path: str
    seen: str = ""
    copies: tuple[str, ...] = ()


class Edit(msgspec.Struct, frozen=True):
    """A hand edit as a page shows it. ``key`` names the file: a protocol, or a file of Avahi's folder."""

    key: str
    path: str
    seen: str = ""
    diff: tuple[str, ...] = ()  # unified, from what Larder would write to what is there
    left_out: int = 0  # lines of the difference that are not in ``diff``
    changes: tuple[SetShare, ...] = ()  # what adopting it would set
    against: tuple[str, ...] = ()  # why it cannot be adopted, in sentences
    copies: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path

    @property
    def adoptable(self) -> bool:
        return bool(self.seen) and not self.against


def owned_of(key: str) -> OwnedFile | None:
    """The file of that key; None where it is no file of Larder's."""
    if one := publish.protocol_named(key):
        return one.owned
    return discovery.announcement_file(key) if ANNOUNCEMENT.fullmatch(key) else None


def copy_of(owned: OwnedFile, seen: str) -> Path:
    """Where a hand edit is kept once it is decided about. No daemon reads a file of such a name:
    Avahi and the NFS server go by the ending, the others by the whole name."""
    return owned.path.with_name(f"{owned.path.name}{BY_HAND}{seen[:12]}")


def owned_keys() -> Iterator[str]:
    """Every file that Larder owns here, also those whose copies alone are left."""
    yield from publish.SERVING
    found = {path.name.partition(BY_HAND)[0] for path in discovery.FOLDER.glob("larder*")}
    yield from sorted(name for name in found if ANNOUNCEMENT.fullmatch(name))


def on_disk() -> dict[str, OnDisk]:
    """The files that were changed by hand or have copies, by their keys. Needs no root; asks no daemon."""
    found = {}
    for key in owned_keys():
        owned = owned_of(key)
        if owned is None:
            continue
        try:
            seen = owned.fingerprint() if owned.drifted() else ""
        except OSError:
            seen = UNREADABLE
        copies = tuple(sorted(str(path) for path in owned.path.parent.glob(f"{owned.path.name}{BY_HAND}*")))
        if seen or copies:
            found[key] = OnDisk(key, str(owned.path), seen, copies)
    return found


def wanted_text(key: str, facts: Facts) -> str | None:
    """What Larder would write into that file; None where it would have no such file."""
    if one := publish.protocol_named(key):
        return one.render(facts)
    return discovery.render_files(facts.datasets).get(key)


def facts_now() -> Facts:
    """All folders, of which only those that somebody agreed to share ask for anything: a hand edit may share
    another one. Raises Failed."""
    found = publish.agreed_facts()
    agreed = {one.guid for one in found.datasets}
    every = (
        one if one.guid in agreed else replace(one, share="", share_source="none") for one in status.read_datasets()
    )
    return replace(found, datasets=tuple(every))


def detect_drift(facts: Facts) -> list[Edit]:
    """Every hand edit, against what Larder would write from these facts (``facts_now``)."""
    return [edit_of(found, facts) for found in on_disk().values() if found.seen]


def edit_of(found: OnDisk, facts: Facts) -> Edit:
    owned = owned_of(found.key)
    assert owned is not None  # noqa: S101 - its key comes from ``owned_keys``
    there = owned.path.read_bytes()
    text, body = there.decode(errors="replace"), wanted_text(found.key, facts)
    lines = list(
        difflib.unified_diff(
            without_marker(body or "").splitlines(),
            without_marker(text).splitlines(),
            "as Larder would write it",
            "as it is",
            lineterm="",
        )
    )
    changes, against = parse.parse_changes(found.key, text, facts)
    return Edit(
        found.key,
        found.path,
        content_fingerprint(there),
        tuple(visible_line(line[:LONGEST_LINE]) for line in lines[:MOST_LINES]),
        max(len(lines) - MOST_LINES, 0),
        () if against else changes,
        against,
        found.copies,
    )


def visible_line(line: str) -> str:
    """A line with a mark in the place of what cannot be seen."""
    return "".join(letter if letter.isprintable() or letter == "\t" else "\ufffd" for letter in line)


def without_marker(text: str) -> str:
    """Without the first line by which Larder knows its file: it differs with every change."""
    first, _, rest = text.partition("\n")
    return rest if MARK.removeprefix("# ") in first else text


class ReadEdits(Request, tag="read-edits"):
    """Which owned files were changed by hand, and how they differ from what would be written."""

    def read(self) -> object:
        return detect_drift(facts_now())
