"""When disks test themselves: at night, in turn, never two of a group at once, and what was stopped again later."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from appliance.disks.selftest_schedule import (
    SelfTestCandidate,
    SelfTestSchedule,
    choose_tests,
    hours_at,
    hours_since,
    overdue_text,
)
from appliance.disks.smart_values import SelfTest

NIGHT = datetime(2026, 3, 10, 2, tzinfo=UTC)
PLAN = SelfTestSchedule()


def disks(count: int = 4, group: str = "tank/1", **more: object) -> list[SelfTestCandidate]:
    return [SelfTestCandidate(f"{group}-{at}", group, able=True, **more) for at in range(count)]  # type: ignore[arg-type]


def begun(found: list[SelfTestCandidate], at: datetime = NIGHT, **more: object) -> Sequence[tuple[str, str]]:
    return choose_tests(found, PLAN, at, UTC, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 4, 12, 40])
def test_over_weeks_never_two_disks_of_a_group_test_at_once_and_all_get_their_turn(count):
    found = {disk.key: disk for disk in (*disks(count), *disks(3, "tank/2"))}
    long_of: dict[str, list[datetime]] = {key: [] for key in found}
    at = NIGHT.replace(hour=0)
    ends: dict[str, datetime] = {}
    while at < NIGHT + timedelta(days=count + 60):
        found = {key: replace(disk, running=key in ends and at < ends[key]) for key, disk in found.items()}
        for key, kind in begun(list(found.values()), at):
            assert not any(one.running for one in found.values() if one.group == found[key].group)
            found[key] = replace(found[key], long=at) if kind == "long" else replace(found[key], short=at)
            ends[key] = at + (timedelta(hours=8) if kind == "long" else timedelta(minutes=2))
            if kind == "long":
                long_of[key].append(at)
        at += timedelta(minutes=30)
    assert all(long_of.values()), "each has had a long test"
    nights = [(key.rsplit("-", 1)[0], when.date()) for key, times in long_of.items() for when in times]
    assert len(nights) == len(set(nights)), "two long ones in one group in a night"


def test_nothing_begins_by_day_or_while_the_group_is_rebuilt():
    assert begun(disks(), NIGHT.replace(hour=12)) == []
    assert begun(disks(), busy={"tank/1"}) == []
    assert begun(disks()) == [("tank/1-0", "long")]


def test_a_sleeping_disk_is_left_alone_and_one_that_cannot_is_never_told_to():
    assert begun(disks(asleep=True)) == []
    assert begun([replace(disks(1)[0], able=False)]) == []


def test_one_that_was_tested_elsewhere_lately_is_not_tested_again():
    (disk,) = disks(1, short=NIGHT - timedelta(days=1), ended=100)
    assert begun([disk]) == []
    assert begun([replace(disk, ended=24 * 40)]) == [(disk.key, "long")]


def test_one_that_was_stopped_is_begun_again_after_a_week():
    (disk,) = disks(1, short=NIGHT - timedelta(days=1), long=NIGHT - timedelta(days=6), ended=24 * 60)
    assert begun([disk]) == []
    assert begun([replace(disk, long=NIGHT - timedelta(days=8))]) == [(disk.key, "long")]


def test_a_clock_that_was_wrong_stops_no_test_for_years():
    (disk,) = disks(1, short=NIGHT + timedelta(days=900), long=NIGHT + timedelta(days=900))
    assert begun([disk]) == [(disk.key, "long")]


def test_never_means_never():
    assert choose_tests(disks(), SelfTestSchedule("never", "never"), NIGHT, UTC) == []


def test_the_age_of_a_test_is_told_in_hours_of_use_also_beyond_16_bits():
    tests = [
        SelfTest("short", True, hours=70000 % 65536),
        SelfTest("long", None, hours=60000),
        SelfTest("long", True, hours=60000),
    ]
    assert hours_since(tests, 70010) == 10010
    assert hours_since(tests, 70010, "short") == 10
    assert hours_since([], 70010) is None
    assert hours_since(tests, None) is None


def test_a_disk_that_should_have_tested_itself_is_told_and_a_new_one_is_not():
    (disk,) = disks(1)
    long_ago = NIGHT - timedelta(days=90)
    assert "No long test" in overdue_text(disk, PLAN, long_ago, NIGHT)
    assert "80 days of use ago" in overdue_text(replace(disk, ended=80 * 24), PLAN, long_ago, NIGHT)
    for well in (replace(disk, ended=100), replace(disk, running=True), replace(disk, able=False)):
        assert overdue_text(well, PLAN, long_ago, NIGHT) == ""
    assert overdue_text(replace(disk, logged=True), PLAN, long_ago, NIGHT) == ""  # how old its test is nobody knows
    assert overdue_text(replace(disk, logged=True, ended=80 * 24), PLAN, long_ago, NIGHT)
    assert overdue_text(disk, PLAN, NIGHT - timedelta(days=5), NIGHT) == ""
    assert overdue_text(disk, SelfTestSchedule(long="never"), long_ago, NIGHT) == ""


@pytest.mark.parametrize(
    ("logged", "hours", "at"),
    [
        (4, 65592, 65540),
        (65530, 65592, 65530),
        (4, 4, 4),
        (101, 100, 100),
        (None, 5, None),
        (7, None, 7),
        (70000, 70010, 70000),
        (10, 131100, 131082),
    ],
)
def test_hours_of_a_self_test_are_unwrapped(logged, hours, at):
    assert hours_at(logged, hours) == at
    if logged is not None and hours is not None:
        assert hours_since([SelfTest("long", True, "", logged)], hours) == hours - at
