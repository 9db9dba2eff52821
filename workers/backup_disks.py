"""Disks that come and go: import the pool of a backup when its disk is connected, and export it
when nothing is left to do."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from appliance import schedule
from appliance.facts.box import Pool
from appliance.facts.datasets import Dataset
from appliance.operation import Operation
from appliance.pools.export_destroy import ExportPool
from appliance.pools.import_pool import ImportPool
from web.backups.status import BackupStatus
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts
from web.inventory.models import ImportableRow, PoolRow
from web.inventory.source_names import IMPORTABLE
from web.jobs import confirm, queue
from web.jobs.models import BY_SCHEDULE, Job
from workers import backup_jobs, guard

TRY_AGAIN_AFTER = timedelta(minutes=15)
SEARCH_EVERY = timedelta(minutes=2)
KINDS_OF_JOBS = ("import-pool", "export-pool")


def fetch_disk(statuses: Iterable[BackupStatus], now: datetime) -> Job | None:
    """Import the pool of a backup that is due and whose disk was connected."""
    moving = pools_on_the_move()
    for one in statuses:
        wanted = one.task.removable and one.plugged and not one.is_foreign and one.task.pool not in moving
        if not wanted or not one.task.is_due(one.good, now, schedule.box_zone()):
            continue
        if backup_jobs.is_resting(one, now, backup_jobs.RUNS):  # its disk would only be released again
            continue
        if not ImportableRow.objects.filter(key=str(one.task.pool)).exists():
            # A search opens every disk, so none is made unless such a disk has come.
            if store.claim_refresh(IMPORTABLE, not_since=now - SEARCH_EVERY):
                queue.send("workers.look_for_pools")
            continue
        name = free_name(one.plugged)
        if not has_failed("import-pool", name, now) and (job := start(ImportPool(guid=one.task.pool, name=name))):
            return job
    return None


def pools_on_the_move() -> set[int]:
    """The guids of the pools that jobs import or export now. A job that hangs keeps its own pool and no other."""
    found = backup_jobs.operations_under_way(KINDS_OF_JOBS)
    return {one.guid for one in found if isinstance(one, ImportPool | ExportPool)}


def has_failed(kind: str, pool: str, now: datetime) -> bool:
    """Whether a job of this kind has just failed for the pool of that name, so that it is not tried again yet."""
    tries = Job.objects.filter(kind=kind, subject=pool, created__range=(now - TRY_AGAIN_AFTER, now))
    return tries.exclude(state__in=(Job.State.DONE, *Job.OPEN)).exists()


def free_name(wanted: str) -> str:
    """A name that no pool has or is about to get: two disks may both be called usb."""
    coming = backup_jobs.under_way(("import-pool",)).values_list("subject", flat=True)
    taken, name, number = {*PoolRow.objects.values_list("name", flat=True), *coming}, wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name


def release_disk(statuses: Iterable[BackupStatus], busy: set[int], kept: set[str], now: datetime) -> Job | None:
    """Export a pool that was imported for a backup and for which nothing is left to do. ``busy``: guids of the others.
    ``kept``: names of pools that cannot be exported now, as they have stopped or a job has them open."""
    out_of_reach = busy | pools_on_the_move()
    pools: dict[int, list[BackupStatus]] = {}
    for one in statuses:
        pools.setdefault(one.task.pool, []).append(one)
    for guid, mine in pools.items():
        pool = mine[0].pool
        if (
            pool is None
            or guid in out_of_reach
            or pool.name in kept
            or has_failed("export-pool", pool.name, now)
            or not all(one.task.removable and one.good for one in mine)
        ):
            continue
        if not was_fetched(pool) or not holds_only_copies(pool):
            continue
        if job := start(ExportPool(pool=pool.name, guid=pool.guid)):  # one that is refused keeps no other disk here
            return job
    return None


def was_fetched(pool: Pool) -> bool:
    """Whether it was imported for a backup the last time, and not by somebody who wants to look into it."""
    last = Job.objects.filter(kind="import-pool", subject=pool.name, state=Job.State.DONE).order_by("-created").first()
    return last is not None and last.created_by == BY_SCHEDULE


def holds_only_copies(pool: Pool) -> bool:
    """Whether nobody can be using the pool for anything else: a folder of somebody's own on the disk keeps it here."""
    rows = [row for row in DatasetRow.objects.filter(pool=pool.name) if "/" in row.name]
    found: list[Dataset] = readable_facts(rows)
    return len(found) == len(rows) and all(one.copy_of for one in found)


def start(operation: Operation) -> Job | None:
    with guard.refusals_logged(str(operation.title)):
        return confirm.start_without_review(operation, user=BY_SCHEDULE)
    return None
