"""Facts about the box as frozen values. Collectors read them, rows store them, operations are planned from them.

Users and shares are in ``sharing.py``, datasets and snapshots in ``datasets.py``, pools not
in use in ``importable.py``.

Bytes are ``int``, times are aware datetimes, guids are ``int`` (ZFS's 64 bits). Nothing here reads anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from appliance.facts import vdev_state
from appliance.facts.box_record import BoxRecord
from appliance.facts.datasets import Bookmark, Dataset, DatasetDetail, Snapshot, Span
from appliance.facts.file_import import FileImport
from appliance.facts.importable import Importable
from appliance.facts.receiver import Receiver
from appliance.facts.remote import Remote
from appliance.facts.sharing import Account, Group, Session, Share, SmbPolicy


class Vdev(msgspec.Struct, frozen=True):
    """One node of a pool's tree: the pool's root, a group (mirror, raidz) or a device."""

    name: str
    kind: str  # root, mirror, raidz, draid, disk, file, spare, replacing, missing, hole, indirect
    guid: int
    state: str  # ONLINE, DEGRADED, FAULTED, OFFLINE, UNAVAIL, REMOVED; spares: AVAIL, INUSE
    role: str = "normal"  # normal, log, cache, spare, special, dedup
    path: str = ""
    disk: str = ""  # the path of its whole disk as ``Disk.path`` says it, where the pool may know it by another name
    read_errors: int = 0
    write_errors: int = 0
    checksum_errors: int = 0
    slow_ios: int = 0
    size: int = 0
    slot: str = ""  # the port its disk hangs or hung on (by-path), also when the disk is gone
    replace_size: int = 0  # how large the partition of a replacement has to be at least
    expandable: int = 0  # what it could hold more, once it is told that its devices have become larger
    processed: int = 0  # bytes that the running scrub or resilver has repaired on it
    deferred: bool = False  # it was away while another was rebuilt, and is rebuilt after that
    removing: bool = False  # it is being emptied to be taken out of the pool
    space: int = 0  # of a group: what it holds in all, parity and padding counted
    used: int = 0  # of a group: what of it is taken
    deflated: int = 0  # of a group: its space as ``zfs list`` counts it, without parity
    ashift: int = 0  # of a group: its sector size as a power of two; 0 where not known
    children: tuple[Vdev, ...] = ()

    def devices(self) -> Iterator[Vdev]:
        """The disks and files below, in order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.devices()

    @property
    def parity(self) -> int:
        """How many of its devices a group can lose; the name of a raidz says it (``raidz2-0``)."""
        if self.kind in {"mirror", "replacing", "spare"}:
            return max(len(self.children) - 1, 0)
        digits = self.name.removeprefix("raidz").removeprefix("draid")[:1]
        return int(digits) if self.kind in {"raidz", "draid"} and digits.isdigit() else 0


class Scan(msgspec.Struct, frozen=True):
    """A scrub or resilver as ``scan_stats`` tells it."""

    kind: str  # scrub, resilver
    state: str  # scanning, finished, canceled, paused
    started: datetime
    ended: datetime | None
    to_examine: int
    examined: int
    issued: int
    errors: int
    repaired: int = 0
    skipped: int = 0  # of to_examine, what was freed meanwhile

    @property
    def percent(self) -> int:
        if self.state == "finished":
            return 100
        total = self.to_examine - self.skipped
        return min(99, self.issued * 100 // total) if total > 0 else 0


class LongWork(msgspec.Struct, frozen=True):
    """Work that the kernel carries on, no matter who started it; ``done`` and ``total`` in bytes."""

    kind: str  # scrub, resilver, expand, remove, trim, initialize
    state: str  # running, paused, waiting, finished, stopped
    started: datetime | None
    ended: datetime | None
    done: int
    total: int
    looked: int = 0  # bytes that a scan has found in its first pass, before it reads them
    errors: int = 0  # what could not be repaired
    repaired: int = 0  # bytes put right (scrub) or written anew (resilver)
    subject: str = ""  # the vdev it is about, where it is not the whole pool

    @property
    def under_way(self) -> bool:
        return self.state in {"running", "paused", "waiting"}

    @property
    def percent(self) -> int:
        if self.state == "finished":
            return 100
        return max(0, min(99, self.done * 100 // self.total)) if self.total > 0 else 0


class Checkpoint(msgspec.Struct, frozen=True):
    """A pool's checkpoint: what it keeps aside is not free; ``size`` counts it in bytes."""

    state: str  # exists, discarding
    taken: datetime | None
    size: int = 0


class Pool(msgspec.Struct, frozen=True):
    name: str
    guid: int
    state: str
    vdevs: tuple[Vdev, ...] = ()  # data groups first, then log, cache, spare, special, dedup by their role
    scan: Scan | None = None
    errors: int = 0
    status: str = ""
    action: str = ""
    size: int = 0
    allocated: int = 0
    free: int = 0
    checkpoint: Checkpoint | None = None
    work: tuple[LongWork, ...] = ()
    can_trim: bool = False  # whether some of its disks can be told which blocks are free
    had_removal: bool = False  # a group was removed from it before; for that, ZFS adds no raidz to it any more

    def devices(self) -> Iterator[Vdev]:
        for vdev in self.vdevs:
            yield from vdev.devices()

    @property
    def on_usb(self) -> bool:
        """Whether all its disks are in USB cases, as udev names them by. ``False`` where that is not known."""
        return all("/by-id/usb-" in (device.disk or device.path) for device in self.devices()) and any(self.devices())

    @property
    def rebuilding(self) -> bool:
        scanning = self.scan is not None and self.scan.kind == "resilver" and self.scan.state == "scanning"
        return scanning or any(work.kind == "resilver" and work.under_way for work in self.work)

    def lags(self, device: Vdev) -> bool:
        """Whether a device lacks what was written while it was away: it is being rebuilt, or waits for that.

        One that is being rebuilt is known by what the rebuild has written to it: the others are only read.
        """
        return device.deferred or (self.rebuilding and bool(device.processed))

    def whole(self, child: Vdev) -> bool:
        """Whether a member of a group holds all its data: a disk that is being rebuilt, or waits for that, does not."""
        if child.kind in {"replacing", "spare"} and child.children:
            ready = [one for one in child.children if one.state == "ONLINE" and not self.lags(one)]
            # Of a new disk or a spare to which nothing was written yet nobody can tell that it is being rebuilt.
            return bool(ready) and (not self.rebuilding or ready[0].guid == child.children[0].guid)
        return child.state in vdev_state.WORKING and not self.lags(child)

    @property
    def failures_left(self) -> int:
        """How many more devices may fail for certain without losing data: the weakest data group decides."""
        spare = []
        for vdev in self.vdevs:
            if vdev.role in {"normal", "special", "dedup"}:
                broken = sum(not self.whole(child) for child in vdev.children)
                spare.append(vdev.parity - broken)
        return max(min(spare, default=0), 0)


class PoolProperties(msgspec.Struct, frozen=True):
    """What is set on a pool, as ``zpool get`` spells it; hostile text where it is free (``comment``)."""

    name: str
    guid: int
    values: dict[str, str]


class Use(msgspec.Struct, frozen=True):
    """Why a disk is not simply free."""

    kind: str  # system, pool, mounted, swap, raid, exported, old; of a disk that was read: unknown, differs, unreadable
    text: str  # "holds the system", "is part of the pool tank", "holds ext4 data called photos"
    identity: str = ""  # what it is beyond its name: a pool's guid, a file system's UUID
    pool: str = ""

    @property
    def blocks(self) -> bool:
        """Nothing may be made on such a disk; the others only hold something that would be erased."""
        return self.kind in {"system", "pool", "mounted", "swap", "raid", "differs", "unreadable"}

    @property
    def is_bare_table(self) -> bool:
        """Whether nothing was recognised but a partition table, as ``inventory.uses_of`` says it."""
        return self.kind == "old" and not self.identity and self.text.startswith("has a partition table (")


class Disk(msgspec.Struct, frozen=True):
    path: str  # /dev/disk/by-id/...; empty where the hardware gives no stable name
    name: str  # sda: today's name, never kept
    serial: str
    model: str
    size: int
    logical_sector: int
    physical_sector: int
    rotational: bool
    bus: str
    removable: bool = False
    slot: str = ""  # the port it hangs on (by-path): the order of the chassis, whatever the kernel named first
    uses: tuple[Use, ...] = ()
    content: tuple[str, ...] = ()  # kernel names of the partitions and of the disk that carry a signature

    @property
    def blocked(self) -> Use | None:
        return next((use for use in self.uses if use.blocks), None)

    @property
    def free(self) -> bool:
        return not self.uses

    @property
    def identity(self) -> dict[str, object]:
        """What a plan's digest keeps of a disk: which it is and what would be lost, never how full or how warm."""
        return {
            "path": self.path,
            "serial": self.serial,
            "size": self.size,
            "uses": sorted(f"{use.kind}:{use.identity or use.text}" for use in self.uses),
        }


class Service(msgspec.Struct, frozen=True):
    """A system service that Larder leans on."""

    unit: str
    active: str  # active, inactive, failed, activating
    enabled: str
    present: bool = True


class Caching(msgspec.Struct, frozen=True):
    """What ZFS has counted since the box started: does it ask for a log or a cache device? None: too little to tell."""

    hit_percent: int | None = None  # of reads that somebody waited for, how many memory answered
    sync_percent: int | None = None  # of bytes written, how many somebody waited for on disk
    memory: int = 0  # bytes that the cache in memory may grow to

    @property
    def key(self) -> str:
        return "box"


class PoolDetail(msgspec.Struct, frozen=True):
    """What is read of a pool only when it is about to go or to be upgraded."""

    guid: int
    snapshots: int = 0
    compatibility: str = "off"  # off, legacy, or the feature sets that it keeps to
    features_off: tuple[str, ...] = ()  # what an upgrade would switch on
    content: tuple[str, ...] = ()  # the first files, folders and snapshots in it; read for a rehearsal alone
    read_only: bool = False  # it was imported so, and ZFS writes nothing to its disks


class Facts(msgspec.Struct, frozen=True):
    """Everything that an operation may look at to check and plan."""

    pools: tuple[Pool, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    disks: tuple[Disk, ...] = ()
    accounts: tuple[Account, ...] = ()
    groups: tuple[Group, ...] = ()
    zfs: str = "present"  # present, missing
    shares: tuple[Share, ...] = ()
    importable: tuple[Importable, ...] = ()  # as of the last look; nobody looks unless asked
    details: tuple[PoolDetail, ...] = ()
    sessions: tuple[Session, ...] = ()
    properties: tuple[PoolProperties, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()  # of the datasets that an operation is about, oldest first
    bookmarks: tuple[Bookmark, ...] = ()  # of the same
    spans: tuple[Span, ...] = ()  # what was measured of them
    dataset_details: tuple[DatasetDetail, ...] = ()
    smb_policy: SmbPolicy = msgspec.field(default_factory=SmbPolicy)
    box_record: BoxRecord | None = None  # the one that an operation is about
    remotes: tuple[Remote, ...] = ()  # other computers that backups go to
    receivers: tuple[Receiver, ...] = ()  # other Larders whose backups come here
    imports: tuple[FileImport, ...] = ()  # of files from another NAS

    def pool(self, name: str) -> Pool | None:
        return next((pool for pool in self.pools if pool.name == name), None)

    def pool_of(self, guid: int) -> Pool | None:
        return next((pool for pool in self.pools if pool.guid == guid), None)

    def found(self, guid: int) -> Importable | None:
        """The importable pool of that guid."""
        return next((found for found in self.importable if found.guid == guid), None)

    def detail(self, guid: int) -> PoolDetail | None:
        return next((detail for detail in self.details if detail.guid == guid), None)

    def properties_of(self, pool: str) -> dict[str, str]:
        """What is set on that pool; empty where it is not known."""
        return next((found.values for found in self.properties if found.name == pool), {})

    def file_import(self, key: str) -> FileImport | None:
        return next((one for one in self.imports if one.id == key), None)

    def remote(self, key: str) -> Remote | None:
        return next((remote for remote in self.remotes if remote.id == key), None)

    def receiver(self, key: str) -> Receiver | None:
        return next((one for one in self.receivers if one.id == key), None)

    def dataset(self, name: str) -> Dataset | None:
        return next((dataset for dataset in self.datasets if dataset.name == name), None)

    def dataset_of(self, guid: int) -> Dataset | None:
        return next((dataset for dataset in self.datasets if dataset.guid == guid), None)

    def below(self, name: str) -> tuple[Dataset, ...]:
        """That dataset and all below it, parents first."""
        return tuple(one for one in self.datasets if one.name == name or one.name.startswith(f"{name}/"))

    def snapshots_of(self, dataset: str) -> tuple[Snapshot, ...]:
        """Oldest first."""
        found = (snapshot for snapshot in self.snapshots if snapshot.dataset == dataset)
        return tuple(sorted(found, key=lambda snapshot: snapshot.txg))

    def dataset_detail(self, guid: int) -> DatasetDetail | None:
        return next((detail for detail in self.dataset_details if detail.guid == guid), None)

    def disk(self, path: str) -> Disk | None:
        return next((disk for disk in self.disks if disk.path == path), None)

    def account(self, name: str) -> Account | None:
        return next((account for account in self.accounts if account.name == name), None)

    def group(self, name: str) -> Group | None:
        return next((group for group in self.groups if group.name == name), None)

    def lets_in(self, who: str) -> bool:
        """Whether a name in a share's setting, an account or ``@group``, is somebody on this box."""
        if who.startswith("@"):
            return any(group.name == who[1:] for group in self.groups)
        return self.account(who) is not None
