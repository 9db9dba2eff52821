"""Collectors: read the system, write the inventory. One broken source never silences another."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from functools import partial

from django.utils import timezone

from appliance import agent_client, command
from appliance.backups.pairing import receivers
from appliance.backups.remote import settings as remote_settings
from appliance.disks import inventory as disk_inventory
from appliance.disks import latency, smart, smart_values
from appliance.errors import Failed, LarderError, explain_error
from appliance.facts.box import Disk, Pool, Service
from appliance.facts.datasets import Dataset
from appliance.imports import settings as import_settings
from appliance.message import Message
from appliance.pools import properties
from appliance.shares import publish
from appliance.system import accounts, paths
from appliance.zfs import kstat, status
from web.alerts.models import Alert
from web.disks import ports, smart_history
from web.inventory import stability, store
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import look_up_or_none, readable_facts, readable_rows
from web.inventory.models import (
    AccountRow,
    CachingRow,
    DiskRow,
    GroupRow,
    ImportRow,
    PolicyRow,
    PoolRow,
    PropertiesRow,
    ReceiverRow,
    RemoteRow,
    ServiceRow,
    ShareRow,
    Source,
)
from web.pools import new_disk
from workers import collect_drift, collect_progress, collect_snapshots, collect_targets, guard, standby, work_reports
from workers.alerts import evaluate_alerts
from workers.celery import app
from workers.throttle import Coalescer

log = logging.getLogger(__name__)
UNITS = (
    "smbd.service",
    "nfs-server.service",
    "netatalk.service",
    "smartmontools.service",
    "zfs-zed.service",
    "nginx.service",
)
ZFS_MISSING = Message("The ZFS module is not loaded, so no pool can be used.")
WHEN_NOBODY_LOOKS = timedelta(seconds=60)
TEMPERATURES_EVERY = timedelta(minutes=5)
NEW_DISK_WITHIN = timedelta(seconds=20)
_stuck: dict[str, int] = {}
_counters: dict[str, latency.DiskCounters] = {}


@app.task(name="workers.collect")
def collect_soon() -> None:
    """Read everything that is cheap to read; many who ask at once get one reading."""
    reading.request_run()


def collect_timed() -> None:
    """Read everything, and note how long that took."""
    started = time.monotonic()
    collect_all()
    store.note_duration("looking", time.monotonic() - started)


def collect_now() -> None:
    """Read everything again, beginning now: what is true after a job has to be in the rows."""
    reading.run_fresh()


def update_source(name: str, read: Callable[[], bool], *, at: datetime | None = None, without: str = "") -> bool:
    """Read one source and note how that went, as of now or of the time given; whether it could be read.

    A reading that hangs in the kernel is not started again meanwhile, except ``without``
    the pools that it may wait for.
    """
    reading_of = f"{name} without {without}" if without else name
    if (pid := _stuck.get(reading_of)) and is_running(pid):
        note_result(name, error=Message("The last reading still hangs in the system. A disk or pool does not answer."))
        return False
    _stuck.pop(reading_of, None)
    started, error, changed = time.monotonic(), "", False
    try:
        changed = read()
    except command.CommandTimedOut as problem:
        error = explain_error(problem)
        if problem.pid:
            _stuck[reading_of] = problem.pid
    except guard.PartlyFailed as problem:
        error, changed = problem.text, problem.changed
    except Exception as problem:  # also output of a shape that nobody expected
        error = explain_error(problem)
        log.warning("could not read %s: %s", name, error, exc_info=not isinstance(problem, LarderError))
    note_result(name, changed=changed, seconds=time.monotonic() - started, error=error, at=at)
    return not error


def note_result(
    name: str, *, changed: bool = False, seconds: float = 0, error: str = "", at: datetime | None = None
) -> None:
    """Note how a reading went. Where the row cannot be written, the error is still known to the alert rules."""
    guard.remember_error(name, error)
    try:
        store.checked(name, changed=changed, seconds=seconds, error=error, at=at)
    except Exception as problem:
        log.warning("how reading %s went could not be noted: %s", name, explain_error(problem))


def is_running(pid: int) -> bool:
    """Whether a process that Larder started still runs. A number that has gone to somebody else's process says no."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def collect_all() -> None:
    """Pools first: what a disk is used for depends on them."""
    found: list[Pool] = []
    known: list[Dataset] = []
    stopped: list[Dataset] = []  # those of them that ZFS tells nothing of now

    def pools() -> bool:
        loaded = status.is_module_loaded()
        note_result("zfs", error="" if loaded else ZFS_MISSING)
        found.extend(status.read_pools() if loaded else ())
        return stability.replace_pools(found, timezone.now())

    def pools_of_before() -> None:
        found[:] = [row.fact for row in PoolRow.objects.all()]

    def pool_properties() -> bool:
        now = properties.read_properties() if status.is_module_loaded() else ()
        return store.replace(PropertiesRow, now, lambda pool: str(pool.guid))

    def datasets() -> bool:
        now = read_running(found, waiting) if status.is_module_loaded() else ()
        stopped.extend(keep_stopped(now))
        now += tuple(stopped)
        known.extend(now)
        return store.replace(DatasetRow, now, lambda dataset: str(dataset.guid))

    fresh = update_source("pools", pools)
    if fresh:
        update_source("activities", lambda: collect_progress.update_activities(found))
        guard.run_guarded("new-disks", lambda: new_disk.note_new_disks(found))
        guard.note_outcome("pools-before", "")
    # Without its pool a disk in use would look like one that merely holds old data.
    pools_known = fresh or guard.run_guarded("pools-before", pools_of_before)
    update_source("properties", pool_properties)
    waiting = kstat.find_stopped()
    if update_source("datasets", datasets, without=" ".join(sorted(waiting))):
        update_source("snapshots", lambda: collect_snapshots.update_snapshots(known, stopped))
    if pools_known:
        update_source("disks", lambda: store.replace(DiskRow, disk_inventory.read_disks(found), disk_key))
    update_source("bays", lambda: ports.remember_ports(readable_facts(DiskRow.objects.all())))
    update_source("services", lambda: store.replace(ServiceRow, read_services(), lambda service: service.unit))
    update_source("shares", lambda: store.replace(ShareRow, publish.configured_shares(), lambda share: share.key))
    update_source("accounts", lambda: store.replace(AccountRow, accounts.read_accounts(), lambda account: account.name))
    update_source("groups", lambda: store.replace(GroupRow, accounts.read_groups(), lambda group: group.name))
    update_source("edits", collect_drift.store_drift)
    update_source("targets", collect_targets.store_targets)
    update_source("smb-policy", lambda: store.replace(PolicyRow, [publish.smb_policy()], lambda _policy: "smb"))
    update_source("remotes", lambda: store.replace(RemoteRow, remote_settings.read_remotes(), lambda one: one.id))
    update_source("receivers", lambda: store.replace(ReceiverRow, receivers.read_visits(), lambda one: one.id))
    update_source("imports", lambda: store.replace(ImportRow, import_settings.read_imports(), lambda one: one.id))
    update_source("addresses", store_addresses)
    if fresh:
        # Last: an agent that is slow to name damaged files keeps no facts waiting.
        update_source("reports", lambda: work_reports.store_reports(found))
    judge_alerts()


def read_running(pools: Collection[Pool], stopped: Collection[str]) -> tuple[Dataset, ...]:
    """The datasets of all pools but the stopped ones: a list of those may hang, and otherwise leaves them out.
    Raises Failed."""
    running = [pool.name for pool in pools if pool.name not in stopped]
    if len(running) == len(pools):
        return status.read_datasets()
    return status.read_datasets(*running) if running else ()


def keep_stopped(listed: Iterable[Dataset]) -> tuple[Dataset, ...]:
    """What is known of the datasets of stopped pools and was not listed:
    ``zfs list`` leaves those out and says nothing (2.3.9).

    Pages would otherwise say that the pool is empty, and offer what is harmful to a copy in it.
    """
    stopped = kstat.find_stopped()  # again: one may have stopped while they were listed
    if not stopped:
        return ()
    guids = {str(one.guid) for one in listed}
    rows = DatasetRow.objects.filter(pool__in=stopped).order_by("name")
    return tuple(readable_facts(row for row in rows if row.key not in guids))


def judge_alerts() -> None:
    """Ask the alert rules. While they are being asked, nobody else has to."""
    if _judging.acquire(blocking=False):
        try:
            update_source("alerts", evaluate_alerts.evaluate_alerts)
        finally:
            _judging.release()


_judging = threading.Lock()
reading = Coalescer(collect_timed)


def disk_key(disk: Disk) -> str:
    return disk.path.rsplit("/", 1)[-1] or disk.name


def read_services() -> Iterable[Service]:
    """The units that Larder leans on, in one call; none where there is no systemd, as in a container. Raises Failed."""
    try:
        result = command.run(
            ["systemctl", "show", "--property=Id,LoadState,ActiveState,UnitFileState", *UNITS], timeout=20
        )
    except command.CommandMissing:
        return
    # It tells of each unit that it is asked for, also of one that is not installed.
    if not any(line.startswith("Id=") for line in result.stdout.splitlines()):
        raise Failed(Message("The services cannot be read"), Message("systemctl answered something else than asked"))
    for block in result.stdout.strip().split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if "Id" in values:
            yield Service(
                values["Id"],
                values.get("ActiveState", ""),
                values.get("UnitFileState", ""),
                values.get("LoadState") == "loaded",
            )


def store_addresses() -> bool:
    """Keep the list of the box's own addresses for the Host check. Raises Failed."""
    result = command.run(["ip", "-j", "address"], timeout=10)
    found = sorted(
        {info["local"] for link in json.loads(result.stdout) for info in link.get("addr_info", ()) if info.get("local")}
    )
    if not found:  # each box has those of its loopback; without any, pages would answer to no address
        raise Failed(
            Message("The addresses of the box cannot be read"), Message("ip answered something else than asked")
        )
    lines = "".join(f"[{address}]\n" if ":" in address else f"{address}\n" for address in found)
    file = paths.RUN / "inventory" / "addresses"
    if file.exists() and file.read_text() == lines:
        return False
    beside = file.with_suffix(".new")
    beside.write_text(lines)
    beside.replace(file)
    return True


_smart_lock = threading.Lock()


@app.task(name="workers.sleep")
def set_sleep_timers() -> None:
    """Send disks the sleep timers that were chosen for them."""
    update_source("sleep", standby.set_timers)


@app.task(name="workers.temperatures")
def collect_temperatures() -> None:
    """Ask all disks for SMART. Does nothing while another call does: on a slow box one takes
    minutes, and two take longer."""
    if not _smart_lock.acquire(blocking=False):
        return
    try:
        if DiskRow.objects.exists():
            collect_smart()
    finally:
        _smart_lock.release()


def collect_smart() -> None:
    """Read temperatures and health by smartctl, which leaves sleeping disks alone, then sleep timers and latencies."""

    def store_due() -> bool:
        return store_smart(standby.take_disks_to_query(filter(has_smart, DiskRow.objects.all())))

    update_source("temperatures", store_due)
    guard.run_guarded("disk-alerts", touch_failing_disks)
    update_source("sleep", standby.set_timers)
    update_source("latency", store_latencies)
    # Counters in memory: no disk wakes, and shares in per cent seldom change.
    update_source("caching", lambda: store.replace(CachingRow, [kstat.read_kstat()], lambda found: found.key))


def store_smart(disks: Iterable[DiskRow]) -> bool:
    """Ask these disks for SMART and store the answers; whether a page shows anything new."""
    rows = {disk.path: row for row, disk in readable_rows(disks)}
    if not rows:
        return False
    answers = agent_client.send_request({"verb": "read-smart", "disks": list(rows)}, silence=180).get("facts", {})
    parts, readings = guard.Parts(), dict[DiskRow, smart_values.Reading]()
    for path, row in rows.items():
        if path in answers and (found := parts.get(row.label, partial(smart.read_smart, answers[path]))) is not None:
            readings[row] = found
    # All at once: a database that cannot be used is one error, not one of each disk.
    changed = bool(parts.get(Message("disks"), lambda: smart_history.store_answers(readings)))
    if parts.errors:
        raise guard.PartlyFailed(parts.errors, changed=changed)
    return changed


def has_smart(row: DiskRow) -> bool:
    """Whether a disk can be asked; virtual ones tell nothing, and neither does one whose row cannot be decoded."""
    disk = look_up_or_none(row.label, lambda: row.fact)
    return disk is not None and bool(disk.path) and disk.bus != "virtio"


def collect_reported(devices: Collection[str]) -> None:
    """Ask the disks that smartd reported, by its names for them, then judge the alerts.

    They are asked also while their sleep timer runs; smartctl leaves a sleeping disk alone.
    The source "temperatures" is not marked as read, because the other disks were not asked.
    """
    rows = [row for row in DiskRow.objects.all() if has_smart(row) and names_device(row.fact, devices)]
    try:
        with _smart_lock:
            if store_smart(rows):
                store.touch("disks")
    finally:
        judge_alerts()


def names_device(disk: Disk, devices: Collection[str]) -> bool:
    return not set(disk_inventory.device_names(disk)).isdisjoint(devices)


def touch_failing_disks() -> None:
    """The page of a failing disk says whether it has told how it is since it was erased."""
    if Alert.objects.filter(kind="disk.failing").exclude(state=Alert.State.CLEARED).exists():
        store.touch("alerts")


def store_latencies() -> bool:
    """How long each disk took for a request since the last look. Counters in memory: no disk wakes."""
    now = latency.read_counters()
    took = latency.mean_latencies(_counters, now)
    _counters.clear()
    _counters.update(now)
    return guard.for_each(DiskRow.objects.all(), lambda row: smart_history.note_latency(row, took), lambda row: row.key)


def has_new_disk() -> bool:
    """Whether a disk is there that has not been asked how it is: one that was just put in."""
    return any(map(has_smart, DiskRow.objects.filter(smart_text="", asleep=False)))


def is_due(name: str, every: timedelta) -> bool:
    """Whether a source has not been read for so long, or only by a clock that was ahead."""
    last = Source.objects.filter(name=name).values_list("checked", flat=True).first()
    return last is None or abs(timezone.now() - last) > every
