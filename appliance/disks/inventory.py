"""Read the disks of the box and what is on them, from ``lsblk`` and ``/dev/disk/by-id``.

Nothing here opens a disk: ``lsblk`` answers from sysfs and udev's database, so a sleeping disk sleeps on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from appliance import command
from appliance.errors import Failed, Reason
from appliance.facts import vdev_state
from appliance.facts.box import Disk, Pool, Use
from appliance.message import Message
from appliance.system import disk_links
from appliance.system.disk_links import BY_ID, BY_PATH

COLUMNS = "NAME,PATH,TYPE,SIZE,MODEL,SERIAL,ROTA,LOG-SEC,PHY-SEC,TRAN,FSTYPE,LABEL,UUID,MOUNTPOINTS,PTTYPE,RM"
ZFS_LABEL = re.compile(r"zfs-[0-9a-f]{16}")
SMALLEST = 64 * 2**20  # ZFS's least size of a device (SPA_MINDEVSIZE)


def walk_nodes(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A block device and everything made from it."""
    yield row
    for child in row.get("children") or ():
        yield from walk_nodes(child)


def is_kept_by_pool(disk: str, pool: Pool, links: Mapping[str, str]) -> bool:
    """Whether a pool still has a place for the disk of that kernel name, which it does not use at the moment.

    A disk that was replaced, or taken out, carries the pool's label and is free all the same. Where the pool knows a
    missing disk only by a name that changes from boot to boot, it is not given free.
    """
    for device in pool.devices():
        link = Path(device.path).name
        if links.get(link.rsplit("-part", 1)[0]) == disk or links.get(link) == disk:
            return True
        if device.disk and links.get(Path(device.disk).name) == disk:
            return True
        if device.state in vdev_state.LOST and not device.path.startswith(f"{BY_ID}/"):
            return True
    return False


def uses_of(
    row: Mapping[str, Any],
    pool_of: Mapping[str, Pool],
    live: Mapping[str, Pool],
    links: Mapping[str, str],
    resting: Collection[str] = (),
) -> Iterator[Use]:
    """Every reason why this disk is not free, worst first.

    ``resting``: the devices of ``pool_of`` that their pool does not use, so that something else may be on them by now.
    """
    parts = list(walk_nodes(row))
    mounts = [mount for part in parts for mount in part.get("mountpoints") or () if mount]
    if any(mount == "/" or mount.startswith(("/boot", "/usr", "/var")) for mount in mounts):
        yield Use("system", Message("holds the system"))
    elif "[SWAP]" in mounts:
        yield Use("swap", Message("is used as swap"))
    elif mounts:
        yield Use("mounted", Message("is in use at {path}", path=mounts[0]))
    for pool in {
        pool_of[part["name"]].guid: pool_of[part["name"]] for part in parts if part["name"] in pool_of
    }.values():
        yield Use("pool", Message("is part of the pool {pool}", pool=pool.name), str(pool.guid), pool.name)
    if any(part.get("type") not in {"disk", "part"} for part in parts):
        yield Use("raid", Message("is part of a RAID set, a logical volume or an encrypted volume"))
    seen: set[tuple[str, str]] = set()
    for part in parts:
        kind, label, identity = part.get("fstype") or "", part.get("label") or "", part.get("uuid") or ""
        if not kind or (kind, identity) in seen:
            continue
        of = pool_of.get(part["name"])
        if of and (part["name"] not in resting or (kind, identity) == ("zfs_member", str(of.guid))):
            continue
        seen.add((kind, identity))
        yield use_of_signature(row["name"], kind, label, identity, live, links)
    if not seen and not mounts and row.get("pttype") and not any(part["name"] in pool_of for part in parts):
        yield Use("old", Message("has a partition table ({kind})", kind=row["pttype"]))


def use_of_signature(
    disk: str, kind: str, label: str, identity: str, live: Mapping[str, Pool], links: Mapping[str, str]
) -> Use:
    """What a signature on the disk of that kernel name says of it."""
    if kind == "zfs_member" and identity in live:
        name = live[identity].name
        if is_kept_by_pool(disk, live[identity], links):
            text = Message("belongs to the pool {pool}, which does not use it at the moment", pool=name)
            return Use("pool", text, identity, name)
        text = Message("was part of the pool {pool}, which has no place for it any more", pool=name)
        return Use("old", text, identity, name)
    if kind == "zfs_member":
        called = label or Message("without a name")
        return Use("exported", Message("holds the pool {pool}, which is not in use here", pool=called), identity, label)
    if kind in {"linux_raid_member", "LVM2_member"}:
        return Use("raid", Message("is part of a set of disks ({kind})", kind=kind), identity)
    named = Message("holds {kind} data called {label}", kind=kind, label=label) if label else None
    return Use("old", named or Message("holds {kind} data", kind=kind), identity)


def disks_from(
    listing: Mapping[str, Any],
    links: Mapping[str, str],
    pools: Iterable[Pool],
    slots: Mapping[str, str] | None = None,
    others: Mapping[str, str] | None = None,
) -> Iterator[Disk]:
    """The disks of an ``lsblk -J -b`` object; loop devices, CD drives and the like are passed over.

    ``links`` are those of by-id, ``slots`` of by-path, ``others`` of every other folder by
    which a pool may know a device.
    """
    stable = disk_links.stable_names(links)
    ports: dict[str, str] = {}
    for link in sorted(slots or {}, key=lambda name: (len(name), name)):
        ports.setdefault((slots or {})[link], link)
    pool_of: dict[str, Pool] = {}
    live: dict[str, Pool] = {}
    resting: set[str] = set()
    targets = {**(others or {}), **links}
    for pool in pools:
        live[str(pool.guid)] = pool
        for device in pool.devices():
            if device.state in vdev_state.ABSENT:
                continue
            link = Path(device.path).name
            pool_of[targets.get(link, link)] = pool
            if device.state in vdev_state.LOST:
                resting.add(targets.get(link, link))
    for row in listing.get("blockdevices") or ():
        size = int(row.get("size") or 0)
        if (
            row.get("type") != "disk"
            or size < SMALLEST
            or row["name"].startswith(("zd", "zram", "ram", "loop", "sr", "fd"))
        ):
            continue
        yield Disk(
            path=stable.get(row["name"], ""),
            name=row["name"],
            serial=(row.get("serial") or "").strip(),
            model=(row.get("model") or "").strip(),
            size=size,
            logical_sector=int(row.get("log-sec") or 512),
            physical_sector=int(row.get("phy-sec") or 512),
            rotational=bool(row.get("rota")),
            bus=row.get("tran") or ("virtio" if row["name"].startswith("vd") else ""),
            removable=bool(row.get("rm")),
            slot=ports.get(row["name"], ""),
            uses=tuple(uses_of(row, pool_of, live, links, resting)),
            content=tuple(
                part["name"] for part in reversed(list(walk_nodes(row))) if part.get("fstype") or part.get("pttype")
            ),
        )


def device_names(disk: Disk) -> tuple[str, ...]:
    """The names under which smartd reports a disk: its node, its by-id path, and for NVMe the controller's node.

    ``DEVICESCAN`` finds NVMe disks as ``/dev/nvme0``, while the disk is ``nvme0n1`` (smartd.conf(5)).
    """
    controller = re.fullmatch(r"(nvme[0-9]+)n[0-9]+", disk.name)
    names = (f"/dev/{disk.name}", disk.path, f"/dev/{controller[1]}" if controller else "")
    return tuple(filter(None, names))


def missing_disk(path: str, field: str = "disk") -> Reason:
    """The reason against using a disk that is not in the box any more; its by-id path."""
    return Reason("disk-missing", "The disk {disk} is no longer there.", field=field, disk=path.rsplit("/", 1)[-1])


def list_devices(*words: str) -> dict[str, Any]:
    """What ``lsblk`` prints as JSON. Raises Failed."""
    result = command.run(["lsblk", "-J", *words], timeout=20)
    try:
        found: dict[str, Any] = json.loads(result.stdout)
    except ValueError as error:
        raise Failed(Message("lsblk printed something that is not JSON"), result.stdout[:200]) from error
    return found


def read_disks(pools: Iterable[Pool]) -> tuple[Disk, ...]:
    """The disks that are there now. Raises Failed."""
    links, slots, others = disk_links.read_links(), disk_links.read_links(BY_PATH), disk_links.read_other_links()
    found = disks_from(list_devices("-b", "-o", COLUMNS), links, pools, slots, others)
    return tuple(sorted(found, key=lambda disk: disk.path or disk.name))


def read_partition_labels(path: str) -> list[str]:
    """The names of a disk's partitions in its partition table, empty where one has none. Raises Failed.

    ``NAME`` is asked for because lsblk says only with it which row belongs to which.
    """
    listing = list_devices("-o", "NAME,TYPE,PARTLABEL", path)
    rows = [child for row in listing.get("blockdevices") or () for child in row.get("children") or ()]
    return [str(row.get("partlabel") or "") for row in rows]


def is_table_of_zfs(labels: Collection[str], *own: str) -> bool:
    """Whether a partition table has only names that ``zpool`` gives, or ``own`` ones, and at least one of them.

    ``zpool`` names the first partition ``zfs-`` and digits, and the small ninth not at all (libefi's ``rdwr_efi.c``,
    libzfs' ``zpool_label_disk``). A table without any such name may belong to others.
    """
    return any(labels) and all(label in {"", *own} or ZFS_LABEL.fullmatch(label) for label in labels)
