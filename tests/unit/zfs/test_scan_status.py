"""Long work read from the JSON of ``zpool status -t -i``. The recorded scan is real; what is derived says so."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.facts.box import LongWork
from appliance.pools.progress import work_key
from appliance.pools.work_reports import report_key
from appliance.zfs import scan_status, status
from tests.unit.made import recorded, recorded_pool

T = 1795215093


def pool(**parts: Any) -> dict[str, Any]:
    """Derived from the recorded raidz2: other parts, under the names that OpenZFS 2.3 uses."""
    raw = copy.deepcopy(recorded("zpool-status-raidz2-2.3.9.json"))["pools"]["tank"]
    return {**raw, **parts}


def only(raw: dict[str, Any], kind: str) -> LongWork:
    (found,) = [work for work in scan_status.parse_long_work(raw) if work.kind == kind]
    return found


def disks(raw: dict[str, Any]) -> list[dict[str, Any]]:
    return list(scan_status.data_leaves(raw))  # type: ignore[arg-type]  # the very nodes, to be changed


def test_a_recorded_scrub_that_finished():
    (work,) = recorded_pool().work
    assert (work.kind, work.state, work.percent, work.errors, work.repaired) == ("scrub", "finished", 100, 0, 0)
    assert work.started == datetime.fromtimestamp(T, UTC)
    assert work.ended == datetime.fromtimestamp(T + 1, UTC)
    assert not work.under_way


@pytest.mark.parametrize(
    ("state", "pause", "ours"),
    [("SCANNING", 0, "running"), ("SCANNING", T, "paused"), ("FINISHED", T, "finished"), ("CANCELED", 0, "stopped")],
)
def test_a_scans_state_in_our_words(state, pause, ours):
    scan = pool()["scan_stats"] | {"state": state, "scrub_pause": pause}
    work = only(pool(scan_stats=scan), "scrub")
    assert work.state == ours
    assert (work.ended is None) == work.under_way


def test_what_was_freed_meanwhile_is_not_waited_for():
    scan = pool()["scan_stats"] | {"state": "SCANNING", "to_examine": 1000, "skipped": 200, "issued": 400}
    assert only(pool(scan_stats=scan), "scrub").percent == 50


@pytest.mark.parametrize("issued", [1000, 2000, 2**70])
def test_work_under_way_never_says_100_percent(issued):
    scan = pool()["scan_stats"] | {"state": "SCANNING", "to_examine": 1000, "skipped": 0, "issued": issued}
    assert only(pool(scan_stats=scan), "scrub").percent == 99


def test_a_recorded_rebuild_of_one_mirror_that_the_shell_began():
    """``zpool attach -s`` of 2.3.9, after a scrub that ZFS began by itself."""
    raw = of("rebuilt")
    rebuilt = only(raw, "resilver")
    assert (rebuilt.state, rebuilt.percent, rebuilt.subject, rebuilt.errors) == ("finished", 100, "mirror-0", 0)
    assert rebuilt.repaired == 105172480
    assert only(raw, "scrub").state == "running"
    one = {"state": "ACTIVE", "start_time": T, "end_time": 0, "issued": 25, "to_scan": 100}
    both = pool(scan_stats={"rebuild_stats": {"mirror-0": one, "mirror-1": one}})
    works = scan_status.parse_long_work(both)
    assert [(work.state, work.percent) for work in works] == [("running", 25)] * 2
    found = recorded_pool()
    assert len({work_key(found, work) for work in works}) == 2
    assert replace(found, scan=None, work=works).rebuilding


def of(name: str) -> dict[str, Any]:
    """The one pool of a recorded status."""
    (raw,) = recorded(f"zpool-status-{name}-2.3.9.json")["pools"].values()
    assert isinstance(raw, dict)
    return raw


def test_a_recorded_raidz_group_that_grows():
    work = only(of("expand-running"), "expand")
    assert (work.state, work.percent, work.subject, work.ended) == ("running", 14, "raidz1-0", None)
    stats = of("expand-running")["raidz_expand_stats"] | {"waiting_for_resilver": 1}
    assert only(pool(raidz_expand_stats=stats), "expand").state == "waiting"


def test_a_recorded_raidz_group_that_has_grown_is_done_although_not_every_byte_was_moved():
    grown, check = only(of("expand-done"), "expand"), only(of("expand-done"), "scrub")
    assert (grown.state, grown.percent, grown.subject) == ("finished", 100, "raidz1-0")
    assert grown.done < grown.total
    # ZFS checks what it has moved, by itself, at once.
    assert check.started == grown.ended == datetime.fromtimestamp(1795254559, UTC)


def test_a_recorded_device_that_is_emptied_and_then_gone():
    running, done = only(of("remove-running"), "remove"), only(of("remove-done"), "remove")
    assert (running.state, running.percent, running.subject, running.ended) == ("running", 0, "mirror-1", None)
    assert (done.state, done.percent, done.subject, done.done) == ("finished", 100, "", 155234816)
    assert done.ended == datetime.fromtimestamp(1795254597, UTC)
    stats = of("remove-running")["removal_stats"] | {"state": "CANCELED", "end_time": T + 5}
    assert only(pool(removal_stats=stats), "remove").state == "stopped"


def test_a_single_disk_that_is_emptied_is_told_by_its_path():
    """Derived from the recorded removal: a disk instead of a mirror."""
    stats = of("remove-running")["removal_stats"] | {"name": "/dev/disk/by-id/ata-A-part1"}
    assert only(pool(removal_stats=stats), "remove").subject == "/dev/disk/by-id/ata-A-part1"


def test_a_recorded_rebuilding_onto_a_spare():
    work = only(of("spare-rebuilding"), "resilver")
    assert (work.state, work.percent, work.repaired) == ("running", 1, 24576)
    done = only(of("spare-in-use"), "resilver")
    assert (done.state, done.percent, done.ended) == ("finished", 100, datetime.fromtimestamp(1795254503, UTC))


def test_a_recorded_trim_of_data_and_log():
    work = only(of("trim"), "trim")
    assert (work.state, work.percent, work.subject) == ("running", 3, "")
    assert work.started == datetime.fromtimestamp(1795254489, UTC)
    assert [found.kind for found in scan_status.parse_long_work(of("full"))] == []


def test_a_recorded_initializing_that_is_held_while_a_trim_runs():
    works = {work.kind: work for work in scan_status.parse_long_work(of("initialize-suspended"))}
    assert (works["initialize"].state, works["trim"].state) == ("paused", "running")
    assert only(of("spare-rebuilding"), "initialize").state == "stopped"


def test_a_disk_that_went_away_while_it_was_trimmed_is_not_waited_for():
    """In the recording it still says ACTIVE. Derived: the others are done."""
    raw = of("spare-in-use")
    for leaf in disks(raw):
        if leaf["state"] != "OFFLINE" and leaf["trim_state"] == "ACTIVE":
            leaf["trim_state"] = "COMPLETE"
    work = only(raw, "trim")
    assert (work.state, work.total) == ("finished", 1992864333824 + 2 * 1992864825344)


def test_a_cache_that_zfs_itself_stopped_trimming_does_not_make_the_trim_look_stopped():
    """In the recording the cache says CANCELED, 0 of 0. Derived: the disks are done."""
    raw = of("log-removed")
    assert next(iter(raw["l2cache"].values()))["trim_state"] == "CANCELED"
    for leaf in disks(raw):
        if leaf["trim_state"] == "ACTIVE":
            leaf["trim_state"] = "COMPLETE"
    assert only(raw, "trim").state == "finished"


def trimmed(*states: tuple[str, int, int]) -> dict[str, Any]:
    """Derived: the fields that -t adds (see the recorded trim), one (state, time, done of 100) a disk."""
    raw = pool()
    for leaf, (state, at, done) in zip(disks(raw), states, strict=False):
        leaf.update(trim_state=state, trim_time=at, trimmed=done, to_trim=100, trim_errors=0, trim_notsup=0)
    return raw


def test_a_trim_is_one_work_of_all_disks():
    work = only(trimmed(("ACTIVE", T, 10), ("ACTIVE", T + 1, 30)), "trim")
    assert (work.state, work.percent, work.started) == ("running", 20, datetime.fromtimestamp(T, UTC))


def test_a_disk_that_was_trimmed_sooner_belongs_to_the_trim_under_way():
    work = only(trimmed(("ACTIVE", T, 50), ("COMPLETE", T + 9, 100)), "trim")
    assert (work.state, work.percent) == ("running", 75)


def test_a_disk_that_was_trimmed_long_ago_does_not():
    assert only(trimmed(("ACTIVE", T, 50), ("COMPLETE", T - 9, 100)), "trim").percent == 50


@pytest.mark.parametrize(
    ("states", "ours"),
    [
        (("SUSPENDED", "SUSPENDED"), "paused"),
        (("SUSPENDED", "ACTIVE"), "running"),
        (("COMPLETE", "COMPLETE"), "finished"),
        (("COMPLETE", "CANCELED"), "stopped"),
    ],
)
def test_the_trims_of_the_disks_are_told_as_one_state(states, ours):
    assert only(trimmed(*((state, T + at, 50) for at, state in enumerate(states))), "trim").state == ours


def test_an_ended_trim_has_the_end_of_its_last_disk_and_no_beginning():
    work = only(trimmed(("COMPLETE", T, 100), ("COMPLETE", T + 50, 100)), "trim")
    assert (work.started, work.ended) == (None, datetime.fromtimestamp(T + 50, UTC))


def test_a_disk_trimmed_days_before_belongs_to_another_trim():
    work = only(trimmed(("COMPLETE", T, 100), ("CANCELED", T - 5 * 86400, 10)), "trim")
    assert (work.state, work.done) == ("finished", 100)


@pytest.mark.parametrize("state", ["UNTRIMMED", "NONE", "", None, "SOMETHING NEW", 7])
def test_disks_that_were_never_trimmed_are_no_work(state):
    raw = trimmed(*(("ACTIVE", T, 1),) * 4)
    for leaf in disks(raw):
        leaf["trim_state"] = state
    assert [work.kind for work in scan_status.parse_long_work(raw)] == ["scrub"]


@pytest.mark.parametrize("state", ["ACTIVE", "COMPLETE"])
def test_a_trim_without_a_time_cannot_be_told_from_another_and_is_left_out(state):
    assert [work.kind for work in scan_status.parse_long_work(trimmed((state, 0, 1)))] == ["scrub"]


def test_initializing_is_read_alike():
    raw = pool()
    for leaf in disks(raw):
        leaf.update(init_state="ACTIVE", init_time=T, initialized=25, to_initialize=100, init_errors=0)
    assert only(raw, "initialize").percent == 25


@pytest.mark.parametrize(("said", "can"), [(0, True), ("0", True), (1, False), (None, False)])
def test_whether_disks_can_be_trimmed_is_what_they_say(said, can):
    raw = pool()
    disks(raw)[0]["trim_notsup"] = said
    assert scan_status.can_trim(raw) is can


def test_the_disks_of_a_recorded_pool_can_be_trimmed_but_its_cache_does_not_count():
    raw = of("full")
    assert scan_status.can_trim(raw)
    for leaf in disks(raw):
        leaf["trim_notsup"] = 1
    assert not scan_status.can_trim(raw)


def test_a_disk_whose_trimming_has_a_state_can_be_trimmed():
    raw = pool()
    assert not scan_status.can_trim(raw)
    disks(raw)[0]["trim_state"] = "UNTRIMMED"
    assert scan_status.can_trim(raw)


def test_it_asks_zpool_for_what_it_leaves_out_by_itself(commands):
    status.read_pools()
    assert {"-t", "-i", "-j", "--json-int"} <= set(commands.ran[0])


@pytest.mark.parametrize("odd", [2**64 - 1, -5, None, "x", 1.5, [], {}])
def test_odd_numbers_hide_no_pool_and_fit_a_database(odd):
    scan = dict.fromkeys(pool()["scan_stats"], odd) | {"function": "SCRUB", "state": "SCANNING", "start_time": T}
    work = only(pool(scan_stats=scan), "scrub")
    for amount in (work.done, work.total, work.errors, work.repaired, work.looked):
        assert 0 <= amount < 2**63


@pytest.mark.parametrize(
    "raw", [{}, {"scan_stats": {}}, {"scan_stats": None}, {"raidz_expand_stats": {"state": "NONE"}}, {"vdevs": None}]
)
def test_a_pool_that_tells_nothing_has_no_work(raw):
    assert scan_status.parse_long_work(raw) == ()


# --- which work it is -----------------------------------------------------------------------------------------
def test_the_same_scrub_has_the_same_key_from_beginning_to_report():
    (finished,) = recorded_pool().work
    running = only(pool(scan_stats=pool()["scan_stats"] | {"state": "SCANNING"}), "scrub")
    assert (
        work_key(recorded_pool(), running)
        == work_key(recorded_pool(), finished)
        == report_key(recorded_pool(), finished)
    )


def test_another_scrub_of_the_pool_and_the_same_of_another_pool_have_other_keys():
    (work,) = recorded_pool().work
    again = only(pool(scan_stats=pool()["scan_stats"] | {"start_time": T + 1}), "scrub")
    resilver = only(pool(scan_stats=pool()["scan_stats"] | {"function": "RESILVER"}), "resilver")
    keys = {report_key(recorded_pool(), one) for one in (work, again, resilver)}
    assert len(keys) == 3


def test_a_trim_is_one_row_and_each_end_of_it_one_report():
    running = only(trimmed(("ACTIVE", T, 1)), "trim")
    paused = only(trimmed(("SUSPENDED", T + 5, 1)), "trim")
    ended, later = (only(trimmed(("COMPLETE", T + at, 100)), "trim") for at in (9, 900))
    tank = recorded_pool()
    assert len({work_key(tank, work) for work in (running, paused, ended, later)}) == 1
    assert report_key(tank, ended) != report_key(tank, later)
