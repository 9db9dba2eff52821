"""The schedule of self-tests: short ones often, long ones seldom, at night, and never two disks of a vdev at once.

One schedule for all kinds of disks. smartd's own (``-s``) knows neither groups nor NVMe self-tests (smartd.conf(5),
7.4), so smartd only monitors. Pure functions; times are aware.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, tzinfo
from typing import Literal

import msgspec

from appliance.disks.smart_values import SelfTest
from appliance.message import Message
from appliance.schedule import AHEAD, Schedule

Kind = Literal["short", "long"]
PERIODS = {"week": timedelta(days=7), "month": timedelta(days=28), "quarter": timedelta(days=91)}
AGAIN = timedelta(days=7)  # when a test that was stopped is started again
BETWEEN_LONG = timedelta(hours=20)  # within a group: one disk per night
BETWEEN_SHORT = timedelta(minutes=15)  # they take about two; the next reading shows their end
WRAP = 2**16  # hours in ATA's log of self-tests are 16 bits
LATE_AFTER = 2.5  # periods without a finished long test


class SelfTestSchedule(msgspec.Struct, frozen=True):
    """How often tests start, and between which hours of the day."""

    short: str = "week"
    long: str = "month"
    first: int = 1
    last: int = 6


class SelfTestCandidate(msgspec.Struct, frozen=True):
    """A disk as the schedule sees it. ``group``: its vdev; ``short`` and ``long``: when the schedule last
    started one; ``logged``: whether its log has a finished long test; ``ended``: hours of use since then,
    None where that is unknown."""

    key: str
    group: str
    able: bool
    asleep: bool = False
    running: bool = False
    short: datetime | None = None
    long: datetime | None = None
    ended: int | None = None
    logged: bool = False


def choose_tests(
    disks: Iterable[SelfTestCandidate], plan: SelfTestSchedule, now: datetime, zone: tzinfo, busy: Iterable[str] = ()
) -> list[tuple[str, Kind]]:
    """The tests to start now, at most one per group. ``busy``: groups that are scrubbed or rebuilt."""
    if not Schedule("week", plan.first, plan.last).open_at(now.astimezone(zone).hour):
        return []
    groups: dict[str, list[SelfTestCandidate]] = {}
    for disk in disks:
        groups.setdefault(disk.group, []).append(disk)
    found: list[tuple[str, Kind]] = []
    for group, members in groups.items():
        if group in busy or any(one.running or is_recent(one.short, BETWEEN_SHORT, now) for one in members):
            continue
        ready = [one for one in members if one.able and not one.asleep]
        if not any(is_recent(one.long, BETWEEN_LONG, now) for one in members):
            late = [one for one in ready if is_due(one.long, one.ended, PERIODS.get(plan.long), now)]
            if late:
                found.append((longest_untested(late, "long", now).key, "long"))
                continue
        late = [
            one
            for one in ready
            if not is_recent(one.long, BETWEEN_LONG, now) and is_due(one.short, None, PERIODS.get(plan.short), now)
        ]
        if late:
            found.append((longest_untested(late, "short", now).key, "short"))
    return found


def is_recent(at: datetime | None, within: timedelta, now: datetime) -> bool:
    return at is not None and -AHEAD < now - at < within


def longest_untested(disks: list[SelfTestCandidate], kind: Kind, now: datetime) -> SelfTestCandidate:
    """The disk whose last test is oldest; a time in the far future comes from a wrong clock and counts as none."""

    def last(disk: SelfTestCandidate) -> float:
        at = disk.long if kind == "long" else disk.short
        return at.timestamp() if at and at - now < AHEAD else 0.0

    return min(disks, key=lambda disk: (last(disk), disk.key))


def is_due(began: datetime | None, ended: int | None, period: timedelta | None, now: datetime) -> bool:
    """Whether a test is due: never started, started a period ago, or started a week ago and not finished."""
    if period is None:
        return False
    if began is not None and began - now >= AHEAD:
        began = None
    fresh = ended is not None and timedelta(hours=ended) < period
    if began is None:
        return not fresh
    if now - began >= period:
        return True
    return ended is not None and not fresh and now - began >= AGAIN


def last_finished(tests: Iterable[SelfTest], kind: Kind = "long") -> SelfTest | None:
    """The last test of a kind that passed or failed."""
    return next((test for test in tests if test.kind == kind and test.passed is not None), None)


def hours_since(tests: Iterable[SelfTest], hours: int | None, kind: Kind = "long") -> int | None:
    """Hours of use since the last finished test of a kind; None where the log has none or does not tell."""
    done = last_finished(tests, kind)
    if done is None or done.hours is None or hours is None:
        return None
    return hours - (hours_at(done.hours, hours) or 0)


def hours_at(logged: int | None, hours: int | None) -> int | None:
    """The drive's hours at a test, from its log's 16 bits and its hours now: the latest possible value."""
    if logged is None or hours is None:
        return logged
    if hours < WRAP or logged >= WRAP:
        return min(logged, hours)  # not wrapped; the two counters can differ by an hour
    return hours - (hours - logged) % WRAP


def overdue_text(disk: SelfTestCandidate, plan: SelfTestSchedule, since: datetime, now: datetime) -> str:
    """A sentence where no long test has finished for too long; else empty."""
    period = PERIODS.get(plan.long)
    if period is None or not disk.able or disk.running or now - since < LATE_AFTER * period:
        return ""
    if disk.ended is not None and timedelta(hours=disk.ended) < LATE_AFTER * period:
        return ""
    if disk.ended is None:
        if disk.logged:  # some drives never report their hours, so the age of their tests is unknown
            return ""
        return Message("No long test is in its log, though one should have ended by now.")
    return Message("Its last long test ended {ended} days of use ago.", ended=disk.ended // 24)
