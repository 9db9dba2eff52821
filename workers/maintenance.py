"""Start scheduled scrubs and trims. ``appliance/pools/maintenance_schedule.py`` decides which."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.utils import timezone

from appliance import schedule
from appliance.errors import Refused
from appliance.facts.box import Facts, Pool
from appliance.operation import Operation
from appliance.pools import maintenance_schedule, progress
from appliance.pools.scrub import PauseScrub, StartScrub, work_of
from appliance.pools.trim import StartTrim
from web.inventory import store
from web.jobs import confirm
from web.jobs.models import BY_SCHEDULE, Job
from web.pools import maintenance
from workers import guard
from workers.interval import Interval

log = logging.getLogger(__name__)
SECONDS_BETWEEN_LOOKS = 60.0
# After a start the clock may still be wrong, and users want their files first.
SECONDS_TO_SETTLE = 300.0
KINDS_OF_JOBS = ("start-scrub", "pause-scrub", "start-trim")
HANGS_AFTER = timedelta(minutes=10)  # a job that begins or pauses a scrub takes seconds
looks = Interval(SECONDS_BETWEEN_LOOKS, after=SECONDS_TO_SETTLE)


def begin_due_maintenance() -> list[Job]:
    """Start the scrubs and trims that are due; returns their jobs."""
    if not store.is_read("pools"):
        return []
    facts, now, zone = store.facts_of_pools(), timezone.now(), schedule.box_zone()
    # A pool's own job is waited for. A job that hangs holds up no other pool.
    mine = Job.objects.filter(state__in=Job.OPEN, kind__in=KINDS_OF_JOBS)
    at_it = set(mine.values_list("subject", flat=True))
    beginning = mine.filter(created__range=(now - HANGS_AFTER, now)).exists()
    begun: list[Job] = []

    def begin(kind: str) -> None:
        standing = {
            found.key: (pool, found)
            for pool, found, _row in maintenance.pool_cares(facts, kind, now)
            if pool.name not in at_it
        }
        busy = beginning or (kind == "scrub" and is_rebuilding(facts))
        acts = maintenance_schedule.decide_run([found for _pool, found in standing.values()], now, zone, busy=busy)
        for act in acts:
            pool = standing[act.key][0]
            if pool.name not in at_it and (job := start_job(act, kind, pool, facts)):
                at_it.add(pool.name)
                begun.append(job)

    guard.for_each(maintenance.KINDS, begin)
    return begun


def is_rebuilding(facts: Facts) -> bool:
    """Whether a pool is rebuilding; disks should do nothing else then."""
    return any(work.kind == "resilver" and work.state == "running" for pool in facts.pools for work in pool.work)


def start_job(act: maintenance_schedule.DueAct, kind: str, pool: Pool, facts: Facts) -> Job | None:
    """Make the job of one action and note in the schedule's row that the schedule started it."""
    operation: Operation
    work = work_of(pool, kind)
    if kind == "trim":
        if act.what != "start":
            return None
        operation = StartTrim.of(pool)
    elif act.what == "pause":
        operation = PauseScrub(pool=pool.name)
    else:
        operation = StartScrub.of(pool)
    row = maintenance.schedule_row(pool, kind, facts)
    if act.what == "start":
        row.tried = timezone.now()
    row.held = progress.work_key(pool, work) if act.what == "pause" and work else ""
    row.save()
    try:
        return confirm.start_without_review(operation, user=BY_SCHEDULE)
    except Refused as refusal:
        log.warning("the schedule could not %s the %s of %s: %s", act.what, kind, pool.name, refusal)
        return None
