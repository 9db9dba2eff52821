from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.errors import Refused
from appliance.facts.box import Checkpoint, Facts, LongWork, Pool, PoolDetail, Use
from appliance.facts.datasets import Dataset, Property
from appliance.operation import as_json, checked_plan
from appliance.pools.rebuild_estimate import PastWork, estimate_rebuild
from appliance.rehearsal import result
from appliance.rehearsal.rehearse import CleanUpRehearsal, RehearseRebuild
from appliance.zfs import status
from tests.reasons import codes, expect_refusal
from tests.unit.made import dataset, path_of
from tests.unit.pools import shapes

GB, TB = 10**9, 10**12
PROPERTY = "larder:rehearsal"
RESULT: dict[str, Any] = {
    "ended": 1795500000,
    "seconds": 11520,
    "looked": 900 * GB,
    "written": 450 * GB,
    "share": 25,
    "vdev": 102,
    "size": 4 * TB,
    "disk": "ata-A_1",
    "disks": ["ata-A_1", "ata-A_2"],
    "zfs": "2.3.2",
}
OUT = {"vdev": 102, "disk": path_of(2)}


def noted(value: object, source: str = "local") -> dict[str, Property]:
    return {PROPERTY: Property(value if isinstance(value, str) else json.dumps(value), source)}


def root(**changes: Any) -> Dataset:
    """An empty top folder."""
    return dataset(
        "tank", **{"used": 10**6, "used_by_data": 98304, "referenced": 98304, "available": 2 * TB, **changes}
    )


def folder(value: object = OUT, source: str = "local") -> Dataset:
    return dataset("tank/larder-rehearsal", mounted=False, properties=noted(value, source))


def facts(pool: Pool | None = None, *datasets: Dataset, absent: tuple[int, ...] = (), **changes: Any) -> Facts:
    return replace(shapes.facts(pool or shapes.mirror(), *absent), datasets=datasets or (root(),), **changes)


def rehearse(number: int = 2, **changes: Any) -> RehearseRebuild:
    return RehearseRebuild(**{"pool": "tank", "guid": 7, "vdev": 100 + number, "disk": path_of(number), **changes})


def clean_up() -> CleanUpRehearsal:
    return CleanUpRehearsal(pool="tank", guid=7)


def refusals(found: Facts, number: int = 2) -> list[str]:
    return codes(rehearse(number).check(found))


# --- what is refused --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pool", [shapes.mirror(), shapes.raidz2()], ids=["mirror", "raidz2"])
def test_nothing_speaks_against_an_empty_redundant_pool(pool):
    assert refusals(facts(pool)) == []


@pytest.mark.parametrize(
    "others",
    [
        (root(), dataset("tank/photos")),
        (root(), dataset("tank/volume", kind="volume")),
        (root(), dataset("tank/larder-rehearsal")),  # a folder of somebody's that only has the name
        (root(), folder(source="inherited")),
    ],
    ids=["folder", "volume", "name", "inherited"],
)
def test_pool_with_folders_is_refused(others):
    assert refusals(facts(None, *others)) == ["rehearsal-pool-has-folders"]


def test_pool_with_files_or_snapshots_is_refused():
    assert refusals(facts(None, root(used_by_data=2 * 2**20))) == ["rehearsal-pool-has-files"]
    assert refusals(facts(None, root(used_by_snapshots=2 * 2**20))) == ["rehearsal-pool-has-files"]
    found = facts(details=(PoolDetail(7, content=("tank@monday",)),))
    (reason,) = rehearse().check(found)
    assert (reason.code, "(tank@monday)" in reason.text) == ("rehearsal-pool-has-files", True)


def test_pool_that_is_shared_or_backed_up_is_refused():
    setting = json.dumps({"smb": {"name": "all", "write": ["anna"]}})
    assert refusals(facts(None, root(share=setting, share_source="local"))) == ["rehearsal-pool-shared"]
    assert refusals(facts(None, root(backup="{}", backup_source="local"))) == ["rehearsal-pool-shared"]


def test_unfinished_rehearsal_has_to_be_cleaned_up_first():
    assert refusals(facts(None, root(), folder())) == ["rehearsal-unfinished"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"checkpoint": Checkpoint("exists", None)}, "rehearsal-checkpoint"),
        ({"work": (LongWork("scrub", "running", None, None, 1, 2),)}, "rehearsal-pool-busy"),
        ({"scan": shapes.RESILVER}, "rehearsal-pool-busy"),
        ({"errors": 1}, "rehearsal-pool-not-healthy"),
        ({"state": "SUSPENDED"}, "pool-stopped"),
    ],
    ids=["checkpoint", "scrub", "rebuild", "errors", "stopped"],
)
def test_pool_that_is_busy_or_not_healthy_is_refused(changes, code):
    assert code in refusals(facts(replace(shapes.raidz2(), **changes)))


def test_degraded_pool_is_refused_although_it_could_do_without_one_more():
    assert refusals(facts(shapes.raidz2("OFFLINE", "ONLINE", "ONLINE", "ONLINE"))) == ["rehearsal-pool-not-healthy"]


@pytest.mark.parametrize("change", [{"key_status": "unavailable"}, {"readonly": True}], ids=["locked", "read-only"])
def test_pool_that_cannot_be_written_to_is_refused(change):
    assert refusals(facts(None, root(**change))) == ["rehearsal-pool-locked"]


def test_pool_without_redundancy_is_refused():
    assert "rehearsal-not-redundant" in refusals(facts(shapes.single()), 1)


def test_pool_of_the_system_is_refused():
    found = facts(None, root(mountpoint="/"))
    assert "rehearsal-pool-of-system" in refusals(found)


def test_disk_has_to_be_that_of_the_vdev_and_to_have_nothing_else_on_it():
    assert codes(rehearse(vdev=101, disk=path_of(2)).check(facts())) == ["rehearsal-disk-not-member"]
    assert codes(rehearse(vdev=50).check(facts())) == ["rehearsal-disk-not-member"]
    assert codes(rehearse(vdev=999).check(facts())) == ["rehearsal-disk-not-member"]
    assert refusals(facts(absent=(2,))) == ["rehearsal-disk-missing"]
    other = Use("pool", "is part of the pool attic", "8", "attic")
    found = facts()
    shared = tuple(replace(one, uses=(*one.uses, other)) if one.path == path_of(2) else one for one in found.disks)
    assert refusals(replace(found, disks=shared)) == ["rehearsal-disk-shared"]
    leaf = shapes.leaf(2)
    part = replace(leaf, name=f"{leaf.name}-part1")  # a partition that its owner made, beside others
    assert refusals(facts(shapes.pool(shapes.group("mirror-0", shapes.leaf(1), part)))) == ["rehearsal-disk-shared"]


def test_only_the_offered_shares_and_real_disks_are_decoded():
    for changes, code in (({"share": 99}, "rehearsal-share-invalid"), ({"vdev": 0}, "rehearsal-disk-invalid")):
        with expect_refusal(code):
            rehearse(**changes)
    with pytest.raises(Refused):
        decode_operation(as_json(rehearse()).replace("by-id", "by-path"))
    assert decode_operation(as_json(rehearse(share=50))) == rehearse(share=50)


# --- the plan ---------------------------------------------------------------------------------------------------
def test_plan_names_each_command_and_says_that_redundancy_is_gone_meanwhile():
    plan = checked_plan(rehearse(), facts())
    assert [step.name for step in plan.steps] == ["folder", "fill", "offline", "clear", "rebuild", "remove"]
    shown = {step.name: step.command_text for step in plan.steps}
    assert shown["folder"].startswith("zfs create -o mountpoint=none -o compression=off")
    assert "larder:share=none -o larder:policy=none" in shown["folder"]
    assert f"--size={2 * TB * 25 // 100 // 2**20 * 2**20}" in shown["fill"]
    assert shown["offline"] == "zpool offline -- tank 102"
    assert shown["rebuild"].splitlines()[0] == f"zpool replace -f -o ashift=12 -- tank 102 {path_of(2)}"
    assert shown["remove"] == "zfs destroy -- tank/larder-rehearsal"
    assert plan.type_to_confirm == "tank"
    assert not plan.losses
    assert "has no redundancy: if another disk fails, the pool is lost" in " ".join(plan.warnings)
    two = checked_plan(rehearse(), facts(shapes.raidz2()))
    assert "survives 1 more failed disk only" in " ".join(two.warnings)


def test_digest_follows_the_shape_and_the_disk_and_not_how_full_it_is():
    plain = checked_plan(rehearse(), facts()).digest()
    assert checked_plan(rehearse(), facts(None, root(available=TB))).digest() == plain
    assert checked_plan(rehearse(share=50), facts()).digest() != plain
    assert checked_plan(rehearse(), facts(shapes.raidz2())).digest() != plain


def test_expected_time_is_that_of_a_disk_at_its_usual_speed():
    filling, rebuilding = result.expected_seconds(shapes.mirror(), 50, rotational=True)
    assert filling == rebuilding == shapes.PARTITION // 2 // 10**8


# --- after an interruption --------------------------------------------------------------------------------------
def test_steps_count_as_done_once_the_result_names_this_very_disk():
    own = {**RESULT, "disks": ["a", "b"]}
    there = facts(None, root(properties=noted(own)), folder())
    assert rehearse().probe("rebuild", there)
    assert not rehearse().probe("remove", there)
    assert rehearse().probe("remove", facts(None, root(properties=noted(own))))
    earlier = facts(None, root(properties=noted({**own, "vdev": 55})))
    assert not rehearse().probe("rebuild", earlier)


@pytest.mark.parametrize(
    ("pool", "done"),
    [
        (shapes.mirror(), ["folder"]),
        (shapes.mirror("ONLINE", "OFFLINE"), ["folder", "fill", "offline"]),
        (replace(shapes.mirror(), scan=shapes.RESILVER), ["folder", "fill", "offline", "clear"]),
    ],
    ids=["filling", "offline", "rebuilding"],
)
def test_record_of_an_interruption_counts_what_was_done(pool, done):
    found = facts(pool, root(), folder())
    steps = [step.name for step in checked_plan(rehearse(), facts()).steps]
    assert [step for step in steps if rehearse().probe(step, found)] == done
    other = facts(pool, root(), folder({**OUT, "vdev": 55}))  # of another rehearsal
    assert not any(rehearse().probe(step, other) for step in steps)


@pytest.mark.parametrize(
    ("pool", "absent", "said"),
    [
        (shapes.mirror("ONLINE", "OFFLINE"), (), "It is in the box. Clean up on the page of tank"),
        (shapes.mirror("ONLINE", "UNAVAIL"), (2,), "It does not answer. Clean up on the page of tank"),
        (replace(shapes.mirror(), scan=shapes.RESILVER), (), "ZFS goes on rebuilding the disk"),
        (shapes.mirror(), (), "All disks of tank are in use. Clean up"),
    ],
    ids=["offline", "vanished", "rebuilding", "filling"],
)
def test_interruption_is_told_with_the_way_forward(pool, absent, said):
    found = facts(pool, root(), folder(), absent=absent)
    assert said in rehearse().recovery_hint("rebuild", found)
    assert rehearse().again(found) == clean_up()


def test_interruption_before_anything_was_made_begins_anew():
    assert "Start the rehearsal again" in rehearse().recovery_hint("folder", facts())
    assert rehearse().again(facts()) == rehearse()
    assert "not in use here any more" in rehearse().recovery_hint("folder", Facts())


def test_clean_up_needs_test_data_of_a_rehearsal():
    assert codes(clean_up().check(facts())) == ["rehearsal-missing"]
    assert codes(clean_up().check(facts(None, root(), folder("none")))) == ["rehearsal-missing"]
    found = facts(shapes.mirror("ONLINE", "OFFLINE"), root(), folder())
    plan = checked_plan(clean_up(), found)
    assert plan.steps[0].command_text.splitlines() == [
        f"zpool online -- tank {path_of(2)}",
        "# or, if the disk was cleared already:",
        f"zpool replace -f -o ashift=12 -- tank 102 {path_of(2)}",
        "zfs destroy -- tank/larder-rehearsal",
        "zpool wait -t resilver,replace -- tank",
    ]
    assert clean_up().disks_found(found) == (path_of(2),)
    assert not clean_up().probe("clean", found)
    assert clean_up().probe("clean", facts())


def holding(*uses: Use) -> Facts:
    """Disk 2 is out of tank, and this is on it."""
    found = facts(shapes.mirror("ONLINE", "OFFLINE"), root(), folder())
    return replace(
        found, disks=tuple(replace(one, uses=uses) if one.path == path_of(2) else one for one in found.disks)
    )


def test_clean_up_leaves_a_disk_alone_on_which_something_was_stored_meanwhile():
    plan = checked_plan(clean_up(), holding(Use("old", "holds ntfs data called photos", "01D8")))
    assert [step.command_text for step in plan.steps] == ["zfs destroy -- tank/larder-rehearsal"]
    assert "The disk is not put back, because that would overwrite it." in plan.summary
    assert "holds ntfs data called photos. If you do not need what is on the disk, replace it" in plan.warnings[0]
    assert clean_up().probe("delete", facts(shapes.mirror("ONLINE", "OFFLINE")))
    cleared = checked_plan(clean_up(), holding(Use("old", "has a partition table (gpt)")))
    assert "zpool replace -f" in cleared.steps[0].command_text


def test_clean_up_of_a_record_that_names_another_disk_overwrites_none():
    found = facts(shapes.mirror("ONLINE", "OFFLINE"), root(), folder({**OUT, "disk": path_of(5)}))
    plan = checked_plan(clean_up(), found)
    assert [step.command_text for step in plan.steps] == ["zfs destroy -- tank/larder-rehearsal"]
    assert "names another disk than the one that is out of tank" in plan.warnings[0]


def test_review_of_a_clean_up_counts_only_for_what_is_on_the_disk_then():
    table = Use("old", "has a partition table (gpt)")
    before, after = (
        checked_plan(clean_up(), holding(*uses))
        for uses in ((table,), (Use("pool", "is part of the pool tank", "7", "tank"),))
    )
    assert before.digest() != after.digest()


# --- what is stored ---------------------------------------------------------------------------------------------
def test_result_is_read_from_the_top_folder_alone():
    found = result.read_result(shapes.mirror(), [root(properties=noted(RESULT))])
    assert found is not None
    assert (found.seconds, found.share, found.at.year, found.is_too_short) == (11520, 25, 2026, False)
    assert result.read_result(shapes.mirror(), [root(properties=noted(RESULT, "inherited"))]) is None
    assert result.read_result(shapes.raidz2(), [root(properties=noted(RESULT))]) is None  # disks were added since


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": 0},
        {"seconds": 2**40},
        {"ended": -1},
        {"ended": 2**60},
        {"looked": -5},
        {"share": 101},
        {"vdev": 2**64 + 1},
        {"disk": "x" * 121},
        {"disks": ["x"] * 41},
        {"disks": "x"},
        {"more": 1},
        {"size": 1.5},
    ],
    ids=str,
)
def test_result_that_larder_could_not_have_written_is_none(change):
    assert result.read_result(shapes.mirror(), [root(properties=noted({**RESULT, **change}))]) is None


@given(st.text())
def test_hostile_text_is_no_result_and_no_disk(text):
    assert result.read_result(shapes.mirror(), [root(properties=noted(text))]) is None
    assert result.read_disk_out("tank", [folder(text)]) is None


def test_disk_out_is_a_by_id_path():
    assert result.read_disk_out("tank", [folder({**OUT, "disk": "/dev/sda"})]) is None
    assert result.read_disk_out("tank", [folder()]) == result.DiskOut(vdev=102, disk=path_of(2))


def test_property_of_a_folder_does_not_reach_those_below():
    raw = {PROPERTY: {"value": "x", "source": {"type": "INHERITED", "data": "tank"}}}
    assert PROPERTY not in dict(status.kept_properties(raw, {}))
    assert PROPERTY in dict(
        status.kept_properties({PROPERTY: {"value": "x", "source": {"type": "LOCAL", "data": "-"}}}, {})
    )
    assert PROPERTY in status.KEPT


# --- estimates --------------------------------------------------------------------------------------------------
def test_rehearsal_is_the_basis_of_estimates_however_full_the_pool_is_since():
    pool = replace(shapes.raidz2(), allocated=400 * GB)
    early = PastWork("rehearsal", 100 * GB, 500.0)
    found = estimate_rebuild(pool, [PastWork("scrub", 400 * GB, 900.0), early])
    assert (found.seconds, found.measured) == (2000, True)
    assert "the rehearsal of a rebuild" in found.basis
    # A part of a rebuild does not count, a whole one later does.
    assert estimate_rebuild(pool, [PastWork("resilver", 100 * GB, 400.0), early]).seconds == 2000
    assert estimate_rebuild(pool, [PastWork("resilver", 300 * GB, 900.0), early]).seconds == 1200
    assert estimate_rebuild(pool, [early, PastWork("resilver", 300 * GB, 900.0)]).seconds == 2000
    assert not estimate_rebuild(pool, [PastWork("rehearsal", 100 * GB, 59.0)]).measured
