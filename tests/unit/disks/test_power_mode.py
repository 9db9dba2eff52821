"""A disk that does not report its power mode counts as asleep only while it does no work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from appliance import command
from appliance.benchmarks import environment
from appliance.disks import disk_request, latency, power_mode, standby
from appliance.disks.selftest import StartSelfTest
from appliance.disks.smart import read_smart
from tests.unit.disks.test_selftest import Work
from tests.unit.made import recorded

pytestmark = pytest.mark.usefixtures("folders")
PATH = "/dev/disk/by-id/ata-X"
AWAKE = recorded("smartctl-qemu-ata-7.4.json")


def refused(mode: str) -> str:
    return json.dumps({"smartctl": {"exit_status": 2, "messages": [{"string": f"Device is in {mode} mode, exit(2)"}]}})


class Bridge:
    """A disk that smartctl calls asleep whenever it looks at the power mode first (made up; the
    words are smartctl 7.4's)."""

    def __init__(self, diskstats: Path, mode: str = "SLEEP") -> None:
        self.diskstats, self.mode, self.asked = diskstats, mode, list[list[str]]()
        self.work(100)

    def work(self, requests: int) -> None:
        self.diskstats.write_text(f"8 0 ata-X {requests} 0 0 0 0 0 0 0 0 0 0\n")

    def run(self, argv: list[str], **_more: object) -> command.Result:
        self.asked.append(argv)
        out = refused(self.mode) if "-n" in argv else json.dumps(AWAKE)
        return command.Result(tuple(argv), 0, out, "", 0)

    def is_judged(self) -> bool:
        return not read_smart(disk_request.query_smart(PATH)).asleep


@pytest.fixture
def bridge(monkeypatch, tmp_path) -> Bridge:
    made = Bridge(tmp_path / "diskstats")
    monkeypatch.setattr(latency, "DISKSTATS", made.diskstats)
    monkeypatch.setattr(command, "run", made.run)
    return made


def test_a_disk_that_worked_since_its_last_reading_is_not_taken_for_asleep(bridge):
    assert not bridge.is_judged()  # nothing is known of its work yet
    assert not bridge.is_judged()
    bridge.work(101)
    assert bridge.is_judged()
    assert bridge.asked[-2:] == [
        ["smartctl", "--json=o", "-n", "standby", "-a", PATH],
        ["smartctl", "--json=o", "-a", PATH],
    ]
    assert not bridge.is_judged()  # it did nothing since, so it may sleep


@pytest.mark.parametrize("mode", ["STANDBY", "LOW POWER", "STANDBY BY TIMER"])
def test_a_disk_in_standby_is_never_woken(bridge, mode):
    bridge.mode = mode
    for requests in (100, 101, 102):
        bridge.work(requests)
        assert not bridge.is_judged()
    assert all("-n" in argv for argv in bridge.asked)


def test_a_disk_without_counters_is_never_woken(bridge):
    bridge.diskstats.unlink()
    assert not bridge.is_judged()
    assert not bridge.is_judged()
    assert all("-n" in argv for argv in bridge.asked)


def test_a_scheduled_test_and_the_sleep_timer_go_by_the_same_rule(bridge):
    scheduled = StartSelfTest(disk=PATH, wake=False)
    for ask in (lambda: scheduled.act(Work()), lambda: standby.set_timer(PATH, 20)):  # type: ignore[arg-type]
        ask()
        assert all("-n" in argv for argv in bridge.asked)
    bridge.is_judged()
    bridge.work(101)
    assert bridge.is_judged()
    scheduled.act(Work())  # type: ignore[arg-type]
    assert bridge.asked[-1] == ["smartctl", "--json", "-t", "short", "--", PATH]
    assert standby.set_timer(PATH, 20) == standby.TOLD
    assert bridge.asked[-1] == ["smartctl", "--json", "-s", "standby,240", "--", PATH]


def test_a_benchmark_notices_a_test_of_a_disk_that_works(bridge, monkeypatch):
    running = {"ata_smart_data": {"self_test": {"status": {"value": 249, "remaining_percent": 90}}}}
    monkeypatch.setitem(AWAKE, "ata_smart_data", running["ata_smart_data"])
    bridge.is_judged()
    bridge.work(101)
    assert len(environment.running_selftests([PATH])) == 1


def test_a_note_that_cannot_be_read_wakes_no_disk(bridge):
    bridge.is_judged()
    power_mode.note_path(PATH).write_bytes(b"half {")
    bridge.work(101)
    assert not bridge.is_judged()


def test_a_note_that_cannot_be_written_wakes_no_disk_and_stops_no_reading(bridge):
    power_mode.note_path(PATH).mkdir(parents=True)
    for requests in (101, 102):
        bridge.work(requests)
        assert not bridge.is_judged()
    assert all("-n" in argv for argv in bridge.asked)
