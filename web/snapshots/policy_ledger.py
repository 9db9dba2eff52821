"""Which snapshots the policies of this box made, and what they no longer keep."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Sum

from appliance.facts.datasets import Dataset
from appliance.snapshot_names import GRAINS
from appliance.snapshots import policy as snapshot_policy
from appliance.snapshots.policy import Policy, Taken, Wanted
from web.inventory.models import SnapshotReading, SnapshotRow
from web.snapshots.models import MadeSnapshot, PolicyRun


def record_made(rows: Iterable[SnapshotRow]) -> None:
    """Record those whose run was asked for on this box, for that very dataset and under that very name."""
    found = [row for row in rows if is_id(row.run)]
    asked = {str(run.pk): run.targets for run in PolicyRun.objects.filter(pk__in={row.run for row in found})}
    made = []
    for row in found:
        target = asked.get(row.run, {}).get(row.dataset_key)
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
    """Those that are gone."""
    for start in range(0, len(guids), 500):
        MadeSnapshot.objects.filter(dataset_key=dataset_key, guid__in=guids[start : start + 500]).delete()


def forget_datasets(keys: list[str]) -> None:
    """Those of datasets that were destroyed."""
    for start in range(0, len(keys), 500):
        MadeSnapshot.objects.filter(dataset_key__in=keys[start : start + 500]).delete()


def taken_of(keys: Iterable[str] | None = None) -> dict[str, list[tuple[Taken, SnapshotRow]]]:
    """What the policies made of each dataset and is there, by the dataset's key. Two queries."""
    made = MadeSnapshot.objects.all()
    rows = SnapshotRow.objects.exclude(run="")
    if keys is not None:
        wanted = list(keys)
        made, rows = made.filter(dataset_key__in=wanted), rows.filter(dataset_key__in=wanted)
    known = {(one.dataset_key, one.guid): one for one in made}
    found: dict[str, list[tuple[Taken, SnapshotRow]]] = defaultdict(list)
    for row in rows:
        if one := known.get((row.dataset_key, row.guid)):
            taken = Taken(int(row.guid), row.txg, one.at or row.created, tuple(one.grains.split(",")), one.until)
            found[row.dataset_key].append((taken, row))
    return found


def extend_latest(dataset: Dataset, wanted: Wanted) -> None:
    """Have the latest snapshot of a dataset that has not changed since serve for the grains that are due too."""
    if not wanted.latest or not wanted.grains:
        return
    own = {*wanted.latest.grains, *wanted.grains}
    grains = ",".join(grain for grain in GRAINS if grain in own)
    made = MadeSnapshot.objects.filter(dataset_key=str(dataset.guid), guid=str(wanted.latest.guid))
    made.update(grains=grains, until=wanted.at)


@dataclass(frozen=True)
class Cost:
    """What snapshots that policies made hold, in bytes: between what each holds alone and all that their folders' hold."""

    count: int = 0
    least: int = 0
    most: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.count + other.count, self.least + other.least, self.most + other.most)


def policy_costs(datasets: Iterable[Dataset]) -> dict[str, Cost]:
    """By the dataset's key. ZFS's own figure of a folder counts all of its snapshots: exact where policies made them all."""
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


def expired_rows(datasets: Iterable[tuple[Dataset, Policy | None]], counts: dict[str, int]) -> list[SnapshotRow]:
    """What these policies no longer keep, without held and cloned ones. ``counts``: all snapshots of each dataset."""
    wanted = list(datasets)
    taken = taken_of([str(dataset.guid) for dataset, _policy in wanted] if len(wanted) <= 200 else None)
    found = []
    for dataset, policy in wanted:
        key = str(dataset.guid)
        rows = {one.guid: row for one, row in taken.get(key, [])}
        own = [one for one, _row in taken.get(key, [])]
        for one in snapshot_policy.expired_snapshots(policy, own, others=counts.get(key, 0) - len(own)):
            row = rows[one.guid]
            if not row.holds and not row.clones:
                found.append(row)
    return found
