"""Collectors: read the system, write the inventory. One broken source never silences another."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from django.utils import timezone

from appliance import agent_client, command
from appliance.disks import inventory as disk_inventory
from appliance.disks import latency, smart
from appliance.errors import LarderError, explain
from appliance.facts.box import Disk, Pool, Service
from appliance.facts.datasets import Dataset
from appliance.pools import properties
from appliance.shares import publish
from appliance.system import accounts, paths
from appliance.zfs import kstat, status
from web.alerts.models import Alert
from web.disks import ports, smart_history
from web.inventory import stability, store
from web.inventory.models import (
    AccountRow,
    CachingRow,
    DatasetRow,
    DiskRow,
    GroupRow,
    PolicyRow,
    PoolRow,
    PropertiesRow,
    ServiceRow,
    ShareRow,
    Source,
)
from workers import activities, collect_drift, collect_snapshots, evaluate_alerts, guard, standby, work_reports
from workers.celery import app
from workers.throttle import Turns

log = logging.getLogger(__name__)
UNITS = (
    "smbd.service",
    "nfs-server.service",
    "netatalk.service",
    "smartmontools.service",
    "zfs-zed.service",
    "nginx.service",
)
ZFS_MISSING = "The ZFS module is not loaded, so no pool can be used."
WHEN_NOBODY_LOOKS = timedelta(seconds=60)
TEMPERATURES_EVERY = timedelta(minutes=5)
NEW_DISK_WITHIN = timedelta(seconds=20)
_stuck: dict[str, int] = {}
_counters: dict[str, latency.Counters] = {}


@app.task(name="workers.collect")
def collect() -> None:
    """Read everything that is cheap to read; many who ask at once get one reading."""
    reading.soon()


def read_timed() -> None:
    """Read everything, and note how long that took."""
    started = time.monotonic()
    read_all()
    store.took("looking", time.monotonic() - started)


def collect_now() -> None:
    """Read everything again, beginning now: what is true after a job has to be in the rows."""
    reading.now()


def source(name: str, read: Callable[[], bool], *, at: datetime | None = None) -> bool:
    """Read one source and note how that went, as of now or of the time given; whether it could be read.

    A reading that hangs in the kernel is not started again meanwhile.
    """
    if (pid := _stuck.get(name)) and alive(pid):
        went(name, error="The last reading still hangs in the system. A disk or pool does not answer.")
        return False
    _stuck.pop(name, None)
    started, error, changed = time.monotonic(), "", False
    try:
        changed = read()
    except command.CommandTimedOut as problem:
        error = explain(problem)
        if problem.pid:
            _stuck[name] = problem.pid
    except guard.PartlyFailed as problem:
        error, changed = str(problem), problem.changed
    except Exception as problem:  # also output of a shape that nobody expected
        error = explain(problem)
        log.warning("could not read %s: %s", name, error, exc_info=not isinstance(problem, LarderError))
    went(name, changed=changed, seconds=time.monotonic() - started, error=error, at=at)
    return not error


def went(name: str, *, changed: bool = False, seconds: float = 0, error: str = "", at: datetime | None = None) -> None:
    """Note how a reading went. Where the row cannot be written, the error is still known to the alert rules."""
    guard.remember(name, error)
    try:
        store.checked(name, changed=changed, seconds=seconds, error=error, at=at)
    except Exception as problem:
        log.warning("how reading %s went could not be noted: %s", name, explain(problem))


def alive(pid: int) -> bool:
    """Whether a process that Larder started still runs. A number that has gone to somebody else's process says no."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def read_all() -> None:
    """Pools first: what a disk is used for depends on them."""
    found: list[Pool] = []
    known: list[Dataset] = []

    def pools() -> bool:
        loaded = status.loaded()
        went("zfs", error="" if loaded else ZFS_MISSING)
        found.extend(status.read_pools() if loaded else ())
        return stability.replace_pools(found, timezone.now())

    def pools_of_before() -> None:
        found[:] = [row.fact for row in PoolRow.objects.all()]

    def pool_properties() -> bool:
        now = properties.read_properties() if status.loaded() else ()
        return store.replace(PropertiesRow, now, lambda pool: str(pool.guid))

    def datasets() -> bool:
        now = status.read_datasets() if status.loaded() else ()
        known.extend(now)
        return store.replace(DatasetRow, now, lambda dataset: str(dataset.guid), pool=lambda dataset: dataset.pool)

    fresh = source("pools", pools)
    if fresh:
        source("activities", lambda: activities.follow(found))
    # Without its pool a disk in use would look like one that merely holds old data.
    pools_known = fresh or guard.guarded("pools-before", pools_of_before)
    source("properties", pool_properties)
    if source("datasets", datasets):
        source("snapshots", lambda: collect_snapshots.follow(known))
    if pools_known:
        source("disks", lambda: store.replace(DiskRow, disk_inventory.read_disks(found), disk_key))
    source("bays", lambda: ports.remember(row.fact for row in DiskRow.objects.all()))
    source("services", lambda: store.replace(ServiceRow, services(), lambda service: service.unit))
    source("shares", lambda: store.replace(ShareRow, publish.configured(), lambda share: share.key))
    source("accounts", lambda: store.replace(AccountRow, accounts.read_accounts(), lambda account: account.name))
    source("groups", lambda: store.replace(GroupRow, accounts.read_groups(), lambda group: group.name))
    source("edits", collect_drift.store_drift)
    source("smb-policy", lambda: store.replace(PolicyRow, [publish.smb_policy()], lambda _policy: "smb"))
    source("addresses", addresses)
    if fresh:
        # Last: an agent that is slow to name damaged files keeps no facts waiting.
        source("reports", lambda: work_reports.store_reports(found))
    judge()


def judge() -> None:
    """Ask the alert rules. While they are being asked, nobody else has to."""
    if _judging.acquire(blocking=False):
        try:
            source("alerts", evaluate_alerts.evaluate_alerts)
        finally:
            _judging.release()


_judging = threading.Lock()
reading = Turns(read_timed)


def disk_key(disk: Disk) -> str:
    return disk.path.rsplit("/", 1)[-1] or disk.name


def services() -> Iterable[Service]:
    """The units that Larder leans on, in one call; none where there is no systemd, as in a container."""
    try:
        result = command.run(
            ["systemctl", "show", "--property=Id,LoadState,ActiveState,UnitFileState", *UNITS], timeout=20
        )
    except command.CommandMissing:
        return
    for block in result.stdout.strip().split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if "Id" in values:
            yield Service(
                values["Id"],
                values.get("ActiveState", ""),
                values.get("UnitFileState", ""),
                values.get("LoadState") == "loaded",
            )


def addresses() -> bool:
    """Keep the list of the box's own addresses for the Host check."""
    result = command.run(["ip", "-j", "address"], timeout=10)
    found = sorted(
        {info["local"] for link in json.loads(result.stdout) for info in link.get("addr_info", ()) if info.get("local")}
    )
    lines = "".join(f"[{address}]\n" if ":" in address else f"{address}\n" for address in found)
    file = paths.RUN / "inventory" / "addresses"
    if file.exists() and file.read_text() == lines:
        return False
    beside = file.with_suffix(".new")
    beside.write_text(lines)
    beside.replace(file)
    return True


_warmth = threading.Lock()


@app.task(name="workers.sleep")
def sleep() -> None:
    """Somebody has said when a disk is to sleep: tell it now."""
    source("sleep", standby.set_timers)


@app.task(name="workers.temperatures")
def temperatures() -> None:
    """Ask the agent how warm each disk is. While one asking is under way, which can take minutes on a slow box, the next
    is let go: two at once would only make both slower."""
    if not _warmth.acquire(blocking=False):
        return
    try:
        if DiskRow.objects.exists():
            ask_disks()
    finally:
        _warmth.release()


def ask_disks() -> None:
    """Temperatures and health, by smartctl, which leaves sleeping disks alone."""

    def read() -> bool:
        able = [row for row in DiskRow.objects.all() if row.fact.path and row.fact.bus != "virtio"]
        rows = {row.fact.path: row for row in standby.to_ask(able)}
        answers = (
            agent_client.request({"verb": "read-smart", "disks": list(rows)}, silence=180).get("facts", {})
            if rows
            else {}
        )
        return guard.each(
            [path for path in answers if path in rows],
            lambda path: smart_history.note({rows[path]: smart.read_smart(answers[path])}),
            lambda path: rows[path].key,
        )

    source("temperatures", read)
    guard.guarded("disk-alerts", move_alerts)
    source("sleep", standby.set_timers)
    source("latency", latencies)
    # Counters in memory: no disk wakes, and shares in per cent seldom change.
    source("caching", lambda: store.replace(CachingRow, [kstat.read_kstat()], lambda found: found.key))


def move_alerts() -> None:
    """The page of a failing disk says whether it has told how it is since it was erased."""
    if Alert.objects.filter(kind="disk.failing").exclude(state=Alert.State.CLEARED).exists():
        store.touch("alerts")


def latencies() -> bool:
    """How long each disk took for a request since the last look. Counters in memory: no disk wakes."""
    now = latency.read_counters()
    took = latency.between(_counters, now)
    _counters.clear()
    _counters.update(now)
    return guard.each(DiskRow.objects.all(), lambda row: smart_history.note_latency(row, took), lambda row: row.key)


def unasked() -> bool:
    """Whether a disk is there that has not been asked how it is: one that was just put in."""
    return any(
        row.fact.path and row.fact.bus != "virtio" for row in DiskRow.objects.filter(smart_text="", asleep=False)
    )


def due(name: str, every: timedelta) -> bool:
    """Whether a source has not been read for so long, or only by a clock that was ahead."""
    last = Source.objects.filter(name=name).values_list("checked", flat=True).first()
    return last is None or abs(timezone.now() - last) > every
