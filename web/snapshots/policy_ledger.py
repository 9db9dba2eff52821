"""The ledger of snapshots that this box's schedules took, and which of them have expired."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec
from django.db.models import Count, Sum

from appliance import snapshot_names
from appliance.facts.datasets import Dataset
from appliance.snapshot_names import GRAINS
from appliance.snapshots import retention
from appliance.snapshots.policy import Policy, Taken, Wanted
from web.inventory.dataset_models import SnapshotReading, SnapshotRow
from web.snapshots.models import MadeSnapshot, PolicyRun


def record_made(rows: Iterable[SnapshotRow]) -> None:
    """Record the snapshots that a run of this box requested for exactly this dataset under exactly this name."""
    marked = [row for row in rows if is_id(row.run)]
    requested = {str(run.pk): run.targets for run in PolicyRun.objects.filter(pk__in={row.run for row in marked})}
    made = []
    for row in marked:
        target = requested.get(row.run, {}).get(row.dataset_key)
        if target and target["short"] == row.short:
            at = datetime.fromisoformat(target["at"]) if "at" in target else None
            grains = ",".join(target["grains"])
            made.append(MadeSnapshot(dataset_key=row.dataset_key, guid=row.guid, grains=grains, at=at))
    MadeSnapshot.objects.bulk_create(made, ignore_conflicts=True, batch_size=200)


def is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def forget_gone(dataset_key: str, guids: list[str]) -> None:
    """Delete the records of snapshots that do not exist any more."""
    for start in range(0, len(guids), 500):
        MadeSnapshot.objects.filter(dataset_key=dataset_key, guid__in=guids[start : start + 500]).delete()


def forget_datasets(keys: list[str]) -> None:
    """Delete the records of destroyed datasets."""
    for start in range(0, len(keys), 500):
        MadeSnapshot.objects.filter(dataset_key__in=keys[start : start + 500]).delete()


def taken_of(keys: Iterable[str] | None = None) -> dict[str, list[tuple[Taken, SnapshotRow]]]:
    """The existing snapshots that schedules took, by the dataset's key. Two queries."""
    made = MadeSnapshot.objects.all()
    rows = SnapshotRow.objects.exclude(run="")
    if keys is not None:
        wanted = list(keys)
        made, rows = made.filter(dataset_key__in=wanted), rows.filter(dataset_key__in=wanted)
    known = {(record.dataset_key, record.guid): record for record in made}
    found: dict[str, list[tuple[Taken, SnapshotRow]]] = defaultdict(list)
    for row in rows:
        if record := known.get((row.dataset_key, row.guid)):
            grains = tuple(record.grains.split(","))
            taken = Taken(int(row.guid), row.txg, record.at or row.created, grains, record.until)
            found[row.dataset_key].append((taken, row))
    return found


def taken_by_name(row: SnapshotRow) -> Taken:
    """A snapshot without a record as one that a policy took for the grain of its name alone."""
    return Taken(int(row.guid), row.txg, row.created, (snapshot_names.grain_of(row.short),))


def extend_latest(dataset: Dataset, wanted: Wanted) -> None:
    """Give the due grains to the latest snapshot of a dataset that has not changed since."""
    if not wanted.latest or not wanted.grains:
        return
    own = {*wanted.latest.grains, *wanted.grains}
    grains = ",".join(grain for grain in GRAINS if grain in own)
    made = MadeSnapshot.objects.filter(dataset_key=str(dataset.guid), guid=str(wanted.latest.guid))
    made.update(grains=grains, until=wanted.at)


class Cost(msgspec.Struct, frozen=True):
    """Space used by automatic snapshots, in bytes: from their unique space to all that their folders' snapshots use."""

    count: int = 0
    least: int = 0
    most: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.count + other.count, self.least + other.least, self.most + other.most)


def policy_costs(datasets: Iterable[Dataset]) -> dict[str, Cost]:
    """The space used by automatic snapshots, by the dataset's key.

    It is exact where schedules took all snapshots of a folder, since ZFS counts the space of all of them together.
    """
    wanted = {str(dataset.guid): dataset for dataset in datasets}
    found = {}
    every = list(wanted)
    for start in range(0, len(every), 500):
        keys = every[start : start + 500]
        counts = dict(SnapshotReading.objects.filter(pk__in=keys).values_list("dataset_key", "count"))
        rows = SnapshotRow.objects.filter(dataset_key__in=keys).exclude(run="").order_by()
        for key, count, alone in rows.values_list("dataset_key").annotate(Count("id"), Sum("used")):
            most = max(wanted[key].used_by_snapshots, alone)
            found[key] = Cost(count, most if count == counts.get(key) else alone, most)
    return found


def expired_rows(
    datasets: Iterable[tuple[Dataset, Policy | None]],
    counts: dict[str, int],
    adopted: Mapping[str, Iterable[SnapshotRow]] | None = None,
) -> list[SnapshotRow]:
    """The snapshots that these policies no longer keep, without held and cloned ones.

    ``counts``: the number of all snapshots of each dataset, by its key.
    ``adopted``: by the same key, snapshots that are counted as if they were recorded with the grain of their name.
    """
    wanted = list(datasets)
    taken = taken_of([str(dataset.guid) for dataset, _policy in wanted] if len(wanted) <= 200 else None)
    found = []
    for dataset, policy in wanted:
        key = str(dataset.guid)
        known = taken.get(key, []) + [(taken_by_name(row), row) for row in (adopted or {}).get(key, ())]
        rows = {snapshot.guid: row for snapshot, row in known}
        own = [snapshot for snapshot, _row in known]
        for snapshot in retention.expired_snapshots(policy, own, others=counts.get(key, 0) - len(own)):
            row = rows[snapshot.guid]
            if not row.holds and not row.clones:
                found.append(row)
    return found
