"""The tick: every few seconds ingest events, start due readings, send waiting jobs and mail. Cheap when nothing is due.

The clock runs it in its own thread. Each stage has a guard, so one that fails stops no other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import msgspec
from django.db import DatabaseError
from django.utils import timezone

from workers import (
    background,
    backups,
    benchmarks,
    burn_in,
    collectors,
    guard,
    housekeeping,
    imports,
    maintenance,
    received_copies,
    selftests,
    snapshot_policies,
    spool,
    watchdog,
)
from workers.alerts import deliver
from workers.celery import app
from workers.interval import Interval
from workers.run_job import send_waiting

_ticking = threading.Lock()
_events_heard = threading.Event()
_reported_disks: set[str] = set()  # devices that smartd reported and that were not read since
ALERTS_EVERY = timedelta(seconds=60)
unread = Interval(ALERTS_EVERY.total_seconds())  # of judging the alerts while the inventory cannot be read


class Stage(msgspec.Struct, frozen=True):
    """One part of a tick; ``name`` is where its errors are noted (``appliance/alerts/sources.py``)."""

    name: str
    run: Callable[[], object]


def ingest_events() -> None:
    """Store new events; the next stages read what they are about."""
    events = spool.ingest_events()
    if events:
        _events_heard.set()
    _reported_disks.update(event.subject for event in events if event.source == "smartd")


def start_collecting() -> None:
    """Read the system after an event, or after a minute. An event during a reading leads to another one."""
    if (_events_heard.is_set() or collectors.is_due("pools", collectors.WHEN_NOBODY_LOOKS)) and background.start_thread(
        "run-facts", collectors.collect_soon
    ):
        _events_heard.clear()


def start_smart() -> None:
    """Ask disks for SMART: those that smartd reported at once, the others every few minutes."""
    reported = frozenset(_reported_disks)
    if reported and background.start_thread("run-temperatures", partial(collectors.collect_reported, reported)):
        _reported_disks.difference_update(reported)
    elif collectors.is_due("temperatures", collectors.TEMPERATURES_EVERY) or (
        collectors.is_due("temperatures", collectors.NEW_DISK_WITHIN) and collectors.has_new_disk()
    ):
        background.start_thread("run-temperatures", collectors.collect_temperatures)


def start_alerts() -> None:
    """Judge the alerts each minute, also while a reading takes long or breaks off."""
    if are_alerts_due():
        background.start_thread("run-alerts", collectors.judge_alerts)


def are_alerts_due() -> bool:
    """Whether the alerts were not judged for a minute. An inventory that cannot say so is itself to be told."""
    try:
        return collectors.is_due("alerts", ALERTS_EVERY)
    except DatabaseError:
        return unread.claim_turn()


def start_mail() -> None:
    if deliver.has_waiting(timezone.now()):
        background.start_thread("run-mail", deliver.deliver_messages)
    elif not deliver.has_unsent():
        guard.note_outcome("run-mail", "")  # nothing is sent that could end an error


def start_maintenance() -> None:
    if maintenance.looks.claim_turn():
        maintenance.begin_due_maintenance()


def start_selftests() -> None:
    if selftests.looks.claim_turn():
        selftests.begin_due_selftests()


def start_policies() -> None:
    if snapshot_policies.looks.claim_turn():
        snapshot_policies.run_due_policies()


def start_backups() -> None:
    if backups.looks.claim_turn():
        backups.start_due_backups()


def prune_received() -> None:
    if received_copies.looks.claim_turn():
        received_copies.prune_received()


def resume_imports() -> None:
    if imports.looks.claim_turn():
        imports.resume_imports()


def start_housekeeping() -> None:
    if housekeeping.looks.claim_turn():
        background.start_thread("run-housekeeping", housekeeping.run_housekeeping)


# What others depend on comes first: a box that starts nothing must still send its alerts.
STAGES = (
    Stage("tick-events", ingest_events),
    Stage("tick-facts", start_collecting),
    Stage("tick-temperatures", start_smart),
    Stage("tick-alerts", start_alerts),
    Stage("tick-mail", start_mail),
    Stage("tick-jobs", lambda: send_waiting()),
    Stage("tick-sweeps", lambda: benchmarks.advance_benchmarks()),
    Stage("tick-burn-ins", lambda: burn_in.advance_burn_ins()),
    Stage("tick-scrubs", start_maintenance),
    Stage("tick-self-tests", start_selftests),
    Stage("tick-policies", start_policies),
    Stage("tick-backups", start_backups),
    Stage("tick-received", prune_received),
    Stage("tick-imports", resume_imports),
    Stage("tick-housekeeping", start_housekeeping),
)


@app.task(name="workers.tick")
def tick() -> None:
    """Run all stages once. Does nothing while the last tick still runs."""
    if not _ticking.acquire(blocking=False):
        return
    try:
        began = time.monotonic()
        for stage in STAGES:
            watchdog.note_stage(stage.name, began)
            guard.run_guarded(stage.name, stage.run)
        if stuck := background.stuck_thread():
            watchdog.note_stage(
                stuck, began - watchdog.timeout_seconds()
            )  # systemd gets no sign of life until that run has ended
        else:
            watchdog.note_finished()
    finally:
        _ticking.release()
