"""Self-tests by schedule. What begins when is decided by ``appliance/disks/selftest_schedule.py``; here are the rows it needs."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from appliance import schedule
from appliance.disks import selftest_schedule
from appliance.disks.selftest import StartSelfTest
from appliance.disks.smart import SelfTest
from appliance.errors import Refused
from appliance.facts.box import Pool
from web.alerts.models import DiskCare, SelfTestPlan
from web.inventory import present, store
from web.inventory.models import DiskRow
from web.jobs import confirm
from web.jobs.models import Job
from workers import guard
from workers.interval import Every

log = logging.getLogger(__name__)
BY = "the schedule"
HANGS_AFTER = timedelta(minutes=10)  # a job that begins a test takes seconds
looks = Every(60.0, after=300.0)  # as scrubs and trims


@dataclass(frozen=True)
class KnownDisk:
    """A disk with its row and what its owner wants of it."""

    disk: selftest_schedule.SelfTestCandidate
    row: DiskRow
    care: DiskCare


def begin_due_selftests(now: datetime | None = None) -> list[Job]:
    """Begin what is due; the jobs that were made. Nothing while the pools cannot be read or a test is being begun. A job
    that hangs on one disk holds up only that disk and those that would be tested in its stead."""
    now = now or timezone.now()
    if not store.is_read("pools"):
        return []
    mine = Job.objects.filter(state__in=Job.OPEN, kind="start-self-test")
    if mine.filter(created__range=(now - HANGS_AFTER, now)).exists():
        return []
    hanging = set(mine.values_list("subject", flat=True))
    pools = store.facts_of_pools().pools
    found = {one.disk.key: one for one in known(pools, now)}
    at_work = busy(pools) | {one.disk.group for one in found.values() if one.row.fact.path in hanging}
    begun: list[Job] = []

    def begin(act: tuple[str, selftest_schedule.Kind]) -> None:
        key, kind = act
        one = found[key]
        setattr(one.care, kind, now)
        one.care.save()
        try:
            begun.append(
                confirm.start_without_review(
                    StartSelfTest(disk=one.row.fact.path, test=kind, wake=not one.row.fact.rotational), user=BY
                )
            )
        except Refused as refusal:
            log.warning("the schedule could not begin a test of %s: %s", key, refusal)

    acts = selftest_schedule.decide([one.disk for one in found.values()], plan(), now, schedule.box_zone(), at_work)
    guard.each(acts, begin, lambda act: act[0])
    return begun


def plan() -> selftest_schedule.SelfTestSchedule:
    row = SelfTestPlan.now()
    return selftest_schedule.SelfTestSchedule(row.short, row.long, row.first, row.last)


def known(pools: Iterable[Pool], now: datetime) -> list[KnownDisk]:
    """Every disk that the schedule may test; one seen for the first time gets its row."""
    groups = {present.link_of(device): f"{pool.guid}/{group.guid}" for pool in pools for group in pool.vdevs for device in group.devices()}  # fmt: skip
    cares = {care.disk: care for care in DiskCare.objects.all()}
    found = []
    for row in DiskRow.objects.all():
        care = cares.get(row.key) or DiskCare.objects.create(disk=row.key, since=now)
        if care.since > now:  # noted while the clock was wrong
            care.since = now
            care.save(update_fields=["since"])
        tests = [SelfTest(**test) for test in row.reading.get("tests", ())]
        disk = selftest_schedule.SelfTestCandidate(
            key=row.key,
            group=groups.get(row.key, row.key),
            able=bool(row.reading.get("able")) and care.tested and bool(row.fact.path),
            asleep=row.asleep,
            running=row.reading.get("left") is not None,
            short=care.short,
            long=care.long,
            ended=selftest_schedule.hours_since(tests, row.reading.get("hours")),
        )
        found.append(KnownDisk(disk, row, care))
    return found


def busy(pools: Iterable[Pool]) -> set[str]:
    """Groups whose disks have enough to do: a pool that is checked or rebuilt."""
    at_work = [pool for pool in pools if pool.scan and pool.scan.state == "scanning"]
    return {f"{pool.guid}/{group.guid}" for pool in at_work for group in pool.vdevs}


def untested(pools: Iterable[Pool], now: datetime) -> dict[str, str]:
    """Disks that have not tested themselves for too long, with since when in words."""
    told, how = {}, plan()
    for one in known(pools, now):
        if text := selftest_schedule.overdue(one.disk, how, one.care.since, now):
            told[one.disk.key] = text
    return told
