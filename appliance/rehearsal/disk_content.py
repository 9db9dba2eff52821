"""What is on the disk of a rehearsal besides its pool: such a disk is not overwritten, because others may need it.

Between an interruption and the clean-up, days can pass in which the disk is used on another computer.
"""

from __future__ import annotations

from pathlib import Path

from appliance.disks import inventory, partitions, probe
from appliance.errors import Failed
from appliance.facts import vdev_state
from appliance.facts.box import Disk, Facts, Pool, Use
from appliance.formatting import disk_label
from appliance.message import Message
from appliance.rehearsal.result import DiskOut
from appliance.zfs import status, vdev_tree
from appliance.zfs.vdev_tree import REPLACED, Place


def find_place(pool: Pool, out: DiskOut) -> Place | None:
    """The place of the disk in its pool, which has another guid once the disk was rebuilt."""
    return vdev_tree.find_vdev(pool, out.vdev) or vdev_tree.find_disk(pool, out.disk)


def is_disk_of(place: Place, out: DiskOut) -> bool:
    """Whether ZFS made the partition of that place itself, on that very disk. The record may come from elsewhere."""
    path = place.vdev.path.removesuffix(REPLACED)
    return vdev_tree.link_of(place.vdev) == Path(out.disk).name and Path(path).name == f"{Path(out.disk).name}-part1"


def find_foreign_use(disk: Disk, pool: Pool) -> Use | None:
    """What is on a disk besides its pool and a partition table; None where there is nothing."""
    return next((use for use in disk.uses if use.identity != str(pool.guid) and not use.is_bare_table), None)


def reason_not_replaced(pool: Pool, place: Place, out: DiskOut, facts: Facts) -> str:
    """Why the disk must not be overwritten, as a sentence; empty where nothing speaks against
    it, or it is in use. Pure."""
    disk = facts.disk(out.disk)
    if place.vdev.state in vdev_state.WORKING:
        return ""
    if not is_disk_of(place, out):
        return Message(
            "The record of the rehearsal names another disk than the one that is out of {pool}.", pool=pool.name
        )
    if disk and (use := find_foreign_use(disk, pool)):
        return Message("{disk} {use}.", disk=disk_label(disk), use=use.text)
    return ""


def refuse_other_uses(pool: Pool, out: DiskOut) -> Disk:
    """The disk as it is now. Raises Failed where it is not there, or anything else than the pool is on it."""
    disk = next((one for one in inventory.read_disks(status.read_pools()) if one.path == out.disk), None)
    if disk is None:
        raise Failed(Message("The disk does not answer any more"))
    if use := find_foreign_use(disk, pool):
        raise not_overwritten(disk, use)
    return disk


def refuse_other_content(pool: Pool, place: Place, out: DiskOut) -> None:
    """Raise Failed unless the disk is the one of that place, and is as its pool or the rehearsal left it."""
    if not is_disk_of(place, out):
        raise Failed(
            Message(
                "{disk} is not the disk that is out of {pool}. Nothing was written to it",
                disk=Path(out.disk).name,
                pool=pool.name,
            )
        )
    disk = refuse_other_uses(pool, out)
    if not inventory.is_table_of_zfs(inventory.read_partition_labels(out.disk)):
        raise not_overwritten(disk, probe.UNKNOWN)
    part = f"{out.disk}-part1"
    if use := probe.inspect_member(part, partitions.size_of(part), pool.guid):
        raise not_overwritten(disk, use)


def not_overwritten(disk: Disk, use: Use) -> Failed:
    return Failed(Message("{disk} {text}. Nothing more was written to it", disk=disk_label(disk), text=use.text))
