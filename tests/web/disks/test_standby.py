"""When disks sleep: kept for each, told to the disk, told again when it may have forgotten."""

from __future__ import annotations

import time

import pytest

from appliance import agent_client
from appliance.disks import latency, standby
from appliance.disks.latency import DiskCounters
from appliance.disks.smart_values import Reading
from tests.web import rows
from web.alerts.models import DiskCare
from web.disks import smart_history
from web.inventory.models import DiskRow
from workers import standby as worker_standby

DISK = "ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001"
PAGE = f"/disks/{DISK}/health/"
WELL = Reading(answered=True, passed=True, temperature=31, ata=True)


@pytest.fixture
def told(calm, monkeypatch) -> list[dict[str, int]]:
    """What the agent was asked to tell; every disk takes it, and none has lost power."""
    asked: list[dict[str, int]] = []

    def last(request, **_more):
        asked.append(request["disks"])
        return {"facts": dict.fromkeys(request["disks"], standby.TOLD)}

    monkeypatch.setattr(agent_client, "send_request", last)
    monkeypatch.setattr(standby, "power_token", lambda name: f"boot {name}")
    rows.recorded_box()
    smart_history.store_answers(dict.fromkeys(DiskRow.objects.all(), WELL))
    return asked


def keep(web, value: str, **more: str):
    return web.post(f"{PAGE}sleep/", {"sleep": value, **more})


def test_a_disk_is_told_once_and_again_after_it_was_plugged_in(web, told, monkeypatch):
    assert keep(web, "20").status_code == 302
    assert "when the disk next wakes" in web.get(PAGE).content.decode()
    assert worker_standby.set_timers()
    assert not worker_standby.set_timers()
    assert told == [{f"/dev/disk/by-id/{DISK}": 20}]
    assert "when the disk next wakes" not in web.get(PAGE).content.decode()
    monkeypatch.setattr(standby, "power_token", lambda name: f"boot {name} again")
    assert worker_standby.set_timers()
    assert len(told) == 2


def test_a_disk_whose_row_cannot_be_decoded_keeps_no_other_from_being_told(web, told):
    keep(web, "60", all="yes")
    DiskRow.objects.filter(key=DISK).update(facts="{}")
    assert worker_standby.set_timers()
    assert len(told[0]) == 3
    assert f"/dev/disk/by-id/{DISK}" not in told[0]


def test_its_pool_is_told_with_it(web, told):
    keep(web, "60", all="yes")
    worker_standby.set_timers()
    assert len(told[0]) == 4
    assert set(told[0].values()) == {60}


def test_a_sleeping_disk_waits_until_it_is_awake(web, told):
    DiskRow.objects.filter(key=DISK).update(asleep=True)
    keep(web, "10")
    assert not worker_standby.set_timers()
    DiskRow.objects.filter(key=DISK).update(asleep=False)
    assert worker_standby.set_timers()


def test_one_that_fell_asleep_meanwhile_is_asked_again(web, told, monkeypatch):
    keep(web, "10")
    monkeypatch.setattr(
        agent_client,
        "send_request",
        lambda request, **_more: {"facts": dict.fromkeys(request["disks"], standby.ASLEEP)},
    )
    worker_standby.set_timers()
    assert DiskCare.objects.get(disk=DISK).told == ""


def test_a_disk_that_does_not_take_it_says_so_and_is_not_asked_again_and_again(web, told, monkeypatch):
    keep(web, "10")
    monkeypatch.setattr(
        agent_client,
        "send_request",
        lambda request, **_more: {"facts": dict.fromkeys(request["disks"], "<b>ATA IDLE</b> failed")},
    )
    worker_standby.set_timers()
    assert "&lt;b&gt;ATA IDLE&lt;/b&gt; failed" in web.get(PAGE).content.decode()
    assert not worker_standby.set_timers()


def test_left_as_it_is_it_is_not_told_anything(web, told):
    keep(web, "20")
    keep(web, "")
    assert not worker_standby.set_timers()
    assert DiskCare.objects.get(disk=DISK).sleep is None


@pytest.mark.parametrize("value", ["7", "-1", "x", "20 "])
def test_other_times_are_refused(web, told, value):
    assert keep(web, value).status_code == 400


def test_a_disk_that_has_nothing_that_turns_or_takes_no_such_command_is_not_asked_for_it(web, told):
    smart_history.store_answers({DiskRow.objects.get(key=DISK): Reading(answered=True, passed=True)})
    assert "Go to sleep" not in web.get(PAGE).content.decode()
    assert keep(web, "20").status_code == 400


def test_a_disk_without_work_is_left_in_peace_until_it_should_sleep(web, told, monkeypatch):
    row = DiskRow.objects.get(key=DISK)
    requests, clock = [100], [1000.0]
    monkeypatch.setattr(worker_standby, "_asked", {})
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(latency, "read_counters", lambda: {row.fact.name: DiskCounters(requests[0], 0)})
    keep(web, "10")
    assert worker_standby.take_disks_to_query([row]) == [row]
    clock[0] += 300
    assert worker_standby.take_disks_to_query([row]) == []
    requests[0] += 1  # it has work, so a question keeps nothing awake
    assert worker_standby.take_disks_to_query([row]) == [row]
    clock[0] += 700
    assert worker_standby.take_disks_to_query([row]) == [row]
