"""What each block size of a volume costs in a pool: the room that its data takes, and what small
writes make the disks write."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import msgspec

from appliance.facts.box import Pool, Vdev
from appliance.layout.geometry import KIB, TYPICAL_BLOCK, counted_bytes
from appliance.layout.growth import USUAL_ASHIFT, first_width, layout_of

TB = 10**12
FOR_MACHINES, FOR_DESKTOPS = 16 * KIB, 64 * KIB
# A pointer has 128 bytes and is stored twice, compressed with its neighbours; so many bytes were left of it in volumes
# of incompressible data, from 2.1 % at blocks of 4 KiB to 0.1 % at 128 KiB.
POINTER = 88
WASTE = Fraction(6, 5)  # more room than long files take, by which a block size is warned of

# Bytes that reach the disks for a write of 4 KiB into a full volume, compared with blocks of 16 KiB.
# Measured with OpenZFS 2.3.9 in the appliance by tests/system/datasets/test_volume_blocks.py, with the disks' own
# counters: a mirror of two (ashift 12; 40.9, 37.9, 48.4, 77.8, 140.5 and 267.9 KiB for each write), volumes of 128
# MiB with incompressible data, four times 256 writes (O_DIRECT) of which no two are in the same 128 KiB, then fsync
# and the end of the transaction group. Below 16 KiB the pointers, which are more and are written twice, take what the
# smaller blocks save. Writes that are far from each other cost more at every size, and differ less: two in a
# transaction group 120 to 180 times their size. On a raidz2 of five it is 0.8 at 4 KiB and 4.4 at 128 KiB.
MEASURED_WITH = "OpenZFS 2.3.9"
SMALL_WRITE = {4 * KIB: 0.8, 8 * KIB: 0.8, 16 * KIB: 1.0, 32 * KIB: 1.6, 64 * KIB: 2.9, 128 * KIB: 5.5}


class BlockCost(msgspec.Struct, frozen=True):
    """``room``: bytes of the pool's space for each TB written that does not compress. ``extra``: by how many
    per cent that is more than long files take, where it is so much that it matters; else 0. ``small_write``:
    times the bytes of 16 KiB."""

    block: int
    room: int
    extra: int
    small_write: float

    @property
    def terabytes(self) -> float:
        return self.room / TB


def data_shapes(pool: Pool) -> Iterator[tuple[str, int, int, int]]:
    """Layout, ashift, disks, and disks when it was created, of each data group.
    An empty layout is one that is not calculated."""
    for vdev in pool.vdevs:
        if vdev.role == "normal":
            layout = layout_of(vdev)
            yield layout, vdev.ashift or USUAL_ASHIFT, width_of(vdev), first_width(vdev, layout)


def width_of(vdev: Vdev) -> int:
    return max(len(vdev.children), 1)


def list_costs(pool: Pool) -> tuple[BlockCost, ...]:
    """Of each block size, in the data group where it takes most; empty where one cannot be calculated (draid)."""
    shapes = tuple(data_shapes(pool))
    if not shapes or not all(layout for layout, *_shape in shapes):
        return ()

    def share(block: int) -> Fraction:
        return max(Fraction(counted_bytes(layout, block, *shape), block) for layout, *shape in shapes)

    usual = share(TYPICAL_BLOCK)
    return tuple(
        BlockCost(
            block,
            room=round(TB * (share(block) + Fraction(POINTER, block))),
            extra=round(100 * (share(block) / usual - 1)) if share(block) > usual * WASTE else 0,
            small_write=SMALL_WRITE[block],
        )
        for block in SMALL_WRITE
    )


def advise_block(costs: tuple[BlockCost, ...]) -> int:
    """The smallest block for machines and databases that needs no more room than it has to."""
    return next((cost.block for cost in costs if cost.block >= FOR_MACHINES and not cost.extra), FOR_MACHINES)
