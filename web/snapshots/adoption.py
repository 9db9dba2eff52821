"""Automatic snapshots without a record in this box's ledger, and recording them so that a schedule may delete them.

They come with the disks of another Larder box, with a promoted clone, or stay behind when the settings were
lost. Each has the mark of a run on itself, the name of a schedule, and no hold or clone. One that was
received has no mark of its own.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from appliance import schedule, snapshot_names
from appliance.facts.datasets import Dataset, Snapshot
from appliance.snapshots import policy as snapshot_policy
from appliance.snapshots import retention
from appliance.snapshots.policy import Policy
from web.inventory.dataset_models import SnapshotReading, SnapshotRow
from web.snapshots import policy_ledger
from web.snapshots.models import MadeSnapshot, PolicyRun

T = TypeVar("T")
AT_ONCE = 500  # keys of one query

Candidate = tuple[int, str, str, str, str]


class Adoption(msgspec.Struct, frozen=True):
    """What recording the unrecorded snapshots of some folders of one schedule means.

    ``going``: what the schedule then destroys at its next run. ``fingerprint`` changes with any of it.
    """

    rows: list[SnapshotRow]
    going: list[SnapshotRow]
    folders: int
    fingerprint: str


def find_unrecorded(keys: Iterable[str]) -> dict[str, list[int]]:
    """By the dataset's key, the ids of the rows of its unrecorded automatic snapshots."""
    candidates = [one for some in split(list(keys)) for one in unknown_marked(some)]
    # What a run of this box took within the last weeks is recorded by the collector, with all its grains.
    requested: set[str] = set()
    for runs in split(sorted({run for _pk, _key, _guid, _short, run in candidates})):
        requested.update(map(str, PolicyRun.objects.filter(pk__in=runs).values_list("pk", flat=True)))
    found: dict[str, list[int]] = defaultdict(list)
    for pk, key, _guid, _short, run in candidates:
        if run not in requested:
            found[key].append(pk)
    return dict(found)


def unknown_marked(keys: list[str]) -> Iterator[Candidate]:
    """Id, dataset's key, guid, short name and run of marked snapshots that the ledger does not know, oldest first."""
    rows = SnapshotRow.objects.filter(dataset_key__in=keys, holds=0, clones="").exclude(run="").order_by("txg")
    found = list(rows.values_list("pk", "dataset_key", "guid", "short", "run"))
    known = (
        set(MadeSnapshot.objects.filter(dataset_key__in=keys).values_list("dataset_key", "guid")) if found else set()
    )
    for one in found:
        _pk, key, guid, short, run = one
        if (key, guid) not in known and snapshot_names.grain_of(short) and policy_ledger.is_id(run):
            yield one


def count_unrecorded(keys: Iterable[str]) -> dict[str, int]:
    """By the dataset's key, how many unrecorded automatic snapshots it has; without those that have none."""
    return {key: len(pks) for key, pks in find_unrecorded(keys).items()}


def plan_adoption(datasets: Iterable[Dataset], now: datetime) -> Adoption:
    """What it means that the schedules of these folders may delete their unrecorded snapshots. Changes nothing."""
    followed = [(one, policy) for one in datasets if (policy := snapshot_policy.policy_of(one))]
    rows = defaultdict(list)
    wanted = [pk for pks in find_unrecorded(str(one.guid) for one, _policy in followed).values() for pk in pks]
    for some in split(wanted):
        for row in SnapshotRow.objects.filter(pk__in=some).order_by("dataset", "txg"):
            rows[row.dataset_key].append(row)
    touched = [(one, policy) for one, policy in followed if str(one.guid) in rows]
    going = list(going_rows(touched, rows, now))
    every = [row for one, _policy in touched for row in rows[str(one.guid)]]
    return Adoption(every, going, len(touched), fingerprint_of(touched, every, going))


def going_rows(
    datasets: Sequence[tuple[Dataset, Policy]], adopted: dict[str, list[SnapshotRow]], now: datetime
) -> Iterator[SnapshotRow]:
    """What the ledger gives up once these are recorded, as far as the agent sees it as expired too."""
    keys = [str(dataset.guid) for dataset, _policy in datasets]
    counts: dict[str, int] = {}
    known: dict[str, list[Snapshot]] = defaultdict(list)
    for some in split(keys):
        counts.update(SnapshotReading.objects.filter(pk__in=some).values_list("dataset_key", "count"))
        for row in SnapshotRow.objects.filter(dataset_key__in=some).exclude(run=""):
            known[row.dataset_key].append(row.fact)
    zone = schedule.box_zone()
    prunable = {
        str(dataset.guid): retention.prunable_guids(policy, known[str(dataset.guid)], now, zone)
        for dataset, policy in datasets
    }
    for row in policy_ledger.expired_rows(datasets, counts, adopted):
        if int(row.guid) in prunable[row.dataset_key]:
            yield row


def fingerprint_of(
    datasets: Iterable[tuple[Dataset, Policy]], rows: Iterable[SnapshotRow], going: Iterable[SnapshotRow]
) -> str:
    """A digest of the schedules, the snapshots and what will be destroyed of them."""
    said = (
        [(str(dataset.guid), policy.fingerprint) for dataset, policy in datasets],
        [(row.dataset_key, row.guid, row.short) for row in rows],
        [(row.dataset_key, row.guid) for row in going],
    )
    return hashlib.sha256(msgspec.json.encode(said)).hexdigest()


def record_adopted(rows: Iterable[SnapshotRow]) -> None:
    """Record these with the grain of their names. A record that exists already stays as it is."""
    made = [
        MadeSnapshot(dataset_key=row.dataset_key, guid=row.guid, grains=snapshot_names.grain_of(row.short))
        for row in rows
    ]
    MadeSnapshot.objects.bulk_create(made, ignore_conflicts=True, batch_size=200)


def split(values: Sequence[T]) -> Iterator[list[T]]:
    """As many of them as one query may name, in turn."""
    for start in range(0, len(values), AT_ONCE):
        yield list(values[start : start + AT_ONCE])
