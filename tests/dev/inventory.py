"""Fill both databases with a recorded box, as the collectors and the worker would."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connections, router, transaction
from django.db.models import Model
from django.utils import timezone
from msgspec.structs import replace

from appliance import snapshot_names
from appliance.alerts import rules
from appliance.alerts.fault import AlertInput
from appliance.backups.tasks import tasks_of
from appliance.disks.smart import read_smart as read_smart
from appliance.facts.box import Caching, PoolDetail, PoolProperties, Service
from appliance.facts.datasets import Dataset, DatasetDetail
from appliance.facts.sharing import SmbPolicy
from appliance.formatting import time_left
from appliance.message import Message
from appliance.pools import history
from appliance.snapshots import policy as snapshot_policy
from appliance.system import paths
from appliance.system.box_info import BoxInfo, Memory, Port, Sensor
from appliance.system.mtu import MtuStatus
from appliance.system.network_port import Counters, Link
from appliance.system.time_sync import TimeSync
from tests.dev.boxes import BOXES
from tests.dev.builders import Box, smart
from tests.dev.stand_in import NAME, PASSWORD
from tests.unit.made import recorded, recorded_text
from tests.web import rows
from tests.web.benchmarks import client_runs_made, sweeps_made
from tests.web.disks import burn_ins_made
from web.accounts import first_run
from web.alerts import pool_usage, reconcile
from web.alerts.models import Alert, DiskCare, DiskDay, PoolDay
from web.backups.models import BackupRecord
from web.backups.proof import Proof
from web.disks import ports, smart_history
from web.inventory import stability, store
from web.inventory.bays import bays_by_key, device_name, read_known_bays
from web.inventory.box import read_box
from web.inventory.dataset_models import BookmarkRow, DatasetDetailRow, DatasetRow, SnapshotReading, SnapshotRow
from web.inventory.models import (
    AccountRow,
    Activity,
    BoxRow,
    CachingRow,
    ConnectionRow,
    DetailRow,
    DiskRow,
    Event,
    GroupRow,
    HistoryLine,
    ImportableRow,
    ImportRow,
    PolicyRow,
    PoolRow,
    PropertiesRow,
    ReceiverRow,
    RemoteRow,
    ServiceRow,
    ShareRow,
)
from web.inventory.source_names import BOX, CONNECTIONS, IMPORTABLE
from web.jobs.models import Job
from web.said import said_in
from web.snapshots.models import MadeSnapshot, PolicyRun
from web.system.service_status import READ
from workers import collect_progress, guard, work_reports
from workers.alerts.evaluate_alerts import disks_seen
from workers.collectors import UNITS, disk_key

DAYS = 60  # of history that disks and pools have
ALSO_READ = (
    "zfs",
    "properties",
    "snapshots",
    "temperatures",
    "details",
    "sessions",
    "groups",
    BOX,
    CONNECTIONS,
    IMPORTABLE,
)


MICROSERVER = BoxInfo(
    boot="1f0b6c1e-52a7-4a5d-9a43-f1f6b8d2c011",
    model="HP ProLiant MicroServer",
    processor="AMD Turion(tm) II Neo N54L Dual-Core Processor",
    cores=2,
    system="Debian GNU/Linux 13 (trixie)",
    kernel="6.12.48+deb13-amd64",
    zfs_module="2.3.9-1",
    zfs_tools="2.3.9-1",
    uptime=93784.21,
    load=(0.52, 0.4, 0.31),
    memory=Memory(8 * 2**30, 3 * 2**30, 4 * 2**30),
    ports=(
        Port(
            "eno1",
            ("192.168.1.5/24", "fd00::5/64"),
            1000,
            True,
            10**9,
            10**8,
            Counters(10**7, 12, 3),
            Link(1000, False, 2500, 2500, 1000),
            MtuStatus(1500),
        ),
    ),
    temperatures=(Sensor("k10temp CPU", 41),),
    fans=(Sensor("w83795g chassis", 812),),
    host_name="recorded",
    time_zone="Europe/Berlin",
    has_systemd=True,
    time_sync=TimeSync(
        on=True, synced=True, by_timesyncd=True, server="fritz.box", offset=0.0021, servers=("fritz.box",)
    ),
)


def current() -> str:
    """Which box is recorded now; empty before the first."""
    file = paths.STATE / "recorded-box"
    return file.read_text() if file.exists() else ""


def fill(name: str) -> None:
    """Make both databases say what is recorded of that box, as of now, and nothing else."""
    now = timezone.now()
    box = BOXES[name][1](now)
    with transaction.atomic(), transaction.atomic(using="inventory"):
        forget()
        put_facts(box, now)
        put_disks(box, now)
        put_snapshots(box, now)
        put_pools(box, now)
        put_alerts(now)
        if box.in_use:
            put_past(now)
        set_up(box)
    (paths.STATE / "recorded-box").write_text(name)


def forget() -> None:
    """Empty every table of Larder's own."""
    for model in apps.get_models():
        if model.__module__.startswith("web."):
            model._default_manager.all().delete()


def set_up(box: Box) -> None:
    """The administrator, or the set-up code of a box that has none yet."""
    first_run.known_set_up = False
    first_run.CODE.unlink(missing_ok=True)
    if not box.set_up:
        User.objects.all().delete()
        first_run.make_code()
    elif not User.objects.filter(username=NAME).exists():
        User.objects.all().delete()
        User.objects.create_superuser(NAME, password=PASSWORD)


def put_facts(box: Box, now: datetime) -> None:
    """What collectors read."""
    stability.replace_pools(box.pools, now - timedelta(hours=1))
    aged = (replace(one, created=now - timedelta(days=400)) for one in box.datasets)
    store.replace(DatasetRow, aged, lambda found: str(found.guid))
    store.replace(DiskRow, box.disks, disk_key)
    store.replace(AccountRow, box.accounts, lambda found: found.name)
    store.replace(GroupRow, box.groups, lambda found: found.name)
    store.replace(ShareRow, box.shares, lambda found: found.key)
    store.replace(ImportableRow, box.importable, lambda found: str(found.guid))
    store.replace(ConnectionRow, box.connections, lambda found: found.key)
    store.replace(RemoteRow, box.remotes, lambda found: found.id)
    store.replace(ReceiverRow, box.receivers, lambda found: found.id)
    store.replace(ImportRow, box.imports, lambda found: found.id)
    services = [Service(unit, "failed" if unit in box.failed_services else "active", "enabled") for unit in UNITS]
    store.replace(ServiceRow, services, lambda found: found.unit)
    store.replace(CachingRow, [Caching(hit_percent=94, sync_percent=3, memory=4 * 2**30)], lambda found: found.key)
    store.replace(PolicyRow, [SmbPolicy()], lambda _found: "smb")
    store.replace(
        BoxRow,
        [MICROSERVER],
        lambda _found: "box",
        rates=lambda _found: {"eno1": [31 * 2**20, 2**18]},
        disk_rates=lambda _found: [3 * 2**20, 33 * 2**20],
    )
    told = recorded("zpool-get-2.3.9.json")["pools"]["full"]["properties"]
    values = {key: "" if one["value"] == "-" else one["value"] for key, one in told.items()}
    store.replace(
        PropertiesRow, [PoolProperties(one.name, one.guid, values) for one in box.pools], lambda found: str(found.guid)
    )
    used = [DatasetDetail(one.name, one.guid, snapshots=0, uses=box.uses.get(one.name, ())) for one in box.datasets]
    store.replace(DatasetDetailRow, used, lambda found: str(found.guid))
    details = [store.dataset_source(str(one.guid)) for one in box.datasets if one.name in box.uses]
    for name in (*READ, *ALSO_READ, *details, *(store.history_source(str(pool.guid)) for pool in box.pools)):
        store.checked(name, changed=True)


def put_disks(box: Box, now: datetime) -> None:
    """Bays, what disks said, and what they said before."""
    pulled = {one.slot for pool in box.pools for one in pool.devices()} - {one.slot for one in box.disks}
    ports.remember_ports([*box.disks, *(replace(box.disks[0], slot=slot) for slot in sorted(pulled))])
    found = {row.fact.path: row for row in DiskRow.objects.all()}
    answers = {
        row: read_smart(
            box.smart.get(path) or smart(celsius=31 + at % 7, hours=18_000 + 913 * at, model=row.fact.model)
        )
        for at, (path, row) in enumerate(found.items())
    }
    smart_history.store_answers(answers)
    DiskCare.objects.bulk_create(
        DiskCare(
            disk=row.key, since=now - timedelta(days=400), short=now - timedelta(days=3), long=now - timedelta(days=11)
        )
        for row in answers
    )
    DiskDay.objects.bulk_create(
        DiskDay(
            disk=row.key,
            day=(now - timedelta(days=back)).date(),
            written=now,
            values=dict(day_of(reading.counts, reading.temperature or 30, back)),
        )
        for row, reading in answers.items()
        for back in range(1, DAYS)
    )


def day_of(counts: dict[str, int], celsius: int, back: int) -> Iterator[tuple[str, list[int]]]:
    """What a disk said so many days ago: cooler or warmer, and of what it counts now the less the longer ago."""
    warm = celsius + (back * 7 % 5) - 2
    yield "temperature", [warm - 3, warm, warm - 1]
    for name, value in counts.items():
        then = value * max(20 - back, 0) // 20
        yield name, [then, then, then]


def put_snapshots(box: Box, now: datetime) -> None:
    """Those that the policies keep, one by hand that somebody protects, and a bookmark."""
    run = str(PolicyRun.objects.create(pool="tank").pk)
    written = connections["inventory"].ops.adapt_datetimefield_value
    slots = [
        (str(10**6 + at), 10**5 + at, grain, snapshot_names.name_for(grain, taken), written(taken))
        for at, (taken, grain) in enumerate(sorted(slots_of(box.kept, now)))
    ]
    followed = [one for one in box.datasets if one.policy]
    insert(
        SnapshotRow,
        "dataset_key, dataset, short, guid, txg, created, used, referenced, written, holds, clones, run, note",
        (
            (
                str(one.guid),
                one.name,
                short,
                guid,
                txg,
                created,
                one.used_by_snapshots // (len(slots) * 2) * (txg % 4),
                one.referenced,
                one.used_by_snapshots // len(slots),
                0,
                "",
                run,
                "",
            )
            for one in followed
            for guid, txg, _grain, short, created in slots
        ),
    )
    made = ((str(one.guid), guid, grain) for one in followed for guid, _txg, grain, _short, _created in slots)
    insert(MadeSnapshot, "dataset_key, guid, grains", made)
    for one in box.datasets:
        for task in tasks_of(one):
            BackupRecord.objects.create(
                dataset_key=str(one.guid),
                task=task.key,
                since=now - timedelta(days=9),
                good=None if one.name != "tank/papers" else now - timedelta(days=12),
                pool_name="drawer",
                seen=now - timedelta(days=12),
                **proved(now),
            )
        if one.copy_of and one.used_by_data:
            for back in range(14):
                at = now - timedelta(days=back, hours=7)
                short = snapshot_names.name_for(snapshot_names.BACKUP, at)
                SnapshotRow.objects.create(
                    dataset_key=str(one.guid),
                    dataset=one.name,
                    short=short,
                    guid=str(900 - back),
                    txg=900 - back,
                    created=at,
                    used=2**28,
                    referenced=one.referenced,
                )
    if kept := next((one for one in followed if one.used_by_snapshots), None):
        keep_one(kept, now - timedelta(days=40))
    SnapshotReading.objects.bulk_create(
        SnapshotReading(
            dataset_key=str(one.guid),
            dataset=one.name,
            at=now,
            count=len(slots) if one.policy else 0,
            used=one.used_by_snapshots,
        )
        for one in box.datasets
    )


def proved(now: datetime) -> dict[str, Any]:
    """What the checks of a backup have found."""
    ago = {"scrubbed": 12, "began": 13, "drilled": 20}
    found = Proof(
        seconds=2520,
        moved=290 * 10**9,
        files=48213,
        **{key: now - timedelta(days=days) for key, days in ago.items()},  # type: ignore[arg-type]
    )
    counts = {"files": 412, "size": 24 * 10**9, "total": 300 * 10**9}
    return {"compared": now - timedelta(days=3), "proof": msgspec.to_builtins(found), **counts}


def insert(model: type[Model], columns: str, found: Iterable[tuple[Any, ...]]) -> None:
    """Many rows straight into a table: ``bulk_create`` takes seconds for 20,000."""
    marks = ", ".join("%s" for _column in columns.split(","))
    with connections[router.db_for_write(model)].cursor() as cursor:
        cursor.executemany(f"INSERT INTO {model._meta.db_table} ({columns}) VALUES ({marks})", list(found))


def slots_of(policy: snapshot_policy.Policy, now: datetime) -> Iterator[tuple[datetime, str]]:
    """When the snapshots that a policy keeps were taken, and for what."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    midnight = hour.replace(hour=0)
    yield from ((hour - timedelta(hours=at), "hourly") for at in range(policy.hourly))
    yield from ((midnight - timedelta(days=at + 1), "daily") for at in range(policy.daily))
    yield from ((midnight - timedelta(weeks=at + 2, minutes=1), "weekly") for at in range(policy.weekly))
    yield from ((midnight - timedelta(days=30 * (at + 2), minutes=2), "monthly") for at in range(policy.monthly))


def keep_one(dataset: Dataset, at: datetime) -> None:
    key, name = str(dataset.guid), snapshot_names.name_for(snapshot_names.BY_HAND, at)
    row = SnapshotRow.objects.create(
        dataset_key=key,
        dataset=dataset.name,
        short=name,
        guid="77",
        txg=77,
        created=at,
        used=3 * 2**30,
        referenced=dataset.referenced,
        holds=1,
        note="Before the move to the new house",
    )
    BookmarkRow.objects.create(
        dataset_key=key, dataset=dataset.name, short="before-the-move", guid=row.guid, txg=row.txg, created=at
    )


def put_pools(box: Box, now: datetime) -> None:
    """Long work, its reports, how full the pools were, their history and events."""
    collect_progress.update_activities(box.pools)
    for row in Activity.objects.filter(state="running"):
        left = 5 * 3600 + 20 * 60
        row.left, row.rate, row.phrase = left, (row.total - row.done) / left, time_left(left)
        row.said = said_in(row.phrase)
        row.save()
    work_reports.store_reports(box.pools)
    roots = store.top_datasets(pool.name for pool in box.pools)
    store.replace(
        DetailRow,
        [
            PoolDetail(pool.guid, snapshots=SnapshotRow.objects.filter(dataset__startswith=pool.name).count())
            for pool in box.pools
        ],
        lambda found: str(found.guid),
    )
    lines = list(history.parse_entries(history.kept_lines(recorded_text("zpool-history-2.3.9.txt").splitlines())))
    for pool in box.pools:
        total = (root := roots[pool.name]).used + root.available
        PoolDay.objects.bulk_create(
            PoolDay(
                guid=str(pool.guid),
                name=pool.name,
                day=(now - timedelta(days=back)).date(),
                total=total,
                used=max(root.used - int(total * box.growth * back / 100), 0),
            )
            for back in range(DAYS)
        )
        HistoryLine.objects.bulk_create(
            HistoryLine(
                pool_key=str(pool.guid),
                number=number,
                at=now - timedelta(days=90 - number),
                kind=one.kind,
                text=one.text.replace("full", pool.name),
                by=one.by,
            )
            for number, one in enumerate(lines)
        )
        put_events(pool.name, now, ill=pool.state != "ONLINE")


def put_events(pool: str, now: datetime, *, ill: bool) -> None:
    kinds = ["sysevent.fs.zfs.scrub_finish", "sysevent.fs.zfs.scrub_start"]
    kinds = (
        ["sysevent.fs.zfs.resilver_start", "resource.fs.zfs.statechange", "ereport.fs.zfs.io", *kinds] if ill else kinds
    )
    Event.objects.bulk_create(
        Event(
            file=f"{pool}-{at}",
            source="zed",
            kind=kind,
            subject=pool,
            received=now - timedelta(hours=3 + 5 * at),
            fields={"ZEVENT_POOL": pool},
        )
        for at, kind in enumerate(kinds)
    )


def put_alerts(now: datetime) -> None:
    """What the alert rules say of all this, each raised some hours after the one before."""
    pools = tuple(row.fact for row in PoolRow.objects.all())
    box, homes = read_box(), read_known_bays()
    known = bays_by_key(box.bays)
    seen = AlertInput(
        now=now,
        pools=pools,
        disks=disks_seen(pools, box.bays, now, guard.Parts()),
        services=tuple(row.fact for row in ServiceRow.objects.all()),
        spaces=tuple(pool_usage.usage_of_pools(pools, now)),
        names=lambda one: device_name(one, known, homes),
    )
    found, _complete = rules.find_faults(seen)
    reconcile.reconcile_alerts(found, now)
    raised: Iterable[Alert] = Alert.objects.order_by("pk")
    for at, alert in enumerate(raised, 1):
        Alert.objects.filter(pk=alert.pk).update(first_seen=now - timedelta(hours=3 * at))
        alert.notes.update(at=now - timedelta(hours=3 * at))


def put_past(now: datetime) -> None:
    """Jobs that ended one way and another, a benchmark, and burn-ins of two disks."""
    sweeps_made.finished()
    client_runs_made.tried()
    burn_ins_made.examples()
    ends = (
        (Job.State.DONE, Message("Create the folder {full_name}", full_name="tank/films"), ""),
        (Job.State.DONE, Message("Share {dataset} over {spoken}", dataset="tank/photos", spoken="SMB"), ""),
        (
            Job.State.CANCELLED,
            Message("{verb} {pool}", verb=Message("Scrub"), pool="tank"),
            Message("It was asked to stop."),
        ),
        (
            Job.State.FAILED,
            Message("Make {dataset} larger", dataset="tank/disk"),
            "cannot set property for 'tank/disk': out of space",
        ),
    )
    for at, (end, title, text) in enumerate(ends, 1):
        then = now - timedelta(days=at)
        job = rows.job(
            id=uuid.UUID(int=at),
            title=title,
            state=end,
            text=text,
            started=then,
            finished=then,
            acknowledged=then,
        )
        Job.objects.filter(pk=job.pk).update(created=then)
