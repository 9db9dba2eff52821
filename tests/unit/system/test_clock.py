"""The clock as it is believed: boxes without a battery, without a network, with random dates at their starts."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from appliance import command
from appliance.errors import Failed
from appliance.snapshots.policy import Policy, Taken, due_grains, overdue_grains
from appliance.snapshots.retention import expired_snapshots
from appliance.system import clock
from appliance.system.clock import Clock, judge_clock

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
POLICY = Policy(hourly=24, daily=14, weekly=8, monthly=6)


class Box:
    """A box whose policy runs once an hour; ``true`` is what no clock of it knows."""

    def __init__(self, true: datetime = NOW) -> None:
        self.true, self.txg, self.starts = true, 0, 0
        self.there: list[Taken] = []
        self.when: dict[int, datetime] = {}  # the true moment of each snapshot
        self.clock: Clock | None = None

    def session(
        self, hours: int, wall: datetime | None = None, *, synced: bool = False, policy: Policy = POLICY
    ) -> None:
        """Start the box with its clock at ``wall``, and let it run."""
        self.starts += 1
        wall = wall or self.true
        for hour in range(hours):
            now, ran = wall + hour * HOUR, 60.0 + hour * 3600
            self.clock = judge_clock(
                self.clock, None, boot=str(self.starts), running=ran, wall=now, is_synced=lambda: synced
            )
            if grains := due_grains(policy, self.there, self.clock.believed, ZONE):
                self.txg += 1
                self.when[self.txg] = self.true
                self.there.append(Taken(self.txg, self.txg, self.clock.believed, grains))
            for gone in expired_snapshots(policy, self.there, others=0):
                self.there.remove(gone)
            self.true += HOUR

    def off(self, time: timedelta) -> None:
        self.true += time

    def months(self) -> set[tuple[int, int]]:
        """The true months of which a monthly snapshot is there."""
        at = [self.when[one.guid].astimezone(ZONE) for one in self.there if "monthly" in one.grains]
        return {(one.year, one.month) for one in at}


def half_a_year() -> Box:
    box = Box()
    for _day in range(183):
        box.session(16)
        box.off(timedelta(hours=8))
    return box


@pytest.mark.parametrize("seed", range(12))
def test_ten_starts_with_random_dates_cost_no_real_monthly(seed):
    rough, box = random.Random(seed), half_a_year()
    before = box.months()
    assert len(before) == 6
    for _start in range(10):
        wrong = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(days=rough.uniform(0, 20_000))
        box.session(rough.randint(1, 12), wrong)
        box.off(timedelta(hours=1))
    assert box.months() >= before - {min(before)}  # a month may have begun meanwhile
    box.session(24, synced=True)
    assert box.months() >= before - {min(before)}


def test_box_that_begins_each_start_at_the_same_date_still_gets_weeklies_and_monthlies():
    box, start = Box(), datetime(2020, 1, 1, tzinfo=UTC)
    for _day in range(700):
        box.session(10, start)
        box.off(timedelta(hours=14))
    counted = Counter(grain for one in box.there for grain in one.grains)
    assert all(counted[grain] >= POLICY.kept_count(grain) for grain in POLICY.grains)
    moments = sorted(box.when[one.guid] for one in box.there if "monthly" in one.grains)
    assert all(later - earlier > timedelta(days=50) for earlier, later in pairwise(moments))
    assert box.true - moments[-1] < timedelta(days=75)  # 31 days of running, ten hours a day


@pytest.mark.parametrize("days", [1, 30, 90])
def test_box_that_was_off_is_right_again_at_once_or_after_some_days(days):
    box = half_a_year()
    box.off(timedelta(days=days))
    box.session(80)
    assert box.clock
    assert box.clock.believed == box.clock.wall
    assert overdue_grains(POLICY, box.there, box.clock.wall, ZONE) == ()


LAST = Clock("1", 1000.0, NOW)


def judged(
    wall: datetime,
    *,
    last: Clock | None = LAST,
    boot: str = "2",
    running: float = 30.0,
    synced: bool = False,
    newest: datetime | None = None,
) -> timedelta:
    return judge_clock(last, newest, boot=boot, running=running, wall=wall, is_synced=lambda: synced).shift


def test_clock_is_believed_while_it_goes_on_from_where_it_was():
    assert judged(NOW + timedelta(days=20)) == timedelta()
    assert judged(NOW + timedelta(days=60)) == -timedelta(days=60)
    assert judged(NOW - HOUR) == HOUR
    # In one start it moves only when somebody or the network sets it.
    assert judged(NOW - 9 * HOUR, boot="1", running=1100.0) == timedelta()
    assert judged(NOW + timedelta(days=900), boot="1", running=1100.0) == timedelta()


def test_clock_in_doubt_is_believed_once_it_is_set():
    doubted = judge_clock(LAST, None, boot="2", running=30.0, wall=NOW - 100 * HOUR, is_synced=lambda: False)
    assert judged(NOW - 99 * HOUR, last=doubted, running=3630.0) == 100 * HOUR
    assert judged(NOW + 5 * HOUR, last=doubted, running=3630.0) == timedelta()
    assert judged(NOW - 99 * HOUR, last=doubted, running=3630.0, synced=True) == timedelta()
    assert judged(NOW, last=doubted, running=9e6) == timedelta()  # far more than was on the clock: it was set


def test_date_far_ahead_is_believed_when_the_next_start_agrees_and_an_earlier_one_is_not():
    ahead = judge_clock(LAST, None, boot="2", running=30.0, wall=NOW + timedelta(days=90), is_synced=lambda: False)
    assert judged(NOW + timedelta(days=91), last=ahead, boot="3") == timedelta()
    back = judge_clock(LAST, None, boot="2", running=30.0, wall=NOW - timedelta(days=90), is_synced=lambda: False)
    assert judged(NOW - timedelta(days=89), last=back, boot="3") == timedelta(days=89)


def test_without_a_record_the_newest_snapshot_says_where_time_was():
    assert judged(NOW, last=None) == timedelta()
    assert judged(NOW + timedelta(days=400), last=None, newest=NOW) == timedelta()
    assert judged(NOW - 5 * HOUR, last=None, newest=NOW) == 5 * HOUR


@pytest.mark.parametrize(("said", "synced"), [("yes\n", True), ("no\n", False), (None, None)])
def test_whether_the_network_set_the_clock_is_unknown_where_timedatectl_fails(monkeypatch, said, synced):
    def run(argv: list[str], **_more: object) -> command.Result:
        if said is None:
            raise Failed("timedatectl is not installed.")
        return command.Result(tuple(argv), 0, said, "", 0.0)

    monkeypatch.setattr(command, "run", run)
    assert clock.is_synced() is synced
