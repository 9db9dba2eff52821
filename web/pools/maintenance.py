"""Scrub and trim schedules of pools, with defaults where none was set, and when each last ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Max

from appliance.facts import vdev_state
from appliance.facts.box import Facts, LongWork, Pool
from appliance.pools import progress
from appliance.pools.maintenance_schedule import Care, latest_believable
from appliance.pools.scrub import work_of
from appliance.schedule import Schedule
from appliance.zfs import vdev_tree
from web.pools.models import CareSchedule, WorkReport
from web.translation import lazy_text

KINDS = ("scrub", "trim")
WORDS = {"scrub": lazy_text("scrub"), "trim": lazy_text("trim")}


def is_solid_state(pool: Pool, facts: Facts) -> bool:
    """Whether every disk of the pool is known to be solid state."""
    rotational = {disk.path: disk.rotational for disk in facts.disks}
    paths = [vdev_tree.disk_path(device) for device in pool.devices()]
    return bool(paths) and not any(rotational.get(path, True) for path in paths)


def usual_schedule(kind: str, pool: Pool, facts: Facts) -> Schedule:
    """The default: once a month at night; trim only where all disks are solid state and can be trimmed."""
    if kind == "trim" and not (pool.can_trim and is_solid_state(pool, facts)):
        return Schedule("never")
    return Schedule("month")


def schedule_rows(pools: Iterable[Pool]) -> dict[tuple[str, str], CareSchedule]:
    """The schedules that were set, by pool and kind. One query."""
    keys = [str(pool.guid) for pool in pools]
    return {(row.pool_key, row.kind): row for row in CareSchedule.objects.filter(pool_key__in=keys)}


def last_ends(pools: Iterable[Pool]) -> dict[tuple[str, str], datetime]:
    """When each kind last finished, by the stored reports; ZFS forgets a scrub when it resilvers. One query."""
    keys = [str(pool.guid) for pool in pools]
    last = (
        WorkReport.objects.filter(pool_key__in=keys, kind__in=KINDS, outcome="finished")
        .values_list("pool_key", "kind")
        .annotate(last=Max("ended"))
    )
    return {(pool_key, kind): ended for pool_key, kind, ended in last if ended}


def pool_cares(facts: Facts, kind: str, now: datetime) -> list[tuple[Pool, Care, CareSchedule | None]]:
    """The state of one kind of maintenance for every pool. Two queries."""
    rows, ends = schedule_rows(facts.pools), last_ends(facts.pools)
    cares = []
    for pool in facts.pools:
        key = (str(pool.guid), kind)
        row = rows.get(key)
        schedule = row.schedule if row else usual_schedule(kind, pool, facts)
        cares.append((pool, build_care(pool, kind, schedule, row, ends.get(key), facts, now), row))
    return cares


def build_care(
    pool: Pool,
    kind: str,
    schedule: Schedule,
    row: CareSchedule | None,
    kept: datetime | None,
    facts: Facts,
    now: datetime,
) -> Care:
    """The state of one kind of maintenance for a pool; ``kept`` is its last end by the stored reports."""
    work = work_of(pool, kind)
    ended = work.ended if work and work.state == "finished" else None
    root = facts.dataset(pool.name)
    # A scrub waits for a resilver or an expansion to end; trim does not have to.
    other = work_of(pool, "resilver", "expand") if kind == "scrub" else None
    usable = pool.state in vdev_state.WORKING and (kind == "scrub" or pool.can_trim) and not (other and other.under_way)
    under_way: LongWork | None = work if work and work.under_way else None
    return Care(
        key=str(pool.guid),
        schedule=schedule,
        usable=usable,
        state=under_way.state if under_way else "",
        ended=latest_believable((ended, kept), now),
        tried=row.tried if row else None,
        since=root.created if root else None,
        held=bool(row and under_way and row.held == progress.work_key(pool, under_way)),
    )


def schedule_row(pool: Pool, kind: str, facts: Facts) -> CareSchedule:
    """The schedule's row; where there is none, a new one with the default, not saved."""
    known = CareSchedule.objects.filter(pool_key=str(pool.guid), kind=kind).first()
    if known:
        return known
    plain = usual_schedule(kind, pool, facts)
    return CareSchedule(
        pool_key=str(pool.guid), kind=kind, every=plain.every, first=plain.first, last=plain.last, inside=plain.inside
    )
