"""How fast a pool fills, and when: straight lines over five years. Pure.

The pace is the slope of the line that fits the days of the last months best (least squares).
Nothing is said of a pool of which less than four weeks are known, and nothing of what lies beyond five years.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction
from statistics import linear_regression

import msgspec

from appliance.pools.fullness import NOTICE

MONTHS = timedelta(days=183)  # how far back the pace is taken from
LEAST_SPAN = 28  # days between the first and the last that are known
LEAST_DAYS = 4
FIVE_YEARS = 1826  # days


class Pace(msgspec.Struct, frozen=True):
    """Bytes that a pool gains each day, by its last ``days`` days. Negative where it empties."""

    per_day: float
    days: int

    @property
    def per_month(self) -> int:
        """Bytes in a twelfth of a year."""
        return round(self.per_day * 365.25 / 12)


def find_pace(history: Sequence[tuple[date, int]], today: date) -> Pace | None:
    """The pace by each day's used bytes, in any order; None where too little is known."""
    late = sorted((day, used) for day, used in history if today - MONTHS <= day <= today)
    if len(late) < LEAST_DAYS or (late[-1][0] - late[0][0]).days < LEAST_SPAN:
        return None
    first = late[0][0]
    slope = linear_regression([(day - first).days for day, _used in late], [used for _day, used in late]).slope
    return Pace(slope, (late[-1][0] - first).days)


class Forecast(msgspec.Struct, frozen=True):
    """A pool that holds ``used`` of ``total`` bytes and gains ``per_day`` each day."""

    used: int
    total: int
    per_day: float

    def used_after(self, days: int) -> float:
        """Bytes in use then: not less than none, not more than there is room for."""
        return min(max(self.used + self.per_day * days, 0.0), float(self.total))

    def share_after(self, days: int) -> float:
        """The share that is used then, from 0 to 1."""
        return self.used_after(days) / self.total if self.total else 0.0

    def days_until(self, percent: int = NOTICE) -> int | None:
        """Whole days until so many per cent are used, 0 where they are; None: not within five years."""
        mark = self.total * percent / 100
        if self.used >= mark:
            return 0
        if self.per_day <= 0:
            return None
        days = math.ceil((mark - self.used) / self.per_day)
        return days if days <= FIVE_YEARS else None


def forecast_way(used: int, total: int, pace: Pace, *, freed: int = 0, share: Fraction = Fraction(1)) -> Forecast:
    """The forecast after a change: ``freed`` bytes are gone at once, and what is written takes ``share`` of before."""
    return Forecast(max(used - freed, 0), total, pace.per_day * float(share) if pace.per_day > 0 else pace.per_day)
