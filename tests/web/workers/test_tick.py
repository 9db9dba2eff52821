"""The clock goes on whatever the date says, without Redis, and over a tick that breaks off;
systemd hears of those that end."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import time_machine

from appliance.alerts import sources
from appliance.alerts.kinds import KINDS
from web.alerts.models import Alert
from workers import background, celery, guard, run_job, tick, watchdog
from workers.alerts import evaluate_alerts
from workers.celery import Beat

UNIT = Path(__file__).parents[3] / "deploy/systemd/larder-worker.service"


@pytest.fixture
def beat(monkeypatch) -> Beat:
    monkeypatch.setattr(celery, "SECONDS_BETWEEN_TICKS", 0.01)
    return Beat(None)


class Systemd:
    """The socket to which a service tells how it is."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.setblocking(False)

    def heard(self) -> list[str]:
        found = []
        while True:
            try:
                found.append(self.socket.recv(1000).decode())
            except BlockingIOError:
                return found


@pytest.fixture
def systemd(tmp_path, monkeypatch) -> Iterator[Systemd]:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    one = Systemd(tmp_path / "notify")
    yield one
    one.socket.close()


@pytest.fixture
def idle(monkeypatch) -> None:
    """Ticks with nothing to do."""
    monkeypatch.setattr(tick, "STAGES", (tick.Stage("tick-events", lambda: None),))


def test_a_date_that_is_set_back_does_not_stop_it(beat, monkeypatch):
    ticks: list[int] = []
    with time_machine.travel("2030-01-01", tick=True) as date:

        def and_back() -> None:
            ticks.append(1)
            date.move_to("2026-01-01")
            if len(ticks) == 3:
                beat.stop(None)

        monkeypatch.setattr(tick, "tick", and_back)
        beat.beat()
    assert len(ticks) == 3


def test_it_goes_on_after_a_tick_that_broke_off(beat, monkeypatch, caplog):
    ticks: list[int] = []

    def breaks() -> None:
        ticks.append(1)
        if len(ticks) == 3:
            beat.stop(None)
        raise RuntimeError("a fault of the clock")

    monkeypatch.setattr(tick, "tick", breaks)
    with caplog.at_level(logging.ERROR):
        beat.beat()
    assert len(ticks) == 3
    assert caplog.messages == ["a tick broke off"] * 3


# --- systemd ----------------------------------------------------------------------------------------------------
def test_systemd_hears_of_a_tick_that_has_ended(systemd, idle):
    tick.tick()
    assert systemd.heard() == ["WATCHDOG=1"]


def test_systemd_hears_nothing_of_a_tick_that_is_still_under_way(systemd, monkeypatch):
    heard = []
    monkeypatch.setattr(
        tick, "STAGES", (tick.Stage("tick-events", lambda: heard.append(systemd.heard()) or tick.tick()),)
    )
    tick.tick()
    assert heard == [[]]
    assert systemd.heard() == ["WATCHDOG=1"]


def test_systemd_hears_nothing_while_a_reading_is_stuck(systemd, idle, monkeypatch):
    monkeypatch.setattr(background, "_running", {"run-alerts": time.monotonic() - background.LIMITS["run-alerts"] - 1})
    tick.tick()
    assert systemd.heard() == []
    monkeypatch.setattr(background, "_running", {"run-alerts": time.monotonic()})
    tick.tick()
    assert systemd.heard() == ["WATCHDOG=1"]


def test_without_systemd_a_tick_ends_as_well(idle, monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    tick.tick()
    assert not tick._ticking.locked()
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/at/all")
    tick.tick()
    assert not tick._ticking.locked()


def test_the_unit_waits_for_the_word_and_for_as_long_as_the_worker_believes():
    lines = UNIT.read_text().splitlines()
    assert "Type=notify" in lines
    assert f"WatchdogSec={watchdog.USUAL_SECONDS}" in lines


def test_a_worker_that_was_restarted_because_it_hung_says_so_once(db):
    watchdog.write_note(
        watchdog.stage_file(), {"stage": "tick-policies", "since": time.monotonic() - watchdog.USUAL_SECONDS}
    )
    assert watchdog.note_restart()
    evaluate_alerts.evaluate_alerts()
    row = Alert.objects.get(kind="worker.restarted")
    assert row.summary == "Larder's background worker hung and was restarted."
    assert "automatic snapshots" in row.detail
    assert watchdog.note_restart() is None
    evaluate_alerts.evaluate_alerts()
    assert Alert.objects.filter(kind="worker.restarted").count() == 1


@pytest.mark.parametrize(
    "left", [None, {}, {"stage": "tick-policies", "since": "x"}, ["nonsense"], {"stage": "tick-events"}], ids=str
)
def test_a_worker_that_ended_otherwise_says_nothing(left):
    if left is not None:
        watchdog.write_note(watchdog.stage_file(), left)
    assert watchdog.note_restart() is None


def test_a_worker_that_was_stopped_in_the_middle_of_a_tick_did_not_hang(beat):
    watchdog.note_stage("tick-policies", time.monotonic() - 2)
    assert watchdog.note_restart() is None
    watchdog.note_stage("tick-policies", time.monotonic() - watchdog.USUAL_SECONDS)
    beat.stop(None)
    assert watchdog.note_restart() is None


def test_a_worker_that_stood_still_between_two_ticks_hung_as_well(monkeypatch):
    watchdog.note_finished()
    assert watchdog.note_restart() is None
    watchdog.note_finished()
    monkeypatch.setenv("WATCHDOG_USEC", "0")
    found = watchdog.note_restart()
    assert found
    assert found.stage == ""


def test_worker_woken_to_be_ended_keeps_since_when_it_stood_still(monkeypatch):
    """systemd wakes a stopped process for the signal that ends it; its clock begins another tick in that moment."""
    now = [1000.0]
    monkeypatch.setattr("workers.watchdog.time.monotonic", lambda: now[0])
    watchdog.note_finished()
    now[0] += watchdog.USUAL_SECONDS + 1
    watchdog.note_stage("tick-events", now[0])
    assert watchdog.note_restart()
    watchdog.note_finished()
    watchdog.note_stage("tick-events", now[0])
    assert watchdog.note_restart() is None


def test_a_second_restart_counts_on():
    for _time in range(2):
        watchdog.note_stage("run-facts", time.monotonic() - watchdog.USUAL_SECONDS)
        watchdog.note_restart()
    last = watchdog.last_restart()
    assert last
    assert (last.count, last.stage) == (2, "run-facts")
    assert json.loads(watchdog.restarts_file().read_text())["count"] == 2


# --- Redis ------------------------------------------------------------------------------------------------------
class FakeRedis:
    """Takes connections and says one thing, or nothing at all."""

    def __init__(self, path: Path, says: bytes) -> None:
        self.says = says
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen()
        self.taken: list[socket.socket] = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                one, _address = self.server.accept()
            except OSError:
                return
            self.taken.append(one)
            if self.says:
                one.sendall(self.says)


@pytest.mark.parametrize(
    "says", [None, b"", b"-LOADING\r\n", b"\x00\xff nonsense"], ids=["away", "hangs", "loads", "nonsense"]
)
def test_a_queue_that_does_not_answer_is_told_and_the_clock_goes_on(says, tmp_path, settings, monkeypatch, systemd):
    settings.BROKER_SOCKET = tmp_path / "redis"
    monkeypatch.setattr(run_job, "SECONDS_FOR_REDIS", 0.05)
    redis = None if says is None else FakeRedis(settings.BROKER_SOCKET, says)
    monkeypatch.setattr(
        tick, "STAGES", tuple(stage for stage in tick.STAGES if stage.name in {"tick-jobs", "tick-sweeps"})
    )
    tick.tick()
    assert set(guard.failing) == {"tick-jobs"}
    assert systemd.heard() == ["WATCHDOG=1"]
    assert redis is None or len(redis.taken) == 1


def test_every_part_of_the_clock_has_words_for_its_alert():
    assert {stage.name for stage in tick.STAGES} <= set(sources.SOURCES)
    assert set(background.LIMITS) <= set(sources.SOURCES)
    assert {"source.stopped", "worker.restarted"} <= set(KINDS)
