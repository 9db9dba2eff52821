"""How long rebuilding a disk of a pool, expanding and scrubbing it will take: by what was measured on it, or an
estimate that says so. Pure.

ZFS goes through all blocks of a pool when it rebuilds, so the time is that of an earlier rebuild, or of its rehearsal,
by the bytes that are in the pool now. A scrub reads the same blocks from the same disks. Without either it is the
bytes of a disk at a usual speed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from appliance.facts.box import Pool
from appliance.formatting import rate_text
from appliance.message import Message

HARD_DISK, SOLID_STATE = 100 * 10**6, 300 * 10**6  # bytes a second that a disk takes in mixed sizes of blocks
SHORTEST = 60  # seconds: shorter work says nothing of a speed
WHOLE = 0.5  # of what is in the pool now: a rebuild that looked at less only caught up
EXPANSION = 2  # reads and writes all that a rebuild only reads or only writes


class PastWork(msgspec.Struct, frozen=True):
    """Finished work on the pool: ``looked`` is how many bytes it went through."""

    kind: str  # resilver, rehearsal (of a resilver), scrub, expand
    looked: int
    seconds: float


class RebuildEstimate(msgspec.Struct, frozen=True):
    """Seconds, and what they are taken from. Not ``measured``: an estimate."""

    seconds: int
    basis: str
    measured: bool = False


def estimate_rebuild(pool: Pool, past: Sequence[PastWork], *, rotational: bool = True) -> RebuildEstimate:
    """The rebuild of one disk; ``past`` has the newest work first."""
    seconds, basis, measured = rebuild_basis(pool, past, rotational=rotational)
    return RebuildEstimate(seconds, basis if measured else assumed(basis), measured)


def estimate_expansion(pool: Pool, past: Sequence[PastWork], *, rotational: bool = True) -> RebuildEstimate:
    """The expansion of a raidz by one disk."""
    if work := find_work(pool, past, "expand"):
        basis: str = Message("as long as its last expansion took for each byte")
        return RebuildEstimate(scaled(pool, work), basis, measured=True)
    seconds, basis, _measured = rebuild_basis(pool, past, rotational=rotational)
    twice = Message(
        "every block is read and written, which is twice the work of a rebuild; for that, {basis}", basis=basis
    )
    return RebuildEstimate(seconds * EXPANSION, assumed(twice))


def estimate_scrub(pool: Pool, past: Sequence[PastWork], *, rotational: bool = True) -> RebuildEstimate:
    """A scrub, which reads from all disks at the same time."""
    if work := find_work(pool, past, "scrub"):
        return RebuildEstimate(
            scaled(pool, work), Message("as long as its last scrub took for each byte"), measured=True
        )
    return RebuildEstimate(
        disk_bytes(pool) // usual_speed(rotational=rotational), assumed(usual_basis(rotational=rotational))
    )


def rebuild_basis(pool: Pool, past: Sequence[PastWork], *, rotational: bool) -> tuple[int, str, bool]:
    """The seconds of a rebuild, what they are taken from, and whether a rebuild was measured."""
    if work := find_rebuild(pool, past):
        rehearsed = work.kind == "rehearsal"
        return (
            scaled(pool, work),
            Message("as long as the rehearsal of a rebuild took for each byte")
            if rehearsed
            else Message("as long as its last rebuild took for each byte"),
            True,
        )
    if work := find_work(pool, past, "scrub"):
        return scaled(pool, work), Message("as long as its last scrub, which reads the same blocks"), False
    return disk_bytes(pool) // usual_speed(rotational=rotational), usual_basis(rotational=rotational), False


def assumed(basis: str) -> str:
    return Message("an estimate: {basis}", basis=basis)


def usual_speed(*, rotational: bool) -> int:
    """Bytes a second."""
    return HARD_DISK if rotational else SOLID_STATE


def usual_basis(*, rotational: bool) -> str:
    speed = rate_text(usual_speed(rotational=rotational))
    if rotational:
        return Message(
            "no rebuild or scrub of this pool was measured yet, and hard disks read and write about {speed}",
            speed=speed,
        )
    return Message(
        "no rebuild or scrub of this pool was measured yet, and solid-state disks read and write about {speed}",
        speed=speed,
    )


def find_rebuild(pool: Pool, past: Sequence[PastWork]) -> PastWork | None:
    """The newest rebuild of all that is in the pool. A rehearsal always was one, however full the pool is since."""
    found = (find_work(pool, past, "resilver", WHOLE), find_work(pool, past, "rehearsal"))
    return min((work for work in found if work), key=past.index, default=None)


def find_work(pool: Pool, past: Sequence[PastWork], kind: str, share: float = 0.0) -> PastWork | None:
    """The newest work of that kind which went through at least that share of what is in the pool now."""
    return next(
        (
            work
            for work in past
            if work.kind == kind and work.seconds >= SHORTEST and work.looked >= max(share * pool.allocated, 1)
        ),
        None,
    )


def scaled(pool: Pool, work: PastWork) -> int:
    return round(pool.allocated * work.seconds / work.looked) if work.looked else 0


def disk_bytes(pool: Pool) -> int:
    """The most bytes that are on one disk of the pool now."""
    groups = [vdev for vdev in pool.vdevs if vdev.role == "normal"]
    even = pool.allocated // max(len(groups), 1)
    return max(
        ((group.used or even) // (len(group.children) if group.kind == "raidz" else 1) for group in groups), default=0
    )
