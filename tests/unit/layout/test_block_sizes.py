from __future__ import annotations

import pytest

from appliance.datasets.volumes import BLOCKS
from appliance.facts.box import Pool
from appliance.layout.block_sizes import POINTER, SMALL_WRITE, advise_block, list_costs
from tests.unit.made import recorded_pool
from tests.unit.pools.shapes import group, leaf, pool

KIB, TB = 2**10, 10**12


def made(name: str, disks: int, ashift: int = 12) -> Pool:
    return pool(group(name, *(leaf(1 + number % 6) for number in range(disks)), ashift=ashift))


def share(found: Pool, block: int) -> float:
    """Of the room for one TB, what is not pointers."""
    (cost,) = [one for one in list_costs(found) if one.block == block]
    return cost.room / TB - POINTER / block


@pytest.mark.parametrize(
    ("name", "disks", "ashift", "block", "sectors", "typical"),
    # The sectors of vdev_raidz_asize(), data + parity + padding, of the block and of 128 KiB, by
    # which ZFS takes off parity.
    [
        ("raidz1-0", 3, 12, 4, 1 + 1, 32 + 16),
        ("raidz1-0", 3, 12, 8, 2 + 1 + 1, 32 + 16),
        ("raidz1-0", 3, 12, 16, 4 + 2, 32 + 16),
        ("raidz1-0", 4, 12, 16, 4 + 2, 32 + 11 + 1),
        ("raidz2-0", 5, 12, 4, 1 + 2, 32 + 22),
        ("raidz2-0", 5, 12, 16, 4 + 4 + 1, 32 + 22),
        ("raidz2-0", 5, 12, 64, 16 + 12 + 2, 32 + 22),
        ("raidz2-0", 5, 9, 4, 8 + 6 + 1, 256 + 172 + 1),
        ("raidz3-0", 6, 12, 32, 8 + 9 + 3, 32 + 33 + 3),
    ],
)
def test_room_of_a_block_on_raidz_is_its_sectors_with_parity_and_padding(name, disks, ashift, block, sectors, typical):
    block *= KIB
    wanted = (sectors << ashift) / block / ((typical << ashift) / (128 * KIB))
    assert share(made(name, disks, ashift), block) == pytest.approx(
        wanted, rel=0.005
    )  # ZFS rounds its ratio down to 1/512


@pytest.mark.parametrize(("ashift", "smallest"), [(9, 1), (12, 1), (13, 2)])
def test_block_on_a_mirror_takes_its_size_but_at_least_a_sector(ashift, smallest):
    found = made("mirror-0", 2, ashift)
    assert share(found, 4 * KIB) == pytest.approx(smallest)
    assert [share(found, block) for block in BLOCKS[1:]] == pytest.approx([1.0] * 5)
    assert [bool(cost.extra) for cost in list_costs(found)] == [smallest > 1, *[False] * 5]


def test_small_blocks_on_raidz_are_warned_of_and_the_advice_passes_them_over():
    assert [cost.extra for cost in list_costs(made("raidz1-0", 3))] == [33, 33, 0, 0, 0, 0]
    assert advise_block(list_costs(made("raidz1-0", 3))) == 16 * KIB
    wide = list_costs(made("raidz2-0", 5))
    assert [cost.extra for cost in wide] == [78, 78, 33, 0, 0, 0]
    assert advise_block(wide) == 32 * KIB
    assert advise_block(list_costs(made("mirror-0", 2))) == 16 * KIB


def test_group_where_a_block_takes_most_decides():
    both = pool(group("mirror-0", leaf(1), leaf(2)), group("raidz1-1", leaf(3), leaf(4), leaf(5)))
    assert share(both, 8 * KIB) == share(made("raidz1-0", 3), 8 * KIB)
    log = pool(group("mirror-0", leaf(1), leaf(2)), group("raidz1-1", leaf(3), leaf(4), leaf(5), role="log"))
    assert share(log, 8 * KIB) == pytest.approx(1)


def test_expanded_raidz_counts_with_the_parity_of_its_first_width():
    """Four disks now, three at first: 16 KiB take 6 sectors still, 128 KiB 44 instead of 48."""
    found = recorded_pool("zpool-status-expand-done-2.3.9.json")
    assert share(found, 16 * KIB) == pytest.approx(1, rel=0.003)
    assert share(found, 128 * KIB) == pytest.approx(44 / 48, rel=0.003)


def test_nothing_is_told_of_a_group_that_is_not_calculated():
    assert list_costs(pool(group("draid1-0", leaf(1), leaf(2), leaf(3), kind="draid"))) == ()
    assert list_costs(pool()) == ()


def test_each_choice_has_a_measured_figure_and_from_16_kib_larger_blocks_write_more():
    assert tuple(SMALL_WRITE) == BLOCKS
    assert [SMALL_WRITE[block] for block in BLOCKS[2:]] == sorted(SMALL_WRITE[block] for block in BLOCKS[2:])
    assert SMALL_WRITE[16 * KIB] == 1
