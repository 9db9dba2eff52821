"""Run snapshot schedules: take due snapshots and destroy expired ones. ``appliance/snapshots/policy.py`` decides.

A dataset without changes gets no new snapshot: its latest one is recorded for the grains that are due, and so kept.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

import msgspec
from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from appliance import schedule, snapshot_names
from appliance.facts.datasets import Dataset
from appliance.snapshots import policy as snapshot_policy
from appliance.snapshots.destroy import MOST, PruneSnapshots
from appliance.snapshots.policy import Policy, Taken, Wanted
from appliance.snapshots.take import RunSnapshotPolicies
from web import row_retention
from web.inventory import store
from web.inventory.dataset_models import DatasetRow, SnapshotReading, SnapshotRow
from web.inventory.fact_row import readable_rows
from web.inventory.models import Source
from web.jobs import confirm
from web.jobs.models import BY_SNAPSHOT_SCHEDULE, Job
from web.snapshots import policy_ledger
from web.snapshots.models import PolicyRun
from workers import clock, guard
from workers.interval import Interval

SECONDS_BETWEEN_LOOKS = 30.0
KINDS_OF_JOBS = ("run-snapshot-policies", "prune-snapshots")
TRY_AGAIN_AFTER = timedelta(minutes=10)
MOST_DOUBLED = 5  # more than five hours
looks = Interval(SECONDS_BETWEEN_LOOKS)


def run_due_policies() -> list[Job]:
    """Start what is due, at most one job per pool; returns the jobs."""
    if not store.is_read("snapshots"):
        return []
    now = timezone.now()
    wanted = datasets_with_policies()
    if not wanted:
        return []
    mine = Job.objects.filter(kind__in=KINDS_OF_JOBS)
    busy = set(mine.filter(state__in=Job.OPEN).values_list("subject", flat=True))
    failed = resting_kinds(mine, now)
    stopped = store.stopped_pools()
    shift = clock.update_clock(now).shift
    begun = []
    for pool, datasets in wanted.items():
        if pool in busy or pool in stopped:
            continue
        job = None
        if ("run-snapshot-policies", pool) not in failed:
            job = take_snapshots(pool, datasets, now, shift)
        if job is None and ("prune-snapshots", pool) not in failed:
            job = prune_snapshots(datasets)
        if job:
            begun.append(job)
    PolicyRun.objects.filter(asked__lt=now - row_retention.SCHEDULED_RUNS).delete()
    return begun


def resting_kinds(mine: QuerySet[Job], now: datetime) -> set[tuple[str, str]]:
    """Kind and pool of failed jobs that wait for their retry: ten minutes, doubled with each further failure.

    Jobs of a clock that was ahead do not count.
    """
    failed: dict[tuple[str, str], list[datetime]] = defaultdict(list)
    known = mine.filter(created__range=(now - timedelta(days=1), now)).exclude(state__in=Job.OPEN).order_by("created")
    for kind, pool, state, created in known.values_list("kind", "subject", "state", "created"):
        if state == Job.State.DONE:
            failed.pop((kind, pool), None)
        else:
            failed[kind, pool].append(created)
    return {
        one
        for one, times in failed.items()
        if now < times[-1] + TRY_AGAIN_AFTER * 2 ** min(len(times) - 1, MOST_DOUBLED)
    }


def datasets_with_policies() -> dict[str, list[tuple[Dataset, Policy]]]:
    """The datasets with a snapshot schedule, by pool."""
    found: dict[str, list[tuple[Dataset, Policy]]] = defaultdict(list)
    for row, dataset in readable_rows(DatasetRow.objects.exclude(policy_source="none")):
        if policy := snapshot_policy.policy_of(dataset):
            found[row.pool].append((dataset, policy))
    return found


def take_snapshots(
    pool: str, datasets: list[tuple[Dataset, Policy]], clock_says: datetime, shift: timedelta = timedelta()
) -> Job | None:
    """Start one job for all due snapshots of a pool. The run is stored before.

    ``shift`` is added to what the clock says where it is in doubt.
    """
    targets, now = [], clock_says + shift
    with transaction.atomic():
        for dataset, wanted in wanted_of(datasets, now, seen_at(clock_says) + shift):
            if wanted.latest:
                policy_ledger.extend_latest(dataset, wanted)
            elif wanted.grains:
                targets.append((dataset.name, dataset.guid, wanted.grains))
    if not targets:
        return None
    text = snapshot_names.format_moment(now)
    run = PolicyRun(id=uuid.uuid4(), pool=pool)
    doubted = {"at": now.isoformat()} if shift else {}  # what ZFS will note is wrong
    run.targets = {
        str(guid): {
            "short": snapshot_names.name_for(snapshot_names.coarsest_grain(grains), now),
            "grains": list(grains),
            **doubted,
        }
        for _name, guid, grains in targets
    }
    with guard.refusals_logged(f"the snapshot schedules of {pool}"):
        operation = RunSnapshotPolicies.for_targets(pool, str(run.pk), text, targets)
        run.save(force_insert=True)
        return confirm.start_without_review(operation, user=BY_SNAPSHOT_SCHEDULE)
    run.delete()
    return None


def wanted_of(
    datasets: list[tuple[Dataset, Policy]], now: datetime, seen: datetime
) -> Iterator[tuple[Dataset, Wanted]]:
    """The snapshots to take now, with their datasets."""
    zone = schedule.box_zone()
    for one in datasets_due(datasets, lambda policy, taken: snapshot_policy.due_grains(policy, taken, now, zone)):
        yield one.dataset, snapshot_policy.decide_run(one.policy, one.taken, now, zone, latest=one.latest, seen=seen)


class Followed(msgspec.Struct, frozen=True):
    """A dataset for which a snapshot is due. ``latest``: the guid of its newest one where nothing was written since."""

    dataset: Dataset
    policy: Policy
    taken: list[Taken]
    latest: int | None


def datasets_due(
    datasets: list[tuple[Dataset, Policy]], is_due: Callable[[Policy, list[Taken]], object]
) -> Iterator[Followed]:
    """The datasets with something due, and the snapshots of their schedule. Three queries."""
    taken = policy_ledger.taken_of(
        [str(dataset.guid) for dataset, _policy in datasets] if len(datasets) <= 200 else None
    )
    found = [(dataset, policy, [one for one, _row in taken.get(str(dataset.guid), [])]) for dataset, policy in datasets]
    late = [one for one in found if is_due(one[1], one[2])]
    latest = latest_of(dataset for dataset, policy, _own in late if policy.skip_unchanged and dataset.written == 0)
    for dataset, policy, own in late:
        yield Followed(dataset, policy, own, latest.get(str(dataset.guid)))


def latest_of(datasets: Iterable[Dataset]) -> dict[str, int]:
    """By the dataset's key the guid of the newest of all its snapshots."""
    newest = SnapshotRow.objects.filter(dataset_key=OuterRef("dataset_key")).order_by("-txg").values("guid")[:1]
    keys, found = [str(dataset.guid) for dataset in datasets], {}
    for start in range(0, len(keys), 500):
        readings = SnapshotReading.objects.filter(dataset_key__in=keys[start : start + 500])
        for key, guid in readings.annotate(latest=Subquery(newest)).values_list("dataset_key", "latest"):
            if guid:
                found[key] = int(guid)
    return found


def seen_at(now: datetime) -> datetime:
    """When the datasets were last read; their state "unchanged" is of that time."""
    source = Source.objects.filter(name="datasets").exclude(checked=None).first()
    return min(now, source.checked - timedelta(seconds=source.seconds)) if source and source.checked else now


def counts_of() -> dict[str, int]:
    return dict(SnapshotReading.objects.values_list("dataset_key", "count"))


def prune_snapshots(datasets: list[tuple[Dataset, Policy]]) -> Job | None:
    """Start a job that destroys the expired snapshots of a pool."""
    rows: list[SnapshotRow] = policy_ledger.expired_rows(datasets, counts_of())[:MOST]
    if not rows:
        return None
    with guard.refusals_logged(f"destroying expired snapshots of {datasets[0][0].pool}"):
        operation = PruneSnapshots.for_pairs((row.name, int(row.guid)) for row in rows)
        if not operation.find_chosen(store.facts_for(operation)):
            return None  # the agent does not see them as expired yet
        return confirm.start_without_review(operation, user=BY_SNAPSHOT_SCHEDULE)
    return None
