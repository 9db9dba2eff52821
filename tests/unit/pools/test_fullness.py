"""One table says how full a pool is: verdict and alert agree at every per cent."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from appliance.alerts.fault import AlertInput, Space
from appliance.alerts.pool_rules import space_faults
from appliance.pools import fullness, health
from tests.unit.pools import shapes

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("percent", range(101))
def test_verdict_and_alert_agree_at_every_percent(percent):
    level = fullness.classify(percent).level
    verdict = health.of_pool(shapes.raidz2(), lambda device: device.name, used=percent, total=100)
    assert verdict.state == health.LEVEL_STATES[level]
    assert verdict.word == fullness.classify(percent).word
    faults = list(space_faults(AlertInput(now=datetime.now(UTC), spaces=(Space(1, "tank", percent, 100),))))
    assert [fault.kind_info.severity for fault in faults] == ([level] if level else [])
    assert all(fullness.classify(percent).meaning in fault.detail for fault in faults)


def test_percent_is_whole_and_between_0_and_100():
    assert [fullness.percent_used(*sizes) for sizes in ((0, 0), (899, 1000), (5, 4), (-1, 4))] == [0, 89, 100, 0]


def test_pool_that_fills_up_still_says_how_many_disks_may_fail():
    found = health.of_pool(shapes.raidz2(), lambda device: device.name, used=85, total=100)
    assert "2 more failed disks" in found.meaning


def test_no_other_module_compares_percent_of_space_with_own_figures():
    compared = re.compile(r"percent\s*[<>]=?\s*[89]\d\b")
    found = {
        str(path.relative_to(ROOT))
        for folder in ("appliance", "web", "workers")
        for path in (ROOT / folder).rglob("*.py")
        if compared.search(path.read_text(encoding="utf-8"))
    }
    assert found == set()
