"""The regions of a disk that are tested one at a time, and what was found in each.

Both ends are regions of their own: they are tested with zeros and so stay empty at every moment, whatever
happens to the box meanwhile. So the disk passes as empty (``disks/probe.py``) before each region, and
afterwards in the pool wizard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from appliance.disks.exclusive_disk import ENDS
from appliance.disks.inventory import SMALLEST
from appliance.layout.geometry import MIB
from appliance.message import Message

MOST_REGIONS = 200  # beside the two ends; on 8 TB, one takes about ten minutes
LEAST_REGIONS = 10
CACHED = 512 * MIB  # no smaller region where the disk is large enough: a drive could answer from its own memory
RESULT = "region "  # how a result begins in the log of a job

Problem = Literal["", "write", "read", "changed"]


class Region(msgspec.Struct, frozen=True):
    """The bytes from ``start`` to ``end``; ``is_edge``: it is one of the ends, which are written with zeros."""

    number: int
    start: int
    end: int
    is_edge: bool = False

    @property
    def size(self) -> int:
        return self.end - self.start


class RegionResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a region was like: ``written`` and ``read`` in bytes a second, 0 where it did not get so far.

    ``problem`` says what went wrong first, ``at`` which byte of the disk it was.
    ``rate``: the limit of its test in bytes a second, 0 for none.
    """

    number: int
    written: int = 0
    read: int = 0
    problem: Problem = ""
    at: int = 0
    rate: int = 0


def region_size(size: int) -> int:
    """Bytes of each region but the ends, in whole MiB."""
    share = -(-size // MOST_REGIONS // MIB) * MIB
    return max(share, min(CACHED, size // LEAST_REGIONS // MIB * MIB), MIB)


def split_disk(size: int) -> tuple[Region, ...]:
    """All regions of a disk of ``size`` bytes, in order; none of a disk that is too small for a pool."""
    if size < SMALLEST:
        return ()
    length, last = region_size(size), (size - ENDS) // MIB * MIB
    starts = [*range(ENDS, last, length)]
    ends = [*starts[1:], last]
    inner = [Region(number, start, end) for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1)]
    return (Region(0, 0, ENDS, is_edge=True), *inner, Region(len(inner) + 1, last, size, is_edge=True))


def span_text(region: Region) -> str:
    """``160 GB to 200 GB``: in one unit that tells neighbours apart, which TB would not."""
    unit, factor = ("GB", 10**9) if region.size >= 10**9 else ("MB", 10**6)
    return Message(
        "{low} to {high}", low=f"{region.start / factor:.0f} {unit}", high=f"{region.end / factor:.0f} {unit}"
    )


def encode_result(result: RegionResult) -> str:
    return RESULT + msgspec.json.encode(result).decode()


def decode_results(notes: Iterable[str]) -> Iterator[RegionResult]:
    """The results among the notes of a job. One that cannot be read is left out, so its region is tested again."""
    for note in notes:
        if note.startswith(RESULT):
            try:
                yield msgspec.json.decode(note.removeprefix(RESULT), type=RegionResult)
            except msgspec.MsgspecError:
                continue
