"""One file across all snapshots: only the versions that differ, found without looking into every snapshot."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from appliance.errors import Refused
from appliance.facts.datasets import Snapshot
from appliance.snapshots.browse import listing
from appliance.zfs import private_mount

SECONDS_AT_MOST = 20.0


@dataclass(frozen=True)
class Stamp:
    """What a look at a way down shows. ``proof`` is equal in two snapshots only where nothing changed in between.

    There: the file's inode, size, mtime and ctime, which nobody can set back. Not there: the same of the last folder on
    the way, whose mtime moves whenever a name comes or goes in it.
    """

    there: bool
    proof: tuple[int, ...]
    kind: str = ""
    size: int = 0
    mtime: float = 0.0


@dataclass(frozen=True)
class Version:
    """A stretch of snapshots that show the same. ``first`` and ``last`` are short names, oldest first."""

    there: bool
    first: str
    last: str
    guid: str  # of the last
    count: int
    kind: str
    size: int
    mtime: float


@dataclass(frozen=True)
class Versions:
    """Newest first. ``now``: whether the newest is what is in the folder now; None where that cannot be told."""

    versions: tuple[Version, ...]
    now: bool | None
    complete: bool


def stamp(root: int, parts: tuple[bytes, ...]) -> Stamp:
    """What lies that way down, or how far the way leads."""
    try:
        with private_mount.beneath(root, parts) as found:
            return there(os.fstat(found))
    except (FileNotFoundError, Refused):
        pass
    for depth in range(len(parts) - 1, -1, -1):
        try:
            with private_mount.beneath(root, parts[:depth]) as found:
                look = os.fstat(found)
                return Stamp(False, (depth, look.st_ino, look.st_mtime_ns, look.st_ctime_ns))
        except (FileNotFoundError, Refused):
            continue
    return Stamp(False, ())


def there(look: os.stat_result) -> Stamp:
    proof = (look.st_ino, look.st_size, look.st_mtime_ns, look.st_ctime_ns)
    # A folder's size is how many names it holds.
    size = 0 if stat.S_ISDIR(look.st_mode) else look.st_size
    return Stamp(True, proof, listing.kind_of(look.st_mode), size, look.st_mtime)


def stretches(
    count: int, look: Callable[[int], Stamp], go_on: Callable[[], bool] = lambda: True
) -> tuple[list[tuple[int, int, Stamp]], bool]:
    """The stretches of equal stamps among ``count`` looks, and whether all was looked at, by halving.

    Where both ends of a stretch are equal nothing changed in between, so a file that never changed in 2,000 snapshots
    costs two looks. Stopped early, what lies between two looks counts as the newer.
    """
    known: dict[int, Stamp] = {}
    complete = True

    def at(index: int) -> Stamp:
        if index not in known:
            known[index] = look(index)
        return known[index]

    open_ends = [(0, count - 1)] if count else []
    while open_ends:
        low, high = open_ends.pop()
        if at(low).proof == at(high).proof or high - low < 2:
            continue
        if not go_on():
            complete = False
            continue
        middle = (low + high) // 2
        open_ends += [(low, middle), (middle, high)]
    found: list[tuple[int, int, Stamp]] = []
    begin = 0
    for index in sorted(known):
        now = known[index]
        if found and found[-1][2].there == now.there and (not now.there or found[-1][2].proof == now.proof):
            found[-1] = (found[-1][0], index, found[-1][2])
        else:
            found.append((begin, index, now))
        begin = index + 1
    return found, complete


def read_versions(snapshots: Sequence[Snapshot], parts: tuple[bytes, ...], now: int | None) -> Versions:
    """The versions of a file in these snapshots of one dataset, oldest first. ``now``: its top folder as it is now."""
    until = time.monotonic() + SECONDS_AT_MOST

    def look(index: int) -> Stamp:
        with private_mount.root_of(snapshots[index].name) as root:
            return stamp(root, parts)

    found, complete = stretches(len(snapshots), look, lambda: time.monotonic() < until)
    versions = tuple(
        Version(seen.there, snapshots[low].short, snapshots[high].short, str(snapshots[high].guid), high - low + 1,
                seen.kind, seen.size, seen.mtime)
        for low, high, seen in reversed(found)
    )  # fmt: skip
    current = None if now is None or not found else stamp(now, parts)
    same = None if current is None else (current.there, current.there and current.proof) == (
        found[-1][2].there, found[-1][2].there and found[-1][2].proof)  # fmt: skip
    return Versions(versions, same, complete)
