"""Slowing a stream down: what it waits for, and the hours in which it does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.backups.rate_limit import BURST, RateLimit
from appliance.backups.stream import send_stream
from appliance.backups.tasks import MB, BackupTask
from tests.reasons import expect_refusal


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def task(**more: Any) -> BackupTask:
    return BackupTask(key="0123abcd", pool=1, path="backups/photos", **more)


@given(st.lists(st.tuples(st.integers(1, 2**20), st.floats(0, 3)), min_size=1, max_size=60), st.integers(1, 50))
def test_never_more_than_the_rate_and_what_may_be_caught_up_with(parts, rate):
    clock = Clock()
    limit = RateLimit(lambda: rate * MB, clock)
    began, moved = clock.now, 0
    for size, idle in parts:
        clock.now += idle  # the disks were slow
        moved += size
        clock.now += limit.delay(size)
        assert moved <= rate * MB * (clock.now - began + BURST) + 1


def test_without_a_limit_nothing_is_waited_for():
    limit = RateLimit(lambda: 0, Clock())
    assert [limit.delay(2**30) for _part in range(3)] == [0.0, 0.0, 0.0]


def test_limit_begins_and_ends_while_the_stream_flows():
    rates, clock, waits = iter((0, 0, 10 * MB, 10 * MB, 0)), Clock(), []
    limit = RateLimit(lambda: next(rates), clock)
    for _part in range(4):
        clock.now += 2
        waits.append(limit.delay(10 * MB) > 0.5)
    assert waits == [False, True, True, False]


def test_stream_waits_as_long_as_its_rate_demands(monkeypatch):
    asked: list[float] = []
    monkeypatch.setattr("appliance.backups.stream.time.sleep", asked.append)
    send_stream(["head", "-c", "3000000", "/dev/zero"], ["sh", "-c", "cat >/dev/null"], lambda _moved: None, lambda: MB)
    assert sum(part > 0 for part in asked) >= 2
    assert max(asked) > 2  # three seconds' worth of bytes, and nothing was waited for in between


@pytest.mark.parametrize(
    ("hours", "at", "slow"),
    [
        ((0, 0), 13, True),
        ((8, 23), 8, True),
        ((8, 23), 22, True),
        ((8, 23), 23, False),
        ((8, 23), 3, False),
        ((22, 6), 23, True),
        ((22, 6), 5, True),
        ((22, 6), 6, False),
        ((22, 6), 12, False),
    ],
)
def test_hours_are_those_of_the_boxs_clock(hours, at, slow):
    zone = ZoneInfo("Europe/Berlin")
    now = datetime(2026, 1, 15, at, 30, tzinfo=zone).astimezone(UTC)
    found = task(rate=20, slow_from=hours[0], slow_until=hours[1]).most_bytes_a_second(now, zone)
    assert found == (20_000_000 if slow else 0)


def test_task_says_how_fast_it_copies():
    assert task().speed == ""
    assert task(rate=20).speed == "at most 20 MB/s"
    assert task(rate=20, slow_from=8, slow_until=23).speed == "at most 20 MB/s between 08:00 and 23:00"


@pytest.mark.parametrize("wrong", [{"rate": -1}, {"rate": 10_001}, {"slow_from": 24}, {"slow_until": -1}])
def test_numbers_that_mean_nothing_are_refused(wrong):
    code = "backup-rate-out-of-range" if "rate" in wrong else "hour-out-of-range"
    with expect_refusal(code):
        task(**wrong)
