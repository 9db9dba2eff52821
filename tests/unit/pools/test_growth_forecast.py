from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.pools.growth_forecast import FIVE_YEARS, Forecast, Pace, find_pace, forecast_way

TODAY = date(2026, 11, 24)
GB = 10**9


def days(count: int, first: int, daily: int, *, ago: int = 0) -> list[tuple[date, int]]:
    """So many days up to ``ago`` days before today, each with ``daily`` more bytes than the one before."""
    return [(TODAY - timedelta(days=ago + count - 1 - at), first + at * daily) for at in range(count)]


def test_the_pace_is_the_slope_of_the_days():
    found = find_pace(days(29, 100 * GB, 2 * GB), TODAY)
    assert found is not None
    assert found.per_day == pytest.approx(2 * GB)
    assert found.days == 28


def test_the_pace_of_uneven_days_by_hand():
    # Days 0, 10, 20, 30 with 0, 10, 40, 30: the means are 15 and 20.
    found = find_pace(
        [(TODAY - timedelta(days=30 - at), used) for at, used in ((0, 0), (10, 10), (20, 40), (30, 30))], TODAY
    )
    # (-15)(-20) + (-5)(-10) + 5*20 + 15*10 = 300 + 50 + 100 + 150 = 600; 225 + 25 + 25 + 225 = 500.
    assert found is not None
    assert found.per_day == pytest.approx(600 / 500)
    assert found.days == 30


@pytest.mark.parametrize("history", [[], days(28, 0, GB), days(3, 0, GB), days(60, 0, GB, ago=200)])
def test_less_than_four_weeks_tell_no_pace(history):
    assert find_pace(history, TODAY) is None


def test_what_is_older_than_half_a_year_or_lies_ahead_does_not_count():
    late = days(30, 500 * GB, GB)
    old = days(100, 0, 50 * GB, ago=184)
    ahead = [(TODAY + timedelta(days=400), 0)]
    assert find_pace([*old, *late, *ahead], TODAY) == find_pace(late, TODAY)


def test_the_days_until_a_pool_is_full_by_hand():
    # 80 % of 1000 GB are 800; 300 are missing, at 2 GB a day 150 days. 500 are missing to full: 250 days.
    forecast = Forecast(500 * GB, 1000 * GB, 2 * GB)
    assert (forecast.days_until(80), forecast.days_until(100)) == (150, 250)
    assert forecast.share_after(0) == 0.5
    assert forecast.share_after(100) == pytest.approx(0.7)
    assert forecast.share_after(FIVE_YEARS) == 1.0
    assert Forecast(500 * GB, 1000 * GB, 2 * GB + 1).days_until(80) == 150  # a day that has begun counts


def test_a_pool_that_is_full_or_does_not_grow():
    assert Forecast(800 * GB, 1000 * GB, 0.0).days_until(80) == 0
    assert Forecast(799 * GB, 1000 * GB, 0.0).days_until(80) is None
    assert Forecast(799 * GB, 1000 * GB, -5.0 * GB).days_until(80) is None
    assert Forecast(10, 0, 1.0).share_after(5) == 0.0


def test_nothing_is_told_of_what_lies_beyond_five_years():
    assert Forecast(0, FIVE_YEARS * 10, 8.0).days_until(80) == FIVE_YEARS
    assert Forecast(0, FIVE_YEARS * 10 + 10, 8.0).days_until(80) is None


def test_a_way_frees_at_once_and_slows_what_is_written_by_hand():
    pace = Pace(3 * GB, 60)
    # A raidz1 of 3 expanded to 4: what is written takes 44 of 48. 600 of 1000 become 600 of 1500; 600 more to 80 %,
    # at 2.75 GB a day 219 days.
    assert forecast_way(600 * GB, 1500 * GB, pace, share=Fraction(44, 48)).days_until(80) == 219
    assert forecast_way(600 * GB, 1000 * GB, pace, freed=200 * GB).days_until(80) == 134  # 400 GB at 3
    assert forecast_way(600 * GB, 1000 * GB, pace).days_until(80) == 67
    assert forecast_way(600 * GB, 1000 * GB, Pace(-GB, 60), share=Fraction(1, 2)).per_day == -GB


@given(st.integers(0, 10**15), st.integers(1, 10**15), st.floats(-(10**12), 10**12), st.integers(0, 10**14))
def test_more_room_is_never_full_sooner(used, total, per_day, more):
    now, then = Forecast(min(used, total), total, per_day), Forecast(min(used, total), total + more, per_day)
    first, later = now.days_until(80), then.days_until(80)
    assert later is None or (first is not None and first <= later)
    assert all(0 <= now.share_after(day) <= 1 for day in (0, 100, FIVE_YEARS))
