"""Bring together what is so, ask the rules, make the alerts say it. Rows are read, nothing of the system is asked."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from django.utils import timezone

from appliance import brake
from appliance.alerts import rules
from appliance.alerts.rules import DiskSeen, Fault, Seen
from appliance.disks import latency
from appliance.disks.health import WORST_FIRST, Reason, State
from appliance.facts import Pool
from appliance.sweeps import claims
from appliance.zfs import module
from appliance.zfs.verdict import BROKEN
from web.alerts import fullness, outbox, watch
from web.alerts.models import MailSettings, PoolDay
from web.inventory import present, store
from web.inventory.models import DiskRow, Event, ServiceRow, Source
from web.jobs.models import Job
from workers import mail, overdue, testing

HOOK = Path("/etc/zfs/zed.d/all-larder.sh")
SMARTD, OWN_SCRIPT = Path("/etc/larder/smartd.conf"), "/usr/local/lib/larder/smartd"
READ = ("pools", "datasets", "disks", "services", "temperatures", "properties", "snapshots")
ENDED = ("ExportPool", "DestroyPool")
UP_SINCE = time.monotonic()
_since: dict[tuple[str, str], float] = {}


def look(now: datetime | None = None) -> bool:
    """Alerts as of now; whether any changed."""
    now = now or timezone.now()
    sources = {source.name: source for source in Source.objects.filter(name__in=[*READ, "zfs"])}
    pools_read = (last := sources.get("pools")) is not None and last.checked is not None and not last.error
    seen = gather(now, sources)
    if pools_read and "zfs" in sources and not sources["zfs"].error:
        remember(seen.pools, now)
        seen = replace(seen, missing=tuple(missing(seen.pools)))
    found, complete = rules.faults(seen)
    faults = patient(found, seen.open)
    unread = [name for name in READ if name not in sources or sources[name].error or sources[name].checked is None]
    if "zfs" in sources and sources["zfs"].error:
        unread += ["pools", "datasets"]
    unheard = DiskRow.objects.filter(verdict__in=["", "unknown"]).values_list("key", flat=True)
    outbox.weekly(now, MailSettings.now())
    changed = watch.reconcile(faults, now, unread=unread, unheard=unheard, complete=complete)
    if changed:
        store.touch("alerts")
    return changed


def patient(found: list[Fault], known: frozenset[tuple[str, str]]) -> list[Fault]:
    """Without what may pass by itself (a service that restarts) as long as it has not lasted for its kind's ``wait``."""
    for gone in set(_since) - {fault.key for fault in found}:
        del _since[gone]
    now = time.monotonic()
    return [fault for fault in found if fault.key in known or now - _since.setdefault(fault.key, now) >= fault.of.wait]


def waiting() -> Iterator[tuple[brake.Waiting, str]]:
    """The jobs that the agent has wait, each with the page on which it can be cancelled."""
    for one in brake.told():
        yield one, f"/jobs/{one.job}/" if Job.objects.filter(pk=one.job).exists() else "/jobs/"


def gather(now: datetime, sources: dict[str, Source]) -> Seen:
    facts = store.facts_of_pools()
    # A pool that is only there to be measured loses disks and goes away because Larder has it do so.
    facts = replace(facts, pools=tuple(pool for pool in facts.pools if not claims.is_scratch(pool.name)))
    box = present.box()
    known = present.names_of(box.bays)
    homes = present.homes()
    rows = {row.key: row for row in DiskRow.objects.all()}
    broken = {present.link_of(one) for pool in facts.pools for one in pool.devices() if one.state in BROKEN}
    unread_datasets = "datasets" not in sources or bool(sources["datasets"].error)
    slow, untested = slow_ones(facts.pools, rows), testing.untested(facts.pools, now)
    return Seen(
        now=now,
        pools=facts.pools,
        disks=tuple(
            disk_seen(bay, rows[bay.key], slow.get(bay.key, ""), bay.key in broken, untested.get(bay.key, ""))
            for bay in box.bays
            if bay.key in rows
        ),
        services=tuple(row.fact for row in ServiceRow.objects.all()),
        spaces=tuple(fullness.of(facts.pools, now)),
        checked=tuple(
            (name, found.checked, found.error)
            for name, found in sources.items()
            if name in READ
            and found.checked
            and not (name == "snapshots" and unread_datasets)  # which are asked for only after those
            and time.monotonic() - UP_SINCE > rules.LATE_AFTER.get(name, rules.LATE).total_seconds()
        ),
        overdue=tuple(overdue.of(facts, now)),
        unhooked=tuple(unhooked()),
        module=module.version(),
        mail_fails=mail.failing(now),
        waiting=tuple(waiting()),
        open=watch.open_keys(),
        names=lambda device: present.device_label(device, known, homes),
    )


def unhooked() -> Iterable[str]:
    """Services that are installed and would not tell Larder. What is not installed is not missed."""
    if HOOK.parent.exists() and not os.access(HOOK, os.X_OK):
        yield "ZED"
    try:
        if OWN_SCRIPT not in SMARTD.read_text(errors="replace"):
            yield "smartd"
    except FileNotFoundError:
        return
    except OSError:
        yield "smartd"


def slow_ones(pools: Iterable[Pool], rows: dict[str, DiskRow]) -> dict[str, str]:
    """The disks that are far slower than those beside them in the same group, in words."""
    found = {}
    for pool in pools:
        for group in pool.vdevs:
            took = {key: rows[key].latency for one in group.devices() if (key := present.link_of(one)) in rows}
            for key, own in took.items():
                others = [value for other, value in took.items() if other != key and value is not None]
                found[key] = latency.outlier(own, others)
    return found


def disk_seen(bay: present.Bay, row: DiskRow, slow: str, away: bool, untested: str) -> DiskSeen:
    model = bay.disk.model or bay.disk.name
    label = f"{bay.label} ({model}{f' …{bay.disk.serial[-4:]}' if bay.disk.serial else ''})"
    reasons = tuple(Reason(*found) for found in row.reasons)
    return DiskSeen(
        row.key,
        label,
        state_of(row),
        reasons,
        bay.pool,
        slow,
        str(row.reading.get("silent", "")),
        away,
        untested,
        bay.disk.serial,
    )


def state_of(row: DiskRow) -> State:
    return next((state for state in WORST_FIRST if state == row.verdict), "unknown")


def remember(pools: Iterable[Pool], now: datetime) -> None:
    """One row a pool and day, written when the day begins and when it has grown by a hundredth."""
    roots = store.roots(pool.name for pool in pools)
    rows = {row.guid: row for row in PoolDay.objects.filter(day=now.date())}
    for pool in pools:
        root = roots.get(pool.name)
        if root is None:
            continue
        row, total = rows.get(str(pool.guid)), root.used + root.available
        if row is None or row.ended or abs(row.used - root.used) * 100 > total or row.name != pool.name:
            PoolDay.objects.update_or_create(
                guid=str(pool.guid), day=now.date(), defaults={"name": pool.name, "used": root.used, "total": total, "ended": False}
            )  # fmt: skip
            PoolDay.objects.filter(guid=str(pool.guid)).exclude(day=now.date()).update(ended=False)


def missing(pools: Iterable[Pool]) -> Iterable[tuple[str, str]]:
    """Pools that were here and are not, without having been exported or destroyed by anyone."""
    here = {str(pool.guid) for pool in pools}
    last = {row.guid: row for row in PoolDay.objects.filter(ended=False).exclude(guid__in=here)}
    for guid, row in last.items():
        begin = datetime.combine(row.day, datetime.min.time(), timezone.now().tzinfo)
        told = Event.objects.filter(kind__in=["sysevent.fs.zfs.pool_export", "sysevent.fs.zfs.pool_destroy"], subject=row.name, received__gte=begin)  # fmt: skip
        done = Job.objects.filter(kind__in=ENDED, subject=row.name, state=Job.State.DONE, created__gte=begin)
        if told.exists() or done.exists():
            PoolDay.objects.filter(guid=guid).update(ended=True)
        else:
            yield guid, row.name
