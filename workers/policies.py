"""The clock of snapshot policies: take what is due, destroy what is no longer kept. Decided by ``appliance/zfs/policies.py``."""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

from appliance import schedules
from appliance.dataset import Dataset
from appliance.errors import Refused
from appliance.zfs import naming, policies
from appliance.zfs.clearing import MOST, PruneSnapshots
from appliance.zfs.policies import Policy, Taken
from appliance.zfs.taking import RunPolicies
from web.inventory import store
from web.inventory.models import DatasetRow, SnapshotReading, SnapshotRow
from web.jobs import confirm
from web.jobs.models import Job
from web.snapshots import recorded
from web.snapshots.models import PolicyRun
from workers.every import Every

log = logging.getLogger(__name__)
SECONDS_BETWEEN_LOOKS = 30.0
BY = "the snapshot policy"
KINDS_OF_JOBS = ("RunPolicies", "PruneSnapshots")
RUNS_KEPT = timedelta(days=30)
TRY_AGAIN_AFTER = timedelta(minutes=10)
MOST_DOUBLED = 5  # more than five hours
looks = Every(SECONDS_BETWEEN_LOOKS)


def look() -> list[Job]:
    """Begin what is due now, at most one job a pool; the jobs that were begun."""
    if not store.is_read("snapshots"):
        return []
    now = timezone.now()
    wanted = with_policies()
    if not wanted:
        return []
    mine = Job.objects.filter(kind__in=KINDS_OF_JOBS)
    busy = set(mine.filter(state__in=Job.OPEN).values_list("subject", flat=True))
    failed = resting(mine, now)
    stopped = store.stopped_pools()
    begun = []
    for pool, datasets in wanted.items():
        if pool in busy or pool in stopped:
            continue
        job = None
        if ("RunPolicies", pool) not in failed:
            job = take(pool, datasets, now)
        if job is None and ("PruneSnapshots", pool) not in failed:
            job = prune(datasets)
        if job:
            begun.append(job)
    PolicyRun.objects.filter(asked__lt=now - RUNS_KEPT).delete()
    return begun


def resting(mine: QuerySet[Job], now: datetime) -> set[tuple[str, str]]:
    """What failed and is not tried again yet, by kind and pool: ten minutes, and after each further time twice as long.

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


def with_policies() -> dict[str, list[tuple[Dataset, Policy]]]:
    """The datasets for which a policy is in force, by their pool."""
    found: dict[str, list[tuple[Dataset, Policy]]] = defaultdict(list)
    for row in DatasetRow.objects.filter(facts__contains='"policy":"{'):
        if policy := policies.of(row.fact):
            found[row.pool].append((row.fact, policy))
    return found


def take(pool: str, datasets: list[tuple[Dataset, Policy]], now: datetime) -> Job | None:
    """Ask for one transaction with all that is due in a pool. What was asked for is written down before."""
    zone = schedules.box_zone()
    targets = [
        (dataset.name, dataset.guid, grains)
        for dataset, policy, taken, unchanged in followed(datasets)
        if (grains := policies.due(policy, taken, now, zone, unchanged=unchanged))
    ]
    if not targets:
        return None
    text = now.astimezone(UTC).strftime(naming.FORMAT)
    run = PolicyRun(id=uuid.uuid4(), pool=pool)
    run.targets = {
        str(guid): {"short": naming.name_for(naming.coarsest(grains), now), "grains": list(grains)}
        for _name, guid, grains in targets
    }
    try:
        operation = RunPolicies.of(pool, str(run.pk), text, targets)
        run.save(force_insert=True)
        return confirm.start(operation, user=BY)
    except Refused as refusal:
        run.delete()
        log.warning("the policies of %s could not run: %s", pool, refusal)
        return None


def followed(datasets: list[tuple[Dataset, Policy]]) -> Iterator[tuple[Dataset, Policy, list[Taken], bool]]:
    """Each with what its policy has taken, and whether it is as its latest snapshot. Three queries."""
    taken = recorded.taken_of([str(dataset.guid) for dataset, _policy in datasets] if len(datasets) <= 200 else None)
    counts = counts_of()
    for dataset, policy in datasets:
        key = str(dataset.guid)
        own = [one for one, _row in taken.get(key, [])]
        unchanged = dataset.written == 0 and counts.get(key, 0) > 0
        yield dataset, policy, own, unchanged


def counts_of() -> dict[str, int]:
    return dict(SnapshotReading.objects.values_list("dataset_key", "count"))


def prune(datasets: list[tuple[Dataset, Policy]]) -> Job | None:
    """Ask for what the policies of a pool no longer keep to go."""
    rows: list[SnapshotRow] = recorded.expired(datasets, counts_of())[:MOST]
    if not rows:
        return None
    try:
        operation = PruneSnapshots.of((row.name, int(row.guid)) for row in rows)
        if not operation.there(store.facts_for(operation)):
            return None  # the agent would see none of them as expired yet: it is asked once it does
        return confirm.start(operation, user=BY)
    except Refused as refusal:
        log.warning("what is no longer kept could not be destroyed: %s", refusal)
        return None
