from __future__ import annotations

import pytest
from msgspec.structs import replace

from appliance.facts.box import Vdev
from appliance.formatting import size_text
from appliance.zfs import vdev_tree
from tests.unit.made import disk, recorded_pool
from tests.unit.pools import shapes


def test_the_partition_of_a_whole_disk_is_the_one_that_zfs_made():
    """The recorded disks have 2,000,000,000,000 bytes; ZFS and lsblk tell what their partition has."""
    device = next(recorded_pool().devices())
    assert vdev_tree.partition_bytes(2 * 10**12) == device.size == 1999989899264


def test_what_a_replacement_needs_is_what_zfs_tells():
    pool = recorded_pool()
    place = next(place for place in vdev_tree.list_places(pool) if place.leaf)
    assert vdev_tree.needed_bytes(place) == 1997164511232
    assert vdev_tree.needed_bytes(place) - 4718592 == pool.vdevs[0].space // 4


def test_where_zfs_is_silent_the_smallest_sibling_decides():
    silent = shapes.pool(
        shapes.group("mirror-0", shapes.leaf(1, replace_size=0), shapes.leaf(2, replace_size=0, size=10**12))
    )
    place = vdev_tree.find_vdev(silent, 101)
    assert place
    assert vdev_tree.needed_bytes(place) == 10**12


def test_a_disk_of_the_same_size_fits_and_one_a_few_mb_smaller_may_still():
    place = vdev_tree.find_vdev(shapes.raidz2(), 101)
    assert place
    spare = shapes.PARTITION - shapes.NEEDED
    assert spare > 2 * 10**9
    assert vdev_tree.missing_bytes(disk(5), place) == 0
    assert vdev_tree.missing_bytes(disk(5, size=2 * 10**12 - spare + 10**7), place) == 0


def test_a_disk_that_is_too_small_says_by_how_much():
    place = vdev_tree.find_vdev(shapes.raidz2(), 101)
    assert place
    missing = vdev_tree.missing_bytes(disk(5, size=2 * 10**12 - 4 * 10**9), place)
    assert 0 < missing < 2 * 10**9
    assert size_text(shapes.NEEDED - missing) == size_text(vdev_tree.partition_bytes(2 * 10**12 - 4 * 10**9))
    assert vdev_tree.shortage_text(7_340_032) == "7.3 MB (7,340,032 bytes)"
    assert vdev_tree.shortage_text(500) == "less than 1 MB (500 bytes)"


def test_large_sectors_leave_a_smaller_partition():
    assert vdev_tree.partition_bytes(2 * 10**12, 4096) < vdev_tree.partition_bytes(2 * 10**12)
    assert vdev_tree.partition_bytes(2 * 10**12, 4096) % (2048 * 4096) == 0
    assert vdev_tree.partition_bytes(10) == 0


@pytest.mark.parametrize(
    ("name", "path", "word"),
    [
        ("ata-X_1", "/dev/disk/by-id/ata-X_1-part1", "/dev/disk/by-id/ata-X_1"),
        ("ata-X_1-part3", "/dev/disk/by-id/ata-X_1-part3", "/dev/disk/by-id/ata-X_1-part3"),
        ("sdb", "/dev/sdb1", "/dev/sdb1"),
        ("77", "", "7"),
        ("file", "/tmp/file", "/tmp/file"),
    ],
)
def test_online_is_given_a_path_that_can_be_opened(name, path, word):
    assert vdev_tree.online_operand(Vdev(name, "disk", 7, "OFFLINE", path=path)) == word


def test_the_disk_behind_a_device_is_found_by_its_stable_name():
    facts = shapes.facts(shapes.raidz2())
    place = vdev_tree.find_vdev(facts.pools[0], 102)
    assert place
    assert vdev_tree.disk_of(place.vdev, facts) == facts.disks[1]
    assert place.group.name == "raidz2-0"
    assert place.parent is place.group


def test_an_old_disk_that_was_replaced_in_its_own_bay_is_not_taken_for_the_new_one():
    old = shapes.leaf(1, path=f"{disk(1).path}-part1/old")
    assert vdev_tree.disk_of(old, shapes.facts(shapes.single())) is None


def test_a_spare_that_stands_in_is_found_where_it_works():
    place = vdev_tree.find_vdev(shapes.spared(), 105)
    assert place
    assert place.parent
    assert place.parent.kind == "spare"
    found = vdev_tree.find_disk(shapes.spared(), disk(5).path)
    assert found
    assert found.role == "normal"


def test_a_missing_disk_is_named_by_what_its_link_tells():
    facts = shapes.facts(shapes.raidz2(), 1)
    assert vdev_tree.vdev_label(shapes.leaf(1), facts) == "WDC WD20EARS-00MVWB0 (serial WD-WCAZA0000001)"
    assert vdev_tree.vdev_label(replace(shapes.leaf(1), path="/dev/disk/by-id/wwn-0x5"), facts) == "wwn-0x5"


def test_a_group_that_is_being_rebuilt_survives_one_failure_less():
    assert shapes.raidz2().failures_left == 2
    assert shapes.replacing().failures_left == 1
    assert shapes.replacing("ONLINE").failures_left == 2
    assert shapes.replacing(scan=None).failures_left == 2
    assert shapes.spared(scan=shapes.RESILVER).failures_left == 0
    assert shapes.spared().failures_left == 1


def test_disk_that_came_back_counts_only_once_what_it_missed_is_written():
    pair = shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2, processed=10))
    assert shapes.pool(pair, scan=shapes.RESILVER).failures_left == 0
    assert shapes.pool(pair).failures_left == 1  # what was repaired on it lies behind
