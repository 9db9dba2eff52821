"""Hours and days by the clock on the wall of the box, and how often something is done between which hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

Every = Literal["never", "week", "month", "quarter"]
# A time further ahead than that was noted while the clock was wrong, and says nothing.
AHEAD = timedelta(days=1)


def is_hour_within(hour: int, first: int, last: int) -> bool:
    """Whether an hour of the day lies between two others, the first counted; the same twice is all day."""
    if first == last:
        return True
    if first < last:
        return first <= hour < last
    return hour >= first or hour < last


class Schedule(msgspec.Struct, frozen=True):
    """How often, and between which hours of the day (0 to 23; equal: all day). ``inside``: pause outside of them."""

    every: Every = "month"
    first: int = 1
    last: int = 6
    inside: bool = False

    def open_at(self, hour: int) -> bool:
        return is_hour_within(hour, self.first, self.last)


def box_zone() -> tzinfo:
    """The time zone that the box is set to; UTC where it is set to none. (The C library is told UTC by Django.)"""
    try:
        with Path("/etc/localtime").open("rb") as file:
            return ZoneInfo.from_file(file, key="local")
    except (OSError, ValueError):
        return UTC


def at_hour(day: date, hour: int, zone: tzinfo) -> datetime:
    """That hour of that day; where the clocks leave it out, the moment after."""
    return datetime.combine(day, time(hour), zone).astimezone(UTC).astimezone(zone)
