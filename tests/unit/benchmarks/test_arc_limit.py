"""The ARC is limited during a case and restored afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.benchmarks import arc_limit, scratch
from appliance.errors import Failed
from appliance.layout.geometry import GIB, MIB
from appliance.operation import checked_plan
from appliance.zfs import kstat
from tests.reasons import expect_refusal
from tests.unit.benchmarks.test_run_case import TOKEN, operation
from tests.unit.made import box
from tests.unit.pools.test_create import Working

OTHER = "ba9876543210"
BEFORE = {"c_max": 3 * GIB, "c_min": 128 * MIB}


@pytest.fixture
def module(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, str]]:
    """A ZFS module that accepts parameters like arc_tuning_update() of OpenZFS 2.3. Returns its current values."""
    arc, place = dict(BEFORE), folders / "parameters"
    place.mkdir()
    texts = {"zfs_arc_max": "0", "zfs_arc_min": "0"}

    def write() -> None:
        for name, text in texts.items():
            (place / name).write_text(f"{text}\n")
        (folders / "arcstats").write_text("".join(f"{name} 4 {value}\n" for name, value in arc.items()))

    def put(name: str, text: str) -> None:
        texts[name] = text
        value = int(text)
        if name == "zfs_arc_min" and 32 * MIB <= value <= arc["c_max"]:
            arc["c_min"] = value
        if name == "zfs_arc_max" and value >= 64 * MIB and value > arc["c_min"]:
            arc["c_max"] = value
        write()

    write()
    monkeypatch.setattr(arc_limit, "PARAMETERS", place)
    monkeypatch.setattr(arc_limit, "write_parameter", put)
    monkeypatch.setattr(kstat, "KSTAT", folders)
    return lambda: {**texts, **{name: str(value) for name, value in arc.items()}}


def test_arc_is_limited_to_half_the_data_and_restored_afterwards(module):
    before = module()
    assert arc_limit.limit_arc(TOKEN, 256 * MIB) == 128 * MIB
    assert module()["c_max"] == str(128 * MIB)
    arc_limit.release_limit(TOKEN)
    assert module() == before
    assert not arc_limit.limit_path().exists()
    arc_limit.release_limit(TOKEN)
    assert module() == before


def test_limit_is_restored_after_the_last_of_two_cases(module):
    before = module()
    arc_limit.limit_arc(TOKEN, GIB)
    arc_limit.limit_arc(OTHER, 256 * MIB)
    assert module()["c_max"] == str(128 * MIB)
    arc_limit.release_limit(OTHER)
    assert module()["c_max"] == str(512 * MIB)
    arc_limit.release_limit(TOKEN)
    assert module() == before


def test_cleanup_after_a_killed_case_restores_the_limit(module, commands):
    before = module()
    arc_limit.limit_arc(TOKEN, GIB)
    scratch.clear_case(TOKEN, Working())
    assert module() == before


def test_limit_that_zfs_ignores_fails_and_cleanup_restores_it(module, monkeypatch):
    monkeypatch.setattr(arc_limit, "write_parameter", lambda _name, _text: None)
    with pytest.raises(Failed, match="did not take the limit"):
        arc_limit.limit_arc(TOKEN, GIB)
    arc_limit.release_limit(TOKEN)
    assert not arc_limit.limit_path().exists()


def test_limit_that_cannot_be_written_fails(module, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(arc_limit, "PARAMETERS", tmp_path / "nothing")
    with pytest.raises(Failed, match="cannot be changed"):
        arc_limit.write_parameter("zfs_arc_max", "1")


def test_plan_says_that_the_limit_is_for_the_whole_box(module):
    plan = checked_plan(operation(workload="seq-read", size=GIB, limited=True), box())
    (step,) = [step for step in plan.steps if step.name == "memory"]
    assert plan.steps.index(step) == 1  # after the claim
    assert "whole box" in step.title
    assert f"write {512 * MIB} into " in step.command_text
    assert "echo" not in step.command_text  # no shell runs
    step.run(Working())
    assert module()["c_max"] == str(512 * MIB)


@pytest.mark.parametrize("changes", [{"size": 64 * MIB}, {"aside": True}])
def test_memory_limit_is_refused_where_it_has_no_effect(changes):
    with expect_refusal("memory-limit-useless"):
        operation(**{"limited": True, "size": GIB, **changes})
