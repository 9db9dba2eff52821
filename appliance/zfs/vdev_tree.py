"""Find a vdev in its pool, the disk behind it, and how large a disk has to be to take its place. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from appliance.facts.box import Disk, Facts, Pool, Vdev
from appliance.formatting import disk_label, disk_size, link_label, number_text
from appliance.message import Message

LABEL_STEP = 256 * 2**10  # vdev_open() counts a device in whole labels
# zpool_label_disk(): the start of the first partition, the small ninth one, and the step in which the first ends.
START, RESERVED, END_STEP = 2048, 16384, 2048  # sectors
TABLE = 16384  # bytes of partition entries at each end of the disk
# The end of the path of a disk that an erased one takes the place of under its name (spa_vdev_attach).
REPLACED = "/old"


class Place(msgspec.Struct, frozen=True):
    """A vdev and everything above it, from its group down; none above a group itself."""

    vdev: Vdev
    above: tuple[Vdev, ...] = ()

    @property
    def parent(self) -> Vdev | None:
        return self.above[-1] if self.above else None

    @property
    def group(self) -> Vdev:
        """The vdev directly below the pool."""
        return self.above[0] if self.above else self.vdev

    @property
    def role(self) -> str:
        return self.group.role

    @property
    def leaf(self) -> bool:
        return not self.vdev.children


def list_places(pool: Pool) -> Iterator[Place]:
    """Every vdev of a pool, groups before what is below them."""

    def below(vdev: Vdev, above: tuple[Vdev, ...]) -> Iterator[Place]:
        yield Place(vdev, above)
        for child in vdev.children:
            yield from below(child, (*above, vdev))

    for group in pool.vdevs:
        yield from below(group, ())


def find_vdev(pool: Pool | None, guid: int) -> Place | None:
    """The vdev with that guid. A spare that stands in is in the tree twice: where it stands in comes first."""
    return next((place for place in list_places(pool) if place.vdev.guid == guid), None) if pool else None


def find_disk(pool: Pool | None, path: str) -> Place | None:
    """The place that a disk has in a pool, by its by-id path.

    Where it works comes before where it waits as a spare, and before what it was until it was put back erased.
    """
    if pool is None:
        return None
    found = [place for place in list_places(pool) if place.leaf and link_of(place.vdev) == Path(path).name]
    return min(found, key=lambda place: (place.role == "spare", place.vdev.path.endswith(REPLACED)), default=None)


def link_of(device: Vdev) -> str:
    """The by-id name of the whole disk behind a device: that of ``Disk.path`` where it was
    found, else as ZFS knows it."""
    if device.disk:
        return device.disk.rpartition("/")[2]
    name = (device.path.removesuffix(REPLACED) or device.name).rpartition("/")[2]
    return name.rsplit("-part", 1)[0] if "-part" in name else name


def disk_path(device: Vdev) -> str:
    """The path of the whole disk behind a device, as ``Disk.path`` says it where the disk was found."""
    return device.disk or device.path.rsplit("-part", 1)[0]


def is_rotational(pool: Pool, disks: Iterable[Disk]) -> bool:
    """Whether one of these disks is in the pool and has platters."""
    members = {link_of(device) for device in pool.devices()}
    return any(disk.rotational for disk in disks if (disk.path or disk.name).rpartition("/")[2] in members)


def disk_of(device: Vdev, facts: Facts) -> Disk | None:
    """The disk behind a device, where it is in the box now."""
    if device.path.endswith(REPLACED):
        return None
    link = link_of(device)
    return next((disk for disk in facts.disks if disk.path and Path(disk.path).name == link), None)


def online_operand(device: Vdev) -> str:
    """What ``zpool online`` takes: the path, of the whole disk where ZFS made the partition itself.

    A guid will not do there: with -e, or autoexpand, it has to open the disk by this very word (zpool_vdev_online).
    """
    path = Path(device.path)
    if not device.path.startswith("/"):
        return str(device.guid)
    return str(path.parent / device.name) if path.name.startswith(f"{device.name}-part") else device.path


def vdev_label(device: Vdev, facts: Facts) -> str:
    """A device as its owner can find it, also when its disk is gone: ``WDC WD20EARS (serial WD-1)``."""
    disk = disk_of(device, facts)
    return disk_label(disk) if disk else link_label(link_of(device))


def group_label(group: Vdev) -> str:
    """``the raidz2 of 5 disks``, ``the mirror of 2 disks``, ``a single disk``."""
    if not group.children:
        return Message("the single disk")
    return Message("the {kind} of {count} disks", kind=group.name.rsplit("-", 1)[0], count=len(group.children))


def guids_being_filled(pool: Pool) -> set[int]:
    """The guids of the devices that a running rebuild fills: those it wrote to, those that wait for it, and the
    new disk of a replacement."""
    filled = {device.guid for device in pool.devices() if pool.lags(device)}
    if pool.rebuilding:
        filled |= {place.vdev.children[-1].guid for place in list_places(pool) if place.vdev.kind == "replacing"}
    return filled


# --- how large ----------------------------------------------------------------------------------------------------


def partition_bytes(size: int, sector: int = 512) -> int:
    """Of a whole disk, the partition that ``zpool`` makes for its data (zpool_label_disk, efi_alloc_and_init)."""
    table = TABLE // sector + 1
    room = size // sector - table - RESERVED - START
    return max(room // END_STEP * END_STEP * sector, 0)


def needed_bytes(place: Place) -> int:
    """How large the partition of a disk in this place has to be; 0 where nothing is known.

    ZFS tells it for each device (``rep_dev_size``: vdev_get_min_asize() and the labels): the group's space in whole
    metaslabs, so a little less than the device it has. Where it is silent, the smallest sibling's size is safe.
    """
    siblings = [device for device in place.group.devices() if device.guid != place.vdev.guid]
    own = place.vdev.replace_size if place.leaf else 0
    return (
        own
        or min((one.replace_size for one in siblings if one.replace_size), default=0)
        or min((one.size for one in (place.vdev, *siblings) if one.size and not one.children), default=0)
    )


def missing_bytes(disk: Disk, place: Place) -> int:
    """By how many bytes a disk is too small for a place; 0 where it is large enough."""
    partition = partition_bytes(disk.size, disk.logical_sector) // LABEL_STEP * LABEL_STEP
    return max(needed_bytes(place) - partition, 0)


def shortage_text(missing: int) -> str:
    """``7 MB (7,340,032 bytes)``."""
    size = disk_size(missing) if missing >= 10**6 else Message("less than 1 MB")
    return Message("{size} ({bytes} bytes)", size=size, bytes=number_text(f"{missing:,}"))
