"""Every few seconds: take in events, send what waits, have the system read where it is time. Cheap when there is nothing.

The clock runs this in a thread of its own. Each stage has its guard, so that one that fails stops no other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from workers import (
    background,
    benchmarks,
    collectors,
    deliver,
    guard,
    housekeeping,
    maintenance,
    selftests,
    snapshot_policies,
    spool,
    watchdog,
)
from workers.celery import app
from workers.run_job import send_waiting

_ticking = threading.Lock()
_events_heard = threading.Event()
ALERTS_EVERY = timedelta(seconds=60)


@dataclass(frozen=True)
class Stage:
    """One part of a tick; ``name`` is where its errors are noted (``appliance/alerts/sources.py``)."""

    name: str
    run: Callable[[], object]


def take_events() -> None:
    if spool.ingest():
        _events_heard.set()


def ask_for_facts() -> None:
    """Have the system read. What was heard during a reading has another follow it."""
    if (_events_heard.is_set() or collectors.due("pools", collectors.WHEN_NOBODY_LOOKS)) and background.start(
        "run-facts", collectors.collect
    ):
        _events_heard.clear()


def ask_for_temperatures() -> None:
    if collectors.due("temperatures", collectors.TEMPERATURES_EVERY) or (
        collectors.due("temperatures", collectors.NEW_DISK_WITHIN) and collectors.unasked()
    ):
        background.start("run-temperatures", collectors.temperatures)


def ask_for_alerts() -> None:
    """Alerts are judged at the end of each reading. Where readings take long or break off, they are judged all the same."""
    if collectors.due("alerts", ALERTS_EVERY):
        background.start("run-alerts", collectors.judge)


def ask_for_mail() -> None:
    if deliver.has_waiting(timezone.now()):
        background.start("run-mail", deliver.deliver)


def begin_scrubs() -> None:
    if maintenance.looks.due():
        maintenance.begin_due_maintenance()


def begin_self_tests() -> None:
    if selftests.looks.due():
        selftests.begin_due_selftests()


def follow_policies() -> None:
    if snapshot_policies.looks.due():
        snapshot_policies.run_due_policies()


def ask_for_housekeeping() -> None:
    if housekeeping.looks.due():
        background.start("run-housekeeping", housekeeping.run_housekeeping)


# What others depend on comes first: a box that begins nothing has to be able to say so.
STAGES = (
    Stage("tick-events", take_events),
    Stage("tick-facts", ask_for_facts),
    Stage("tick-temperatures", ask_for_temperatures),
    Stage("tick-alerts", ask_for_alerts),
    Stage("tick-mail", ask_for_mail),
    Stage("tick-jobs", lambda: send_waiting()),
    Stage("tick-sweeps", lambda: benchmarks.advance_benchmarks()),
    Stage("tick-scrubs", begin_scrubs),
    Stage("tick-self-tests", begin_self_tests),
    Stage("tick-policies", follow_policies),
    Stage("tick-housekeeping", ask_for_housekeeping),
)


@app.task(name="workers.tick")
def tick() -> None:
    """One beat of the clock; a beat that comes while the last is still at work is let go."""
    if not _ticking.acquire(blocking=False):
        return
    try:
        began = time.monotonic()
        for stage in STAGES:
            watchdog.begun(stage.name, began)
            guard.guarded(stage.name, stage.run)
        if stuck := background.stuck():
            watchdog.begun(stuck, began - watchdog.seconds())  # systemd hears nothing until that has ended
        else:
            watchdog.finished()
    finally:
        _ticking.release()
