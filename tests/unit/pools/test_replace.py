from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.errors import Failed, Refused
from appliance.facts.box import Pool
from appliance.operation import checked_plan
from appliance.pools.vdevs.replace import AttachDisk, DetachDisk, ReplaceDisk
from appliance.zfs import status
from tests.unit.made import OLD, disk, path_of, recorded_pool
from tests.unit.pools import shapes
from tests.unit.pools.shapes import refusals
from tests.unit.pools.test_create import Working


def swap(new: int = 5, vdev: int = 101) -> ReplaceDisk:
    return ReplaceDisk(pool="tank", vdev=vdev, disk=path_of(new))


def test_a_disk_that_is_gone_is_replaced_by_its_guid():
    facts = shapes.facts(shapes.raidz2("OFFLINE", "ONLINE", "ONLINE", "ONLINE"), 1)
    plan = checked_plan(swap(), facts)
    assert [step.name for step in plan.steps] == ["replace", "verify"]
    assert plan.steps[0].command_text == f"zpool replace -o ashift=12 -- tank 101 {path_of(5)}"
    assert plan.details["Old disk"] == "WDC WD20EARS-00MVWB0 (serial WD-WCAZA0000001)"
    assert plan.type_to_confirm == ""


def test_what_the_new_disk_holds_is_listed_and_erased_and_the_name_is_typed():
    pool = shapes.raidz2()
    facts = shapes.facts(pool, 5, disks=(disk(5, uses=(OLD,), content=("sde1",)),))
    plan = checked_plan(swap(), facts)
    assert [step.name for step in plan.steps] == ["erase", "replace", "verify"]
    assert plan.type_to_confirm == "tank"
    assert "ext4 data called photos" in plan.losses[0].what


def test_a_disk_a_few_mb_too_small_is_refused_with_the_amount():
    small = disk(5, size=2 * 10**12 - 2_840_000_000)
    (reason,) = swap().check(shapes.facts(shapes.raidz2(), 5, disks=(small,)))
    assert (reason.code, reason.field) == ("disk-too-small", "disks")
    assert reason.message.arguments["disk"] == "WDC WD20EARS-00MVWB0 (serial WD-WCAZA0000005)"
    assert re.fullmatch(r"[0-9.]+ [GM]B \([0-9,]+ bytes\)", reason.message.arguments["missing"])


def test_sectors_too_large_for_the_pool_are_explained():
    large = disk(5, logical_sector=4096)
    pool = shapes.pool(shapes.group("raidz2-0", *(shapes.leaf(number) for number in range(1, 5)), ashift=9))
    (reason,) = swap().check(shapes.facts(pool, 5, disks=(large,)))
    assert reason.code == "disk-sector-too-large"
    sizes = {name: reason.message.arguments[name] for name in ("sector", "writes", "ashift")}
    assert sizes == {"sector": "4096", "writes": "512", "ashift": "9"}


def test_a_disk_that_would_be_slow_is_warned_about():
    pool = shapes.pool(shapes.group("raidz2-0", *(shapes.leaf(number) for number in range(1, 5)), ashift=9))
    plan = checked_plan(swap(), shapes.facts(pool))
    assert "-o ashift=9" in plan.steps[0].command_text
    assert any("writing will be slow" in warning for warning in plan.warnings)


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (swap(new=2), "disk-in-use"),
        (swap(new=9), "disk-missing"),
        (swap(vdev=999), "vdev-missing"),
        (swap(vdev=50), "vdev-not-disk"),
    ],
)
def test_replace_refuses_a_wrong_disk_or_vdev(operation, code):
    assert code in refusals(operation, shapes.facts(shapes.raidz2()))


def test_a_cache_and_a_spare_are_not_replaced():
    pool = shapes.pool(shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2)), shapes.leaf(3, "AVAIL", role="spare"))
    assert refusals(swap(vdev=103), shapes.facts(pool)) == ["role-not-replaceable"]


def test_a_spare_that_stands_in_is_not_replaced_but_the_disk_it_stands_in_for_is():
    facts = shapes.facts(shapes.spared(), 2, 5, disks=(disk(6),), count=5)
    assert refusals(swap(new=6, vdev=105), facts) == ["spare-not-replaceable"]
    plan = checked_plan(swap(new=6, vdev=102), facts)
    assert any("becomes free again automatically" in warning for warning in plan.warnings)


def test_a_pool_that_has_stopped_takes_no_change():
    pool = replace(shapes.raidz2(), state="SUSPENDED")
    assert refusals(swap(), shapes.facts(pool)) == ["pool-stopped"]


def test_the_probe_sees_the_new_disk_and_settles_the_erasing_too():
    before, after = shapes.facts(shapes.raidz2()), shapes.facts(shapes.replacing())
    assert [swap().probe(step, before) for step in ("erase", "replace", "verify")] == [True, False, False]
    assert [swap().probe(step, after) for step in ("erase", "replace", "verify")] == [True, True, True]
    assert "part of tank now" in swap().recovery_hint("verify", after)
    assert "does not answer" in swap().recovery_hint("replace", shapes.facts(shapes.raidz2(), 5))
    assert "has not changed" in swap().recovery_hint("replace", before)


def test_verifying_fails_where_the_disk_did_not_get_in(monkeypatch):
    monkeypatch.setattr(status, "read_pools", lambda: (shapes.raidz2(),))
    with pytest.raises(Failed, match="is not part of tank"):
        swap().verify_new_disks(Working())
    monkeypatch.setattr(status, "read_pools", lambda: (shapes.replacing(new="FAULTED"),))
    with pytest.raises(Failed, match="FAULTED"):
        swap().verify_new_disks(Working())


def test_disk_that_goes_back_erased_is_new_only_under_its_new_guid(monkeypatch):
    """ZFS keeps what it was beside it, with another end of its path, until it is rebuilt (spa_vdev_attach)."""
    same = swap(new=1)
    offline = shapes.pool(shapes.group("raidz2-0", shapes.leaf(1, "OFFLINE"), *map(shapes.leaf, (2, 3, 4))))
    assert [same.probe(step, shapes.facts(offline)) for step in ("replace", "verify")] == [False, False]
    assert "has not changed" in same.recovery_hint("replace", shapes.facts(offline))
    before = replace(shapes.leaf(1, "OFFLINE"), path=f"{path_of(1)}-part1/old")
    new = replace(shapes.leaf(1, processed=10), guid=901)
    change = shapes.group("replacing-0", before, new, guid=61, kind="replacing", state="DEGRADED")
    pool = shapes.pool(shapes.group("raidz2-0", change, *map(shapes.leaf, (2, 3, 4))), scan=shapes.RESILVER)
    assert [same.probe(step, shapes.facts(pool)) for step in ("erase", "replace", "verify")] == [True, True, True]
    monkeypatch.setattr(status, "read_pools", lambda: (pool,))
    same.verify_new_disks(Working())


def test_the_digest_changes_with_the_shape_of_the_pool_and_not_with_its_state():
    facts = shapes.facts(shapes.raidz2())
    weak = shapes.facts(shapes.raidz2("ONLINE", "ONLINE", "ONLINE", "FAULTED"))
    digests = {
        checked_plan(swap(), facts).digest(),
        checked_plan(swap(new=6), facts).digest(),
        checked_plan(swap(vdev=102), facts).digest(),
        checked_plan(swap(new=6, vdev=102), shapes.facts(shapes.replacing())).digest(),
        checked_plan(swap(), shapes.facts(replace(shapes.raidz2(), guid=8))).digest(),
    }
    assert len(digests) == 5
    assert checked_plan(swap(), weak).digest() == checked_plan(swap(), facts).digest()


@pytest.mark.parametrize(
    "spoil",
    [
        {"pool": "-f"},
        {"pool": "a\nb"},
        {"vdev": -1},
        {"vdev": 2**64},
        {"vdev": "raidz2-0"},
        {"disk": "/dev/sda"},
        {"force": True},
    ],
)
def test_json_that_is_not_quite_this_operation_is_refused(spoil):
    import json

    good = {"kind": "replace-disk", "pool": "tank", "vdev": 2**64 - 1, "disk": path_of(5)}
    assert isinstance(decode_operation(json.dumps(good)), ReplaceDisk)
    with pytest.raises(Refused):
        decode_operation(json.dumps(good | spoil))


# --- attach and detach ------------------------------------------------------------------------------------------
def test_a_single_disk_becomes_a_mirror():
    plan = checked_plan(AttachDisk(pool="tank", vdev=101, disk=path_of(5)), shapes.facts(shapes.single()))
    assert plan.steps[0].command_text == f"zpool attach -o ashift=12 -- tank 101 {path_of(5)}"
    assert "one of 2 copies" in plan.summary


def test_a_mirror_becomes_wider_beside_a_disk_that_works():
    facts = shapes.facts(shapes.mirror("OFFLINE", "ONLINE"))
    plan = checked_plan(AttachDisk(pool="tank", vdev=50, disk=path_of(5)), facts)
    assert plan.steps[0].command_text.endswith(f"-- tank 102 {path_of(5)}")
    assert "survives 2 failed disks" in plan.summary


def test_a_raidz_gets_no_copy():
    operation = AttachDisk(pool="tank", vdev=101, disk=path_of(5))
    assert refusals(operation, shapes.facts(shapes.raidz2())) == ["vdev-not-mirrored"]


def test_a_copy_that_is_too_small_is_refused():
    facts = shapes.facts(shapes.mirror(), 5, disks=(disk(5, size=10**12),))
    assert refusals(AttachDisk(pool="tank", vdev=50, disk=path_of(5)), facts) == ["disk-too-small"]


def take_out(vdev: int) -> DetachDisk:
    return DetachDisk(pool="tank", vdev=vdev)


def test_a_copy_is_taken_out_and_the_last_one_is_not():
    plan = checked_plan(take_out(102), shapes.facts(shapes.mirror()))
    assert plan.steps[0].command_text == "zpool detach -- tank 102"
    assert any("Only one copy is left" in warning for warning in plan.warnings)
    assert refusals(take_out(102), shapes.facts(shapes.mirror("FAULTED", "ONLINE"))) == ["copy-last"]
    assert refusals(take_out(101), shapes.facts(shapes.mirror("FAULTED", "ONLINE"))) == []


def test_a_disk_of_a_raidz_is_not_taken_out():
    assert refusals(take_out(101), shapes.facts(shapes.raidz2())) == ["disk-not-copy"]


def test_the_disk_that_others_are_rebuilt_from_stays():
    pool = shapes.pool(shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2, processed=5)), scan=shapes.RESILVER)
    assert refusals(take_out(101), shapes.facts(pool)) == ["copy-needed"]
    assert refusals(take_out(102), shapes.facts(pool)) == []


def test_a_replacement_that_failed_can_be_stopped_while_the_old_disk_is_gone():
    assert refusals(take_out(105), shapes.facts(shapes.replacing("REMOVED", "FAULTED"))) == []
    alone = shapes.pool(shapes.group("replacing-0", shapes.leaf(1, "REMOVED"), shapes.leaf(5), guid=61))
    assert refusals(take_out(105), shapes.facts(alone)) == ["copy-last"]


@pytest.mark.parametrize("name", ["spare-rebuilding", "spare-in-use"])
def test_a_recorded_spare_can_go_back_while_its_disk_is_offline_because_another_copy_works(name):
    pool = recorded_pool(f"zpool-status-{name}-2.3.9.json")
    first, standing = pool.vdevs[0].children
    facts = shapes.facts(pool)
    assert refusals(DetachDisk(pool="full", vdev=standing.children[1].guid), facts) == []
    assert bool(refusals(DetachDisk(pool="full", vdev=first.guid), facts)) is pool.rebuilding


def test_a_spare_goes_back_or_stays_for_good():
    facts = shapes.facts(shapes.spared("ONLINE"))
    assert "becomes free again" in checked_plan(take_out(105), facts).summary
    assert "for good" in checked_plan(take_out(102), shapes.facts(shapes.spared())).summary
    assert "ends with the other disk" in checked_plan(take_out(105), shapes.facts(shapes.replacing("ONLINE"))).summary


@pytest.mark.parametrize(
    ("original", "phrase"), [("DEGRADED", "is degraded"), ("FAULTED", "failed and was taken out of use")]
)
def test_a_spare_that_protects_a_disk_that_fails_is_not_given_back_without_a_warning(original, phrase):
    """ZED calls a disk DEGRADED after too many checksum errors, and puts the spare in."""
    plan = checked_plan(take_out(105), shapes.facts(shapes.spared(original)))
    assert any(f"The disk that this spare stands in for {phrase}." in warning for warning in plan.warnings)
    assert ("works alone again" in plan.summary) is (original == "DEGRADED")
    keep = checked_plan(take_out(102), shapes.facts(shapes.spared(original)))
    assert not any("stands in for" in warning for warning in keep.warnings)


def spared(**changes) -> Pool:
    """A mirror in which a spare stands in for disk 2, which ZFS uses."""
    pool = shapes.spared("ONLINE", scan=shapes.RESILVER if "deferred" in changes else None)
    first, standing = pool.vdevs[0].children
    standing = replace(standing, children=(replace(standing.children[0], **changes), standing.children[1]))
    return replace(pool, vdevs=(replace(pool.vdevs[0], children=(first, standing)), *pool.vdevs[1:]))


def test_a_spare_whose_disk_made_errors_is_not_given_back_without_a_warning():
    (warning,) = checked_plan(take_out(105), shapes.facts(spared(checksum_errors=3))).warnings
    assert "stands in for has errors." in warning
    assert checked_plan(take_out(105), shapes.facts(spared())).warnings == ()


def test_a_spare_stays_while_its_disk_waits_to_be_rebuilt():
    assert refusals(take_out(105), shapes.facts(spared(deferred=True))) == ["copy-needed"]


def test_the_only_whole_copy_stays_while_the_other_waits_to_be_rebuilt():
    pool = shapes.pool(shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2, deferred=True)), scan=shapes.RESILVER)
    assert refusals(take_out(101), shapes.facts(pool)) == ["copy-needed"]
    assert refusals(take_out(102), shapes.facts(pool)) == []
    three = shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2, deferred=True), shapes.leaf(3))
    assert refusals(take_out(101), shapes.facts(shapes.pool(three, scan=shapes.RESILVER))) == []
    # What is left then is one copy: the other does not count until it is rebuilt.
    plan = checked_plan(take_out(101), shapes.facts(shapes.pool(three, scan=shapes.RESILVER)))
    assert any("Only one copy is left" in warning for warning in plan.warnings)


def test_a_spare_that_went_back_meanwhile_is_not_taken_out_again():
    waiting = shapes.pool(
        shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2)), shapes.leaf(5, "AVAIL", role="spare")
    )
    assert refusals(take_out(105), shapes.facts(waiting)) == ["spare-waiting"]


def test_the_probe_of_taking_out():
    assert not take_out(105).probe("detach", shapes.facts(shapes.spared("ONLINE")))
    waiting = shapes.pool(
        shapes.group("mirror-0", shapes.leaf(1), shapes.leaf(2)), shapes.leaf(5, "AVAIL", role="spare")
    )
    assert take_out(105).probe("detach", shapes.facts(waiting))
    assert take_out(103).probe("detach", shapes.facts(shapes.mirror()))
    assert "still part" in take_out(102).recovery_hint("detach", shapes.facts(shapes.mirror()))
