from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.errors import Failed
from appliance.facts.box import Checkpoint, Facts, LongWork, Pool, PoolProperties
from appliance.formatting import size_text
from appliance.layout.geometry import usable_bytes
from appliance.operation import checked_plan
from appliance.pools import properties
from appliance.pools.vdevs.aux_vdevs import AddCache, AddLog, AddSpare
from appliance.pools.vdevs.expand import AddVdev, AutoexpandVdev, ExpandRaidz, expansion_sizes
from appliance.pools.vdevs.online_offline import OfflineDisk
from appliance.pools.vdevs.remove import RemoveVdev
from appliance.pools.vdevs.replace import AttachDisk, DetachDisk, ReplaceDisk
from appliance.zfs import status
from tests.unit.made import disk, path_of, recorded, recorded_pool
from tests.unit.pools import shapes
from tests.unit.pools.shapes import refusals


def add(layout: str, *numbers: int, **changes) -> AddVdev:
    return AddVdev(**{"pool": "tank", "layout": layout, "disks": tuple(map(path_of, numbers)), **changes})


def shown(operation, facts) -> str:
    return next(
        step.command_text for step in checked_plan(operation, facts).steps if step.name not in {"erase", "verify"}
    )


def test_a_group_like_the_one_that_is_there_is_added_without_force():
    facts = shapes.facts(shapes.mirror())
    plan = checked_plan(add("mirror", 5, 6), facts)
    assert plan.steps[0].command_text == f"zpool add -o ashift=12 -- tank mirror {path_of(5)} {path_of(6)}"
    assert plan.warnings == ()
    assert "can be removed again" in plan.undo


def test_a_group_is_for_good_beside_a_draid_or_a_special_group_with_parity():
    draid = shapes.pool(shapes.group("draid1-0", *map(shapes.leaf, (1, 2, 3)), kind="draid"))
    special = shapes.pool(*shapes.mirror().vdevs, shapes.group("raidz1-1", shapes.leaf(3), role="special", guid=51))
    for found in (draid, special):
        plan = checked_plan(add("mirror", 5, 6), shapes.facts(found))
        assert any("for good" in warning for warning in plan.warnings)
        assert "cannot be removed again" in plan.undo


def test_a_group_that_protects_less_is_refused_until_that_is_agreed():
    facts = shapes.facts(shapes.raidz2(), count=8)
    (reason,) = add("mirror", 5, 6).check(facts)
    assert (reason.code, reason.field) == ("protection-lowered", "less_protection")
    assert reason.message.arguments["now"] == "2 failed disks"
    plan = checked_plan(add("mirror", 5, 6, less_protection=True), facts)
    assert " add -f -o ashift=12 " in plan.steps[0].command_text
    assert "weakest group" in plan.warnings[0]
    assert any("for good" in warning for warning in plan.warnings)
    assert refusals(add("raidz3", 5, 6, 7, 8), facts) == ["disks-too-few-for-vdevs"]


def test_another_width_is_forced_as_zpool_wants_it_and_a_stripe_is_one_disk():
    facts = shapes.facts(shapes.raidz2(), count=9)
    assert " -f " in shown(add("raidz2", 5, 6, 7, 8, 9), facts)
    assert " -f " not in shown(add("raidz2", 5, 6, 7, 8), facts)
    assert refusals(add("stripe", 5, 6, less_protection=True), facts) == ["stripe-several-disks"]
    assert shown(add("stripe", 2), shapes.facts(shapes.single())) == f"zpool add -o ashift=12 -- tank {path_of(2)}"


def test_a_raidz_says_before_and_after():
    facts = shapes.facts(shapes.raidz2())
    plan = checked_plan(ExpandRaidz(pool="tank", vdev=50, disk=path_of(5)), facts)
    assert plan.steps[0].command_text == f"zpool attach -o ashift=12 -- tank raidz2-0 {path_of(5)}"
    before, after, afresh = expansion_sizes(facts.pools[0].vdevs[0])
    assert abs(before - usable_bytes("raidz2", [[shapes.SIZE] * 4])) < before / 100
    assert after == pytest.approx(before * 5 / 4, rel=0.005)  # what is held back does not grow beyond 128 GiB
    assert abs(afresh - usable_bytes("raidz2", [[shapes.SIZE] * 5])) < afresh / 100
    assert plan.details["Space for files now"] == f"about {size_text(before)}"
    assert plan.details["Afterwards"] == f"about {size_text(after)}"
    assert plan.details["For files written afterwards"].startswith("as if it held 5.7")
    assert any("cannot be undone" in warning for warning in plan.warnings)


def test_expansion_needs_every_disk_and_no_rebuild():
    expand = ExpandRaidz(pool="tank", vdev=50, disk=path_of(5))
    failed = shapes.facts(shapes.raidz2("FAULTED", "ONLINE", "ONLINE", "ONLINE"))
    assert refusals(expand, failed) == ["raidz-incomplete"]
    assert refusals(expand, shapes.facts(replace(shapes.raidz2(), scan=shapes.RESILVER))) == ["pool-rebuilding"]
    assert refusals(expand, shapes.facts(shapes.mirror())) == ["vdev-not-raidz"]
    small = shapes.facts(shapes.raidz2(), 5, disks=(disk(5, size=10**12),))
    assert refusals(expand, small) == ["disk-too-small"]


def test_only_one_raidz_is_expanded_at_a_time():
    """ZFS refuses it at the command, when the disk is erased already (spa_vdev_attach)."""
    running = recorded_pool("zpool-status-expand-running-2.3.9.json").work
    done = recorded_pool("zpool-status-expand-done-2.3.9.json").work
    assert [work.state for work in (*running, *done) if work.kind == "expand"] == ["running", "finished"]
    expand = ExpandRaidz(pool="tank", vdev=50, disk=path_of(5))
    assert refusals(expand, shapes.facts(replace(shapes.raidz2(), work=running))) == ["raidz-expanding"]
    paused = tuple(replace(work, state="waiting") for work in running)
    assert refusals(expand, shapes.facts(replace(shapes.raidz2(), work=paused))) == ["raidz-expanding"]
    assert refusals(expand, shapes.facts(replace(shapes.raidz2(), work=done))) == []


@pytest.mark.parametrize(
    ("value", "refused"), [("disabled", True), ("", True), ("enabled", False), ("active", False), (None, False)]
)
def test_a_raidz_is_expanded_only_where_the_pool_has_the_feature(value, refused):
    """Only the pages may not know it: where it runs, it is read."""
    values = {"autotrim": "off"} if value is None else {"feature@raidz_expansion": value}
    facts = replace(shapes.facts(shapes.raidz2()), properties=(PoolProperties("tank", 7, values),))
    expand = ExpandRaidz(pool="tank", vdev=50, disk=path_of(5))
    assert refusals(expand, facts) == (["raidz-expansion-off"] if refused else [])


def test_a_raidz_is_not_expanded_where_its_features_cannot_be_read(commands, monkeypatch):
    """The agent's other facts do without the settings of pools where ``zpool get`` fails.
    The answer is made of two recorded ones."""
    told = recorded("zpool-get-2.3.9.json")
    told["pools"] = {"tank": told["pools"]["full"]}
    feature = recorded("zpool-get-all-2.3.9.json")["pools"]["full"]["properties"]["feature@raidz_expansion"]
    told["pools"]["tank"]["properties"]["feature@raidz_expansion"] = feature | {"value": "disabled"}
    commands.answers["zpool"] = json.dumps(told)
    expand = ExpandRaidz(pool="tank", vdev=50, disk=path_of(5))
    unread = shapes.facts(shapes.raidz2())
    assert refusals(expand, expand.load_extra_facts(unread)) == ["raidz-expansion-off"]
    known = replace(unread, properties=(PoolProperties("tank", 7, {"feature@raidz_expansion": "enabled"}),))
    assert expand.load_extra_facts(known) is known
    monkeypatch.setattr(properties, "read_properties", raise_failed)
    with pytest.raises(Failed):
        expand.load_extra_facts(unread)


def raise_failed() -> tuple[PoolProperties, ...]:
    raise Failed("zpool did not answer")


def test_no_raidz_is_added_where_a_group_was_removed_before():
    """ZFS refuses it at the command (spa_vdev_add): what a removed group leaves behind stays for good."""
    done = recorded_pool("zpool-status-remove-done-2.3.9.json")
    assert done.had_removal
    pool = replace(shapes.mirror(), had_removal=True)
    assert refusals(add("raidz1", 4, 5, 6), shapes.facts(pool)) == ["pool-had-removal"]
    assert refusals(add("mirror", 5, 6), shapes.facts(pool)) == []
    assert refusals(add("raidz1", 4, 5, 6), shapes.facts(shapes.mirror())) == []


@pytest.mark.parametrize(
    ("stats", "had"),
    [
        (None, False),
        ({"state": "SCANNING", "mapping_memory": 0}, False),
        ({"state": "CANCELED", "mapping_memory": 0}, False),
        ({"state": "CANCELED", "mapping_memory": 432}, True),  # an earlier one was finished
        ({"state": "FINISHED", "mapping_memory": 0}, True),  # nothing of what it held is left
    ],
)
def test_a_pool_remembers_that_a_group_was_removed(stats, had):
    """Derived from the recorded removal; ``zpool status -j`` leaves out the indirect vdev itself."""
    raw = recorded("zpool-status-remove-done-2.3.9.json")
    now = raw["pools"]["rem"]["removal_stats"]
    raw["pools"]["rem"]["removal_stats"] = {**now, **stats} if stats else None
    (pool,) = status.parse_pools(raw)
    assert pool.had_removal is had


def test_no_disk_comes_while_a_mirror_is_rebuilt_sequentially():
    """ZFS refuses it at the command (spa_vdev_attach: vdev_rebuild_active); an ordinary rebuild lets another begin."""
    sequential = LongWork("resilver", "running", None, None, 1, 2, subject="mirror-0")
    for change in (ReplaceDisk, AttachDisk):
        operation = change(pool="tank", vdev=101, disk=path_of(5))
        assert refusals(operation, shapes.facts(replace(shapes.mirror(), work=(sequential,)))) == ["pool-rebuilding"]
        assert refusals(operation, shapes.facts(replace(shapes.mirror(), scan=shapes.RESILVER))) == []


def test_larger_disks_are_used_whole_by_their_paths():
    larger = tuple(shapes.leaf(number, size=3 * 10**12) for number in (1, 2))
    facts = shapes.facts(shapes.pool(shapes.group("mirror-0", *larger)))
    grow = AutoexpandVdev(pool="tank", vdev=50)
    assert shown(grow, facts) == f"zpool online -e -- tank {path_of(1)} {path_of(2)}"
    assert not grow.probe("grow", facts)
    assert grow.probe("grow", shapes.facts(shapes.mirror()))
    assert refusals(grow, shapes.facts(shapes.mirror())) == ["vdev-not-expandable"]
    told = shapes.facts(shapes.pool(shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2), expandable=10**12)))
    assert "about 1 TB more" in checked_plan(grow, told).summary


def test_growing_needs_every_disk_of_the_group():
    larger = (shapes.leaf(1, size=3 * 10**12), shapes.leaf(2, "OFFLINE", size=3 * 10**12))
    facts = shapes.facts(shapes.pool(shapes.group("mirror-0", *larger)))
    assert refusals(AutoexpandVdev(pool="tank", vdev=50), facts) == ["vdev-incomplete"]


# --- spare, log, cache, removal ---------------------------------------------------------------------------------
def test_a_spare_too_small_for_some_is_warned_about():
    facts = shapes.facts(shapes.raidz2(), 5, disks=(disk(5, size=10**12),))
    plan = checked_plan(AddSpare(pool="tank", disks=(path_of(5),)), facts)
    assert plan.steps[0].command_text == f"zpool add -o ashift=12 -- tank spare {path_of(5)}"
    assert "too small to stand in for 4 of the disks" in plan.warnings[0]


def test_two_log_disks_are_mirrored_and_one_is_warned_about():
    facts = shapes.facts(shapes.raidz2())
    both = AddLog(pool="tank", disks=(path_of(5), path_of(6)))
    assert shown(both, facts).endswith(f"-- tank log mirror {path_of(5)} {path_of(6)}")
    plan = checked_plan(AddLog(pool="tank", disks=(path_of(5),)), facts)
    assert plan.steps[0].command_text.endswith(f"-- tank log {path_of(5)}")
    assert "Two disks as a mirror" in plan.warnings[0]
    assert any("hard disk as log" in warning for warning in plan.warnings)


def test_a_cache_says_what_it_costs_in_memory():
    plan = checked_plan(AddCache(pool="tank", disks=(path_of(5),)), shapes.facts(shapes.raidz2()))
    assert plan.steps[0].command_text == f"zpool add -- tank cache {path_of(5)}"
    assert "2 TB of cache take about 1.36 GiB with blocks of 128 KiB" in plan.details["Cost"]


def test_remove_vdev_refuses_raidz_copies_and_the_last_group():
    pair = shapes.group("mirror-1", shapes.leaf(3), shapes.leaf(4), guid=51)
    log = shapes.leaf(5, role="log", guid=300)
    facts = shapes.facts(shapes.pool(shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2)), pair, log))
    assert shown(RemoveVdev(pool="tank", vdev=300), facts) == "zpool remove -- tank 300"
    plan = checked_plan(RemoveVdev(pool="tank", vdev=51), facts)
    assert plan.steps[0].command_text == "zpool remove -- tank 51"
    assert "becomes smaller" in plan.warnings[0]
    assert refusals(RemoveVdev(pool="tank", vdev=50), shapes.facts(shapes.mirror())) == ["vdev-last"]
    assert refusals(RemoveVdev(pool="tank", vdev=50), shapes.facts(shapes.raidz2())) == ["pool-has-raidz"]
    assert refusals(RemoveVdev(pool="tank", vdev=101), shapes.facts(shapes.mirror())) == ["vdev-not-whole"]
    assert refusals(RemoveVdev(pool="tank", vdev=105), shapes.facts(shapes.spared())) == ["spare-in-use"]


@pytest.mark.parametrize(("used", "enough"), [(0, True), (5 * 10**9, True), (8 * 10**9, False), (9 * 10**9, False)])
def test_a_group_stays_where_the_others_have_no_room_beside_the_reserve_of_zfs(used, enough):
    first = shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2), space=10**10, used=used)
    second = shapes.group("mirror-1", shapes.leaf(3), shapes.leaf(4), guid=51, space=10**10, used=10**9)
    facts = shapes.facts(shapes.pool(first, second))  # of 20 GB, ZFS wants a sixteenth to be free afterwards
    assert ("vdev-no-room" not in refusals(RemoveVdev(pool="tank", vdev=51), facts)) is enough


def with_special(role: str = "special", **changes: Any) -> Pool:
    """Two mirrors: one for data, one for the metadata or the dedup table."""
    made: dict[str, Any] = {"role": role, "guid": 52, "space": 10**10, "used": 10**9, **changes}
    return shapes.pool(
        shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2), space=10**10, used=10**9),
        shapes.group("mirror-1", shapes.leaf(3, role=role), shapes.leaf(4, role=role), **made),
    )


@pytest.mark.parametrize("role", ["special", "dedup"])
def test_a_special_or_dedup_group_is_emptied_before_it_goes(role):
    plan = checked_plan(RemoveVdev(pool="tank", vdev=52), shapes.facts(with_special(role)))
    assert "moves the data" in plan.summary
    assert "becomes smaller" in plan.warnings[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"used": 9 * 10**9}, []),  # ZFS wants no reserve besides: it never counted that space as free
        ({"used": 9 * 10**9 + 1}, ["vdev-no-room"]),
        ({"ashift": 9}, ["sectors-differ"]),
        ({"kind": "raidz"}, ["pool-has-raidz"]),
    ],
)
def test_a_special_group_stays_where_zfs_cannot_empty_it(changes, reason):
    found = shapes.facts(with_special(**changes))
    assert refusals(RemoveVdev(pool="tank", vdev=52), found) == reason


def test_a_special_group_stays_beside_a_raidz_or_a_failed_disk():
    special = with_special().vdevs[1]
    remove = RemoveVdev(pool="tank", vdev=52)
    assert refusals(remove, shapes.facts(shapes.pool(*shapes.raidz2().vdevs, special))) == ["pool-has-raidz"]
    weak = shapes.pool(*shapes.mirror("ONLINE", "FAULTED").vdevs, special)
    assert refusals(remove, shapes.facts(weak)) == ["pool-incomplete"]


def test_a_mirror_stays_beside_a_special_group_with_parity():
    special = with_special(kind="raidz").vdevs[1]
    pair = shapes.group("mirror-1", shapes.leaf(5), shapes.leaf(6), guid=51)
    found = shapes.facts(shapes.pool(*shapes.mirror().vdevs, pair, special))
    assert refusals(RemoveVdev(pool="tank", vdev=51), found) == ["pool-has-raidz"]


def by_name(found: Pool, name: str) -> int:
    """The guid of a recorded pool's group, or of the first of its disks in that role."""
    return next(vdev.guid for vdev in found.vdevs if name in {vdev.name, vdev.role})


@pytest.mark.parametrize("part", ["mirror-0", "log", "cache", "spare"])
def test_nothing_is_removed_from_a_pool_with_a_checkpoint(part):
    """ZFS would refuse each of them at the command (spa_vdev_remove)."""
    found = recorded_pool("zpool-status-checkpoint-2.3.9.json")
    remove = RemoveVdev(pool=found.name, vdev=by_name(found, part))
    assert "checkpoint-in-the-way" in refusals(remove, Facts((found,)))
    assert "checkpoint-in-the-way" not in refusals(remove, Facts((replace(found, checkpoint=None),)))
    (said,) = [one.text for one in remove.check(Facts((found,))) if one.code == "checkpoint-in-the-way"]
    assert "Discard it first" in said
    going = replace(found, checkpoint=Checkpoint("discarding", None))
    assert "checkpoint-being-discarded" in refusals(remove, Facts((going,)))


def test_disks_of_a_mirror_stay_as_they_are_while_there_is_a_checkpoint():
    """The same in spa_vdev_attach and spa_vdev_detach."""
    pool = replace(shapes.mirror(), checkpoint=Checkpoint("exists", None))
    raidz = replace(shapes.raidz2(), checkpoint=Checkpoint("exists", None))
    for found, change in (
        (pool, ReplaceDisk(pool="tank", vdev=101, disk=path_of(5))),
        (pool, AttachDisk(pool="tank", vdev=101, disk=path_of(5))),
        (pool, DetachDisk(pool="tank", vdev=101)),
        (raidz, ExpandRaidz(pool="tank", vdev=50, disk=path_of(5))),
    ):
        assert refusals(change, shapes.facts(found)) == ["checkpoint-in-the-way"]
        assert refusals(change, shapes.facts(replace(found, checkpoint=None))) == []
    assert refusals(OfflineDisk(pool="tank", vdev=101), shapes.facts(pool)) == []  # that may always be


def test_one_group_at_a_time_is_removed():
    found = recorded_pool("zpool-status-remove-running-2.3.9.json")
    other, same = by_name(found, "mirror-0"), by_name(found, "mirror-1")
    assert refusals(RemoveVdev(pool="rem", vdev=other), Facts((found,))) == ["pool-removing"]
    assert refusals(RemoveVdev(pool="rem", vdev=same), Facts((found,))) == ["vdev-removing"]


def test_log_and_spare_are_removed_while_a_group_is_emptied():
    emptying = shapes.group("mirror-1", shapes.leaf(3), shapes.leaf(4), guid=51, removing=True)
    log, spare = shapes.leaf(5, role="log", guid=300), shapes.leaf(6, "AVAIL", role="spare", guid=301)
    facts = shapes.facts(shapes.pool(*shapes.mirror().vdevs, emptying, log, spare))
    for guid in (300, 301):
        assert refusals(RemoveVdev(pool="tank", vdev=guid), facts) == []


def test_no_disk_comes_while_a_group_is_emptied():
    emptying = shapes.group("mirror-1", shapes.leaf(3), shapes.leaf(4), guid=51, removing=True)
    facts = shapes.facts(shapes.pool(*shapes.mirror().vdevs, emptying))
    for change in (ReplaceDisk, AttachDisk):
        assert refusals(change(pool="tank", vdev=101, disk=path_of(5)), facts) == ["pool-removing"]
    assert refusals(DetachDisk(pool="tank", vdev=101), facts) == []


def test_probe_sees_a_group_that_is_being_removed():
    remove = RemoveVdev(pool="tank", vdev=50)
    assert not remove.probe("remove", shapes.facts(shapes.mirror()))
    emptying = shapes.pool(shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2), removing=True))
    assert remove.probe("remove", shapes.facts(emptying))
    assert RemoveVdev(pool="tank", vdev=77).probe("remove", shapes.facts(shapes.mirror()))
