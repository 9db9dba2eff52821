from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.errors import Failed, Refused
from appliance.facts.box import LongWork, Pool, Scan
from appliance.operation import checked_plan
from appliance.pools import health
from appliance.pools.vdevs.clear_errors import ClearErrors, explain_errors
from appliance.pools.vdevs.online_offline import OfflineDisk, OnlineDisk
from appliance.shares import teardown
from appliance.zfs import ashift, receives, status, vdev_tree
from tests.unit.made import path_of, recorded, recorded_pool, recorded_text
from tests.unit.pools import shapes
from tests.unit.pools.shapes import refusals
from tests.unit.pools.test_create import Working


def off(vdev: int = 101) -> OfflineDisk:
    return OfflineDisk(pool="tank", vdev=vdev)


def on(vdev: int = 101) -> OnlineDisk:
    return OnlineDisk(pool="tank", vdev=vdev)


def clear(vdev: int = 0) -> ClearErrors:
    return ClearErrors(pool="tank", vdev=vdev)


def test_a_disk_goes_offline_by_its_guid_and_says_what_is_left():
    plan = checked_plan(off(), shapes.facts(shapes.raidz2()))
    assert plan.steps[0].command_text == "zpool offline -- tank 101"
    assert "survives 1 more failed disk meanwhile" in plan.summary
    plan = checked_plan(off(), shapes.facts(shapes.raidz2("ONLINE", "FAULTED", "ONLINE", "ONLINE")))
    assert "no further disk" in plan.summary
    assert plan.warnings


@pytest.mark.parametrize(
    ("pool", "code"),
    [
        (shapes.raidz2("ONLINE", "FAULTED", "OFFLINE", "ONLINE"), "vdev-not-redundant"),
        (shapes.mirror("ONLINE", "FAULTED"), "vdev-not-redundant"),
        (shapes.single(), "disk-not-redundant"),
    ],
)
def test_a_disk_that_the_pool_cannot_do_without_stays(pool, code):
    assert refusals(off(101), shapes.facts(pool)) == [code]


def test_a_raidz2_survives_the_loss_of_the_member_that_is_being_rebuilt():
    assert refusals(off(105), shapes.facts(shapes.replacing())) == []


def test_while_a_raidz1_rebuilds_no_disk_of_it_goes_offline():
    pool = shapes.replacing()
    raidz1 = replace(pool, vdevs=(replace(pool.vdevs[0], name="raidz1-0"),))
    assert refusals(off(102), shapes.facts(raidz1)) == ["vdev-not-redundant"]


def test_a_disk_whose_rebuild_waits_is_read_and_not_counted_as_whole():
    """Derived from a recorded rebuild: a disk that was pulled out and put back meanwhile is ONLINE, and ``zpool
    status`` prints ``resilver_deferred`` for it (vdev_stats_nvlist of 2.3.9)."""
    raw = recorded("zpool-status-spare-rebuilding-2.3.9.json")
    mirror = raw["pools"]["full"]["vdevs"]["full"]["vdevs"]["mirror-0"]
    (before,) = status.parse_pools(raw)
    first = next(iter(mirror["vdevs"].values()))
    assert before.whole(before.vdevs[0].children[0])
    assert not any(device.deferred for device in before.devices())
    first["resilver_deferred"] = 1
    (pool,) = status.parse_pools(raw)
    back = pool.vdevs[0].children[0]
    assert (back.state, back.deferred, pool.whole(back)) == ("ONLINE", True, False)
    assert back.guid in vdev_tree.guids_being_filled(pool)


def deferred(scan: Scan | None = shapes.RESILVER) -> Pool:
    """A raidz2 in which disk 4 is being rebuilt while disk 3, which was away for a while, waits for its turn."""
    members = (shapes.leaf(1), shapes.leaf(2), shapes.leaf(3, deferred=True), shapes.leaf(4, processed=10))
    return shapes.pool(shapes.group("raidz2-0", *members), scan=scan)


def test_a_raidz2_survives_nothing_while_one_disk_is_rebuilt_and_another_waits_for_it():
    pool = deferred()
    assert pool.failures_left == 0
    assert refusals(OfflineDisk(pool="tank", vdev=101), shapes.facts(pool)) == ["vdev-not-redundant"]
    assert refusals(OfflineDisk(pool="tank", vdev=103), shapes.facts(pool)) == []
    assert deferred(scan=None).failures_left == 1, "it waits also in the moment between the two"


@pytest.mark.parametrize("kind", ["spare", "replacing"])
def test_a_disk_that_waits_to_be_rebuilt_does_not_stand_in_for_another(kind):
    pair = shapes.group(f"{kind}-1", shapes.leaf(2, deferred=True), shapes.leaf(5, "OFFLINE"), guid=60, kind=kind)
    pool = shapes.pool(shapes.group("mirror-0", shapes.leaf(1), pair), scan=shapes.RESILVER)
    assert not pool.whole(pair)
    assert refusals(OfflineDisk(pool="tank", vdev=101), shapes.facts(pool)) == ["vdev-not-redundant"]
    waiting = shapes.group(f"{kind}-1", shapes.leaf(2, "OFFLINE"), shapes.leaf(5, deferred=True), guid=60, kind=kind)
    assert not shapes.pool(shapes.group("mirror-0", shapes.leaf(1), waiting)).whole(waiting)


def test_a_disk_that_came_back_and_is_rebuilt_is_not_whole_beside_its_spare():
    """The spare has not been rebuilt to its end either."""
    pair = shapes.group("spare-1", shapes.leaf(2, processed=10), shapes.leaf(5), guid=60, kind="spare")
    pool = shapes.pool(shapes.group("mirror-0", shapes.leaf(1), pair), scan=shapes.RESILVER)
    assert not pool.whole(pair)
    assert replace(pool, scan=None).whole(pair)


def test_a_failed_disk_may_go_offline_whatever_the_others_do():
    assert refusals(off(102), shapes.facts(shapes.mirror("ONLINE", "FAULTED"))) == []


def test_a_disk_comes_online_by_the_path_that_it_has():
    facts = shapes.facts(shapes.raidz2("OFFLINE", "ONLINE", "ONLINE", "ONLINE"))
    plan = checked_plan(on(), facts)
    assert plan.steps[0].command_text == f"zpool online -- tank {path_of(1)}"
    assert not on().probe("online", facts)
    assert on().probe("online", shapes.facts(shapes.raidz2()))


def test_a_disk_that_is_not_in_the_box_does_not_come_online():
    facts = shapes.facts(shapes.raidz2("REMOVED", "ONLINE", "ONLINE", "ONLINE"), 1)
    assert refusals(on(), facts) == ["disk-not-here"]
    assert refusals(on(), shapes.facts(shapes.raidz2())) == ["disk-online"]


def test_a_disk_known_by_another_name_may_try():
    pool = shapes.pool(
        shapes.group(
            "mirror-0", shapes.leaf(1, "REMOVED", path="/dev/disk/by-id/wwn-0x5-part1", name="wwn-0x5"), shapes.leaf(2)
        )
    )
    assert (
        "zpool online -- tank /dev/disk/by-id/wwn-0x5" in checked_plan(on(), shapes.facts(pool)).steps[0].command_text
    )


def test_online_is_not_believed_without_looking(monkeypatch):
    monkeypatch.setattr(status, "read_pools", lambda: (shapes.raidz2("UNAVAIL", "ONLINE", "ONLINE", "ONLINE"),))
    with pytest.raises(Failed, match="UNAVAIL"):
        on().verify_online(Working())


def test_clearing_explains_every_count():
    pool = shapes.pool(
        shapes.group("mirror-0", shapes.leaf(1, read_errors=3, write_errors=1), shapes.leaf(2, checksum_errors=2))
    )
    plan = checked_plan(clear(), shapes.facts(pool))
    assert plan.steps[0].command_text == "zpool clear -- tank"
    said = list(plan.details.values())
    assert "3 read errors: it did not return" in said[0]
    assert "2 checksum errors: it returned other data" in said[1]
    assert checked_plan(clear(102), shapes.facts(pool)).steps[0].command_text == "zpool clear -- tank 102"
    assert refusals(clear(), shapes.facts(shapes.mirror())) == ["errors-none"]
    assert explain_errors(shapes.leaf(1, "FAULTED")).startswith("no longer used by ZFS")


def test_a_stopped_pool_starts_again_once_enough_disks_are_back():
    stopped = replace(shapes.raidz2("REMOVED", "REMOVED", "REMOVED", "ONLINE"), state="SUSPENDED")
    away = shapes.facts(stopped, 1, 2, 3)
    (reason,) = clear().check(away)
    assert reason.code == "disks-not-here"
    assert "WD-WCAZA0000003" in reason.message.arguments["disks"]
    back = shapes.facts(stopped, 1)
    plan = checked_plan(clear(), back)
    assert "starts again" in plan.summary
    assert not clear().probe("clear", back)
    assert [step.name for step in plan.steps] == ["clear", "serve"]
    assert not clear().probe("serve", shapes.facts(shapes.raidz2()))
    assert clear().probe("clear", shapes.facts(shapes.raidz2()))
    assert "Check that every disk" in clear().recovery_hint("clear", back)


def test_what_a_stopped_pool_advises_is_to_bring_disks_back_and_not_to_switch_off():
    stopped = replace(shapes.mirror("REMOVED", "REMOVED"), state="SUSPENDED")
    found = health.of_pool(stopped, lambda device: device.name)
    assert found.advice.startswith("Bring the disks back")
    unseen = health.of_pool(replace(shapes.mirror(), state="SUSPENDED"), lambda device: device.name)
    assert unseen.meaning == "Too many of its disks do not answer, so ZFS holds every read and write."
    assert "do not switch the box off" in found.advice


def test_a_weak_pool_that_rebuilds_says_how_far_it_is():
    found = health.of_pool(shapes.replacing(), lambda device: device.name)
    assert "it survives only one more failed disk" in found.headline
    assert "It is rebuilding, 41 % done; files stay available." in found.meaning
    assert found.advice == "", "what was pulled out is being replaced already"
    other = health.of_pool(
        replace(shapes.raidz2("REMOVED", "ONLINE"), scan=shapes.RESILVER), lambda device: device.name
    )
    assert "replace it soon" in other.advice


@pytest.mark.parametrize(
    ("used", "said", "word"),
    [
        (79, "tank is healthy.", ""),
        (80, "tank is filling up.", "filling up"),
        (90, "tank is nearly full.", "nearly full"),
        (96, "tank is almost out of space.", "almost out of space"),
        (99, "tank is full.", "full"),
    ],
)
def test_a_pool_without_room_says_so_and_what_to_do(used, said, word):
    found = health.of_pool(shapes.raidz2(), lambda device: device.name, used=used, total=100)
    assert (found.headline, found.word) == (said, word)
    assert ("Delete what is not needed" in found.advice) is bool(word)


def test_a_full_pool_that_misses_a_disk_says_that_first():
    weak = replace(shapes.raidz2("REMOVED"), state="DEGRADED")
    assert "survives" in health.of_pool(weak, lambda device: device.name, used=100, total=100).headline


# --- what zpool tells -------------------------------------------------------------------------------------------
def test_sector_sizes_are_read_by_guid_and_never_asked_of_a_stopped_pool(commands, monkeypatch):
    monkeypatch.setattr(ashift, "_known", {})
    pool = next(status.parse_pools(recorded("zpool-status-raidz2-2.3.9.json")))
    commands.answers["zpool"] = (
        f"root-0\tguid\t{pool.guid}\nroot-0\tashift\t0\n"
        f"raidz2-0\tguid\t{pool.vdevs[0].guid}\nraidz2-0\tashift\t12\nodd\tguid\t-\nodd\n"
    )
    assert ashift.fill_ashift([replace(pool, state="SUSPENDED")])[0].vdevs[0].ashift == 0
    assert commands.ran == []
    assert ashift.fill_ashift([pool])[0].vdevs[0].ashift == 12
    assert ashift.fill_ashift([pool])[0].vdevs[0].ashift == 12
    assert commands.ran == [
        ["zpool", "get", "-H", "-p", "-o", "name,property,value", "guid,ashift", "tank", "all-vdevs"]
    ]


def test_what_zpool_printed_of_sectors_is_taken_although_it_complained_of_a_spare_and_a_cache(monkeypatch):
    """Recorded: it prints the others, and an error for each spare and cache; its status is then 1."""

    def run(argv, **more):
        result = command.Result(
            tuple(argv), 1, recorded_text("zpool-get-vdevs-2.3.9.txt"), "cannot get vdev property", 0
        )
        assert result.status in more["accept"]
        return result

    monkeypatch.setattr(ashift, "_known", {})
    monkeypatch.setattr(command, "run", run)
    (pool,) = ashift.fill_ashift([recorded_pool("zpool-status-full-2.3.9.json")])
    assert [(vdev.role, vdev.ashift) for vdev in pool.vdevs] == [
        ("normal", 12),
        ("log", 12),
        ("cache", 0),
        ("spare", 0),
    ]


def test_a_pool_that_does_not_tell_its_sectors_is_read_all_the_same(monkeypatch):
    def fail(*_args, **_more):
        raise Failed("zpool did not answer")

    monkeypatch.setattr(ashift, "_known", {})
    monkeypatch.setattr("appliance.command.run", fail)
    assert ashift.fill_ashift([shapes.raidz2()])[0].vdevs[0].ashift == 0


def test_what_was_removed_leaves_no_row():
    raw = recorded("zpool-status-raidz2-2.3.9.json")
    root = raw["pools"]["tank"]["vdevs"]["tank"]["vdevs"]
    root["indirect-1"] = {"name": "indirect-1", "vdev_type": "indirect", "guid": 5, "state": "ONLINE"}
    root["hole-2"] = {"name": "hole-2", "vdev_type": "hole", "guid": 6, "state": "ONLINE"}
    (pool,) = status.parse_pools(raw)
    assert [vdev.name for vdev in pool.vdevs] == ["raidz2-0"]
    assert next(pool.devices()).slot == "pci-0000:00:06.0-ata-1.0"


def test_a_stopped_pool_whose_datasets_cannot_be_listed_can_still_be_started(monkeypatch):
    from appliance.agent import read_facts

    def fail():
        raise Failed("zfs did not answer within 60 seconds")

    monkeypatch.setattr(status, "read_datasets", fail)
    assert read_facts.datasets([replace(shapes.single(), state="SUSPENDED")]) == ()
    with pytest.raises(Failed):
        read_facts.datasets([shapes.single()])


def test_stopped_pool_in_which_a_backup_was_cut_off_is_not_started_again(monkeypatch, tmp_path):
    """Its datasets are not listed, so only the process that receives tells of it. The kernel would panic (2.3.9)."""
    words = ["zfs", "receive", "-u", "-s", "-h", "-o", "canmount=noauto", "tank/backups/photos"]
    others: tuple[list[str], ...] = ([*words[:-1], "other/backups/x"], ["bash"], ["zfs", "list", "tank/photos"], [])
    for number, argv in enumerate((words, *others)):
        (tmp_path / str(800 + number)).mkdir()
        (tmp_path / str(800 + number) / "cmdline").write_bytes("".join(f"{word}\0" for word in argv).encode())
    (tmp_path / "810").mkdir()  # one that has just ended
    monkeypatch.setattr(receives, "PROC", tmp_path)
    ran: list[tuple[str, ...]] = []

    def run(argv, **_more):
        ran.append(tuple(argv))
        return command.Result(tuple(argv), 0, "", "", 0.0)

    monkeypatch.setattr(command, "run", run)
    step = checked_plan(clear(), shapes.facts(replace(shapes.raidz2(), state="SUSPENDED"))).steps[0]
    with pytest.raises(Refused, match="tank/backups/photos"):
        step.run(Working())
    assert ran == []
    (tmp_path / "800/cmdline").unlink()
    step.run(Working())
    assert ran == [("zpool", "clear", "--", "tank")]


@pytest.mark.parametrize("problem", [None, Failed("smbd said no")])
def test_shares_of_a_pool_that_started_again_are_served_again(monkeypatch, problem):
    """Whatever was published meanwhile left them out, as its folders were not listed; the pool works in any case."""
    served: list[object] = []

    def serve(datasets, _note):
        served.append(datasets)
        if problem:
            raise problem

    monkeypatch.setattr(teardown, "serve_datasets", serve)
    monkeypatch.setattr(status, "read_datasets", lambda: ("all",))
    work = Working()
    checked_plan(clear(), shapes.facts(replace(shapes.raidz2(), state="SUSPENDED"))).steps[1].run(work)
    assert served == [("all",)]
    assert any("smbd said no" in note for note in work.notes) == (problem is not None)


def test_a_disk_that_was_away_when_its_group_left_is_not_told_as_missing():
    """As seen with 2.3.9: the pool is called DEGRADED although all that is left of it works."""
    left = replace(recorded_pool("zpool-status-remove-done-2.3.9.json"), state="DEGRADED")
    found = health.of_pool(left, lambda vdev: vdev.name)
    assert found.headline == f"{left.name} is complete."
    assert "Scrub the pool once" in found.advice
    weak = replace(left, vdevs=(replace(left.vdevs[0], state="DEGRADED"),))
    assert "survives" in health.of_pool(weak, lambda vdev: vdev.name).headline


def test_growing_that_stands_still_with_all_disks_back_is_let_go_on():
    stands = (LongWork("expand", "waiting", datetime(2026, 11, 21, tzinfo=UTC), None, 99, 100),)
    back = shapes.facts(replace(shapes.raidz2(), work=stands))
    plan = checked_plan(clear(), back)
    assert plan.steps[0].command_text == "zpool clear -- tank"
    assert "continues to expand" in plan.summary
    assert not clear().probe("clear", back)
    away = shapes.facts(replace(shapes.raidz2("ONLINE", "REMOVED", "ONLINE", "ONLINE"), work=stands))
    assert refusals(clear(), away) == ["errors-none"]
