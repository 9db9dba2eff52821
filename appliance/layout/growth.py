"""Bytes for files in a pool that exists, now and after a change of its groups. Pure functions.

A group keeps two things from the day it was created, whatever becomes of it (``vdev.c``): the size of its metaslabs,
and the ratio by which ``zfs list`` takes off parity. So an expanded raidz counts with the parity of its first width,
and a group of larger disks goes on in metaslabs of the old size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import msgspec
from msgspec.structs import replace

from appliance.facts.box import Pool, Vdev
from appliance.layout.geometry import (
    PARITY,
    RAIDZ,
    TYPICAL_BLOCK,
    metaslab_size,
    parity_of,
    sectors_of_block,
    slop_bytes,
    usable_part,
    vdev_space,
)

USUAL_ASHIFT = 12
SMALLEST_SLAB = 2**24  # vdev_metaslab_set_size()


class DataGroup(msgspec.Struct, frozen=True):
    """A top-level vdev for data. ``parts``: bytes of each disk's partition.
    ``made``: how many disks it was created with. ``slab``: the size of its metaslabs."""

    layout: str  # stripe (of one disk), mirror, raidz1, raidz2, raidz3
    parts: tuple[int, ...]
    ashift: int
    made: int
    slab: int

    @property
    def width(self) -> int:
        return len(self.parts)

    @property
    def parity(self) -> int:
        """How many of its disks may fail."""
        return parity_of(self.layout, self.width)

    @property
    def size(self) -> int:
        """Bytes of the vdev, parity included. The smallest disk counts for all."""
        return vdev_size(self.layout, self.parts)

    @property
    def space(self) -> tuple[int, int]:
        """Bytes without parity, and those of its embedded log."""
        return vdev_space(self.layout, self.size, self.slab, self.made, self.ashift)


def vdev_size(layout: str, parts: Sequence[int]) -> int:
    smallest = usable_part(min(parts), margin=0)
    return smallest * len(parts) if layout in RAIDZ else smallest


def new_group(layout: str, parts: Sequence[int], ashift: int = USUAL_ASHIFT) -> DataGroup:
    """A group as it is created with these partitions."""
    return DataGroup(layout, tuple(parts), ashift, len(parts), metaslab_size(vdev_size(layout, parts)))


def read_group(vdev: Vdev) -> DataGroup | None:
    """The group of a pool's top-level vdev; None where its sizes are not known, or for a
    kind that is not calculated."""
    layout = layout_of(vdev)
    parts = [part_size(member) for member in (vdev.children if vdev.kind in {"mirror", "raidz"} else (vdev,))]
    if not layout or not all(parts):
        return None
    ashift, made = vdev.ashift or USUAL_ASHIFT, first_width(vdev, layout)
    size = vdev_size(layout, parts)
    usual = metaslab_size(size // len(parts) * made if layout in RAIDZ else size)
    # It may have been made on smaller disks. Its space is in whole metaslabs.
    slabs = (usual >> step for step in range(usual.bit_length() - SMALLEST_SLAB.bit_length() + 1))
    slab = next((one for one in slabs if vdev.space % one == 0), usual)
    return DataGroup(layout, tuple(parts), ashift, made, slab)


def layout_of(vdev: Vdev) -> str:
    """The layout of a group; empty for one that is not calculated (draid)."""
    if vdev.kind == "raidz":
        return f"raidz{vdev.parity}" if vdev.parity else ""
    if vdev.kind == "mirror":
        return "mirror"
    return "stripe" if vdev.kind in {"disk", "file", "replacing", "spare"} else ""


def part_size(member: Vdev) -> int:
    """Bytes of a member's partition; of one that is being replaced, the smaller of the two."""
    sizes = [device.size or device.replace_size for device in member.devices()]
    return min((size for size in sizes if size), default=0)


def first_width(vdev: Vdev, layout: str) -> int:
    """How many disks a raidz had when it was created, by the ratio with which ZFS takes off its parity.
    Of several widths with the same ratio it is the widest; the present width where nothing is told."""
    width = max(len(vdev.children), 1)
    if layout not in RAIDZ or not vdev.space or not vdev.deflated:
        return width
    ashift, parity = vdev.ashift or USUAL_ASHIFT, PARITY[layout]
    told = Fraction(vdev.deflated, vdev.space)
    for disks in range(width, parity, -1):
        sectors = sectors_of_block(TYPICAL_BLOCK, ashift, disks, parity)
        ratio = Fraction(TYPICAL_BLOCK // ((sectors << ashift) >> 9), 512)
        if abs(ratio - told) < Fraction(1, 2000):
            return disks
    return width


def read_groups(pool: Pool) -> tuple[DataGroup, ...]:
    """The data groups of a pool; empty where one of them cannot be calculated."""
    found = [read_group(vdev) for vdev in pool.vdevs if vdev.role == "normal"]
    return tuple(group for group in found if group) if all(found) else ()


def pool_bytes(groups: Iterable[DataGroup]) -> int:
    """Bytes for files in a pool of these groups: used and available of its topmost dataset."""
    spaces = [group.space for group in groups]
    space, log = sum(one for one, _log in spaces), sum(log for _space, log in spaces)
    return max(space - slop_bytes(space, log), 0)


def widen_group(group: DataGroup) -> DataGroup:
    """The raidz after an expansion by one disk, which counts as much as the smallest that is there."""
    return replace(group, parts=(*group.parts, min(group.parts)))


def enlarge_group(group: DataGroup, part: int) -> DataGroup:
    """The group after every smaller disk was replaced by one whose partition has ``part`` bytes."""
    return replace(group, parts=tuple(max(size, part) for size in group.parts))


def count_smaller(group: DataGroup, part: int) -> int:
    """How many disks of the group are smaller than that."""
    return sum(size < part for size in group.parts)


def block_share(group: DataGroup, before: int, after: int) -> Fraction:
    """What a block of 128 KiB takes in a raidz of ``after`` disks, as a share of what it takes with ``before`` disks.

    1 for other layouts. Never more than 1 for a wider group.
    """
    if group.layout not in RAIDZ:
        return Fraction(1)
    old, new = (sectors_of_block(TYPICAL_BLOCK, group.ashift, disks, PARITY[group.layout]) for disks in (before, after))
    return Fraction(new, old)
