"""A sweep: a matrix of settings, and the ordered list of its cases. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from appliance.benchmarks.case import (
    FROM_MEMORY,
    NETWORK,
    OVER_AFP,
    PER_DISK,
    Case,
    Layout,
    Protocol,
    SharedSettings,
    Workload,
)
from appliance.errors import Reason, Refused
from appliance.layout.geometry import KIB, LEAST_DISKS

MOST_CASES = 200


class Sweep(SharedSettings):
    """A matrix of settings: every field in the plural is an axis, the others are the same for all cases.

    ``partitions`` are sizes in bytes, 0 for whole disks; ``logs`` and ``caches`` are by-id paths, empty for none.
    """

    workloads: tuple[Workload, ...]
    disks: tuple[str, ...] = ()
    pool: str = ""
    guid: int = 0
    layouts: tuple[Layout, ...] = ("stripe",)
    counts: tuple[int, ...] = ()  # numbers of disks; empty: all
    ashifts: tuple[int, ...] = (12,)
    partitions: tuple[int, ...] = (0,)
    recordsizes: tuple[int, ...] = (128 * KIB,)
    compressions: tuple[str, ...] = ("off",)
    dedups: tuple[bool, ...] = (False,)
    syncs: tuple[str, ...] = ("standard",)
    logs: tuple[str, ...] = ("",)
    caches: tuple[str, ...] = ("",)
    fills: tuple[int, ...] = (0,)
    volblocksizes: tuple[int, ...] = (0,)  # 0: a file, no volume
    protocols: tuple[Protocol, ...] = ("",)

    def __post_init__(self) -> None:
        if not self.workloads:
            raise Refused(Reason("workload-not-chosen", "Choose at least one workload.", field="workloads"))
        if self.where in {"scratch", "disk"} and not self.disks:
            raise Refused(Reason("disk-not-chosen", "Choose at least one disk.", field="disks"))
        found = len(list(itertools.islice(self.build_cases(), MOST_CASES + 1)))
        if not found and self.sample:
            raise Refused(
                Reason(
                    "sample-without-cases",
                    "A written sample repeats, so with dedup only reads can be tested. Choose more "
                    "workloads, or check that there are enough disks for a layout.",
                    field="workloads",
                )
            )
        if not found and self.protocols == ("afp",):
            raise Refused(
                Reason(
                    "afp-without-cases",
                    "Over AFP, only large files and many small files can be tested. Choose one of these, or "
                    "another protocol.",
                    field="workloads",
                )
            )
        if not found:
            raise Refused(
                Reason(
                    "disks-too-few-for-layouts",
                    "There are too few disks for any of the chosen layouts. Choose more disks or another layout.",
                    field="layouts",
                )
            )
        if found > MOST_CASES:
            raise Refused(
                Reason(
                    "cases-too-many",
                    "These settings make more than {most} cases. Choose fewer, or split them into two benchmarks.",
                    field="workloads",
                    most=MOST_CASES,
                )
            )

    @property
    def all_disks(self) -> tuple[str, ...]:
        """Every disk that a case takes or reads, each once."""
        return tuple(dict.fromkeys((*self.disks, *filter(None, (*self.logs, *self.caches)))))

    @property
    def destroys(self) -> bool:
        """Whether the sweep writes to disks, which then have to be empty."""
        return self.where == "scratch"

    def build_cases(self) -> Iterator[Case]:
        """All possible cases, in the order of the fields. The last field changes fastest, workloads fastest of all."""
        if self.where == "network":
            for way in self.workloads:
                if way in NETWORK:
                    yield self.build_case(workload=way)
            return
        if self.where == "disk":
            for disk, reading in itertools.product(self.disks, self.workloads):
                if reading in PER_DISK:
                    yield self.build_case(disks=(disk,), workload=reading)
            return
        blocks = [(size, 0) for size in self.recordsizes if 0 in self.volblocksizes]
        blocks += [(128 * KIB, size) for size in self.volblocksizes if size]  # a volume has no record size
        axes = itertools.product(blocks, self.compressions, self.dedups, self.syncs, self.protocols)
        data = [
            {
                "recordsize": recordsize,
                "volblocksize": volume,
                "compression": compression,
                "dedup": dedup,
                "sync": sync,
                "protocol": protocol,
            }
            for (recordsize, volume), compression, dedup, sync, protocol in axes
        ]
        if self.where == "dataset":
            for chosen, workload in itertools.product(data, self.workloads):
                if chosen["protocol"] == "afp" and workload not in OVER_AFP:
                    continue
                yield self.build_case(pool=self.pool, guid=self.guid, workload=workload, **chosen)
            return
        shapes = itertools.product(self.layouts, self.counts or (len(self.disks),), self.ashifts, self.partitions)
        for layout, count, ashift, partition in shapes:
            if not LEAST_DISKS[layout] <= count <= len(self.disks):
                continue
            for chosen in data:
                for log, cache, fill, workload in itertools.product(self.logs, self.caches, self.fills, self.workloads):
                    if self.sample and chosen["dedup"] and workload in FROM_MEMORY:
                        continue
                    if chosen["protocol"] == "afp" and workload not in OVER_AFP:
                        continue
                    if (workload == "resilver") == bool(fill):
                        yield self.build_case(
                            disks=self.disks[:count],
                            layout=layout,
                            ashift=ashift,
                            partition=partition,
                            log=log,
                            cache=cache,
                            fill=fill,
                            workload=workload,
                            **chosen,
                        )

    def build_case(self, **own: object) -> Case:
        """One case with the shared settings. Raises Refused for an invalid value."""
        common = {name: getattr(self, name) for name in SharedSettings.__struct_fields__}
        try:
            return msgspec.convert({**common, **own}, Case)
        except msgspec.ValidationError as error:
            raise Refused(
                Reason("case-invalid", "This cannot be tested: {error}.", field="workloads", error=error)
            ) from error


def axes_of(cases: list[Case]) -> list[str]:
    """Names of the settings in which the cases differ: the columns of their table."""
    every = [case.settings for case in cases]
    return [
        name
        for name in dict.fromkeys(itertools.chain.from_iterable(every))
        if len({one.get(name, "") for one in every}) > 1
    ]
