"""Every few seconds: take in events, send what waits, read the system where it is time. Cheap when there is nothing."""

from __future__ import annotations

import threading

from django.utils import timezone

from workers import collectors, housekeeping, mail, policies, schedules, spool, sweeps, testing
from workers.celery import app
from workers.run_job import send_waiting

_ticking = threading.Lock()


@app.task(name="workers.tick")
def tick() -> None:
    """One beat of the clock; a beat that comes while the last is still at work is let go."""
    if not _ticking.acquire(blocking=False):
        return
    try:
        heard = spool.ingest()
        send_waiting()
        sweeps.look()
        if heard or collectors.due("pools", collectors.WHEN_NOBODY_LOOKS):
            collectors.collect.delay()
        if collectors.due("temperatures", collectors.TEMPERATURES_EVERY) or (
            collectors.due("temperatures", collectors.NEW_DISK_WITHIN) and collectors.unasked()
        ):
            collectors.temperatures.delay()
        if mail.has_waiting(timezone.now()):
            mail.deliver.delay()
        if schedules.looks.due():
            schedules.look()
            testing.look()
        if policies.looks.due():
            policies.look()
        if housekeeping.looks.due():
            housekeeping.look.delay()
    finally:
        _ticking.release()
