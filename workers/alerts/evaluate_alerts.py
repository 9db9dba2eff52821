"""Evaluate the alert rules on the stored facts and reconcile the alerts with the faults that they find."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from django.utils import timezone
from msgspec.structs import replace

from appliance.agent import delayed_jobs
from appliance.alerts import rules
from appliance.alerts.fault import AlertInput, DiskStatus, Fault, Restarted
from appliance.alerts.sources import SOURCES
from appliance.benchmarks import scratch_claim
from appliance.disks import latency
from appliance.disks.health import WORST_FIRST, HealthReason, State
from appliance.facts import vdev_state
from appliance.facts.box import Facts, Pool
from appliance.message import Message
from appliance.system import system_disk
from appliance.system.network_port import PortWatch
from appliance.zfs import kernel_module
from appliance.zfs.vdev_tree import link_of
from web.alerts import outbox, pool_usage, reconcile
from web.alerts.models import MailSettings, PoolDay
from web.inventory import store
from web.inventory.bays import Bay, KnownBays, bays_by_key, device_name, list_bays, read_known_bays, without_guesses
from web.inventory.fact_row import LookUp, facts_of, look_up_strictly
from web.inventory.models import DiskRow, Event, PoolRow, ServiceRow, ShareRow, Source
from web.jobs.models import Job
from workers import database_health, growth_plans, guard, received_copies, selftests, watchdog
from workers.alerts import deliver, direct_mail, missed_schedules, pending_faults, self_faults

HOOK = Path("/etc/zfs/zed.d/all-larder.sh")
SMARTD, OWN_SCRIPT = Path("/etc/larder/smartd.conf"), "/usr/local/lib/larder/smartd"
READ = ("pools", "datasets", "disks", "services", "temperatures", "properties", "snapshots")
ENDED = ("export-pool", "destroy-pool")
UP_SINCE = time.monotonic()
PORTS = PortWatch()


def evaluate_alerts(now: datetime | None = None) -> bool:
    """Alerts as of now; whether any changed. Raises Failed, after all others were judged, where some could not be."""
    now = now or timezone.now()
    parts = guard.Parts()
    unusable = list(database_health.database_faults())
    parts.get(Message("new disks"), lambda: selftests.store_new_disks(now))
    sources: dict[str, Source] = (
        parts.get(Message("sources"), lambda: {row.name: row for row in Source.objects.all()}) or {}
    )
    seen = gather_facts(now, sources, parts)
    if is_read(sources, "pools") and "zfs" in sources and not sources["zfs"].error:
        parts.get(Message("days of pools"), lambda: store_pool_days(seen.pools, now, parts.get))
        seen = replace(
            seen, missing=parts.get(Message("missing pools"), lambda: note_missing_pools(known_pools())) or ()
        )
    found, complete = rules.find_faults(seen)
    if not complete:
        parts.errors.append(Message("A rule failed; the system's journal says why."))
    if unusable:
        # Whatever else fails now fails for that. What still fails afterwards says so again.
        found = [*unusable, *(fault for fault in found if fault.kind != "source.stopped")]
        guard.failing.clear()
        database_health.seen_unusable(now)
    else:
        found = [
            fault for fault in found if fault.kind != "source.stopped" or not met_unusable(sources.get(fault.subject))
        ]
    faults = lasting_faults(found, seen.open, note_first_seen(found))
    silent = parts.get(Message("silent disks"), silent_disks) or []
    try:
        parts.get(Message("weekly report"), lambda: outbox.queue_weekly_report(now, MailSettings.load_row()))
        direct_mail.remember_settings()
        changed = reconcile.reconcile_alerts(
            faults,
            now,
            unread=unread_sources(sources),
            unheard=silent,
            missing=[guid for guid, _name in seen.missing],
            complete=not parts.errors and not unusable,
        )
    except reconcile.PartlyWritten as problem:
        parts.errors.append(Message("Not written: {problem}.", problem=problem))
        changed = problem.changed
    except Exception as problem:
        direct_mail.mail_critical_faults(
            [*faults, *([] if unusable else [database_health.database_fault("settings", str(problem))])]
        )
        raise
    guard.note_outcome("run-straight-mail", "")  # alerts can be stored, so none is mailed past them
    if changed:
        parts.get(Message("pages"), lambda: store.touch("alerts"))
    if parts.errors and not unusable:
        raise guard.PartlyFailed(parts.errors, changed=changed)
    return changed


def is_read(sources: dict[str, Source], name: str) -> bool:
    """Whether a source could be read the last time."""
    return name in sources and not sources[name].error and sources[name].checked is not None


def met_unusable(row: Source | None) -> bool:
    """Whether a source was last read while a database could not be used, so that its error may be of that alone.
    The next reading tells."""
    if row is None or row.checked is None or not row.error:
        return False
    return database_health.was_unusable(row.checked - timedelta(seconds=row.seconds), row.checked)


def unread_sources(sources: dict[str, Source]) -> list[str]:
    found = [name for name in READ if not is_read(sources, name)]
    return [*found, "pools", "datasets"] if "zfs" in sources and sources["zfs"].error else found


def silent_disks() -> list[str]:
    """Disks that have not said how they are."""
    return list(DiskRow.objects.filter(verdict__in=["", "unknown"]).values_list("key", flat=True))


def note_first_seen(found: list[Fault]) -> dict[str, float]:
    """Store since when each fault is there, so that a restart of the worker does not begin its wait again."""
    now, before = time.monotonic(), pending_faults.read_pending("faults")
    since = {key: min(before.get(key, now), now) for key in (pending_faults.fault_key(*fault.key) for fault in found)}
    pending_faults.store_pending("faults", since)
    return since


def lasting_faults(found: list[Fault], known: frozenset[tuple[str, str]], since: dict[str, float]) -> list[Fault]:
    """The faults that have an alert already or have lasted for their kind's ``wait``; a
    service that restarts has not."""
    now = time.monotonic()
    return [
        fault
        for fault in found
        if fault.key in known or now - since[pending_faults.fault_key(*fault.key)] >= fault.kind_info.wait
    ]


def waiting_jobs() -> Iterator[tuple[delayed_jobs.Waiting, str]]:
    """The jobs that the agent has wait, each with the page on which it can be cancelled."""
    for one in delayed_jobs.waiting_jobs():
        yield one, f"/jobs/{one.job}/" if Job.objects.filter(pk=one.job).exists() else "/jobs/"


def gather_facts(now: datetime, sources: dict[str, Source], parts: guard.Parts | None = None) -> AlertInput:
    """Everything the rules look at. What cannot be looked up is left out and named in
    ``parts``, so that nothing clears."""
    parts = guard.Parts() if parts is None else parts
    facts = parts.get(Message("pools"), lambda: store.facts_of_pools(parts.get)) or Facts()
    # A pool that is only there to be measured loses disks and goes away because Larder has it do so.
    facts = replace(facts, pools=tuple(pool for pool in facts.pools if not scratch_claim.is_scratch_name(pool.name)))
    homes = parts.get(Message("labels of bays"), read_known_bays)
    bays = bays_seen(facts.pools, homes, parts)
    known = bays_by_key(bays)
    return AlertInput(
        now=now,
        pools=facts.pools,
        disks=disks_seen(facts.pools, bays, now, parts),
        services=parts.get(Message("services"), lambda: tuple(facts_of(ServiceRow.objects.all(), parts.get))) or (),
        shared=parts.get(Message("shares"), lambda: shared_protocols(parts.get)) or frozenset(),
        spaces=parts.get(
            Message("space"),
            lambda: received_copies.with_senders(pool_usage.usage_of_pools(facts.pools, now, parts.get), parts.get),
        )
        or (),
        checked=tuple(checked_sources(sources)),
        failing=tuple(failing_parts(sources)),
        system=parts.get(Message("system disk"), system_disk.read_filesystems) or (),
        ports=parts.get(Message("network ports"), lambda: PORTS.look(time.monotonic())) or (),
        restarted=last_restart(),
        overdue=(
            *(
                parts.get(
                    Message("overdue work"), lambda: tuple(missed_schedules.update_overdue(facts, now, parts.get))
                )
                or ()
            ),
            *(
                parts.get(
                    Message("plans to grow"), lambda: tuple(growth_plans.follow_plans(facts.pools, now, known, homes))
                )
                or ()
            ),
            *(parts.get(Message("upkeep"), lambda: tuple(self_faults.upkeep_faults(now))) or ()),
        ),
        unhooked=parts.get(Message("hooks"), lambda: tuple(services_without_hook())) or (),
        module=parts.get(Message("version of ZFS"), kernel_module.read_version) or "",
        mail_fails=parts.get(Message("mail"), lambda: deliver.delivery_error(now)) or "",
        open=parts.get(Message("open alerts"), reconcile.open_keys) or frozenset(),
        waiting=parts.get(Message("jobs that wait"), lambda: tuple(waiting_jobs())) or (),
        names=lambda device: device_name(device, known, homes or {}),
    )


def known_pools() -> list[str]:
    """The guids of all pools that are here, also of those whose row cannot be decoded."""
    return list(PoolRow.objects.values_list("key", flat=True))


def bays_seen(pools: tuple[Pool, ...], homes: KnownBays | None, parts: guard.Parts) -> list[Bay]:
    """The disks in their bays, each by itself. ``homes``: None where they cannot be read.

    Without all disks and bays, the number of a disk whose bay is not stored may be that of another, so it is unknown.
    """
    rows = parts.get(Message("disks"), lambda: list(DiskRow.objects.all())) or []
    found = parts.get(Message("bays"), lambda: list_bays(rows, pools, homes, parts.get)) or []
    if homes is not None and len(found) == len(rows):
        return found
    return without_guesses(found, (homes or {}).values())


def disks_seen(
    pools: tuple[Pool, ...], bays: Iterable[Bay], now: datetime, parts: guard.Parts
) -> tuple[DiskStatus, ...]:
    """The disks, each by itself: one whose row is odd hides no other."""
    rows = {row.key: row for row in parts.get(Message("disks"), lambda: list(DiskRow.objects.all())) or []}
    broken = {link_of(one) for pool in pools for one in pool.devices() if one.state in vdev_state.LOST}
    slow = parts.get(Message("slow disks"), lambda: slow_disks(pools, rows)) or {}
    untested = parts.get(Message("self-tests"), lambda: selftests.untested_disks(pools, now, parts.get)) or {}
    found = []
    for bay in bays:
        if row := rows.get(bay.key):
            seen = partial(disk_seen, bay, row, slow.get(bay.key, ""), bay.key in broken, untested.get(bay.key, ""))
            if disk := parts.get(row.label, seen):
                found.append(disk)
    return tuple(found)


def checked_sources(sources: dict[str, Source]) -> Iterator[tuple[str, datetime, str]]:
    """What is read regularly. That a reading is late counts only once the worker has had time for one."""
    late = {name for name in READ if not is_read(sources, name)}
    for name in READ:
        row = sources.get(name)
        if row is None or row.checked is None or (name == "snapshots" and "datasets" in late):
            continue  # snapshots are asked for only after the datasets
        if row.error or time.monotonic() - UP_SINCE > rules.LATE_AFTER.get(name, rules.LATE).total_seconds():
            yield name, row.checked, row.error


def failing_parts(sources: dict[str, Source]) -> Iterator[tuple[str, str]]:
    """Whatever else runs in the background and fails, also where that could not be noted."""
    noted = {name: row.error for name, row in sources.items() if row.error}
    for name, error in {**noted, **guard.failing}.items():
        if name in SOURCES and not (name in READ and name in noted):
            yield name, error


def last_restart() -> Restarted | None:
    last = watchdog.last_restart()
    return Restarted(last.at, last.stage, last.count) if last else None


def shared_protocols(look_up: LookUp) -> frozenset[str]:
    """The protocols over which something is shared."""
    return frozenset(share.protocol for share in facts_of(ShareRow.objects.all(), look_up))


def services_without_hook() -> Iterable[str]:
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


def slow_disks(pools: Iterable[Pool], rows: dict[str, DiskRow]) -> dict[str, str]:
    """The disks that are far slower than those beside them in the same group, in words."""
    found = {}
    for pool in pools:
        for group in pool.vdevs:
            took = {key: rows[key].latency for one in group.devices() if (key := link_of(one)) in rows}
            for key, own in took.items():
                others = [value for other, value in took.items() if other != key and value is not None]
                found[key] = latency.outlier_text(own, others)
    return found


def disk_seen(bay: Bay, row: DiskRow, slow: str, away: bool, untested: str) -> DiskStatus:
    model = bay.disk.model or bay.disk.name
    disk = f"{model} …{bay.disk.serial[-4:]}" if bay.disk.serial else model
    label = Message("bay {name} ({disk})", name=bay.name, disk=disk) if bay.number else disk
    reasons = tuple(HealthReason(*found) for found in row.reasons)
    return DiskStatus(
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
        bool(bay.number),
    )


def state_of(row: DiskRow) -> State:
    return next((state for state in WORST_FIRST if state == row.verdict), "unknown")


def store_pool_days(pools: Iterable[Pool], now: datetime, look_up: LookUp = look_up_strictly) -> None:
    """One row a pool and day, written when the day begins and when it has grown by a hundredth."""
    roots = store.top_datasets((pool.name for pool in pools), look_up)
    rows = {row.guid: row for row in PoolDay.objects.filter(day=now.date())}
    for pool in pools:
        root = roots.get(pool.name)
        if root is None:
            continue
        row, total = rows.get(str(pool.guid)), root.used + root.available
        if row is None or row.ended or abs(row.used - root.used) * 100 > total or row.name != pool.name:
            PoolDay.objects.update_or_create(
                guid=str(pool.guid),
                day=now.date(),
                defaults={"name": pool.name, "used": root.used, "total": total, "ended": False},
            )
            PoolDay.objects.filter(guid=str(pool.guid)).exclude(day=now.date()).update(ended=False)


def note_missing_pools(here: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Guid and name of each pool that was here and is not (``here``: guids); one that somebody exported or
    destroyed is noted as ended."""
    today, last = timezone.now().date(), dict[str, PoolDay]()
    for row in PoolDay.objects.filter(ended=False).exclude(guid__in=here):
        if row.day <= today or row.guid not in last:  # a later day was stored while the clock was ahead
            last[row.guid] = row
    missing = []
    for guid, row in last.items():
        begin = datetime.combine(min(row.day, today), datetime.min.time(), timezone.now().tzinfo)
        told = Event.objects.filter(
            kind__in=["sysevent.fs.zfs.pool_export", "sysevent.fs.zfs.pool_destroy"],
            subject=row.name,
            received__gte=begin,
        )
        done = Job.objects.filter(kind__in=ENDED, subject=row.name, state=Job.State.DONE, created__gte=begin)
        if told.exists() or done.exists():
            PoolDay.objects.filter(guid=guid).update(ended=True)
        else:
            missing.append((guid, row.name))
    return tuple(missing)
