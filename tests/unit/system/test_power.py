"""Restarting the box and switching it off."""

from __future__ import annotations

import pytest

from appliance.errors import Refused
from appliance.facts.box import LongWork, Pool
from appliance.operation import checked_plan
from appliance.system import power
from appliance.system.power import RestartBox, ShutDownBox
from tests.reasons import codes, expect_refusal
from tests.unit.made import box
from tests.unit.pools.test_create import Working

NOW, BEFORE = "1f0b6c1e-52a7-4a5d-9a43-f1f6b8d2c011", "2f0b6c1e-52a7-4a5d-9a43-f1f6b8d2c011"


@pytest.fixture(autouse=True)
def this_start(monkeypatch):
    monkeypatch.setattr(power, "boot_id", lambda: NOW)


@pytest.mark.parametrize(
    ("kind", "argv"), [(RestartBox, ["systemctl", "reboot"]), (ShutDownBox, ["systemctl", "poweroff"])]
)
def test_systemd_is_asked_by_the_command_that_is_shown(commands, kind, argv):
    (step,) = checked_plan(kind(boot=NOW), box()).steps
    step.run(Working())
    (ran,) = commands.ran
    assert step.command_text == " ".join(ran)
    assert (ran[0], ran[-2:]) == ("systemd-run", argv)


def test_job_of_an_earlier_start_ends_nothing(commands):
    (step,) = RestartBox(boot=BEFORE).plan(box()).steps
    with pytest.raises(Refused) as caught:
        step.run(Working())
    assert codes(caught.value.reasons) == ["box-restarted-since"]
    assert commands.ran == []


def test_it_is_done_once_the_box_runs_another_start():
    assert not RestartBox(boot=NOW).probe("power", box())
    assert RestartBox(boot=BEFORE).probe("power", box())


@pytest.mark.parametrize("boot", ["", "1", NOW.upper(), f"{NOW}\n", "../" + NOW])
def test_boot_id_has_its_grammar(boot):
    with expect_refusal("boot-id-malformed"):
        RestartBox(boot=boot)


def test_plans_of_two_starts_differ():
    assert RestartBox(boot=NOW).plan(box()).digest() != RestartBox(boot=BEFORE).plan(box()).digest()
    assert RestartBox(boot=NOW).plan(box()).digest() != ShutDownBox(boot=NOW).plan(box()).digest()


def test_warnings_name_what_continues_after_the_start():
    def working(pool, *works):
        under_way = tuple(LongWork(kind, state, None, None, 1, 2) for kind, state in works)
        return Pool(name=pool, guid=1, state="ONLINE", work=under_way)

    pools = (
        working("tank", ("scrub", "running"), ("trim", "paused"), ("remove", "finished")),
        working("safe", ("scrub", "waiting"), ("expand", "running")),
    )
    assert RestartBox(boot=NOW).plan(box(pools=pools)).warnings == (
        "A scrub of tank, safe is not finished. It continues after the start.",
        "The expansion of safe is not finished. It continues after the start.",
    )


def test_pool_that_has_stopped_is_not_waited_for_and_the_plan_says_what_that_costs():
    stopped = Pool(name="usb", guid=2, state="SUSPENDED")
    assert RestartBox(boot=NOW).plan(box(pools=(stopped,))).warnings == (
        "usb has stopped. The box does not wait for it: what usb has not written yet is lost, as in a power cut.",
    )
