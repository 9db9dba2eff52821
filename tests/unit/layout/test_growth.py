from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.layout.geometry import LEAST_DISKS, PARTITION_MARGIN, expanded_bytes, usable_bytes
from appliance.layout.growth import (
    block_share,
    count_smaller,
    enlarge_group,
    new_group,
    pool_bytes,
    read_groups,
    widen_group,
)
from appliance.zfs import status
from tests.unit.made import recorded, recorded_pool
from tests.unit.pools import shapes

TB, GIB, MIB = 10**12, 2**30, 2**20
LAYOUTS = sorted(LEAST_DISKS)


def test_the_recorded_pool_has_the_bytes_that_zfs_list_told_of_it():
    root = next(status.parse_datasets(recorded("zfs-list-2.3.9.json")))
    assert pool_bytes(read_groups(recorded_pool())) == root.used + root.available


def test_a_recorded_raidz_that_was_expanded_is_known_by_its_first_width():
    (group,) = read_groups(recorded_pool("zpool-status-expand-done-2.3.9.json"))
    assert (group.layout, group.width, group.made) == ("raidz1", 4, 3)
    before = replace(group, parts=group.parts[:3])
    told = next(iter(recorded("zpool-status-expand-running-2.3.9.json")["pools"]["exp"]["vdevs"].values()))
    # Eleven metaslabs of 128 MiB then, fifteen now; 341 of 512 bytes are for files, as with three disks.
    assert before.size // before.slab * before.slab == told["total_space"] == 11 * 128 * MIB
    assert before.space[0] == told["def_space"] == 11 * 128 * MIB // 512 * 341
    after = next(iter(recorded("zpool-status-expand-done-2.3.9.json")["pools"]["exp"]["vdevs"].values()))
    assert widen_group(before).space[0] == after["def_space"] == 15 * 128 * MIB // 512 * 341


@pytest.mark.parametrize(
    ("layout", "before", "after", "share"),
    # 128 KiB on a raidz1 of 3: 32 sectors and 16 of parity; of 4: 32 and 11, padded to 44. On a raidz2 of 4: 32 and 32,
    # padded to 66; of 5: 32 and 22, which is 54.
    [("raidz1", 3, 4, (44, 48)), ("raidz2", 4, 5, (54, 66)), ("mirror", 2, 3, (1, 1)), ("stripe", 1, 2, (1, 1))],
)
def test_what_a_block_takes_in_a_wider_raidz(layout, before, after, share):
    assert block_share(new_group(layout, [TB] * before), before, after) == Fraction(*share)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_new_group_is_as_large_as_the_advisor_says(layout):
    disks = 2 * TB
    width = LEAST_DISKS[layout]
    assert pool_bytes([new_group(layout, [disks - PARTITION_MARGIN] * width)]) == usable_bytes(
        layout, [[disks] * width]
    )


def test_an_expansion_is_as_large_as_the_advisor_says():
    group = new_group("raidz2", [4 * TB - PARTITION_MARGIN] * 5)
    assert pool_bytes([widen_group(group)]) == expanded_bytes("raidz2", [[4 * TB] * 5])


def test_larger_disks_go_on_in_metaslabs_of_the_old_size():
    # 16 GiB less 4.5 MiB of labels are 31 metaslabs of 512 MiB; 64 GiB are 127 of them, of which one is for the log.
    small = new_group("mirror", [16 * GIB] * 2)
    assert small.slab == 512 * MIB
    assert small.space == (31 * 512 * MIB, 0)
    assert enlarge_group(small, 64 * GIB).space == (126 * 512 * MIB, 512 * MIB)


def test_only_smaller_disks_are_replaced_and_the_smallest_counts():
    mixed = new_group("mirror", [2 * TB, 4 * TB])
    assert count_smaller(mixed, 3 * TB) == 1
    assert enlarge_group(mixed, 3 * TB).parts == (3 * TB, 4 * TB)
    assert pool_bytes([enlarge_group(mixed, 3 * TB)]) < pool_bytes([enlarge_group(mixed, 4 * TB)])
    assert count_smaller(mixed, 2 * TB) == 0


def test_a_pool_with_a_disk_of_unknown_size_or_a_draid_is_not_calculated():
    unknown = shapes.mirror()
    gone = replace(unknown.vdevs[0].children[0], size=0, replace_size=0)
    assert (
        read_groups(replace(unknown, vdevs=(replace(unknown.vdevs[0], children=(gone, unknown.vdevs[0].children[1])),)))
        == ()
    )
    assert read_groups(replace(unknown, vdevs=(replace(unknown.vdevs[0], name="draid1-0", kind="draid"),))) == ()
    assert read_groups(replace(unknown, vdevs=())) == ()


sizes = st.integers(min_value=2 * GIB, max_value=30 * TB)


@given(
    layout=st.sampled_from(LAYOUTS),
    part=sizes,
    more=sizes,
    extra=st.integers(0, 6),
    ashift=st.sampled_from([9, 12, 13]),
)
def test_no_change_makes_a_pool_smaller_and_each_expansion_adds(layout, part, more, extra, ashift):
    width = LEAST_DISKS[layout] + (extra if layout != "stripe" else 0)
    group = new_group(layout, [part] * width, ashift)
    now = pool_bytes([group])
    assert pool_bytes([enlarge_group(group, more)]) >= now
    assert pool_bytes([group, new_group(layout, [more] * width, ashift)]) >= now
    if layout.startswith("raidz"):
        wider = widen_group(group)
        assert now < pool_bytes([wider]) < pool_bytes([widen_group(wider)])
        assert 0 < block_share(group, width, width + 1) <= 1
