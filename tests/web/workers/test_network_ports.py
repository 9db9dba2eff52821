"""Alerts of network ports: they wait, there is one of a port, and they clear once."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from appliance.system.network_port import PortStatus
from web.alerts.models import Alert
from workers import guard
from workers.alerts import evaluate_alerts

SLOW = PortStatus("eno1", slow="It runs at 100 Mbit/s and can do 1 Gbit/s.")
WELL = PortStatus("eno1")


@pytest.fixture
def ports(monkeypatch) -> Callable[[float, PortStatus], list[str]]:
    """Evaluate at a moment (in minutes) with that port; the alerts of ports that are not cleared."""
    begun, at = time.monotonic(), timezone.now()

    class Watch:
        status = WELL

        def look(self, _now: float) -> tuple[PortStatus, ...]:
            return (self.status,)

    watch = Watch()
    monkeypatch.setattr(evaluate_alerts, "PORTS", watch)

    def evaluate(minutes: float, status: PortStatus) -> list[str]:
        watch.status = status
        monkeypatch.setattr("time.monotonic", lambda: begun + 60 * minutes)
        evaluate_alerts.evaluate_alerts(at + timedelta(minutes=minutes))
        return list(
            Alert.objects.filter(kind__startswith="port.").exclude(state="cleared").values_list("kind", flat=True)
        )

    return evaluate


def test_slow_link_waits_ten_minutes_is_one_alert_and_clears_once(web, box, ports):
    assert ports(0, SLOW) == []
    assert ports(9, SLOW) == []
    assert ports(11, SLOW) == ["port.slow"]
    assert ports(12, WELL) == ["port.slow"]
    assert ports(13, SLOW) == ["port.slow"]
    assert ports(14, WELL) == ["port.slow"]
    assert ports(20, WELL) == []
    assert Alert.objects.filter(kind="port.slow").count() == 1


def test_link_that_is_slow_for_a_moment_is_no_alert(web, box, ports):
    assert ports(0, SLOW) == []
    assert ports(5, WELL) == []
    assert ports(11, SLOW) == []


def test_ports_that_cannot_be_read_clear_nothing(web, box, ports, monkeypatch):
    ports(0, SLOW)
    assert ports(11, SLOW) == ["port.slow"]

    class Broken:
        def look(self, _now: float) -> tuple[PortStatus, ...]:
            raise OSError("no /sys")

    monkeypatch.setattr(evaluate_alerts, "PORTS", Broken())
    with pytest.raises(guard.PartlyFailed):
        evaluate_alerts.evaluate_alerts(timezone.now() + timedelta(minutes=60))
    assert Alert.objects.get(kind="port.slow").state == "open"
