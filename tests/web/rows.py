"""Fill the inventory as the collectors would, from recorded output and from facts that are made up and say so."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from msgspec.structs import replace

from appliance import message
from appliance.backups.tasks import BackupTask, encode_tasks
from appliance.disks.inventory import disks_from
from appliance.facts.box import Disk, Pool, PoolDetail, Use, Vdev
from appliance.facts.datasets import Dataset, Snapshot
from appliance.facts.file_import import Count, FileImport
from appliance.facts.importable import Importable
from appliance.facts.receiver import Receiver
from appliance.facts.remote import Remote
from appliance.facts.sharing import Account, Group, Share
from appliance.message import Message
from appliance.operation import Operation, as_json, checked_plan, kind_of
from appliance.shares.connections import Connection
from appliance.shares.drift import detect
from appliance.shares.iscsi.differences import TargetDifference
from appliance.shares.iscsi.divergence import TargetEdit
from appliance.shares.iscsi.part import PREFIX
from appliance.system.box_info import BoxInfo, Memory, Port, Sensor
from appliance.system.mtu import MtuStatus
from appliance.system.network_port import Counters
from appliance.zfs import status, vdev_tree
from tests.unit.made import dataset, disk, recorded, recorded_pool
from web.alerts.models import Alert, MailSettings
from web.alerts.models import Message as Letter
from web.disks.models import Replacement
from web.inventory import store
from web.inventory.box import read_box
from web.inventory.dataset_models import BookmarkRow, DatasetRow, SnapshotRow
from web.inventory.models import (
    AccountRow,
    BoxRow,
    ConnectionRow,
    DetailRow,
    DiskRow,
    EditRow,
    GroupRow,
    ImportableRow,
    ImportRow,
    PoolRow,
    ReceiverRow,
    RemoteRow,
    ShareRow,
    TargetEditRow,
)
from web.jobs import confirm
from web.jobs.models import Job
from web.pools import replacement as pool_replacement
from web.said import said_in
from web.system.service_status import READ
from workers import collect_snapshots
from workers.collectors import disk_key

SYSTEM_DISK = disk(
    6,
    path="/dev/disk/by-id/usb-SanDisk_Ultra_1",
    serial="1",
    model="SanDisk Ultra",
    uses=(Use("system", message.Message("holds the system")),),
)


def links(listing: dict[str, Any]) -> dict[str, str]:
    """Made up: by-id links as udev would make them for a recorded lsblk."""
    return {
        f"ata-{row['model'].replace(' ', '_')}_{row['serial']}": row["name"]
        for row in listing["blockdevices"]
        if row.get("serial") and row.get("model")
    }


def recorded_disks(pools: Iterable[Pool]) -> list[Disk]:
    listing = recorded("lsblk-2.41.5.json")
    return list(disks_from(listing, links(listing), pools))


def put(
    *,
    pools: Iterable[Pool] | None = None,
    datasets: Iterable[Dataset] | None = None,
    disks: Iterable[Disk] | None = None,
    accounts: Iterable[str] | None = None,
    groups: Iterable[Group] | None = None,
    shares: Iterable[Share] | None = None,
    importable: Iterable[Importable] | None = None,
    details: Iterable[PoolDetail] | None = None,
) -> None:
    """Make the inventory say this, and that everything was read just now. What is not given stays."""
    changed = set()
    if pools is not None and store.replace(PoolRow, pools, lambda pool: str(pool.guid)):
        changed.add("pools")
    if datasets is not None and store.replace(DatasetRow, datasets, lambda found: str(found.guid)):
        changed.add("datasets")
    if disks is not None and store.replace(DiskRow, disks, disk_key):
        changed.add("disks")
    if shares is not None and store.replace(ShareRow, shares, lambda share: share.key):
        changed.add("shares")
    if importable is not None and store.replace(ImportableRow, importable, lambda found: str(found.guid)):
        changed.add("importable")
    if details is not None and store.replace(DetailRow, details, lambda detail: str(detail.guid)):
        changed.add("details")
    if accounts is not None and store.replace(
        AccountRow, [Account(name, 1000 + at) for at, name in enumerate(accounts)], lambda account: account.name
    ):
        changed.add("accounts")
    if groups is not None and store.replace(GroupRow, groups, lambda group: group.name):
        changed.add("groups")
    for name in (*READ, "zfs"):
        store.checked(name, changed=name in changed)


def notified(way: str = "mail") -> None:
    """Notifications are set up, and a test has arrived."""
    values = {"host": "mail.example.org"} if way == "mail" else {"webhook": "https://ntfy.example.org/box"}
    MailSettings.objects.update_or_create(pk=1, defaults=values)
    now = timezone.now()
    sent = {"state": Letter.State.SENT, "made": now, "next_try": now}
    Letter.objects.update_or_create(key=f"test-{way}", defaults={"event": "test", "way": way, **sent})


BACKUP = BackupTask(key="0123abcd", pool=42, path="backups/photos")


TARGET_EDIT = TargetEdit(
    "c3f1b2a490d5e687",
    f"{PREFIX}disk1",
    "cd" * 32,
    "tank/disk1",
    (TargetDifference("chap-off"), TargetDifference("portal-added", "192.168.1.5:3261")),
)


HOST_KEY = f"ssh-ed25519 {'A' * 68}"
OTHER_HOST_KEY = f"ssh-ed25519 {'B' * 68}"
REMOTE = Remote(
    "0badcafe",
    "attic.lan",
    22,
    "larder-backup",
    "tank/attic",
    f"ssh-ed25519 {'C' * 68}",
    HOST_KEY,
    tested=datetime(2026, 1, 1, tzinfo=UTC),
    zfs="2.3.9",
    free=10**12,
)


IMPORT = FileImport(
    "0badcafe",
    "nas.lan",
    22,
    "admin",
    "/volume1/photos",
    "tank/photos",
    5,
    public_key=f"ssh-ed25519 {'C' * 68}",
    host_key=HOST_KEY,
    tested=datetime(2026, 1, 1, tzinfo=UTC),
    free=10**12,
    found=Count(120, 8, 1, 10**10, 100, 10**9, 1, ("@eaDir: a folder of the other NAS's own",)),
)


def put_imports(*imports: FileImport) -> None:
    """Made up: imports of files from another NAS."""
    store.replace(ImportRow, imports, lambda one: one.id)
    store.checked("imports", changed=True)


RECEIVER = Receiver("0badcafe", "tank/backups/attic", 77, datetime(2026, 1, 1, tzinfo=UTC))


def put_receivers(*receivers: Receiver) -> None:
    """Made up: other Larders whose backups come here."""
    store.replace(ReceiverRow, receivers, lambda one: one.id)
    store.checked("receivers", changed=True)


def put_remotes(*remotes: Remote) -> None:
    """Made up: other computers that backups go to."""
    store.replace(RemoteRow, remotes, lambda one: one.id)
    store.checked("remotes", changed=True)


def backed_up(one: Dataset) -> Dataset:
    """Made up: the folder photos has a backup on a pool that is not connected."""
    if not one.name.endswith("/photos"):
        return one
    return replace(one, backup=encode_tasks((BACKUP,)), backup_source="local")


def recorded_box() -> Pool:
    """The box of the recordings: a raidz2 of four disks called tank, its folders, one share, one person."""
    pool = recorded_pool()
    put(
        pools=[pool],
        datasets=[
            *(backed_up(one) for one in status.parse_datasets(recorded("zfs-list-2.3.9.json"))),
            dataset("tank/disk1", kind="volume", mounted=False, mountpoint="", volsize=2**30),
        ],
        disks=recorded_disks([pool]),
        accounts=["anna"],
        groups=[Group("family", 20000, ("anna",))],
        shares=[],
        importable=[Importable("attic", 42, "ONLINE")],
        details=[PoolDetail(pool.guid)],
    )
    store.replace(EditRow, [detect.Edit("smb", "/etc/samba/larder.conf", "ab" * 32)], lambda edit: edit.key)
    store.replace(TargetEditRow, [TARGET_EDIT], lambda edit: edit.key)
    store.replace(ConnectionRow, [Connection("smb", "1", "anna", "192.168.1.20")], lambda found: found.key)
    put_remotes(replace(REMOTE, host_key="", offered_key=HOST_KEY))
    put_receivers(RECEIVER)
    photos = DatasetRow.objects.get(name="tank/photos").fact.guid
    share = replace(IMPORT, id="1badcafe", protocol="smb", port=445, host_key="", public_key="", guid=photos)
    put_imports(replace(IMPORT, offered_key=OTHER_HOST_KEY, guid=photos), share)
    put_box()
    return pool


ETH0 = Port("eth0", ("192.168.1.5/24",), 1000, True, 10**6, 10**6, Counters(10**4, 2, 1), mtu=MtuStatus(1500))
BOX = BoxInfo(
    "1f0b6c1e-52a7-4a5d-9a43-f1f6b8d2c011",
    "HP ProLiant MicroServer",
    "AMD Turion",
    2,
    "Debian 13",
    "6.12",
    "2.3.9-1",
    "2.3.9-1",
    90000.0,
    (0.5, 0.4, 0.3),
    Memory(2**32, 2**30, 2**31),
    (ETH0,),
    (Sensor("k10temp", 41),),
    (Sensor("chassis", 812),),
    "attic",
    "Europe/Berlin",
    True,
)


def put_box(info: BoxInfo = BOX, rates: dict[str, list[int]] | None = None) -> None:
    """Made up: what the box tells of itself."""
    store.replace(BoxRow, [info], lambda _info: "box", rates=lambda _info: rates or {})
    store.checked("box", changed=True)


def snapshot_of(key: str) -> SnapshotRow:
    """Made up: a snapshot of the dataset of that guid."""
    dataset = DatasetRow.objects.get(key=key).name
    made = Snapshot(f"{dataset}@before", 2**63 + 1, 7, LONG_AGO, used=2**20, referenced=2**30)
    row = collect_snapshots.row_of(key, made)
    row.save()
    return row


def bookmark_of(key: str) -> BookmarkRow:
    """Made up: a bookmark of that snapshot."""
    row = SnapshotRow.objects.get(dataset_key=key)
    return BookmarkRow.objects.create(
        dataset_key=key, dataset=row.dataset, short="mark", guid=row.guid, txg=row.txg, created=row.created
    )


def empty_box(count: int = 4, *more: Disk) -> list[Disk]:
    """Made up: free disks of 2 TB and the system's own."""
    disks = [*(disk(number) for number in range(1, count + 1)), *more, SYSTEM_DISK]
    put(pools=[], datasets=[], disks=disks, accounts=[], shares=[])
    return disks


def pool_of(name: str, guid: int, *disks: Disk) -> Pool:
    """Made up: a pool that is one mirror of these disks."""
    devices = tuple(
        Vdev(one.path.rsplit("/", 1)[-1], "disk", guid + at, "ONLINE", path=f"{one.path}-part1")
        for at, one in enumerate(disks, 1)
    )
    return Pool(
        name, guid, "ONLINE", (Vdev("mirror-0", "mirror", guid + 100, "ONLINE", children=devices),), size=10**12
    )


def large_box(count: int) -> None:
    """Made up: so many pools of two disks, folders, people and jobs."""
    pools, disks, datasets = [], [], []
    for number in range(count):
        pair = [
            disk(path=f"/dev/disk/by-id/ata-D_{number}_{side}", name=f"sd{number}{side}", serial=f"{number}{side}")
            for side in "ab"
        ]
        pool = pool_of(f"pool{number}", (number + 1) * 1000, *pair)
        pools.append(pool)
        disks += [
            replace(one, uses=(Use("pool", f"is part of the pool {pool.name}", str(pool.guid), pool.name),))
            for one in pair
        ]
        datasets += [dataset(pool.name), dataset(f"{pool.name}/photos")]
        job(
            kind="create-dataset",
            title=f"Create the folder f{number}",
            state=Job.State.FAILED if number % 2 else Job.State.DONE,
        )
    put(
        pools=pools,
        disks=disks,
        datasets=datasets,
        accounts=[f"anna{number}" for number in range(count)],
        groups=[Group(f"group{number}", 20000 + number, ("anna0",)) for number in range(count)],
        shares=[],
    )


FILMS = Message("The folder {full_name}: {preset_title}.", full_name="tank/films", preset_title="photos")
CREATE = Message("Create {full_name}", full_name="tank/films")


BACKUP_JOBS = ("run-backup", "send-backup", "verify-backup", "check-backup-keys", "drill-backup", "drill-remote")


def job(**changes: Any) -> Job:
    """Made up: a job's row, not planned from anything."""
    made = {
        "kind": "create-dataset",
        "title": Message("Create the folder {full_name}", full_name="tank/films"),
        "subject": "tank/films",
        "operation": '{"kind":"create-dataset","parent":"tank","name":"films"}',
        "digest": "0123456789abcdef",
        "plan": {"summary": FILMS, "steps": [{"name": "create", "title": CREATE, "shown": "zfs create -- tank/films"}]},
        "created_by": "admin",
    }
    values = {**made, **changes}
    said, fields = said_in(values["title"], values["plan"], values.get("text", "")), json.loads(values["operation"])
    backup = fields.get("key", "") if fields.get("kind", values["kind"]) in BACKUP_JOBS else ""
    return Job.objects.create(**{"said": said, "backup": backup, **values})


def replacement(key: str = "ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001") -> Replacement:
    """The replacement of a disk, begun with the box as the inventory has it."""
    box = read_box()
    pool = next(card.pool for card in box.cards)
    place = next(place for place in vdev_tree.list_places(pool) if place.leaf and vdev_tree.link_of(place.vdev) == key)
    return pool_replacement.open_replacement(pool, place, box, "admin")


def alert() -> Alert:
    """Made up: the alert of the first disk, as number 1."""
    return Alert.objects.create(
        pk=1,
        kind="disk.failing",
        subject="ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001",
        severity="critical",
        summary="Disk in bay 1 is failing: 312 sectors cannot be read.",
        first_seen=LONG_AGO,
        mark=312,
    )


def planned(operation: Operation, **changes: Any) -> Job:
    """The job of an operation, planned from the inventory."""
    plan = checked_plan(operation, store.facts())
    made = {"kind": kind_of(operation), "title": operation.title, "subject": operation.subject}
    return job(operation=as_json(operation), digest=plan.digest(), plan=confirm.plan_as_stored(plan), **made, **changes)


LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
