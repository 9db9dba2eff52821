"""Scrub, trim and settings of a pool as operations: what speaks against them, what they run, what probes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from appliance.errors import Failed, Refused
from appliance.facts.box import Facts, LongWork, Pool, PoolProperties
from appliance.operation import Operation, checked_plan, kind_of
from appliance.pools import damaged_files, properties
from appliance.pools.properties import KNOWN, SetPoolProperty
from appliance.pools.scrub import PauseScrub, StartScrub, StopScrub
from appliance.pools.trim import StartTrim, StopTrim
from tests.reasons import codes, expect_refusal
from tests.unit.made import box, recorded_pool, recorded_text

T = datetime(2026, 11, 1, tzinfo=UTC)
FINISHED = LongWork("scrub", "finished", T, T, 10, 10)


def work(kind: str = "scrub", state: str = "running", *, hours: int = 0) -> LongWork:
    return LongWork(kind, state, T.replace(hour=hours), None, 1, 10)


def pool(*found: LongWork, **changes: object) -> Pool:
    return replace(recorded_pool(), **{"work": found, "can_trim": True, **changes})


def facts(*found: LongWork, autotrim: str = "off", **changes: object) -> Facts:
    one = pool(*found, **changes)
    return box(pools=(one,), properties=(PoolProperties("tank", one.guid, {"autotrim": autotrim, "comment": ""}),))


def argv(operation: Operation, now: Facts) -> list[str]:
    return [step.command_text for step in checked_plan(operation, now).steps]


SCRUB, PAUSE, STOP = StartScrub(pool="tank"), PauseScrub(pool="tank"), StopScrub(pool="tank")
TRIM, STOP_TRIM = StartTrim(pool="tank"), StopTrim(pool="tank")
ON = SetPoolProperty(pool="tank", name="autotrim", value="on")
EVERY = [SCRUB, PAUSE, STOP, TRIM, STOP_TRIM, ON]


@pytest.mark.parametrize(
    ("operation", "now", "command"),
    [
        (SCRUB, facts(), "zpool scrub -- tank"),
        (SCRUB, facts(FINISHED), "zpool scrub -- tank"),
        (SCRUB, facts(work(state="paused")), "zpool scrub -- tank"),
        (PAUSE, facts(work()), "zpool scrub -p -- tank"),
        (STOP, facts(work()), "zpool scrub -s -- tank"),
        (STOP, facts(work(state="paused")), "zpool scrub -s -- tank"),
        (TRIM, facts(), "zpool trim -- tank"),
        (TRIM, facts(work("trim", "paused")), "zpool trim -- tank"),
        (STOP_TRIM, facts(work("trim")), "zpool trim -c -- tank"),
        (ON, facts(), "zpool set autotrim=on tank"),
        (
            SetPoolProperty(pool="tank", name="comment", value="Anna's films"),
            facts(),
            "zpool set 'comment=Anna'\"'\"'s films' tank",
        ),
    ],
)
def test_the_command(operation, now, command):
    assert argv(operation, now) == [command]


@pytest.mark.parametrize(
    ("operation", "now", "words"),
    [
        (SCRUB, facts(work()), "already running"),
        (SCRUB, facts(work("resilver")), "being rebuilt"),
        (PAUSE, facts(), "No scrub of"),
        (PAUSE, facts(FINISHED), "No scrub of"),
        (PAUSE, facts(work(state="paused")), "No scrub of"),
        (PAUSE, facts(work("resilver")), "No scrub of"),
        (STOP, facts(FINISHED), "No scrub of"),
        (STOP, facts(work("resilver")), "No scrub of"),
        (TRIM, facts(can_trim=False), "can be trimmed"),
        (TRIM, facts(work("trim")), "being trimmed already"),
        (STOP_TRIM, facts(), "not being trimmed"),
        (ON, facts(can_trim=False), "can be trimmed"),
    ],
)
def test_what_speaks_against_it(operation, now, words):
    with pytest.raises(Refused, match=words):
        checked_plan(operation, now)


@pytest.mark.parametrize("operation", EVERY, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    ("now", "code"),
    [
        (box(), "pool-missing"),
        (box(zfs="missing"), "zfs-not-loaded"),
        (facts(state="SUSPENDED"), "pool-in-bad-state"),
        (facts(state="FAULTED"), "pool-in-bad-state"),
    ],
)
def test_a_pool_that_does_not_work_is_asked_nothing(operation, now, code):
    assert codes(operation.check(now))[0] == code


def test_another_pool_of_the_same_name_is_another_plan():
    here, there = facts(), facts(guid=7)
    for operation in (SCRUB, TRIM, ON):
        assert checked_plan(operation, here).digest() != checked_plan(operation, there).digest()


def test_progress_changes_no_plan():
    more = replace(work(), done=5)
    assert checked_plan(PAUSE, facts(work())).digest() == checked_plan(PAUSE, facts(more)).digest()


def test_going_on_with_a_paused_check_is_another_plan_than_beginning_one():
    assert checked_plan(SCRUB, facts()).digest() != checked_plan(SCRUB, facts(work(state="paused"))).digest()


# --- what settles an interrupted job --------------------------------------------------------------------------
def test_a_scrub_that_runs_or_has_run_since_was_begun():
    before = StartScrub.of(pool(FINISHED))
    assert not before.probe("start", facts(FINISHED))
    assert before.probe("start", facts(work(hours=1)))
    assert before.probe("start", facts(replace(FINISHED, started=T.replace(hour=1))))
    assert not StartScrub.of(pool()).probe("start", facts())


def test_a_paused_scrub_that_is_still_paused_did_not_go_on():
    paused = work(state="paused")
    assert not StartScrub.of(pool(paused)).probe("start", facts(paused))
    assert StartScrub.of(pool(paused)).probe("start", facts(work()))


@pytest.mark.parametrize(
    ("operation", "state", "happened"),
    [
        (PAUSE, "running", False),
        (PAUSE, "paused", True),
        (STOP, "paused", False),
        (STOP, "running", False),
        (STOP, "stopped", True),
    ],
)
def test_pausing_and_stopping_are_told_by_the_state(operation, state, happened):
    assert operation.probe("", facts(work(state=state))) is happened


def test_a_trim_that_ended_since_was_begun():
    ended = LongWork("trim", "finished", None, T, 10, 10)
    assert not StartTrim.of(pool(ended)).probe("start", facts(ended))
    assert StartTrim.of(pool(ended)).probe("start", facts(replace(ended, ended=T.replace(hour=2))))
    assert StartTrim.of(pool()).probe("start", facts(work("trim")))
    assert STOP_TRIM.probe("stop", facts(ended))
    assert not STOP_TRIM.probe("stop", facts(work("trim")))


def test_a_setting_is_told_by_its_value():
    assert not ON.probe("set", facts())
    assert ON.probe("set", facts(autotrim="on"))
    assert not ON.probe("set", box())


@pytest.mark.parametrize("operation", EVERY, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("now", [box(), facts(), facts(work())])
def test_after_an_interruption_there_is_a_way_on(operation, now):
    assert operation.recovery_hint(checked_names(operation), now).endswith((".", "like."))


def checked_names(operation: Operation) -> str:
    return {"start-scrub": "start", "start-trim": "start", "set-pool-property": "set"}.get(kind_of(operation), "stop")


# --- settings -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("autotrim", "maybe", "value-not-on-off"),
        ("autoexpand", "", "value-not-on-off"),
        ("comment", "x" * 33, "comment-too-long"),
        ("comment", "Küche", "comment-not-ascii"),
        ("comment", "a\nb", "invisible-characters"),
    ],
)
def test_a_value_outside_its_grammar_is_refused(name, value, code):
    with expect_refusal(code):
        SetPoolProperty(pool="tank", name=name, value=value)


@pytest.mark.parametrize("value", ["x" * 32, "", "-rf", "a=b; $(id)"])
def test_a_note_may_be_any_plain_text(value):
    assert checked_plan(SetPoolProperty(pool="tank", name="comment", value=value), facts()).steps


def test_settings_are_read_and_a_dash_is_nothing(commands):
    commands.answers["zpool"] = recorded_text("zpool-get-2.3.9.json")
    values = {"autotrim": "off", "autoexpand": "off", "autoreplace": "off", "failmode": "wait", "comment": ""}
    assert properties.read_properties() == (PoolProperties("full", 5121254786772367006, values),)
    assert commands.ran == [["zpool", "get", "-j", "--json-int", ",".join(properties.ASKED)]]
    assert set(properties.ASKED) == {*KNOWN, properties.EXPANSION}


def test_settings_that_are_odd_or_were_not_asked_for_are_passed_over(commands):
    """Derived from the shape of the recorded settings."""
    values = {"autotrim": {"value": "off"}, "health": {"value": "ONLINE"}, "failmode": None}
    commands.answers["zpool"] = json.dumps({"pools": {"tank": {"pool_guid": 5, "properties": values}}})
    assert properties.read_properties() == (PoolProperties("tank", 5, {"autotrim": "off", "failmode": ""}),)


@pytest.mark.parametrize("text", ["", "{}", '{"pools": null}', '{"pools": {"tank": {}}}'])
def test_no_settings_are_no_error(commands, text):
    commands.answers["zpool"] = text
    assert all(found.values == {} for found in properties.read_properties())


# --- damaged files --------------------------------------------------------------------------------------------
def test_recorded_damage_names_the_file_and_the_pools_own_records(commands):
    commands.answers["zpool"] = recorded_text("zpool-status-errlist-2.3.9.json")
    assert damaged_files.read_damaged_files("dam") == {
        "count": 3,
        "files": ["<metadata>:<0x47>", "<metadata>:<0x4c>", "/dam/photo.raw"],
    }


def test_damaged_files_are_named_once_and_counted(commands):
    listed = ["/tank/a.jpg", "tank/photos@old:/b.jpg", "/tank/a.jpg", "<metadata>:<0x0>"]
    commands.answers["zpool"] = json.dumps({"pools": {"tank": {"errlist": listed}}})
    assert damaged_files.read_damaged_files("tank") == {
        "count": 3,
        "files": ["/tank/a.jpg", "tank/photos@old:/b.jpg", "<metadata>:<0x0>"],
    }
    assert commands.ran == [["zpool", "status", "-j", "--json-int", "-v", "--", "tank"]]


def test_thousands_of_damaged_files_are_counted_and_the_first_named(commands):
    commands.answers["zpool"] = json.dumps({"pools": {"tank": {"errlist": [f"/tank/{at}" for at in range(5000)]}}})
    found = damaged_files.read_damaged_files("tank")
    assert found["count"] == 5000
    assert len(found["files"]) == damaged_files.MOST_NAMED  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "found",
    [{}, {"pools": {"tank": {}}}, {"pools": {"tank": {"errlist": "x"}}}, {"pools": {"other": {"errlist": ["x"]}}}],
)
def test_no_damage_is_none(commands, found):
    commands.answers["zpool"] = json.dumps(found)
    assert damaged_files.read_damaged_files("tank") == {"count": 0, "files": []}


def test_output_that_is_not_json_is_said_so(commands):
    commands.answers["zpool"] = "cannot open"
    with pytest.raises(Failed):
        damaged_files.read_damaged_files("tank")
