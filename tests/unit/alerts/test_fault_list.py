"""The fault run with a machine (``tests/system/faults.py``) takes hours; that its list is complete
is tested here, every time."""

from __future__ import annotations

from appliance.alerts.sources import SOURCES
from tests.system import faults


def test_everything_that_is_read_or_started_is_made_to_fail_once_or_has_its_reason():
    assert sorted([*faults.PARTS, *faults.ELSEWHERE]) == sorted([*SOURCES, *faults.UPKEEP])


def test_each_tool_fails_hangs_and_answers_nonsense():
    tried = [one.name for _proof, some in faults.FAULTS for one in some]
    assert {f"{called} {mode}" for called in faults.TOOLS for mode in faults.MODES} <= set(tried)


def test_what_has_to_be_read_meanwhile_is_read_at_all():
    assert set(SOURCES) >= faults.READINGS | faults.SMART
