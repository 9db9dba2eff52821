from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.layout.geometry import (
    LEAST_DISKS,
    expanded_bytes,
    metaslab_size,
    parity_of,
    sectors_of_block,
    slop_bytes,
    usable_bytes,
)
from appliance.zfs import status
from tests.unit.made import recorded

TB = 10**12
GIB = 2**30


def test_it_foretells_the_recorded_raidz2_within_a_hundredth_of_a_percent():
    root = next(status.parse_datasets(recorded("zfs-list-2.3.9.json")))
    measured = root.used + root.available
    assert usable_bytes("raidz2", [[2 * TB] * 4]) == pytest.approx(measured, rel=1e-4)


@pytest.mark.parametrize(
    ("layout", "disks", "parity"),
    [("stripe", 4, 0), ("mirror", 2, 1), ("mirror", 3, 2), ("raidz1", 3, 1), ("raidz3", 8, 3)],
)
def test_it_knows_how_many_failures_a_group_survives(layout, disks, parity):
    assert parity_of(layout, disks) == parity


@pytest.mark.parametrize(
    ("ashift", "disks", "parity", "sectors"),
    # 128 KiB: 32 sectors of 4 KiB or 256 of 512 bytes, plus parity, padded to a multiple of parity + 1.
    [(12, 3, 1, 48), (12, 4, 1, 44), (12, 4, 2, 66), (12, 6, 2, 48), (12, 5, 1, 40), (9, 3, 1, 384), (12, 8, 3, 56)],
)
def test_it_counts_parity_and_padding_as_raidz_does(ashift, disks, parity, sectors):
    assert sectors_of_block(128 * 1024, ashift, disks, parity) == sectors


@pytest.mark.parametrize("layout", sorted(LEAST_DISKS))
def test_too_few_disks_hold_nothing(layout):
    least = LEAST_DISKS[layout]
    assert usable_bytes(layout, [[TB] * least]) > 0
    assert usable_bytes(layout, [[TB] * (least - 1)] if least > 1 else []) == 0


def test_a_disk_too_small_for_zfs_holds_nothing():
    assert usable_bytes("mirror", [[TB, 2**20]]) == 0


def test_a_mirror_holds_as_much_as_its_smallest_disk():
    assert usable_bytes("mirror", [[TB, 3 * TB]]) == usable_bytes("mirror", [[TB, TB]])


def test_a_stripe_uses_every_byte_of_unequal_disks():
    assert usable_bytes("stripe", [[TB, 3 * TB]]) > 1.9 * usable_bytes("stripe", [[2 * TB]])


@pytest.mark.parametrize(
    ("space", "held"), [(10 * 1024 * GIB, 128 * GIB), (64 * GIB, 2 * GIB), (GIB, 2**27), (2**27, 2**26)]
)
def test_it_holds_back_what_zfs_holds_back(space, held):
    assert slop_bytes(space) == held


@given(st.integers(min_value=64 * 2**20, max_value=10**17))
def test_a_metaslab_is_a_power_of_two_within_zfs_bounds(size):
    slab = metaslab_size(size)
    assert slab & (slab - 1) == 0
    assert 2**24 <= slab <= 2**34


sizes = st.lists(st.integers(min_value=8 * GIB, max_value=30 * TB), min_size=5, max_size=9)


@given(sizes, st.sampled_from(sorted(LEAST_DISKS)), st.sampled_from([9, 12, 13]))
def test_it_never_promises_more_than_the_disks_minus_parity(group, layout, ashift):
    usable = usable_bytes(layout, [group], ashift)
    data = sum(group) if layout == "stripe" else min(group) * (len(group) - parity_of(layout, len(group)))
    assert 0 <= usable < data


@given(sizes)
def test_more_parity_never_holds_more(group):
    held = [usable_bytes(layout, [group]) for layout in ("raidz1", "raidz2", "raidz3", "mirror")]
    assert held == sorted(held, reverse=True)


@given(sizes, st.sampled_from(["mirror", "raidz2"]))
def test_a_second_group_never_holds_less(group, layout):
    assert usable_bytes(layout, [group, group]) > usable_bytes(layout, [group])


@pytest.mark.parametrize(
    ("space", "log", "held"),
    [
        (10 * 1024 * GIB, 16 * GIB, 112 * GIB),
        (10 * 1024 * GIB, 96 * GIB, 64 * GIB),
        (64 * GIB, 0, 2 * GIB),
        (64 * GIB, GIB, GIB),
    ],
)
def test_embedded_logs_count_as_held_back_up_to_half(space, log, held):
    assert slop_bytes(space, log) == held


@pytest.mark.parametrize(("mirrors", "less"), [(1, 0), (4, 0), (6, 0.0029), (60, 0.008)])
def test_many_mirrors_lose_a_metaslab_each_to_their_logs(mirrors, less):
    """By OpenZFS's own accounting: what ``space - min(space >> 5, 128 GiB)`` promised too much."""
    slab, each = 16 * GIB, usable_raw(2 * TB)
    space = mirrors * each
    held = min((space - mirrors * slab) >> 5, 128 * GIB)
    expected = space - mirrors * slab - (held - min(mirrors * slab, held // 2))
    found = usable_bytes("mirror", [[2 * TB] * 2] * mirrors)
    assert found == expected
    assert 1 - found / (space - min(space >> 5, 128 * GIB)) == pytest.approx(less, abs=0.0006)


def usable_raw(size: int) -> int:
    """Whole metaslabs of 16 GiB in a disk of that size."""
    return (size - 10 * 2**20 - 5 * 2**20) // (16 * GIB) * 16 * GIB


def test_an_expanded_raidz_is_counted_with_the_parity_of_its_first_width():
    now = usable_bytes("raidz2", [[4 * TB] * 4])
    shown = expanded_bytes("raidz2", [[4 * TB] * 4]) - now
    assert shown == pytest.approx(1.94 * TB, rel=0.01)
    assert shown < usable_bytes("raidz2", [[4 * TB] * 5]) - now


@given(st.integers(min_value=3, max_value=9), st.sampled_from(["raidz1", "raidz2", "raidz3"]))
def test_an_expansion_never_shows_less_than_before(disks, layout):
    group = [4 * TB] * max(disks, LEAST_DISKS[layout])
    assert expanded_bytes(layout, [group]) > usable_bytes(layout, [group])
