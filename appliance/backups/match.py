"""What has to be sent so that a copy gets a snapshot: decided by guids alone, before anything moves. Pure functions.

Snapshots of a dataset and of its copies share their guid, whatever they are called; a bookmark has that of its
snapshot. ZFS continues a copy only from the newest snapshot of the copy (zfs-receive(8)), so that one has to be known
at the source. Where it is not, the copy or its source went another way, and nothing is sent: no run destroys anything
to make a copy fit.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from appliance.errors import Reason
from appliance.facts.copy_mark import CopyMark


class Point(msgspec.Struct, frozen=True):
    """A moment of the source that a copy can continue from: a snapshot or, where it is gone, its bookmark."""

    name: str  # dataset@short or dataset#short
    guid: int


class Token(msgspec.Struct, frozen=True):
    """An interrupted receive, as the source's own ``zfs send -t`` reads it.
    Anybody may have written it: it is compared, not trusted."""

    text: str
    to_guid: int
    to_name: str
    from_guid: int = 0
    raw: bool = False
    done: int = 0  # bytes that have arrived


class Copy(msgspec.Struct, frozen=True):
    """A copy as it is. ``guids`` are those of its snapshots, oldest first, ``names`` what each is called;
    ``written``: bytes changed since the newest."""

    name: str
    exists: bool = False
    mark: CopyMark | None = None
    guids: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    written: int = 0
    token: Token | None = None


class Decision(msgspec.Struct, frozen=True):
    """``kind``: arrived, full, increment (from ``base``), resume (with ``token``), discard (the interrupted rest)."""

    kind: str
    base: str = ""
    token: str = ""


def conflict(source: str, guid: int, raw: bool, copy: Copy) -> Reason | None:
    """Why nothing may be sent to what is at the copy's place; None where it is the copy of this very dataset."""
    if not copy.exists:
        return None
    half_made = not copy.guids and copy.token is not None
    if copy.mark is None and not half_made:
        return Reason(
            "backup-target-taken",
            "{target} is not a copy that Larder made, so nothing is written there. Rename it, or choose another place.",
            field="path",
            target=copy.name,
        )
    if copy.mark and copy.mark.guid != guid:
        return Reason(
            "backup-target-of-other",
            "{target} is the copy of another folder than {source}. Choose another place.",
            field="path",
            target=copy.name,
            source=source,
        )
    if copy.mark and copy.mark.raw != raw:
        return Reason(
            "backup-mode-changed",
            "{source} was encrypted or decrypted since its first copy. Set {target} aside; the next run "
            "makes a new copy.",
            target=copy.name,
            source=source,
        )
    if copy.written and not half_made:  # what an interrupted first stream has brought counts as written
        return Reason(
            "backup-target-changed",
            "Files in the copy {target} were changed. Set it aside, and the next run makes a new copy; or "
            "roll it back to its newest snapshot.",
            target=copy.name,
        )
    return None


def decide(source: str, points: Iterable[Point], wanted: int, raw: bool, copy: Copy) -> Decision | Reason:
    """What to do next so that ``copy`` gets the snapshot with the guid ``wanted``; the Reason where nothing can be.

    ``points``: those of the source, snapshots before bookmarks. After a resumed or discarded rest, ask again.
    """
    known = {point.guid: point for point in reversed(list(points))}
    if copy.token is not None:
        return (
            Decision("resume", token=copy.token.text)
            if is_usable(copy.token, source, known, raw, copy)
            else Decision("discard")
        )
    if not copy.guids and copy.exists:
        return Reason(
            "backup-copy-empty",
            "All snapshots of the copy {target} were destroyed, so nothing can continue from it. Set it "
            "aside, and the next run makes a new copy.",
            target=copy.name,
        )
    if not copy.guids:
        return Decision("full")
    newest = copy.guids[-1]
    if newest == wanted:
        return Decision("arrived")
    if base := known.get(newest):
        short = known[wanted].name.partition("@")[2] if wanted in known else ""
        # What arrives is called as at the source, so ZFS would refuse the stream.
        if short in copy.names and wanted not in copy.guids:
            return Reason(
                "backup-name-there",
                "The copy {target} already has another snapshot called {name}. Nothing was sent. Back up "
                "again: the next run gives its snapshot another name.",
                target=copy.name,
                name=short,
            )
        return Decision("increment", base=base.name)
    if any(guid in known for guid in copy.guids):
        return Reason(
            "backup-diverged",
            "The copy {target} has snapshots that {source} no longer has: {source} was rolled back, or a "
            "snapshot was taken of the copy. Nothing was changed. Set the copy aside; the next run makes a "
            "new one.",
            target=copy.name,
            source=source,
        )
    return Reason(
        "backup-no-common-snapshot",
        "{source} and its copy {target} no longer have a snapshot in common. Nothing was changed. Set the "
        "copy aside; the next run makes a new one.",
        target=copy.name,
        source=source,
    )


def is_usable(token: Token, source: str, known: dict[int, Point], raw: bool, copy: Copy) -> bool:
    """Whether an interrupted receive can go on: it is of a snapshot of this dataset that still exists, it continues
    from where the copy is, and it sends in the same way. A forged token fails here."""
    point = known.get(token.to_guid)
    if point is None or point.name != token.to_name or token.to_name.partition("@")[0] != source:
        return False
    return token.from_guid == (copy.guids[-1] if copy.guids else 0) and token.raw == raw
