"""The care of pools as it stands: the schedules, the usual ones where nothing was set, and when each last was done."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Max

from appliance.facts.box import Facts, LongWork, Pool
from appliance.pools import activities
from appliance.pools.scrub import STATES_THAT_WORK, work_of
from appliance.schedule import Care, Schedule, believable
from web.pools.models import CareSchedule, WorkReport

KINDS = ("scrub", "trim")
WORDS = {"scrub": "check (scrub)", "trim": "trim"}


def is_solid_state(pool: Pool, facts: Facts) -> bool:
    """Whether every disk of it is one without moving parts, and known."""
    turning = {disk.path: disk.rotational for disk in facts.disks}
    paths = [device.path.rsplit("-part", 1)[0] for device in pool.devices()]
    return bool(paths) and not any(turning.get(path, True) for path in paths)


def usual_schedule(kind: str, pool: Pool, facts: Facts) -> Schedule:
    """Once a month in the small hours; trim only where all disks are solid state and can be trimmed."""
    if kind == "trim" and not (pool.can_trim and is_solid_state(pool, facts)):
        return Schedule("never")
    return Schedule("month")


def schedule_rows(pools: Iterable[Pool]) -> dict[tuple[str, str], CareSchedule]:
    keys = [str(pool.guid) for pool in pools]
    return {(row.pool_key, row.kind): row for row in CareSchedule.objects.filter(pool_key__in=keys)}


def last_ends(pools: Iterable[Pool]) -> dict[tuple[str, str], datetime]:
    """When each was last finished, by the reports kept: a rebuilding since then has taken the scrub out of ZFS's memory."""
    keys = [str(pool.guid) for pool in pools]
    found = (
        WorkReport.objects.filter(pool_key__in=keys, kind__in=KINDS, outcome="finished")
        .values_list("pool_key", "kind")
        .annotate(last=Max("ended"))
    )
    return {(pool_key, kind): last for pool_key, kind, last in found if last}


def pool_cares(facts: Facts, kind: str, now: datetime) -> list[tuple[Pool, Care, CareSchedule | None]]:
    """How every pool stands with one kind of care. Two queries."""
    rows, ends = schedule_rows(facts.pools), last_ends(facts.pools)
    found = []
    for pool in facts.pools:
        key = (str(pool.guid), kind)
        row = rows.get(key)
        schedule = row.schedule if row else usual_schedule(kind, pool, facts)
        found.append((pool, build_care(pool, kind, schedule, row, ends.get(key), facts, now), row))
    return found


def build_care(
    pool: Pool,
    kind: str,
    schedule: Schedule,
    row: CareSchedule | None,
    kept: datetime | None,
    facts: Facts,
    now: datetime,
) -> Care:
    work = work_of(pool, kind)
    told = work.ended if work and work.state == "finished" else None
    root = facts.dataset(pool.name)
    # A scrub waits for a rebuilding and a growing; trimming minds neither.
    other = work_of(pool, "resilver", "expand") if kind == "scrub" else None
    usable = pool.state in STATES_THAT_WORK and (kind == "scrub" or pool.can_trim) and not (other and other.under_way)
    under_way: LongWork | None = work if work and work.under_way else None
    return Care(
        key=str(pool.guid),
        schedule=schedule,
        usable=usable,
        state=under_way.state if under_way else "",
        ended=believable((told, kept), now),
        tried=row.tried if row else None,
        since=root.created if root else None,
        held=bool(row and under_way and row.held == activities.key(pool, under_way)),
    )


def schedule_row(pool: Pool, kind: str, facts: Facts) -> CareSchedule:
    """The row of a schedule, made with the usual one where there is none; not stored yet then."""
    known = CareSchedule.objects.filter(pool_key=str(pool.guid), kind=kind).first()
    if known:
        return known
    plain = usual_schedule(kind, pool, facts)
    return CareSchedule(
        pool_key=str(pool.guid), kind=kind, every=plain.every, first=plain.first, last=plain.last, inside=plain.inside
    )
