"""The distinct versions of one file across all snapshots, found by bisection instead of reading every snapshot."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence

import msgspec

from appliance.errors import Refused
from appliance.facts.datasets import Snapshot
from appliance.snapshots.browse import listing
from appliance.zfs import private_mount

SECONDS_AT_MOST = 20.0


class Stamp(msgspec.Struct, frozen=True):
    """The state of a path in one snapshot. ``proof`` is equal in two snapshots only if nothing changed in between.

    For a file: its inode, size, mtime and ctime; nobody can set back the ctime. If the path is missing: the same of the
    last folder on the way, whose mtime changes whenever a name in it is added or removed.
    """

    there: bool
    proof: tuple[int, ...]
    kind: str = ""
    size: int = 0
    mtime: float = 0.0


class Version(msgspec.Struct, frozen=True):
    """A run of snapshots with the same state. ``first`` and ``last`` are short names, oldest first."""

    there: bool
    first: str
    last: str
    guid: str  # of the last
    count: int
    kind: str
    size: int
    mtime: float


class Versions(msgspec.Struct, frozen=True):
    """Newest first. ``now``: what there is of it now, against the newest:
    ``same``, ``changed`` or ``gone``; empty where that is not known."""

    versions: tuple[Version, ...]
    now: str
    complete: bool


def read_stamp(root: int, parts: tuple[bytes, ...]) -> Stamp:
    """The state of a path below ``root``, or of the last existing folder on the way to it."""
    try:
        with private_mount.open_beneath(root, parts) as handle:
            return stamp_of(os.fstat(handle))
    except (FileNotFoundError, Refused):
        pass
    for depth in range(len(parts) - 1, -1, -1):
        try:
            with private_mount.open_beneath(root, parts[:depth]) as handle:
                status = os.fstat(handle)
                return Stamp(False, (depth, status.st_ino, status.st_mtime_ns, status.st_ctime_ns))
        except (FileNotFoundError, Refused):
            continue
    return Stamp(False, ())


def stamp_of(status: os.stat_result) -> Stamp:
    proof = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    # A folder's size is the number of its entries.
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return Stamp(True, proof, listing.kind_of(status.st_mode), size, status.st_mtime)


def is_same_state(one: Stamp, other: Stamp) -> bool:
    """Whether a page shows both as one version: the same file, or missing in both."""
    return one.there == other.there and (not one.there or one.proof == other.proof)


def bisect_runs(
    count: int, look: Callable[[int], Stamp], go_on: Callable[[], bool] = lambda: True
) -> tuple[list[tuple[int, int, Stamp]], bool]:
    """Bisect ``count`` snapshots into runs with an equal stamp. Returns the runs and whether every boundary was found.

    If both ends of a range are equal nothing changed in between, so a file that never changed in 2,000 snapshots is
    read only twice. If ``go_on`` stops it early, the snapshots that were not read count to the newer run.
    """
    known: dict[int, Stamp] = {}
    complete = True

    def stamp_at(index: int) -> Stamp:
        if index not in known:
            known[index] = look(index)
        return known[index]

    ranges = [(0, count - 1)] if count else []
    while ranges:
        low, high = ranges.pop()
        if stamp_at(low).proof == stamp_at(high).proof or high - low < 2:
            continue
        if not go_on():
            complete = False
            continue
        middle = (low + high) // 2
        ranges += [(low, middle), (middle, high)]
    runs: list[tuple[int, int, Stamp]] = []
    begin = 0
    for index in sorted(known):
        stamp = known[index]
        if runs and is_same_state(runs[-1][2], stamp):
            runs[-1] = (runs[-1][0], index, runs[-1][2])
        else:
            runs.append((begin, index, stamp))
        begin = index + 1
    return runs, complete


def read_versions(snapshots: Sequence[Snapshot], parts: tuple[bytes, ...], now: int | None) -> Versions:
    """The versions of a file in these snapshots of one dataset, oldest first. ``now``: its top folder as it is now."""
    until = time.monotonic() + SECONDS_AT_MOST

    def look(index: int) -> Stamp:
        with private_mount.root_of(snapshots[index].name) as root:
            return read_stamp(root, parts)

    runs, complete = bisect_runs(len(snapshots), look, lambda: time.monotonic() < until)
    versions = tuple(
        Version(
            there=stamp.there,
            first=snapshots[low].short,
            last=snapshots[high].short,
            guid=str(snapshots[high].guid),
            count=high - low + 1,
            kind=stamp.kind,
            size=stamp.size,
            mtime=stamp.mtime,
        )
        for low, high, stamp in reversed(runs)
    )
    state = "" if now is None or not runs else compare_now(runs[-1][2], read_stamp(now, parts))
    return Versions(versions, state, complete)


def compare_now(newest: Stamp, now: Stamp) -> str:
    """``Versions.now``, given the states in the newest snapshot and of now."""
    if not now.there:
        return "gone"
    return "same" if is_same_state(newest, now) else "changed"
