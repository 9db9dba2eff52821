"""Space used by snapshots, exact for a run of neighbours (``lzc_snaprange_space``), and the holds on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

import msgspec

from appliance import names
from appliance.errors import Failed, Reason, Refused
from appliance.facts.datasets import Snapshot, Span
from appliance.formatting import size_text
from appliance.message import Message
from appliance.request import Request
from appliance.zfs import libzfs

MOST_RANGES = 100
MOST_HELD = 200
Pair = tuple[str, str]
Row = TypeVar("Row")


class MeasuredSpace(msgspec.Struct, frozen=True):
    """``ranges``: bytes for each requested range, None if one of its snapshots is missing.

    ``holds``: by the snapshot's name its tags, which are hostile text, with the time of each in seconds since 1970.
    """

    ranges: tuple[int | None, ...]
    holds: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)


class Freed(msgspec.Struct, frozen=True):
    """Bytes that destroying some snapshots frees. If not ``exact``, more is freed: what several of them share."""

    size: int
    exact: bool

    @property
    def text(self) -> str:
        if self.exact:
            return size_text(self.size)
        return Message("at least {size}, plus what several of them share", size=size_text(self.size))


def measure_space(ranges: Iterable[Pair], held: Iterable[str] = ()) -> MeasuredSpace:
    """Measure what destroying each range of snapshots frees, both ends included, and read holds. Takes full names."""
    sizes: list[int | None] = []
    for first, last in ranges:
        try:
            sizes.append(libzfs.range_space(first, last))
        except Failed:
            sizes.append(None)
    holds = {}
    for name in held:
        try:
            holds[name] = libzfs.read_holds(name)
        except Failed:
            continue
    return MeasuredSpace(tuple(sizes), holds)


def build_spans(ranges: Sequence[Pair], sizes: Iterable[int | None]) -> tuple[Span, ...]:
    """Measured ranges as facts, without those that could not be measured."""
    return tuple(Span(*pair, size) for pair, size in zip(ranges, sizes, strict=False) if size is not None)


def split_runs(row: Iterable[Row], goes: Callable[[Row], bool]) -> Iterator[list[Row]]:
    """Split off the gapless runs of those that ``goes`` selects, in order. The space that each run frees is exact."""
    for going, members in groupby(row, goes):
        if going:
            yield list(members)


def group_neighbours(going: Iterable[Snapshot], every: Iterable[Snapshot]) -> list[list[Snapshot]]:
    """The gapless runs among snapshots of several datasets, each in the order of its transaction groups."""
    leaving = {(snapshot.dataset, snapshot.guid) for snapshot in going}
    datasets = {dataset for dataset, _guid in leaving}
    rows = sorted(
        (snapshot for snapshot in every if snapshot.dataset in datasets),
        key=lambda snapshot: (snapshot.dataset, snapshot.txg),
    )
    return [
        run
        for _dataset, row in groupby(rows, lambda snapshot: snapshot.dataset)
        for run in split_runs(row, lambda snapshot: (snapshot.dataset, snapshot.guid) in leaving)
    ]


def run_ends(runs: Iterable[Sequence[Snapshot]]) -> list[Pair]:
    """The first and last snapshot of each run, for at most as many runs as may be measured at once."""
    return [(run[0].name, run[-1].name) for run in runs][:MOST_RANGES]


def sum_freed(runs: Sequence[Sequence[Snapshot]], known: Iterable[Span]) -> Freed:
    """What destroying these runs frees. A run that was not measured counts with the unique space of its members."""
    sizes = {(span.first, span.last): span.size for span in known}
    measured = [sizes.get((run[0].name, run[-1].name)) for run in runs]
    total = sum(
        sum(snapshot.used for snapshot in run) if size is None else size
        for run, size in zip(runs, measured, strict=True)
    )
    # What two runs of one dataset share is freed only with both, and the size of neither includes it.
    alone = len({run[0].dataset for run in runs}) == len(runs)
    return Freed(total, exact=alone and None not in measured)


class ReadSpace(Request, tag="read-space"):
    """What rows of neighbouring snapshots hold, each of one dataset, and who holds which. Full names."""

    ranges: tuple[Pair, ...] = ()
    held: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.ranges) > MOST_RANGES or len(self.held) > MOST_HELD:
            raise Refused(Reason("request-for-too-much", "That is more than can be asked for at once."))
        for name in (*(one for pair in self.ranges for one in pair), *self.held):
            names.existing_snapshot(name)

    def read(self) -> object:
        return measure_space(self.ranges, self.held)
