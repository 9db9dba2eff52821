"""Start due backups, one at a time, and remember how each stands for when its disks are not connected."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.utils import timezone

from appliance import schedule, snapshot_names
from appliance.alerts.rules import Fault
from appliance.backups.run_backup import RunBackup
from appliance.errors import Refused
from web.backups import status
from web.backups.models import BackupRecord
from web.backups.status import BackupStatus
from web.inventory import store
from web.jobs import confirm
from web.jobs.models import BY_SCHEDULE, Job
from workers import guard
from workers.interval import Interval

log = logging.getLogger(__name__)
SECONDS_BETWEEN_LOOKS = 30.0
TRY_AGAIN_AFTER = timedelta(minutes=15)
SEEN_EVERY = timedelta(hours=6)  # how often it is written down that a destination is connected
looks = Interval(SECONDS_BETWEEN_LOOKS)


def start_due_backups() -> Job | None:
    """Start the run that has been due for longest. One at a time: two streams on the same disks slow each other down."""
    if not store.is_read("snapshots") or not store.is_read("datasets"):
        return None
    now = timezone.now()
    statuses = status.read_statuses(status.read_facts(), now)
    guard.for_each(statuses, remember)
    forget_removed(statuses)
    if Job.objects.filter(kind="run-backup", state__in=Job.OPEN).exists():
        return None
    stopped = store.stopped_pools()
    waiting = [one for one in statuses if may_start(one, now, stopped)]
    for one in sorted(waiting, key=lambda one: one.good or one.now - timedelta(days=36500)):
        if job := start(one, now):
            return job
    return None


def may_start(one: BackupStatus, now: datetime, stopped: set[str]) -> bool:
    """Whether a run is due, its destination is here, and the last run was not just a failure."""
    if one.is_foreign or one.pool is None or {one.pool.name, one.dataset.pool} & stopped:
        return False
    if (
        one.job
        and not one.job.open
        and one.job.state != Job.State.DONE
        and now - TRY_AGAIN_AFTER < one.job.created <= now
    ):
        return False
    return bool(one.missing) or one.task.is_due(one.good, now, schedule.box_zone())


def start(one: BackupStatus, now: datetime) -> Job | None:
    if one.pool is None:
        return None
    try:
        operation = RunBackup.of(one.dataset, one.task, one.pool, snapshot_names.format_moment(now))
        return confirm.start_without_review(operation, user=BY_SCHEDULE)
    except Refused as refusal:
        log.warning("the backup of %s could not start: %s", one.dataset.name, refusal)
        return None


def remember(one: BackupStatus) -> None:
    """Write down what changed. While a destination is not connected nothing is known anew."""
    row = BackupRecord.objects.filter(dataset_key=one.key, task=one.task.key).first()
    if row is None and was_set_here(one):
        row = BackupRecord(dataset_key=one.key, task=one.task.key, since=one.now)
        row.save()
    if row is None or one.pool is None:
        return
    seen = row.seen if row.seen and timedelta() <= one.now - row.seen < SEEN_EVERY else one.now
    if (row.good, row.pool_name, row.seen) != (one.good, one.pool_name, seen):
        row.good, row.pool_name, row.seen = one.good, one.pool_name, seen
        row.save()


def was_set_here(one: BackupStatus) -> bool:
    """Whether somebody of this box set the task. Disks from elsewhere bring theirs, which run only once they are set here."""
    done = Job.objects.filter(kind="set-backup", state=Job.State.DONE, subject=one.dataset.name)
    return done.filter(operation__contains=f'"{one.task.key}"').exists()


def forget_removed(statuses: list[BackupStatus]) -> None:
    """Delete the records of tasks that were removed from a dataset that is still here; one that left may come back."""
    here = {str(one.guid) for one in status.read_facts().datasets}
    kept = {(one.key, one.task.key) for one in statuses}
    gone = [
        row.pk
        for row in BackupRecord.objects.all()
        if row.dataset_key in here and (row.dataset_key, row.task) not in kept
    ]
    if gone:
        BackupRecord.objects.filter(pk__in=gone).delete()


def overdue_backups(now: datetime) -> Iterator[Fault]:
    """A fault for each backup whose newest copy is older than its owner allows."""
    for one in status.read_statuses(status.read_facts(), now):
        if one.is_late:
            last = f"The newest copy is of {one.good.astimezone(schedule.box_zone()):%d %B %Y, %H:%M}." if one.good else "There is no copy yet."  # fmt: skip
            where = f"Its copies lie on {one.pool_name}." if one.pool else f"{one.pool_name}, where its copies lie, is not connected."  # fmt: skip
            yield Fault("backup.old", f"{one.key}:{one.task.key}", f"The backup of {one.dataset.name} is too old.", f"{last} {where}", f"/backups/of/{one.key}/{one.task.key}/")  # fmt: skip
