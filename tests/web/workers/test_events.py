"""Events of ZED and smartd on their way from the spool to alerts."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from appliance import agent_client
from appliance.disks.inventory import device_names
from appliance.system import paths
from tests.unit.made import disk
from tests.web import rows
from web.alerts.models import Alert
from web.inventory.models import DiskRow
from workers import background, collectors, tick

FAILING = {"smart_status": {"passed": False}}


def report(device: str, name: str = "1.json") -> None:
    """A report of smartd as its hook writes it."""
    fields = {"SMARTD_FAILTYPE": "Health", "SMARTD_DEVICE": device, "SMARTD_MESSAGE": "FAILED"}
    (paths.SPOOL / name).write_text(json.dumps({"source": "smartd", "fields": fields}))


@pytest.fixture
def asked(monkeypatch) -> list[list[str]]:
    """The disks that the agent is asked for SMART, each time; every one of them is failing."""
    found: list[list[str]] = []

    def request(message: dict[str, Any], **_more: object) -> dict[str, Any]:
        found.append(message["disks"])
        return {"facts": dict.fromkeys(message["disks"], FAILING)}

    monkeypatch.setattr(agent_client, "send_request", request)
    monkeypatch.setattr(tick, "_reported_disks", set())
    monkeypatch.setattr(tick, "_events_heard", threading.Event())
    monkeypatch.setattr(collectors, "is_due", lambda *_args: False)
    rows.put(disks=[disk(1), disk(2)])
    return found


def test_smartd_event_reads_its_disk_at_once_and_raises_the_alert(asked, monkeypatch):
    monkeypatch.setattr(background, "start_thread", lambda _name, work: work() or True)
    report("/dev/sdb")
    tick.ingest_events()
    tick.start_smart()
    assert asked == [[disk(2).path]]
    assert [row.verdict for row in DiskRow.objects.order_by("key")] == ["", "failing"]
    assert [alert.subject for alert in Alert.objects.filter(kind="disk.failing")] == [disk(2).path.rsplit("/", 1)[-1]]
    tick.start_smart()
    assert len(asked) == 1


def test_smartd_event_during_a_reading_is_read_after_it(asked, monkeypatch):
    monkeypatch.setattr(background, "start_thread", lambda _name, _work: False)  # one is under way
    report("/dev/sda")
    tick.ingest_events()
    tick.start_smart()
    monkeypatch.setattr(background, "start_thread", lambda _name, work: work() or True)
    tick.start_smart()
    assert asked == [[disk(1).path]]


def test_smartd_event_of_an_unknown_device_asks_no_disk(asked, monkeypatch):
    monkeypatch.setattr(background, "start_thread", lambda _name, work: work() or True)
    report("/dev/sdz")
    tick.ingest_events()
    tick.start_smart()
    assert asked == []


def test_zed_event_reads_the_system(asked, monkeypatch):
    started: list[tuple[str, object]] = []
    monkeypatch.setattr(background, "start_thread", lambda name, work: started.append((name, work)) or True)
    event = {"source": "zed", "fields": {"ZEVENT_CLASS": "sysevent.fs.zfs.vdev_remove", "ZEVENT_POOL": "tank"}}
    (paths.SPOOL / "1.json").write_text(json.dumps(event))
    tick.ingest_events()
    tick.start_smart()
    tick.start_collecting()
    assert started == [("run-facts", collectors.collect_soon)]


@pytest.mark.parametrize(
    ("name", "device"), [("sda", "/dev/sda"), ("nvme0n1", "/dev/nvme0"), ("nvme0n1", "/dev/nvme0n1")]
)
def test_device_names_hold_what_smartd_calls_the_disk(name, device):
    assert device in device_names(disk(1, name=name))
