"""When a pool is due to be scrubbed or trimmed, and in which hours that may begin. Pure functions.

Due is reckoned in days of the box's own calendar from when the last run really ended, so that a run that was missed is
made up for, and one that a person started by hand counts. Hours are those on the wall: in the night when clocks change,
an hour that does not exist is made up for the next night, and one that comes twice begins nothing twice.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable
from datetime import date, datetime, timedelta, tzinfo
from typing import Literal

import msgspec

from appliance.schedule import AHEAD, Every, Schedule, at_hour

MONTHS = {"month": 1, "quarter": 3}
# A start that came to nothing is tried again the next night, not at once.
BETWEEN_TRIES = timedelta(hours=20)


class Care(msgspec.Struct, frozen=True):
    """One pool's scrub or trim, as things are. ``since`` is when the pool was made: the first
    run is due a period later."""

    key: str
    schedule: Schedule
    usable: bool  # the pool answers and nothing else (rebuilding, growing) is more important
    state: str = ""  # running, paused, or empty
    ended: datetime | None = None
    tried: datetime | None = None
    since: datetime | None = None
    held: bool = False  # it was the schedule that paused it


class DueAct(msgspec.Struct, frozen=True):
    key: str
    what: Literal["start", "pause", "resume"]


def day_after(last: date, every: Every) -> date | None:
    """The day on which it is due again; the last day of a month that is too short."""
    if every == "never":
        return None
    if every == "week":
        return last + timedelta(days=7)
    months = last.month - 1 + MONTHS[every]
    year, month = last.year + months // 12, months % 12 + 1
    return date(year, month, min(last.day, calendar.monthrange(year, month)[1]))


def latest_believable(times: Iterable[datetime | None], now: datetime) -> datetime | None:
    """The latest of these that is not in the future."""
    return max((at for at in times if at and at <= now + AHEAD), default=None)


def due_on(care: Care, now: datetime, zone: tzinfo) -> date | None:
    """The day on which it is or was due; None for never."""
    last = latest_believable((care.ended,), now) or latest_believable((care.since,), now)
    if last is None:
        return now.astimezone(zone).date() if care.schedule.every != "never" else None
    return day_after(last.astimezone(zone).date(), care.schedule.every)


def is_open(schedule: Schedule, now: datetime, zone: tzinfo) -> bool:
    return schedule.open_at(now.astimezone(zone).hour)


def is_due(care: Care, now: datetime, zone: tzinfo) -> bool:
    """Whether it should begin now, as far as this pool alone is concerned."""
    day = due_on(care, now, zone)
    if day is None or not care.usable or care.state or not is_open(care.schedule, now, zone):
        return False
    tried = latest_believable((care.tried,), now)
    return day <= now.astimezone(zone).date() and (tried is None or now - tried >= BETWEEN_TRIES)


def decide_run(cares: Iterable[Care], now: datetime, zone: tzinfo, *, busy: bool) -> list[DueAct]:
    """What to do now. Two pools are never at it at once by this: ``busy`` says that some pool is already.

    Who has waited longest begins. What a person paused stays paused.
    """
    acts: list[DueAct] = []
    waiting = []
    for care in cares:
        opened = is_open(care.schedule, now, zone)
        if care.state == "running":
            busy = True
            if care.schedule.inside and not opened and care.schedule.every != "never":
                acts.append(DueAct(care.key, "pause"))
        elif care.state == "paused" and care.held and care.usable and (opened or not care.schedule.inside):
            waiting.append((date.min, care.key, DueAct(care.key, "resume")))
        elif is_due(care, now, zone):
            waiting.append((due_on(care, now, zone) or date.min, care.key, DueAct(care.key, "start")))
    if waiting and not busy:
        acts.append(min(waiting)[2])
    return acts


def next_start(care: Care, now: datetime, zone: tzinfo) -> datetime | None:
    """When it will begin at the earliest, for the page; None for never and for what runs already."""
    day = due_on(care, now, zone)
    if day is None or care.state:
        return None
    local = now.astimezone(zone)
    tried = latest_believable((care.tried,), now)
    earliest = max(local, (tried + BETWEEN_TRIES).astimezone(zone)) if tried else local
    day = max(day, earliest.date())
    for _ in range(3):
        opens = (
            at_hour(day, care.schedule.first, zone)
            if care.schedule.first != care.schedule.last
            else at_hour(day, 0, zone)
        )
        if day == earliest.date() and is_open(care.schedule, earliest, zone):
            return earliest
        if opens >= earliest:
            return opens
        day += timedelta(days=1)
    return None
