"""Work by schedule that should have been done and was not. One function for each kind of work; silence is an alert."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from appliance import schedules
from appliance.alerts.rules import Fault
from appliance.facts import Facts
from web.pools import care

AFTER = timedelta(days=14)  # beyond when it should have begun: a large pool takes its days


def of(facts: Facts, now: datetime) -> Iterator[Fault]:
    """Everything that is overdue, each under the kind that says so."""
    yield from scrubs(facts, now)


def scrubs(facts: Facts, now: datetime) -> Iterator[Fault]:
    """Pools whose check should have been done by now and neither was nor is under way; what a person paused waits for that person."""
    for pool, found, _row in care.cares(facts, "scrub", now):
        if not found.usable or found.state == "running" or found.held:
            continue
        due = schedules.due_on(found, now, schedules.box_zone())
        if due and due < (now - AFTER).date():
            last = f"The last one ended on {found.ended:%d %B %Y}." if found.ended else "It has never been checked."
            yield Fault("scrub.overdue", str(pool.guid), f"{pool.name} was not checked in time.", last, f"/pools/{pool.guid}/")  # fmt: skip
