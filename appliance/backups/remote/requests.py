"""What pages ask of another computer while they load: which copies it has, and of which moments.
Nothing is changed there."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.backups.moments import Kept, Moment, list_moments
from appliance.backups.remote import settings
from appliance.backups.remote.answers import RemoteCopy
from appliance.backups.remote.remote_place import list_all
from appliance.backups.remote.remote_source import RemoteSource
from appliance.backups.remote.restore_remote import SHORT, RemotePart, kept_in, parts_of
from appliance.errors import Reason, Refused
from appliance.facts.datasets import names_above
from appliance.request import Request
from appliance.strict_struct import StrictStruct

MOST_COPIES = 1000


class ListedCopy(StrictStruct):
    """A copy on another computer. ``short``: the newest moment of it with those below it, empty where none of it is
    complete; ``snapshots``: its own."""

    name: str
    original: int
    short: str
    snapshots: int


class CopyTree(StrictStruct):
    """The newest moments of a copy, the newest first; ``parts``: what a restore of the chosen one brings."""

    original: int
    folders: int
    moments: tuple[Moment, ...]
    parts: tuple[RemotePart, ...] = ()


class ListRemoteCopies(Request, tag="list-remote-copies"):
    """The copies that lie on another computer. Raises Unreachable, Refused, Failed."""

    remote: str

    def __post_init__(self) -> None:
        settings.check_key(self.remote)

    def read(self) -> tuple[ListedCopy, ...]:
        return list_copies(list_all(settings.find_remote(self.remote)))


class ReadRemoteCopy(Request, tag="read-remote-copy"):
    """The moments of one copy; with ``moment``, the name of the snapshots of one of them, what its restore brings."""

    remote: str
    copy: str
    moment: str = ""

    def __post_init__(self) -> None:
        settings.check_key(self.remote)
        settings.check_remote_name(self.copy, field="copy")
        if self.moment and not SHORT.fullmatch(self.moment):
            raise Refused(Reason("snapshot-name-malformed", "That is not the name of a snapshot.", field="snapshot"))

    def read(self) -> CopyTree:
        return copy_tree(RemoteSource.ask(self.remote).read_tree(self.copy), self.copy, self.moment)


def list_copies(found: Mapping[str, RemoteCopy]) -> tuple[ListedCopy, ...]:
    """What a page lists of the copies on a computer."""
    newest = newest_moments(found)
    marked = ((name, copy, copy.mark) for name, copy in sorted(found.items()))
    listed = [
        ListedCopy(name=name, original=mark.guid, short=newest.get(name, ""), snapshots=len(copy.snapshots))
        for name, copy, mark in marked
        if mark
    ]
    return tuple(listed[:MOST_COPIES])


def copy_tree(found: Mapping[str, RemoteCopy], top: str, moment: str) -> CopyTree:
    """The moments of a copy, given it and those below it, and what the restore of one of them brings."""
    mark = found.get(top, RemoteCopy()).mark
    moments = list_moments(kept_in(found), top)
    known = moment in {one.short for one in moments}
    return CopyTree(
        original=mark.guid if mark else 0,
        folders=sum(1 for copy in found.values() if copy.mark),
        moments=tuple(moments),
        parts=tuple(parts_of(top, found, moment)) if known else (),
    )


def newest_moments(found: Mapping[str, RemoteCopy]) -> dict[str, str]:
    """By the name of each copy, the newest moment as of which it can be restored with those below it."""
    trees: dict[str, list[Kept]] = {}
    for one in kept_in(found):
        for top in (one.dataset, *names_above(one.dataset)):
            trees.setdefault(top, []).append(one)
    return {top: moments[0].short for top, kept in trees.items() if (moments := list_moments(kept, top))}
