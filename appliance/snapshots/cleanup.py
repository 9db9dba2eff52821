"""What deleting snapshots and old copies frees in a pool, as ZFS counts it afterwards. Pure functions.

It differs from the sum of ``usedbysnapshots`` in three ways. A snapshot that is protected or has a clone stays, and
with it whatever other snapshots share with it. Blocks that a dataset with ``refreservation`` shares with a snapshot are
reserved once more (``dsl_dataset_snapshot_reserve_space``). And what is freed below a ``reservation`` stays reserved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

import msgspec

from appliance.facts.cleanup import Cleanup
from appliance.facts.datasets import Dataset, Snapshot, Span
from appliance.snapshots import space


class Known(msgspec.Struct, frozen=True):
    """What is known of snapshots. ``blocked``: the datasets with one that cannot be destroyed. ``snapshots``: all of
    these datasets, or none where they are too many. ``spans``: the runs of neighbours that ZFS measured."""

    blocked: frozenset[str] = frozenset()
    snapshots: tuple[Snapshot, ...] = ()
    spans: tuple[Span, ...] = ()


def stays(snapshot: Snapshot) -> bool:
    """Whether destroying it is refused."""
    return bool(snapshot.holds or snapshot.clones)


def destroyable_runs(snapshots: Sequence[Snapshot]) -> list[list[Snapshot]]:
    """The runs of neighbours that can be destroyed, each of one dataset.

    What each holds alone is exactly what is freed: a block in two of them is also in the snapshot between, which stays.
    """
    return space.group_neighbours((one for one in snapshots if not stays(one)), snapshots)


def measure_cleanup(datasets: Sequence[Dataset], copies: Collection[str], known: Known) -> Cleanup:
    """What is freed when every snapshot of a pool is destroyed that can be, and every old copy.

    ``datasets``: all of the pool, parents first. ``copies``: the topmost datasets of old copies; one with a snapshot
    that cannot be destroyed stays.
    """
    snapshots: dict[str, list[Snapshot]] = defaultdict(list)
    for one in known.snapshots:
        snapshots[one.dataset].append(one)
    going = {name for name in copies if not any(is_within(blocked, name) for blocked in known.blocked)}
    freed: dict[str, int] = defaultdict(int)  # by dataset, what those below it give back
    held = copied = reserved = 0
    least, reserving = False, []
    for dataset in reversed(datasets):
        above = dataset.name.rpartition("/")[0]
        if dataset.name in going:
            copied += dataset.used
            freed[above] += charged(dataset, dataset.used)
        elif not any(is_within(dataset.name, name) for name in going):
            own, exact = freed_by_snapshots(dataset, known, snapshots[dataset.name])
            more = 0 if dataset.name in known.blocked else reserved_by_snapshots(dataset)
            held, reserved, least = held + own, reserved + more, least or not exact
            reserving += [dataset.name] if more else []
            less = freed[dataset.name] + own + more
            freed[above] += charged(dataset, dataset.used) - charged(dataset, dataset.used - less) if above else less
    staying = sum(stays(one) for one in known.snapshots)
    return Cleanup(freed[""], held, copied, reserved, tuple(reversed(reserving)), staying, least)


def is_within(name: str, top: str) -> bool:
    return name == top or name.startswith(f"{top}/")


def number_of(dataset: Dataset, key: str) -> int:
    """A property in bytes; 0 where it is not set."""
    found = dataset.properties.get(key)
    return int(found.value) if found and found.value.isdigit() else 0


def charged(dataset: Dataset, used: int) -> int:
    """What the dataset above counts of one that uses that much (``parent_delta``)."""
    return max(used, number_of(dataset, "reservation"))


def freed_by_snapshots(dataset: Dataset, known: Known, own: Sequence[Snapshot]) -> tuple[int, bool]:
    """Bytes that destroying its snapshots ``own`` frees, as far as they can be destroyed, and whether that is exact."""
    if dataset.name not in known.blocked:
        return dataset.used_by_snapshots, True
    sizes = {(span.first, span.last): span.size for span in known.spans}
    runs = destroyable_runs(own)
    measured = [sizes.get((run[0].name, run[-1].name)) for run in runs]
    total = sum(
        sum(one.used for one in run) if size is None else size for run, size in zip(runs, measured, strict=True)
    )
    # Once a snapshot newer than all that stay is gone, ZFS also reserves less, and nothing says before how much.
    shrinks = dataset.used_by_reservation > 0 and bool(own) and not stays(max(own, key=lambda one: one.txg))
    exact = bool(own) and None not in measured and not shrinks
    return min(total, dataset.used_by_snapshots), exact


def reserved_by_snapshots(dataset: Dataset) -> int:
    """Bytes of its ``refreservation`` that are reserved only because a snapshot holds the blocks that it has."""
    left = max(number_of(dataset, "refreservation") - dataset.used_by_data, 0)
    return max(dataset.used_by_reservation - left, 0)
