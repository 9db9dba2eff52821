"""What snapshots hold: exact for a row of neighbours (``lzc_snaprange_space``), and who keeps which from being destroyed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from appliance.errors import Failed
from appliance.facts.datasets import Snapshot, Span
from appliance.formatting import size_text
from appliance.zfs import libzfs

MOST_RANGES = 100
MOST_HELD = 200
Pair = tuple[str, str]
Row = TypeVar("Row")


@dataclass(frozen=True)
class MeasuredSpace:
    """``ranges``: bytes for each that was asked for, None where a snapshot of it has gone. ``holds``: for each snapshot's
    name its tags, hostile text, and when each was set in seconds since 1970."""

    ranges: tuple[int | None, ...]
    holds: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Freed:
    """What destroying some snapshots frees, in bytes. Not ``exact``: what groups of them share comes on top."""

    size: int
    exact: bool

    @property
    def text(self) -> str:
        if self.exact:
            return size_text(self.size)
        return f"at least {size_text(self.size)}; what several of them share comes on top"


def measure(ranges: Iterable[Pair], held: Iterable[str] = ()) -> MeasuredSpace:
    """Bytes that come back when all from one snapshot to another go, both included; and the holds. Full names."""
    sizes: list[int | None] = []
    for first, last in ranges:
        try:
            sizes.append(libzfs.range_space(first, last))
        except Failed:
            sizes.append(None)
    holds = {}
    for name in held:
        try:
            holds[name] = libzfs.holds(name)
        except Failed:
            continue
    return MeasuredSpace(tuple(sizes), holds)


def spans(ranges: Sequence[Pair], sizes: Iterable[int | None]) -> tuple[Span, ...]:
    """What was measured, as facts."""
    return tuple(Span(*pair, size) for pair, size in zip(ranges, sizes, strict=False) if size is not None)


def runs(row: Iterable[Row], goes: Callable[[Row], bool]) -> Iterator[list[Row]]:
    """The runs without a gap among those that go, in the order of the row: for each, what comes back is exact."""
    for going, found in groupby(row, goes):
        if going:
            yield list(found)


def neighbours(going: Iterable[Snapshot], every: Iterable[Snapshot]) -> list[list[Snapshot]]:
    """The same for snapshots of several datasets, each by the order of its transaction groups."""
    leaving = {(one.dataset, one.guid) for one in going}
    about = {dataset for dataset, _guid in leaving}
    rows = sorted((one for one in every if one.dataset in about), key=lambda one: (one.dataset, one.txg))
    return [
        run
        for _dataset, row in groupby(rows, lambda one: one.dataset)
        for run in runs(row, lambda one: (one.dataset, one.guid) in leaving)
    ]


def ends(found: Iterable[Sequence[Snapshot]]) -> list[Pair]:
    """What to ask ZFS about these runs, as many as may be asked at once."""
    return [(run[0].name, run[-1].name) for run in found][:MOST_RANGES]


def freed(found: Sequence[Sequence[Snapshot]], known: Iterable[Span]) -> Freed:
    """What comes back when these runs go. One that was not measured counts with what its members hold alone."""
    sizes = {(span.first, span.last): span.size for span in known}
    told = [sizes.get((run[0].name, run[-1].name)) for run in found]
    total = sum(sum(one.used for one in run) if size is None else size for run, size in zip(found, told, strict=True))
    # What two runs of one dataset share comes back only with both, and no run tells of it.
    alone = len({run[0].dataset for run in found}) == len(found)
    return Freed(total, exact=alone and None not in told)
