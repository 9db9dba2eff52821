"""The disks that growing a pool takes: sizes on sale, those in the box, and what counts of unequal ones.
Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.formatting import disk_size
from appliance.layout.geometry import PARTITION_MARGIN
from appliance.layout.growth import DataGroup
from appliance.message import Message
from appliance.zfs.vdev_tree import partition_bytes

SIZES = tuple(
    count * 10**12 for count in (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36)
)  # as sold
WORTH = 1.9  # a larger disk is proposed from here on, as a multiple of the smallest: a little less than twice
LEAST_SOLD = 10**11  # smaller disks are not those of a shop: sizes are multiples of what is there


def usual_disk(groups: Sequence[DataGroup]) -> int:
    """The size of a larger disk to propose: the smallest on sale that is about twice the smallest of the pool."""
    smallest = min((min(group.parts) for group in groups), default=0)
    return (
        next((size for size in SIZES if size >= WORTH * smallest), 2 * smallest)
        if smallest >= LEAST_SOLD
        else 2 * smallest
    )


def disk_choices(groups: Sequence[DataGroup], free: Sequence[int]) -> tuple[int, ...]:
    """Sizes of new disks to choose from: those on sale that are larger than the pool's
    smallest, and those in the box."""
    smallest = min((min(group.parts) for group in groups), default=0)
    sold = (
        [size for size in SIZES if partition_bytes(size) > smallest]
        if smallest >= LEAST_SOLD
        else [2 * smallest, 4 * smallest, 8 * smallest]
    )
    return tuple(sorted({*sold, *(size for size in free if size > smallest), usual_disk(groups)} - {0}))


def whole_disk(part: int) -> int:
    """About how large the disk with such a partition is, as printed on it."""
    size = part + PARTITION_MARGIN
    return next((sold for sold in SIZES if abs(sold - size) < sold // 50), size)


def gather_disks(free: Sequence[int], count: int, size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes of ``count`` disks and of those to be bought.
    Free disks are used where they suffice, or are as large."""
    own = sorted(free, reverse=True)
    if len(own) < count:
        own = [one for one in own if one >= size - PARTITION_MARGIN]
    own = own[:count]
    bought = (size,) * (count - len(own))
    return (*own, *bought), bought


def partitions(sizes: Sequence[int]) -> list[int]:
    return [partition_bytes(size) for size in sizes]


def unequal_note(sizes: Sequence[int]) -> str:
    """That the smallest of new disks counts; empty where they are equal."""
    if max(sizes) - min(sizes) <= max(sizes) // 50:
        return ""
    return Message("The disks differ in size. Each counts as {sizes}, the smallest.", sizes=disk_size(min(sizes)))
