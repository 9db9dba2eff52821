from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest

from appliance.snapshots import policy as snapshot_policy
from appliance.snapshots.policy import Policy, Taken, due_grains, slot_number
from appliance.snapshots.retention import expired_snapshots
from appliance.zfs import status
from tests.reasons import expect_refusal
from tests.unit.made import dataset

BERLIN = ZoneInfo("Europe/Berlin")
MIDNIGHT = datetime(2026, 1, 1, tzinfo=BERLIN).astimezone(UTC)
MANY = Policy(frequent=4, hourly=24, daily=14, weekly=8, monthly=6)


class Box:
    """A box whose policy runs every quarter of an hour. ``there`` is what would exist on real ZFS."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.txg, self.runs = policy, 0, 0
        self.there: list[Taken] = []

    def tick(self, clock: datetime) -> None:
        self.txg += 1
        if grains := due_grains(self.policy, self.there, clock, BERLIN):
            self.there.append(Taken(self.txg, self.txg, clock, grains))
            self.runs += 1
        for gone in expired_snapshots(self.policy, self.there, others=0):
            self.there.remove(gone)


class Expected:
    """The expected snapshots, computed independently: the first moment of each of the newest slots of each grain."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.firsts: dict[str, dict[object, datetime]] = {grain: {} for grain in policy.grains}

    def ran(self, moment: datetime) -> None:
        local = moment.astimezone(BERLIN)
        keys = {
            "frequent": (moment.date(), moment.hour, moment.minute // 15),
            "hourly": (moment.date(), moment.hour),
            "daily": local.date(),
            "weekly": local.isocalendar()[:2],
            "monthly": (local.year, local.month),
        }
        for grain, first in self.firsts.items():
            first.setdefault(keys[grain], moment)

    @property
    def moments(self) -> set[datetime]:
        return {
            at for grain, first in self.firsts.items() for at in list(first.values())[-self.policy.kept_count(grain) :]
        }


def test_year_with_clock_changes_and_week_off_keeps_exact_set():
    box, wanted = Box(MANY), Expected(MANY)
    off = (MIDNIGHT + timedelta(days=200), MIDNIGHT + timedelta(days=207))
    for step in range(366 * 96):
        clock = MIDNIGHT + timedelta(minutes=15 * step)
        if not off[0] <= clock < off[1]:
            wanted.ran(clock)
            box.tick(clock)
        if step % 96 == 95:
            assert {one.created for one in box.there} == wanted.moments, clock
    assert len(box.there) <= 4 + 24 + 14 + 8 + 6


@pytest.mark.parametrize("shift", [datetime(2026, 3, 29, tzinfo=BERLIN), datetime(2026, 10, 25, tzinfo=BERLIN)])
def test_day_of_23_or_25_hours_counts_as_one_day(shift):
    box = Box(Policy(hourly=500, daily=500))
    start = shift.astimezone(UTC) - timedelta(days=1)
    for step in range(4 * 24 * 3):
        box.tick(start + timedelta(minutes=15 * step))
    counted = Counter(grain for one in box.there for grain in one.grains)
    assert counted == {"hourly": 72, "daily": 4 if shift.month == 3 else 3}


def test_clock_set_back_takes_nothing_twice_and_expires_nothing_newer():
    box = Box(Policy(hourly=3))
    for hour in range(10):
        box.tick(MIDNIGHT + timedelta(hours=hour))
    before = list(box.there)
    box.tick(MIDNIGHT + timedelta(hours=8, minutes=30))
    assert box.there == before
    box.tick(MIDNIGHT + timedelta(hours=10))
    assert box.there == [*before[1:], box.there[-1]]


def test_snapshot_dated_year_ahead_does_not_stop_policy():
    box = Box(Policy(hourly=3))
    box.tick(MIDNIGHT + timedelta(days=365))
    for hour in range(4):
        box.tick(MIDNIGHT + timedelta(hours=hour))
    assert [one.created for one in box.there] == [MIDNIGHT + timedelta(hours=hour) for hour in (1, 2, 3)]


def test_one_snapshot_makes_up_for_missed_slots():
    box = Box(MANY)
    box.tick(MIDNIGHT)
    box.tick(MIDNIGHT + timedelta(days=7))
    assert len(box.there) == 2
    assert box.there[-1].grains == ("frequent", "hourly", "daily", "weekly")


def test_nothing_is_due_outside_policy_hours():
    night = Policy(daily=3, first=22, last=6)
    assert due_grains(night, [], datetime(2026, 5, 1, 12, tzinfo=BERLIN), BERLIN) == ()
    assert due_grains(night, [], datetime(2026, 5, 1, 23, tzinfo=BERLIN), BERLIN) == ("daily",)
    assert due_grains(night, [], datetime(2026, 5, 1, 5, tzinfo=BERLIN), BERLIN) == ("daily",)


NOON = datetime(2026, 5, 20, 12, tzinfo=BERLIN)
YESTERDAY = Taken(7, 7, NOON - timedelta(days=1), ("hourly",))
SKIPS = Policy(hourly=24, daily=7, skip_unchanged=True)


def test_unchanged_dataset_gives_due_grains_to_latest_snapshot():
    found = snapshot_policy.decide_run(SKIPS, [YESTERDAY], NOON, BERLIN, latest=7, seen=NOON)
    assert found == snapshot_policy.Wanted(("hourly", "daily"), NOON, YESTERDAY)
    # It serves the slot of that moment, not only the one in which it was taken.
    given = Taken(7, 7, YESTERDAY.created, ("hourly", "daily"), until=NOON)
    assert (
        snapshot_policy.decide_run(SKIPS, [given], NOON + timedelta(minutes=30), BERLIN, latest=7, seen=NOON).grains
        == ()
    )
    later = NOON + timedelta(hours=1)
    assert snapshot_policy.decide_run(SKIPS, [given], later, BERLIN, latest=7, seen=later).grains == ("hourly",)
    # A change later on that day needs no second daily snapshot.
    assert snapshot_policy.decide_run(SKIPS, [given], later, BERLIN, seen=later) == snapshot_policy.Wanted(
        ("hourly",), later
    )


@pytest.mark.parametrize(
    ("policy", "latest", "seen"),
    [
        (msgspec.structs.replace(SKIPS, skip_unchanged=False), 7, NOON),
        (SKIPS, None, NOON),  # something was written since
        (SKIPS, 99, NOON),  # the latest was taken by hand, or by another tool
        (SKIPS, 7, YESTERDAY.created - timedelta(seconds=1)),  # the look was before it was taken
    ],
)
def test_new_snapshot_is_taken_unless_own_latest_is_current(policy, latest, seen):
    found = snapshot_policy.decide_run(policy, [YESTERDAY], NOON, BERLIN, latest=latest, seen=seen)
    assert found == snapshot_policy.Wanted(("hourly", "daily"), NOON)


def test_grains_are_given_for_slot_that_was_read():
    """What was read a minute before midnight says nothing about the new day."""
    midnight = datetime(2026, 5, 20, tzinfo=BERLIN)
    before = Taken(7, 7, midnight - timedelta(hours=5), ("hourly", "daily"), until=midnight - timedelta(minutes=50))
    found = snapshot_policy.decide_run(
        SKIPS, [before], midnight, BERLIN, latest=7, seen=midnight - timedelta(minutes=1)
    )
    assert found.grains == ()


@pytest.mark.parametrize("window", [(2, 3), (2, 4), (1, 3)])
def test_clock_change_within_policy_hours_still_gets_daily_snapshot(window):
    policy = Policy(daily=10, first=window[0], last=window[1])
    box, start = Box(policy), datetime(2026, 3, 26, tzinfo=BERLIN).astimezone(UTC)
    for step in range(4 * 24 * 6):
        box.tick(start + timedelta(minutes=15 * step))
    assert [one.created.astimezone(BERLIN).day for one in box.there] == [26, 27, 28, 29, 30, 31]
    assert snapshot_policy.next_opening(policy, datetime(2026, 3, 29, 0, tzinfo=BERLIN), BERLIN) in [
        one.created for one in box.there
    ]


@pytest.mark.parametrize(
    ("zone", "day", "first"), [("America/Havana", (2026, 3, 8), 0), ("Africa/Cairo", (2026, 4, 24), 0)]
)
def test_hour_skipped_at_midnight_is_made_up_for(zone, day, first):
    there, policy = ZoneInfo(zone), Policy(daily=10, first=first, last=first + 1)
    noon = datetime(day[0], day[1], day[2], 12, tzinfo=there).astimezone(UTC)
    opened = [hour for hour in range(-12, 12) if snapshot_policy.is_open(policy, noon + timedelta(hours=hour), there)]
    assert [(noon + timedelta(hours=hour)).astimezone(there).hour for hour in opened] == [1]


def test_expiry_never_leaves_dataset_without_snapshot():
    row = [Taken(number, number, MIDNIGHT, ("hourly",)) for number in (1, 2)]
    assert expired_snapshots(Policy(), row, others=0) == (row[0],)
    assert expired_snapshots(Policy(), row, others=1) == tuple(row)
    assert expired_snapshots(Policy(daily=1), row, others=0) == (row[0],)
    assert expired_snapshots(None, row, others=5) == ()


def test_received_policy_waits_and_invalid_policy_is_ignored():
    text = '{"daily":3}'
    assert snapshot_policy.policy_of(dataset(policy=text, policy_source="local")) == Policy(daily=3)
    assert snapshot_policy.policy_of(dataset(policy=text, policy_source="inherited")) == Policy(daily=3)
    assert snapshot_policy.policy_of(dataset(policy=text, policy_source="received")) is None
    assert snapshot_policy.policy_of(dataset(policy='{"daily":3,"below":false}', policy_source="inherited")) is None
    for broken in ("", "{", '{"daily":-1}', '{"daily":501}', '{"x":1}', '{"first":24}', "[" * 5000):
        assert snapshot_policy.policy_of(dataset(policy=broken, policy_source="local")) is None
    with expect_refusal("kept-count-out-of-range"):
        Policy(hourly=-1)
    with expect_refusal("hour-out-of-range"):
        Policy(first=24)


def test_describe_move_says_what_changes_about_snapshots():
    text = '{"daily":3}'
    plain, ruled = dataset("tank/a"), dataset("tank/b", policy=text, policy_source="local")
    alone = dataset("tank/c", policy='{"daily":3,"below":false}', policy_source="local")
    follows = dataset("tank/b/x", policy=text, policy_source="inherited", policy_from="tank/b")
    assert "which keeps 3 daily" in next(snapshot_policy.describe_move(plain, ruled))
    assert "No automatic snapshots" in next(snapshot_policy.describe_move(follows, plain))
    assert "No automatic snapshots" in next(snapshot_policy.describe_move(follows, alone))
    for dataset_, parent in ((plain, alone), (plain, None), (follows, ruled), (ruled, plain)):
        assert list(snapshot_policy.describe_move(dataset_, parent)) == []


def test_datasets_below_received_policy_wait_too():
    def listed(name: str, kind: str, data: str) -> dict[str, object]:
        found = {"value": '{"daily":3}', "source": {"type": kind, "data": data}}
        return {"type": "FILESYSTEM", "properties": {"guid": {"value": "1"}, "larder:policy": found}}

    there = {
        "tank/got": listed("tank/got", "RECEIVED", "-"),
        "tank/got/below": listed("tank/got/below", "INHERITED", "tank/got"),
        "tank/own": listed("tank/own", "LOCAL", "-"),
        "tank/own/below": listed("tank/own/below", "INHERITED", "tank/own"),
    }
    found = {one.name: one for one in status.parse_datasets({"datasets": there})}
    assert [name for name, one in found.items() if snapshot_policy.policy_of(one)] == ["tank/own", "tank/own/below"]
    assert snapshot_policy.offered_policy(found["tank/got/below"]) == Policy(daily=3)
    assert found["tank/own/below"].policy_from == "tank/own"


@pytest.mark.parametrize(
    ("policy", "days"),
    [
        (Policy(hourly=24, daily=14, weekly=8, monthly=6), 190),
        (Policy(frequent=30, hourly=12, daily=3, first=22, last=2), 20),
        (Policy(frequent=9, daily=5, weekly=3, first=9, last=11), 30),
    ],
)
def test_projection_equals_what_box_has_after_long(policy, days):
    for now in (datetime(2026, 11, 21, 12, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)):
        box, clock = Box(policy), now - timedelta(days=days)
        while clock <= now:
            box.tick(clock)
            clock += timedelta(minutes=15 if policy.frequent else 60)
        assert {at for at, _grains in snapshot_policy.project_snapshots(policy, now, BERLIN)} == {
            one.created for one in box.there
        }


def test_projection_of_many_months_is_complete():
    shown = snapshot_policy.project_snapshots(Policy(monthly=500, hourly=500, first=3, last=4), MIDNIGHT, BERLIN)
    assert sum("monthly" in grains for _at, grains in shown) == sum("hourly" in grains for _at, grains in shown) == 500
    assert (shown[-1][0].year, shown[-1][0].month) == (1984, 5)


def test_weeks_begin_on_monday():
    monday = datetime(2026, 11, 23, tzinfo=BERLIN)
    assert slot_number("weekly", monday, BERLIN) == slot_number("weekly", monday - timedelta(seconds=1), BERLIN) + 1


@pytest.mark.parametrize(
    ("since", "first", "last", "opens_at"),
    [
        (12, 0, 0, (1, 12)),
        (12, 9, 17, (1, 12)),
        (7, 9, 17, (1, 9)),
        (20, 9, 17, (2, 9)),
        (20, 22, 6, (1, 22)),
        (3, 22, 6, (1, 3)),
    ],
)
def test_next_opening_is_when_policy_hours_begin(since, first, last, opens_at):
    begun = datetime(2026, 6, 1, since, tzinfo=BERLIN)
    day, hour = opens_at
    found = snapshot_policy.next_opening(Policy(hourly=1, first=first, last=last), begun, BERLIN)
    assert found == datetime(2026, 6, day, hour, tzinfo=BERLIN)


def test_outside_policy_hours_grains_are_overdue_but_not_due():
    policy, noon = Policy(daily=7, first=2, last=4), datetime(2026, 6, 2, 12, tzinfo=BERLIN)
    yesterday = Taken(1, 1, noon - timedelta(days=1), ("daily",))
    assert snapshot_policy.overdue_grains(policy, [yesterday], noon, BERLIN) == ("daily",)
    assert due_grains(policy, [yesterday], noon, BERLIN) == ()
