"""Every few seconds: take in events, send what waits, read the system where it is time. Cheap when there is nothing."""

from __future__ import annotations

from workers import collectors, spool
from workers.celery import app
from workers.run_job import send_waiting


@app.task(name="workers.tick")
def tick() -> None:
    """One beat of the clock."""
    heard = spool.ingest()
    send_waiting()
    if heard or collectors.due("pools", collectors.WHEN_NOBODY_LOOKS):
        collectors.collect()
    if collectors.due("temperatures", collectors.TEMPERATURES_EVERY):
        collectors.temperatures()
