"""How many bytes a pool of given disks will hold, by ZFS's own rules. Pure functions, bytes in and out.

The rules are OpenZFS 2.3's: ``vdev.c`` (label space, metaslab size), ``vdev_raidz.c`` (parity and padding),
``spa_misc.c`` (deflation at 128 KiB blocks, slop space).
"""

from __future__ import annotations

from collections.abc import Sequence

KIB, MIB, GIB = 2**10, 2**20, 2**30
LABELS = 4 * MIB + 512 * KIB  # VDEV_LABEL_START_SIZE (4 MiB) and VDEV_LABEL_END_SIZE (512 KiB)
LABEL = 256 * KIB  # sizeof (vdev_label_t): vdev_open() rounds a device down to whole labels
PARTITION_MARGIN = 10 * MIB  # what a whole disk loses to its partition table and the small ninth partition
TYPICAL_BLOCK = 128 * KIB
MOST_METASLABS_SHIFT, LEAST_METASLAB_SHIFT, WANTED_METASLABS = 34, 29, 200
FEWEST_METASLABS, LARGEST_BLOCK_SHIFT = 16, 24
FEWEST_FOR_LOG = 64  # metaslabs: a smaller vdev has no embedded log (zfs_embedded_slog_min_ms)
RAIDZ = {"raidz1", "raidz2", "raidz3"}
PARITY = {"stripe": 0, "raidz1": 1, "raidz2": 2, "raidz3": 3}
LEAST_DISKS = {"stripe": 1, "mirror": 2, "raidz1": 3, "raidz2": 4, "raidz3": 5}
# ZFS allows fewer disks, but they make no sense: raidz1 of two is a slow mirror.
# A pointer to a record takes 128 bytes (SPA_BLKPTRSHIFT), and blocks of pointers are stored twice (dmu_write_policy).
POINTER = 2 * 128


def parity_of(layout: str, disks: int) -> int:
    """How many disks of one group may fail."""
    return disks - 1 if layout == "mirror" else PARITY[layout]


def metaslab_size(size: int) -> int:
    """Bytes of a metaslab: about 200 in a vdev, of 512 MiB to 16 GiB each; at least 16 (``vdev_metaslab_set_size``)."""
    if size >> LEAST_METASLAB_SHIFT < FEWEST_METASLABS:
        return 1 << max((size // FEWEST_METASLABS).bit_length(), LARGEST_BLOCK_SHIFT)
    if size >> LEAST_METASLAB_SHIFT <= WANTED_METASLABS:
        return 1 << LEAST_METASLAB_SHIFT
    shift = (size // WANTED_METASLABS).bit_length()
    return 1 << min(max(shift, LEAST_METASLAB_SHIFT), MOST_METASLABS_SHIFT)


def sectors_of_block(block: int, ashift: int, disks: int, parity: int) -> int:
    """Sectors of a block on a raidz, with parity and padding to a multiple of parity + 1 (``vdev_raidz_asize``)."""
    data = -(-block // (1 << ashift))
    total = data + parity * -(-data // (disks - parity))
    return -(-total // (parity + 1)) * (parity + 1)


def vdev_sizes(layout: str, sizes: Sequence[int], margin: int) -> list[int]:
    """Bytes of each top-level vdev of a group, parity included; every disk of a stripe is a vdev."""
    if layout == "stripe":
        return [usable_part(size, margin) for size in sizes]
    smallest = usable_part(min(sizes), margin)
    return [smallest if layout == "mirror" else smallest * len(sizes)]


def deflated_bytes(space: int, layout: str, disks: int, ashift: int) -> int:
    """The bytes that ``zfs list`` shows for this space of a group (``vdev_deflated_space``)."""
    if layout in {"stripe", "mirror"}:
        return space
    ratio = TYPICAL_BLOCK // ((sectors_of_block(TYPICAL_BLOCK, ashift, disks, PARITY[layout]) << ashift) >> 9)
    return (space >> 9) * ratio


def counted_bytes(layout: str, block: int, ashift: int, disks: int, made: int) -> int:
    """The bytes that ``zfs list`` counts for a block, without its pointer.
    ``made``: how many disks the group was created with."""
    sectors = sectors_of_block(block, ashift, disks, PARITY[layout]) if layout in RAIDZ else -(-block // (1 << ashift))
    return deflated_bytes(sectors << ashift, layout, made, ashift)


def usable_part(size: int, margin: int = PARTITION_MARGIN) -> int:
    """The bytes of a disk that its ZFS partition leaves for data. ``margin`` is 0 for a partition or file."""
    return max((size - margin) // LABEL * LABEL - LABELS, 0)


def slop_bytes(space: int, log: int = 0) -> int:
    """Bytes that ZFS reserves: a thirty-second, at most 128 GiB, at least the smaller of 128 MiB and half the space.

    ``log`` are the bytes of the embedded logs, which are not part of ``space``. They count as reserved, up to half of
    the reserve (``spa_get_slop_space``).
    """
    held = min(space >> 5, 128 * GIB)
    return max(held - min(log, held >> 1), min(space >> 1, 128 * MIB))


def usable_bytes(
    layout: str, groups: Sequence[Sequence[int]], ashift: int = 12, *, margin: int = PARTITION_MARGIN
) -> int:
    """Bytes for files in a pool of these groups, each a list of disk sizes; 0 where a group
    has too few or too small disks.

    The sum of used and available that ``zfs list`` shows for a new pool. ``margin`` is 0 for partitions and files.
    """
    if not groups or any(len(group) < LEAST_DISKS[layout] or min(group) < 64 * MIB for group in groups):
        return 0
    return without_slop(layout, groups, ashift, margin, [len(group) for group in groups])


def expanded_bytes(
    layout: str, groups: Sequence[Sequence[int]], ashift: int = 12, *, margin: int = PARTITION_MARGIN
) -> int:
    """Bytes for files after the first raidz group has been expanded by one disk as large as its smallest.

    ZFS keeps counting with the share of parity of the group's first width (``vdev_set_deflate_ratio``).
    """
    if not usable_bytes(layout, groups, ashift, margin=margin):
        return 0
    wider = [[*groups[0], min(groups[0])], *groups[1:]]
    return without_slop(layout, wider, ashift, margin, [len(group) for group in groups])


def without_slop(layout: str, groups: Sequence[Sequence[int]], ashift: int, margin: int, made: Sequence[int]) -> int:
    """Bytes for files. ``made``: the number of disks in each group when it was created, which sets its metaslab size.

    Only whole metaslabs count, and one of each vdev is for its embedded log.
    """
    space = log = 0
    for group, disks in zip(groups, made, strict=True):
        for size in vdev_sizes(layout, group, margin):
            slab = metaslab_size(size // len(group) * disks) if layout in RAIDZ else metaslab_size(size)
            more, embedded = vdev_space(layout, size, slab, disks, ashift)
            space, log = space + more, log + embedded
    return max(space - slop_bytes(space, log), 0)


def vdev_space(layout: str, size: int, slab: int, disks: int, ashift: int) -> tuple[int, int]:
    """Bytes of a top-level vdev of this size as ``zfs list`` counts them, and those of its embedded log, which are not
    among them. ``disks``: how many it had when it was created. ``slab``: the size of its metaslabs since then."""
    count = size // slab
    embedded = slab if count >= FEWEST_FOR_LOG else 0
    log = deflated_bytes(embedded, layout, disks, ashift)
    return deflated_bytes(count * slab - embedded, layout, disks, ashift), log


def file_bytes(layout: str, groups: Sequence[Sequence[int]], ashift: int = 12, recordsize: int = TYPICAL_BLOCK) -> int:
    """How many bytes of large, incompressible files fit in records of ``recordsize``.

    ``zfs list`` counts in blocks of 128 KiB: smaller records lose more to parity and padding than it shows, larger ones
    less. Each record also needs a pointer.
    """
    usable = usable_bytes(layout, groups, ashift)
    if not usable or layout in {"stripe", "mirror"}:
        return usable * recordsize // (recordsize + POINTER)
    disks, parity = len(groups[0]), PARITY[layout]
    typical = sectors_of_block(TYPICAL_BLOCK, ashift, disks, parity) * recordsize
    wanted = sectors_of_block(recordsize, ashift, disks, parity) * TYPICAL_BLOCK
    return usable * typical // wanted * recordsize // (recordsize + POINTER)
