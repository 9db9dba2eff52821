"""Start scheduled self-tests. ``appliance/disks/selftest_schedule.py`` decides which; this module supplies the rows."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

import msgspec
from django.utils import timezone

from appliance import schedule
from appliance.disks import selftest_schedule
from appliance.disks.selftest import StartSelfTest
from appliance.disks.smart_values import SelfTest
from appliance.errors import Refused
from appliance.facts.box import Pool
from appliance.zfs.vdev_tree import link_of
from web.alerts.models import DiskCare, SelfTestPlan
from web.inventory import store
from web.inventory.fact_row import LookUp, look_up_or_none, look_up_strictly
from web.inventory.models import DiskRow
from web.jobs import confirm
from web.jobs.models import BY_SCHEDULE, Job
from workers import guard
from workers.interval import Interval

log = logging.getLogger(__name__)
HANGS_AFTER = timedelta(minutes=10)  # a job that begins a test takes seconds
looks = Interval(60.0, after=300.0)  # as scrubs and trims


class KnownDisk(msgspec.Struct, frozen=True):
    """A disk with its row and its settings."""

    disk: selftest_schedule.SelfTestCandidate
    row: DiskRow
    care: DiskCare


def begin_due_selftests(now: datetime | None = None) -> list[Job]:
    """Start the tests that are due; returns their jobs.
    Starts none while the pools cannot be read or a test is starting.

    A job that hangs on one disk holds up only that disk and those that would be tested in its stead.
    """
    now = now or timezone.now()
    store_new_disks(now)
    if not store.is_read("pools"):
        return []
    mine = Job.objects.filter(state__in=Job.OPEN, kind="start-self-test")
    if mine.filter(created__range=(now - HANGS_AFTER, now)).exists():
        return []
    hanging = set(mine.values_list("subject", flat=True))
    pools = store.facts_of_pools().pools
    found = {one.disk.key: one for one in known_disks(pools, now, look_up_or_none)}
    at_work = busy_groups(pools) | {one.disk.group for one in found.values() if one.row.fact.path in hanging}
    begun: list[Job] = []

    def begin(act: tuple[str, selftest_schedule.Kind]) -> None:
        key, kind = act
        known = found[key]
        DiskCare.objects.filter(pk=key).update(**{kind: now})
        try:
            disk = known.row.fact
            operation = StartSelfTest(disk=disk.path, test=kind, wake=not disk.rotational)
            begun.append(confirm.start_without_review(operation, user=BY_SCHEDULE))
        except Refused as refusal:
            log.warning("the schedule could not start a test of %s: %s", key, refusal)

    acts = selftest_schedule.choose_tests(
        [one.disk for one in found.values()], selftest_plan(), now, schedule.box_zone(), at_work
    )
    guard.for_each(acts, begin, lambda act: act[0])
    return begun


def selftest_plan() -> selftest_schedule.SelfTestSchedule:
    row = SelfTestPlan.load_row()
    return selftest_schedule.SelfTestSchedule(row.short, row.long, row.first, row.last)


def store_new_disks(now: datetime) -> None:
    """Store when each disk was first seen; a time that a wrong clock noted in the future becomes now."""
    known = set(DiskCare.objects.values_list("disk", flat=True))
    new = [key for key in DiskRow.objects.values_list("key", flat=True) if key not in known]
    # The clock and the alert rules both come here after a start: the first counts.
    DiskCare.objects.bulk_create([DiskCare(disk=key, since=now) for key in new], ignore_conflicts=True)
    DiskCare.objects.filter(since__gt=now).update(since=now)


def known_disks(pools: Iterable[Pool], now: datetime, look_up: LookUp = look_up_strictly) -> list[KnownDisk]:
    """Every disk that the schedule may test. One whose row is odd is left out if ``look_up`` returns None for it."""
    groups = {
        link_of(device): f"{pool.guid}/{group.guid}"
        for pool in pools
        for group in pool.vdevs
        for device in group.devices()
    }
    cares = {care.disk: care for care in DiskCare.objects.all()}
    found = []
    for row in DiskRow.objects.all():
        care = cares.get(row.key) or DiskCare(disk=row.key, since=now)
        if known := look_up(row.label, partial(known_disk, row, care, groups.get(row.key, row.key))):
            found.append(known)
    return found


def known_disk(row: DiskRow, care: DiskCare, group: str) -> KnownDisk:
    tests = [SelfTest(**test) for test in row.reading.get("tests", ())]
    disk = selftest_schedule.SelfTestCandidate(
        key=row.key,
        group=group,
        able=bool(row.reading.get("able")) and care.tested and bool(row.fact.path),
        asleep=row.asleep,
        running=bool(row.reading.get("testing")) or row.reading.get("left") is not None,
        short=care.short,
        long=care.long,
        ended=selftest_schedule.hours_since(tests, row.reading.get("hours")),
        logged=selftest_schedule.last_finished(tests) is not None,
    )
    return KnownDisk(disk, row, care)


def busy_groups(pools: Iterable[Pool]) -> set[str]:
    """The vdevs of pools that are scrubbed or rebuilt; they start no test."""
    at_work = [pool for pool in pools if pool.scan and pool.scan.state == "scanning"]
    return {f"{pool.guid}/{group.guid}" for pool in at_work for group in pool.vdevs}


def untested_disks(pools: Iterable[Pool], now: datetime, look_up: LookUp = look_up_strictly) -> dict[str, str]:
    """By disk key a sentence on each disk whose long test is overdue."""
    texts, plan = {}, selftest_plan()
    for known in known_disks(pools, now, look_up):
        if text := selftest_schedule.overdue_text(known.disk, plan, known.care.since, now):
            texts[known.disk.key] = text
    return texts
