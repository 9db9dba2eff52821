"""What the units of systemd promise that no other test would miss."""

from __future__ import annotations

from pathlib import Path

from appliance.agent import __main__ as agent
from appliance.pools.import_pool import LONGEST_SEARCH

UNITS = Path(__file__).parents[3] / "deploy/systemd"
USUAL_WEIGHT = 100  # systemd.resource-control(5)


def settings(unit: str) -> dict[str, str]:
    """The settings of a unit's file, without its sections; of one that is set twice, the last."""
    lines = (UNITS / unit).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_search_for_an_earlier_state_of_a_pool_ends_before_its_request_is_killed():
    assert agent.LONGEST > LONGEST_SEARCH


def test_systemd_does_not_end_the_agent_while_it_works():
    """A search may take two weeks. The agent's own alarm ends a request that takes longer."""
    found = settings("larder-agent.service")
    assert "appliance.agent" in found["ExecStart"]
    assert "RuntimeMaxSec" not in found
    assert "WatchdogSec" not in found
    assert [path.name for path in UNITS.glob("*agent*")] == ["larder-agent.service", "larder-agent.socket"]


def test_pages_get_the_processor_before_everything_else():
    """Somebody waits for a page, nobody for the reading of two thousand new snapshots."""
    weights = {path.name: settings(path.name).get("CPUWeight", USUAL_WEIGHT) for path in UNITS.glob("*.service")}
    assert int(weights.pop("larder-web.service")) == 5 * USUAL_WEIGHT
    assert set(weights.values()) == {USUAL_WEIGHT}


def test_a_unit_that_others_require_is_tried_again_after_a_failure():
    """Its failure takes the start of those units with it, and their own Restart= does not count for
    a start that was refused."""
    required = {
        name
        for path in UNITS.glob("*.service")
        for name in settings(path.name).get("Requires", "").split()
        if name.endswith(".service")
    }
    assert required == {"larder-prepare.service"}
    found = settings("larder-prepare.service")
    assert (found["Type"], found["Restart"]) == ("oneshot", "on-failure")  # systemd allows no other for a oneshot
    # More than five starts within ten seconds would be the last (systemd-system.conf(5), DefaultStartLimitIntervalSec).
    assert int(found["RestartSec"]) > 10


def test_worker_whose_start_failed_with_the_preparation_is_started_by_the_next_that_succeeds():
    """Pages have their socket for that. It waits for nothing, for the worker's start waits for the preparation's end,
    and a worker that cannot be started does not make the preparation fail."""
    last = settings("larder-prepare.service")["ExecStartPost"]
    prefixes, slash, command = last.partition("/")
    assert set(prefixes) == set("-+")
    assert slash + command == "/usr/bin/systemctl start --no-block larder-worker.service"


def test_zed_gets_what_is_left_of_the_processor():
    """ZED starts a script for each snapshot: a thousand of them would keep pages waiting for minutes."""
    assert int(settings("zfs-zed.conf")["CPUWeight"]) == USUAL_WEIGHT // 5
    installed = (UNITS.parent / "install").read_text()
    assert 'systemd/zfs-zed.conf" /etc/systemd/system/zfs-zed.service.d/' in installed
