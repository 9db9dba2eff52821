"""When a pool is due: through months of any length, changes of clocks, and clocks that were wrong."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance import schedule as appliance_schedule
from appliance.pools.maintenance_schedule import Care, DueAct, day_after, decide_run, is_due, is_open, next_start
from appliance.schedule import Schedule

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = Schedule("month", 1, 6)
CARE = Care("1", NIGHT, usable=True, ended=datetime(2026, 10, 1, 5, tzinfo=BERLIN))


def at(*words: int, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime(*words, tzinfo=zone).astimezone(UTC)  # type: ignore[misc, arg-type]  # year, month, day, …


@pytest.mark.parametrize(
    ("last", "every", "then"),
    [
        (date(2026, 1, 31), "month", date(2026, 2, 28)),
        (date(2028, 1, 31), "month", date(2028, 2, 29)),
        (date(2026, 12, 15), "month", date(2027, 1, 15)),
        (date(2026, 11, 30), "quarter", date(2027, 2, 28)),
        (date(2026, 10, 1), "quarter", date(2027, 1, 1)),
        (date(2026, 12, 29), "week", date(2027, 1, 5)),
        (date(2026, 12, 29), "never", None),
    ],
)
def test_the_day_on_which_it_is_due_again(last, every, then):
    assert day_after(last, every) == then


def test_it_is_due_a_month_after_it_really_ended_and_only_in_its_hours():
    assert not is_due(CARE, at(2026, 10, 31, 3), BERLIN)
    assert not is_due(CARE, at(2026, 11, 1, 0, 59), BERLIN)
    assert is_due(CARE, at(2026, 11, 1, 1), BERLIN)
    assert is_due(CARE, at(2026, 11, 1, 5, 59), BERLIN)
    assert not is_due(CARE, at(2026, 11, 1, 6), BERLIN)


def test_one_that_was_missed_is_made_up_for_in_the_next_hours():
    assert is_due(CARE, at(2027, 3, 9, 2), BERLIN)


def test_one_that_a_person_started_counts():
    assert not is_due(replace(CARE, ended=at(2026, 10, 20)), at(2026, 11, 1, 2), BERLIN)


@pytest.mark.parametrize(
    "change", [{"usable": False}, {"state": "running"}, {"state": "paused"}, {"schedule": Schedule("never")}]
)
def test_nothing_is_begun_where_it_must_not(change):
    assert not is_due(replace(CARE, **change), at(2026, 11, 1, 2), BERLIN)


def test_what_was_tried_this_night_is_not_tried_again_before_the_next():
    tried = replace(CARE, tried=at(2026, 11, 1, 1))
    assert not is_due(tried, at(2026, 11, 1, 5), BERLIN)
    assert is_due(tried, at(2026, 11, 2, 1), BERLIN)


def test_a_pool_never_checked_is_due_a_month_after_it_was_made():
    new = replace(CARE, ended=None, since=at(2026, 11, 21))
    assert not is_due(new, at(2026, 12, 20, 2), BERLIN)
    assert is_due(new, at(2026, 12, 21, 2), BERLIN)
    assert is_due(replace(new, since=None), at(2026, 11, 21, 2), BERLIN)


@pytest.mark.parametrize(
    ("schedule", "open_hours"),
    [
        (Schedule("month", 1, 6), range(1, 6)),
        (Schedule("month", 22, 3), [22, 23, 0, 1, 2]),
        (Schedule("month", 0, 0), range(24)),
        (Schedule("month", 5, 5), range(24)),
        (Schedule("month", 23, 0), [23]),
    ],
)
def test_its_hours_may_go_over_midnight_or_be_all_day(schedule, open_hours):
    found = {hour for hour in range(24) if is_open(schedule, at(2026, 11, 1, hour), BERLIN)}
    assert found == set(open_hours)


# --- clocks ---------------------------------------------------------------------------------------------------
def begun(care: Care, start: datetime, days: int, *, takes: timedelta = timedelta(minutes=20)) -> list[datetime]:
    """Look every ten minutes for so many days; when it began. Each run ends by itself."""
    found, now = [], start
    while now < start + timedelta(days=days):
        if care.state and care.tried and now >= care.tried + takes:
            care = replace(care, state="", ended=now)
        if decide_run([care], now, BERLIN, busy=False) == [DueAct(care.key, "start")]:
            found.append(now)
            care = replace(care, state="running", tried=now)
        now += timedelta(minutes=10)
    return found


def test_an_hour_that_the_clocks_leave_out_is_made_up_for_the_next_night():
    """On 29 March 2026 there is no time between 02:00 and 03:00."""
    care = Care("1", Schedule("week", 2, 3), usable=True, ended=at(2026, 3, 22, 2, 30))
    assert begun(care, at(2026, 3, 28), 3) == [at(2026, 3, 30, 2)]


def test_an_hour_that_comes_twice_begins_it_once():
    """On 25 October 2026 the time between 02:00 and 03:00 comes twice."""
    care = Care("1", Schedule("week", 2, 3), usable=True, ended=at(2026, 10, 18, 2, 30))
    assert len(begun(care, at(2026, 10, 24), 5)) == 1


@given(st.integers(0, 23), st.integers(0, 23), st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 1)))
def test_a_week_never_passes_without_it_and_it_never_comes_sooner(first, last, start):
    care = Care("1", Schedule("week", first, last), usable=True, ended=start.replace(tzinfo=UTC))
    starts = begun(care, start.replace(tzinfo=UTC), 30)
    assert 3 <= len(starts) <= 4
    for one, other in pairwise(starts):
        assert timedelta(days=6) <= other - one <= timedelta(days=9)


def test_an_end_in_the_far_future_was_noted_by_a_wrong_clock_and_holds_up_nothing():
    wrong = replace(CARE, ended=datetime(2099, 1, 1, tzinfo=UTC), since=at(2026, 1, 1))
    assert is_due(wrong, at(2026, 11, 1, 2), BERLIN)


def test_a_try_in_the_far_future_holds_up_nothing():
    assert is_due(replace(CARE, tried=datetime(2099, 1, 1, tzinfo=UTC)), at(2026, 11, 1, 2), BERLIN)


def test_a_clock_set_back_a_little_begins_nothing_twice():
    care = replace(CARE, ended=at(2026, 11, 1, 2))
    assert not is_due(care, at(2026, 11, 1, 1, 55), BERLIN)
    assert not is_due(
        replace(care, ended=None, tried=at(2026, 11, 1, 2), since=at(2026, 1, 1)), at(2026, 11, 1, 1, 55), BERLIN
    )


def test_the_boxs_zone_is_utc_where_none_is_set(monkeypatch, tmp_path):
    monkeypatch.setattr(appliance_schedule, "Path", lambda _path: tmp_path / "nothing")
    assert appliance_schedule.box_zone() is UTC
    (tmp_path / "nothing").write_bytes(b"no zone")
    assert appliance_schedule.box_zone() is UTC


# --- several pools --------------------------------------------------------------------------------------------
NOW = at(2026, 11, 1, 2)


def test_of_two_pools_that_are_due_the_one_that_waited_longest_begins_alone():
    late = replace(CARE, key="2", ended=at(2026, 9, 1))
    assert decide_run([CARE, late], NOW, BERLIN, busy=False) == [DueAct("2", "start")]


def test_no_pool_begins_while_another_is_at_it_or_is_rebuilding():
    running = Care("2", NIGHT, usable=True, state="running")
    assert decide_run([running, CARE], NOW, BERLIN, busy=False) == []
    assert decide_run([CARE, running], NOW, BERLIN, busy=False) == []
    assert decide_run([CARE], NOW, BERLIN, busy=True) == []


def test_one_that_a_person_paused_holds_up_no_other_and_stays_paused():
    paused = Care("2", NIGHT, usable=True, state="paused")
    assert decide_run([paused, CARE], NOW, BERLIN, busy=False) == [DueAct("1", "start")]


def test_outside_its_hours_it_is_paused_and_goes_on_in_the_next_where_that_was_asked_for():
    inside = replace(CARE, schedule=replace(NIGHT, inside=True), state="running")
    assert decide_run([inside], at(2026, 11, 1, 7), BERLIN, busy=False) == [DueAct("1", "pause")]
    assert decide_run([inside], NOW, BERLIN, busy=False) == []
    held = replace(inside, state="paused", held=True)
    assert decide_run([held], at(2026, 11, 1, 7), BERLIN, busy=False) == []
    assert decide_run([held], at(2026, 11, 2, 1), BERLIN, busy=False) == [DueAct("1", "resume")]


def test_without_that_it_goes_on_through_the_day():
    assert decide_run([replace(CARE, state="running")], at(2026, 11, 1, 7), BERLIN, busy=False) == []


def test_what_the_schedule_paused_goes_on_when_the_hours_are_lifted():
    held = replace(CARE, state="paused", held=True)
    assert decide_run([held], at(2026, 11, 1, 12), BERLIN, busy=False) == [DueAct("1", "resume")]


# --- what the page says ---------------------------------------------------------------------------------------
def test_the_page_says_when_it_will_begin():
    assert next_start(CARE, at(2026, 10, 20, 12), BERLIN) == at(2026, 11, 1, 1)
    assert next_start(CARE, at(2026, 11, 5, 12), BERLIN) == at(2026, 11, 6, 1)
    assert next_start(CARE, at(2026, 11, 5, 2), BERLIN) == at(2026, 11, 5, 2)
    assert next_start(replace(CARE, schedule=Schedule("never")), NOW, BERLIN) is None
    assert next_start(replace(CARE, state="running"), NOW, BERLIN) is None


def test_the_page_says_the_next_night_after_a_try():
    found = next_start(replace(CARE, tried=at(2026, 11, 1, 1)), at(2026, 11, 1, 4), BERLIN)
    assert found == at(2026, 11, 2, 1)


@given(
    st.integers(0, 23),
    st.integers(0, 23),
    st.sampled_from(["week", "month", "quarter"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 1)),
    st.integers(0, 5000),
)
def test_what_the_page_says_is_when_it_is_due(first, last, every, ended, hours):
    care = Care("1", Schedule(every, first, last), usable=True, ended=ended.replace(tzinfo=UTC))
    now = ended.replace(tzinfo=UTC) + timedelta(hours=hours)
    said = next_start(care, now, UTC)
    assert said is not None
    assert said >= now
    assert is_due(care, said, UTC)
    assert said == now or not is_due(care, said - timedelta(minutes=1), UTC)
