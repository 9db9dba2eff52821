from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.facts.box import Checkpoint, LongWork, Pool, Vdev
from appliance.facts.cleanup import Cleanup
from appliance.layout.geometry import expanded_bytes, usable_bytes
from appliance.layout.growth import pool_bytes, read_groups
from appliance.pools.growth import find_old_blocks, list_ways
from appliance.pools.growth_disks import disk_choices, gather_disks, usual_disk, whole_disk
from appliance.pools.growth_plan import find_moves, read_plan, read_seats
from appliance.pools.growth_way import GrowthFacts, Way
from appliance.pools.rebuild_estimate import PastWork
from appliance.zfs import kernel_module
from appliance.zfs.vdev_tree import partition_bytes
from tests.unit.made import recorded_pool
from tests.unit.pools import shapes

TB = 10**12
KEYS = ["clean", "expand", "group", "replace", "pool"]


def shaped(pool: Pool) -> Pool:
    """The made-up pool without spaces that fit no metaslabs."""
    return replace(pool, vdevs=tuple(replace(vdev, space=0) for vdev in pool.vdevs))


def facts(pool: Pool, **changes: object) -> GrowthFacts:
    total = pool_bytes(read_groups(pool)) or TB
    made = GrowthFacts(pool, used=total // 2, total=total)
    return replace(made, **changes)


def ways(pool: Pool, **changes: object) -> dict[str, Way]:
    return {way.key: way for way in list_ways(facts(pool, **changes))}


RAIDZ2 = recorded_pool()


def test_every_way_is_there_for_every_pool_possible_or_not():
    for pool in (
        RAIDZ2,
        shaped(shapes.mirror()),
        shapes.single(),
        shapes.replacing(),
        shapes.raidz2("OFFLINE", *["ONLINE"] * 3),
    ):
        assert [way.key for way in list_ways(facts(pool))] == KEYS


def test_the_ways_of_a_raidz2_of_four_by_the_advisors_own_arithmetic():
    found = ways(RAIDZ2, cleanup=Cleanup(freed=100 * 10**9, snapshots=100 * 10**9))
    now = usable_bytes("raidz2", [[2 * TB] * 4])
    assert found["expand"].gain == expanded_bytes("raidz2", [[2 * TB] * 4]) - now
    # The proposed disk is 4 TB, the smallest on sale that is twice as large.
    assert found["group"].bought == found["replace"].bought == (4 * TB,) * 4
    assert found["pool"].gain == usable_bytes("raidz2", [[4 * TB] * 4])
    # Two groups reserve together; the advisor's function takes both at once.
    assert found["group"].gain == usable_bytes("raidz2", [[2 * TB] * 4, [4 * TB] * 4]) - now
    assert found["replace"].gain == pytest.approx(usable_bytes("raidz2", [[4 * TB] * 4]) - now, rel=0.01)
    assert (found["clean"].freed, found["clean"].gain) == (100 * 10**9, 0)


def test_an_expansion_tells_what_old_files_keep():
    found = ways(RAIDZ2)["expand"]
    assert found.share == Fraction(54, 66)
    used = facts(RAIDZ2).used
    assert found.rewritten == int(used * Fraction(12, 66))
    assert "2 parts of data for 2 of parity" in found.notes[1]
    assert "3 for 2" in found.notes[1]
    half = ways(RAIDZ2, held=used // 2)["expand"]
    assert half.rewritten == int((used - used // 2) * Fraction(12, 66))  # what snapshots hold stays


EXPANDED = recorded_pool("zpool-status-expand-done-2.3.9.json")  # a raidz1 of 3 that has 4 disks now


def test_old_blocks_of_an_expanded_raidz_are_told_without_another_expansion():
    # 128 KiB took 48 sectors on three disks and take 44 on four: a twelfth of the files, which used up to 9 % more.
    known = facts(EXPANDED, used=1200 * 2**20, held=600 * 2**20)
    found = find_old_blocks(known)
    assert found is not None
    assert found.gives == 600 * 2**20 // 12
    assert "The raidz1 was expanded before." in found.text
    assert "up to 9 % more room" in found.text
    assert find_old_blocks(facts(RAIDZ2)) is None  # never expanded
    running = replace(EXPANDED, work=(LongWork("expand", "running", None, None, 1, 2),))
    assert find_old_blocks(facts(running)) is None


def test_a_second_expansion_tells_what_files_from_before_the_first_give_back():
    # 128 KiB are 32 sectors. On three disks 16 of parity come to them, on five 8: 40 instead of 48.
    known = facts(EXPANDED, used=1200 * 2**20)
    (way,) = (one for one in list_ways(known) if one.key == "expand")
    assert way.rewritten == 1200 * 2**20 * 8 // 48
    assert way.share == Fraction(40, 44)  # a new file takes that much of what it takes now


def test_a_mirror_and_a_single_disk_cannot_be_expanded_and_the_reason_is_told():
    mirror = ways(shaped(shapes.mirror()))
    assert "one more copy" in mirror["expand"].reason
    assert mirror["group"].title == "Add another mirror of 2"
    assert "can be removed again" in mirror["group"].undo
    single = ways(shapes.single())
    assert "makes it a mirror" in single["expand"].reason
    assert single["replace"].title == "Replace the disk by one of 4 TB"
    assert "has to stay in" in single["replace"].hindrance
    assert ways(shapes.single(), places=1)["replace"].hindrance == ""
    assert "The more disks without protection" in single["group"].notes[0]


def test_a_pool_without_the_feature_says_what_to_do():
    assert "Upgrade the pool" in ways(RAIDZ2, features_off=("raidz_expansion",))["expand"].reason


def test_a_pool_that_is_kept_readable_for_older_systems_is_not_expanded():
    """An upgrade would leave the feature off, so it is not among those that one would switch on."""
    assert "raidz_expansion is off" in ways(RAIDZ2, lacks_expansion=True)["expand"].reason


def test_what_runs_or_is_broken_comes_first():
    expanding = replace(RAIDZ2, work=(LongWork("expand", "running", None, None, 1, 2),))
    assert "is being expanded" in ways(expanding)["group"].reason
    assert "rebuilding" in ways(shapes.replacing())["replace"].reason
    broken = ways(shapes.raidz2("OFFLINE", *["ONLINE"] * 3))
    assert all("Replace it first" in broken[key].reason for key in ("expand", "group", "replace"))
    assert broken["pool"].is_possible  # another pool does not depend on this one
    assert "has stopped" in ways(replace(RAIDZ2, state="SUSPENDED"))["group"].reason


def test_a_kind_that_is_not_calculated_says_so():
    draid = replace(RAIDZ2, vdevs=(replace(RAIDZ2.vdevs[0], kind="draid", name="draid1-0"),))
    found = ways(draid)
    assert "cannot calculate" in found["group"].reason
    assert "cannot calculate" in found["pool"].reason
    assert "Only a raidz" in found["expand"].reason


def test_nothing_to_clean_up_is_told():
    assert "No snapshot" in ways(RAIDZ2)["clean"].reason
    assert "protected or have clones" in ways(RAIDZ2, held=5, cleanup=Cleanup(staying=1))["clean"].reason
    assert "could not be measured" in ways(RAIDZ2, held=5, cleanup=Cleanup(least=True))["clean"].reason
    assert "stays reserved" in ways(RAIDZ2, held=5, cleanup=Cleanup(snapshots=5))["clean"].reason
    assert ways(RAIDZ2, cleanup=Cleanup(freed=12, snapshots=5, copies=7))["clean"].freed == 12
    assert ways(RAIDZ2, used=10, cleanup=Cleanup(freed=50, snapshots=50))["clean"].freed == 10


def test_what_is_freed_and_what_is_not_is_told():
    names = tuple(f"tank/disk{number}" for number in range(1, 6))
    found = ways(RAIDZ2, cleanup=Cleanup(15 * 10**9, 5 * 10**9, 7 * 10**9, 4 * 10**9, names, staying=2, least=True))[
        "clean"
    ]
    assert found.least
    assert [note.split(".")[0] for note in found.notes] == [
        "Snapshots hold 5 GB that are not in the folders any more",
        "4 GB more are reserved for tank/disk1, tank/disk2, tank/disk3 and 2 more only because of their snapshots",
        "Copies that no backup uses any more hold 7 GB, with their snapshots",
        "Of all that, 1 GB stay reserved for their folders and give no room to others",
        "2 snapshots are protected or have clones",
        "More may be freed: not everything could be measured",
    ]
    single = ways(RAIDZ2, cleanup=Cleanup(freed=4, reserved=4, reserving=names[:1], staying=1))["clean"]
    assert single.notes[0].startswith("4 B more are reserved for tank/disk1 only because of their snapshots.")
    assert single.notes[1] == "One snapshot is protected or has a clone. It stays, with all that it holds."


def test_a_checkpoint_keeps_what_is_deleted():
    cleanup = Cleanup(freed=12, snapshots=12)
    assert ways(RAIDZ2, cleanup=cleanup)["clean"].hindrance == ""
    kept = replace(RAIDZ2, checkpoint=Checkpoint("exists", datetime(2026, 11, 20, tzinfo=UTC), 5))
    assert "Discard it first" in ways(kept, cleanup=cleanup)["clean"].hindrance


def test_disks_in_the_box_need_not_be_bought():
    found = ways(RAIDZ2, free=(2 * TB,) * 4, places=4)
    assert found["expand"].bought == found["group"].bought == ()
    assert found["group"].gain == usable_bytes("raidz2", [[2 * TB] * 4] * 2) - usable_bytes("raidz2", [[2 * TB] * 4])
    assert found["expand"].hindrance == found["group"].hindrance == ""
    assert found["replace"].bought == (4 * TB,) * 4  # they are not larger
    assert "room for 1 more disk" in ways(RAIDZ2, places=1)["group"].hindrance
    assert "no free bay" in ways(RAIDZ2)["expand"].hindrance


def test_unequal_disks_count_as_the_smallest():
    sizes, bought = gather_disks([3 * TB], 2, 4 * TB)
    assert (sizes, bought) == ((4 * TB, 4 * TB), (4 * TB, 4 * TB))  # one of 3 TB would hold the others back
    found = ways(shaped(shapes.mirror()), free=(3 * TB, 6 * TB), places=2)["group"]
    assert found.bought == ()
    assert "Each counts as 3 TB" in found.notes[0]


def test_during_a_rebuild_it_matters_whether_the_old_disk_can_stay():
    assert "survives 2 failed disks all the time" in ways(RAIDZ2, places=1)["replace"].meanwhile
    assert "its group survives only one failed disk." in ways(RAIDZ2)["replace"].meanwhile
    assert "one more failed disk in its group loses the pool" in ways(shaped(shapes.mirror()))["replace"].meanwhile


def test_risk_of_the_rebuilds_says_for_how_long_it_lasts():
    """A rebuild of three hours is not one of two days, whatever fails in it."""
    pool = replace(shaped(shapes.mirror()), allocated=TB)
    slow, fast = (PastWork("resilver", TB, seconds) for seconds in (2 * 86400, 3 * 3600))
    said = [ways(pool, past=(past,))["replace"].meanwhile for past in (slow, fast)]
    assert "for about 2 times 2 days, one more failed disk" in said[0]
    assert "for about 2 times 3 h, one more failed disk" in said[1]
    single = replace(shaped(shapes.single()), allocated=TB)
    assert "For about 2 days, until a new disk is rebuilt" in ways(single, past=(slow,))["replace"].meanwhile


def test_a_disk_that_is_not_larger_replaces_nothing():
    found = ways(RAIDZ2, new_disk=2 * TB)["replace"]
    assert found.reason == "No disk of tank is smaller than 2 TB. Choose a larger disk."


def test_a_size_of_the_middle_replaces_only_the_smaller_disks():
    first, *rest = RAIDZ2.vdevs[0].children
    mixed = replace(RAIDZ2, vdevs=(replace(RAIDZ2.vdevs[0], children=(replace(first, size=8 * TB), *rest)),))
    found = ways(mixed, new_disk=4 * TB)["replace"]
    assert (found.disks, found.targets) == (3, tuple(child.guid for child in rest))
    assert "Some disks are larger" in found.notes[-1]


@pytest.mark.parametrize(
    ("version", "can"), [("2.3.9-1", True), ("zfs-2.3.4-1", True), ("2.3.3-1", False), ("2.4.0", True), ("", False)]
)
def test_rewriting_came_with_2_3_4(version, can):
    assert kernel_module.can_rewrite(version) is can


def test_the_size_to_propose_is_about_twice_the_smallest():
    groups = read_groups(RAIDZ2)
    assert usual_disk(groups) == 4 * TB
    assert whole_disk(groups[0].parts[0]) == 2 * TB
    assert min(disk_choices(groups, ())) == 3 * TB
    assert 5 * TB in disk_choices(groups, (5 * TB,))
    assert disk_choices((), ()) == ()


@given(
    size=st.integers(10**11, 30 * TB),
    free=st.lists(st.integers(10**11, 30 * TB), max_size=6),
    held=st.integers(0, 5 * TB),
)
def test_no_way_loses_room_and_none_frees_more_than_is_used(size, free, held):
    for pool in (RAIDZ2, EXPANDED, shaped(shapes.mirror()), shapes.single()):
        cleanup = Cleanup(freed=held, snapshots=held)
        known = facts(pool, new_disk=size, free=tuple(free), places=len(free), held=held, cleanup=cleanup)
        for way in list_ways(known):
            if way.is_possible:
                assert way.gain >= 0
                assert 0 <= way.freed <= known.used
                assert way.total == known.total + way.gain
                assert 0 < way.share <= 1
                assert 0 <= way.rewritten <= known.used
                assert len(way.bought) <= way.disks


# --- the plan ------------------------------------------------------------------------------------------------------
def large(number: int, **changes: Any) -> Vdev:
    return shapes.leaf(number, size=partition_bytes(4 * TB), **changes)


def used(number: int) -> Vdev:
    """A large disk that its group uses completely."""
    return large(number, replace_size=partition_bytes(4 * TB))


def test_a_plan_advances_by_what_zfs_shows():
    targets, size = (101, 102), 4 * TB
    begun = read_plan(shapes.mirror(), targets, size)
    assert (begun.done, begun.next, begun.is_complete) == (0, 101, False)
    change = shapes.group("replacing-0", shapes.leaf(1), large(5), guid=61, kind="replacing")
    pool = shapes.pool(shapes.group("mirror-0", change, shapes.leaf(2)), scan=shapes.RESILVER)
    under_way = read_plan(pool, targets, size)
    assert (under_way.done, under_way.running, under_way.next) == (0, 101, 0)
    once = read_plan(shapes.pool(shapes.group("mirror-0", large(5), shapes.leaf(2))), targets, size)
    assert (once.done, once.next) == (1, 102)
    both = shapes.group("mirror-0", large(5), large(6), expandable=TB)
    grows = read_plan(shapes.pool(both), targets, size)
    assert (grows.done, grows.next, grows.grows, grows.is_complete) == (2, 0, 50, False)
    assert read_plan(shapes.pool(shapes.group("mirror-0", used(5), used(6), space=0)), targets, size).is_complete


def test_a_disk_replaced_by_one_as_small_is_still_to_be_replaced():
    targets, size = (101, 102), 4 * TB
    failed = read_plan(shapes.pool(shapes.group("mirror-0", shapes.leaf(5), shapes.leaf(2))), targets, size)
    assert (failed.done, failed.left, failed.next) == (0, (102, 105), 102)
    other = read_plan(shapes.pool(shapes.group("mirror-0", shapes.leaf(5), large(6), space=0)), targets, size)
    assert (other.done, other.next, other.is_complete) == (1, 105, False)
    change = shapes.group("replacing-0", shapes.leaf(5), large(3), guid=61, kind="replacing")
    pool = shapes.pool(shapes.group("mirror-0", change, large(6)), scan=shapes.RESILVER)
    assert read_plan(pool, targets, size).running == 105
    both = shapes.pool(shapes.group("mirror-0", used(3), used(6), space=0))
    assert read_plan(both, targets, size).is_complete


def test_a_spare_that_stands_in_for_a_large_disk_takes_no_step_back():
    standing = shapes.group("spare-0", large(5), shapes.leaf(3), guid=60, kind="spare")
    pool = shapes.pool(shapes.group("mirror-0", standing, shapes.leaf(2)))
    assert read_plan(pool, (101, 102), 4 * TB).left == (102,)


def test_a_disk_of_the_same_size_from_another_maker_counts_as_replaced():
    close = shapes.leaf(5, size=partition_bytes(4 * TB - 10**9, 4096))
    state = read_plan(shapes.pool(shapes.group("mirror-0", close, shapes.leaf(2))), (101, 102), 4 * TB)
    assert state.left == (102,)


def test_a_plan_is_not_complete_before_zfs_uses_the_new_space():
    group = RAIDZ2.vdevs[0]
    larger = tuple(replace(child, size=4 * TB) for child in group.children)
    early = read_plan(replace(RAIDZ2, vdevs=(replace(group, children=larger),)), (1, 2), 4 * TB)
    assert (early.unused, early.is_complete) == (True, False)
    assert read_plan(RAIDZ2, (1, 2), min(child.size for child in group.children)).is_complete


def test_a_single_disk_that_is_being_replaced_is_part_of_a_plan_too():
    change = shapes.group("replacing-0", shapes.leaf(1), shapes.leaf(5), guid=61, kind="replacing")
    assert read_plan(shapes.pool(change), (101,), 4 * TB).running == 101


# --- which disk took which place ----------------------------------------------------------------------------------
def test_a_new_disk_is_told_by_the_place_that_it_took():
    before = read_seats(shapes.raidz2())
    change = shapes.group("replacing-0", shapes.leaf(1), large(5), guid=61, kind="replacing")
    under_way = shapes.pool(shapes.group("raidz2-0", change, shapes.leaf(2), shapes.leaf(3), shapes.leaf(4)))
    assert read_seats(under_way) == before
    once = read_seats(shapes.pool(shapes.group("raidz2-0", large(5), shapes.leaf(2), shapes.leaf(3), shapes.leaf(4))))
    assert find_moves(before, once) == [("101", "105")]
    assert find_moves(once, once) == []
    # Several since the last look, as after a worker that did not run for days.
    all_of_them = read_seats(shapes.pool(shapes.group("raidz2-0", *map(large, (5, 6, 7, 8)))))
    assert find_moves(before, all_of_them) == [("101", "105"), ("102", "106"), ("103", "107"), ("104", "108")]


def test_a_disk_that_was_attached_while_another_was_detached_took_its_place():
    before = read_seats(shapes.mirror())
    after = read_seats(shapes.pool(shapes.group("mirror-0", shapes.leaf(2), large(5))))
    assert find_moves(before, after) == [("101", "105")]


def test_a_place_is_not_guessed():
    """Two left and two came in another order, or a disk was only added, removed or moved along."""
    before = read_seats(shapes.pool(shapes.group("mirror-0", *map(shapes.leaf, (1, 2, 3)))))
    for numbers in ((3, 5, 6), (1, 2, 3, 5), (1, 2), (2, 3)):
        after = read_seats(shapes.pool(shapes.group("mirror-0", *map(shapes.leaf, numbers))))
        assert find_moves(before, after) == [], numbers
    assert find_moves({}, before) == []


def test_disks_by_themselves_have_places_too():
    two = shapes.pool(shapes.leaf(1), shapes.leaf(2))
    assert find_moves(read_seats(two), read_seats(shapes.pool(shapes.leaf(1), large(5)))) == [("102", "105")]
    assert find_moves(read_seats(two), read_seats(shapes.pool(shapes.leaf(2)))) == []


@pytest.mark.parametrize("name", ["spare-rebuilding", "spare-in-use"])
def test_a_spare_takes_nobodys_place(name):
    pool = recorded_pool(f"zpool-status-{name}-2.3.9.json")
    (seats,) = read_seats(pool).values()
    (standing,) = (device for group in pool.vdevs for device in group.children if device.kind == "spare")
    assert str(standing.children[0].guid) in seats
    assert str(standing.children[1].guid) not in seats
