"""Time left that does not lie, over sequences of readings."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.facts.box import LongWork
from appliance.formatting import round_time_left
from appliance.pools import progress
from appliance.pools.progress import LONGEST_GAP, STANDING, WINDOW, RateSample, WorkRate

MB = 10**6
TOTAL = 10**12


def follow(*readings: tuple[float, int], running: bool = True, pace: WorkRate | None = None) -> WorkRate:
    found = pace or WorkRate()
    for at, done in readings:
        found = found.add_sample(RateSample(at, done), running=running)
    return found


def steady(start: float = 0, seconds: int = 200, every: int = 10, rate: int = 100 * MB, done: int = 0):
    return [(start + at, done + at * rate) for at in range(0, seconds + 1, every)]


def test_nothing_is_promised_before_it_was_watched():
    for seconds in (0, 10, 20):
        pace = follow(*steady(seconds=seconds))
        assert pace.seconds_left(0, TOTAL) is None, seconds


def test_after_half_a_minute_of_steady_work_the_time_left_is_told():
    pace = follow(*steady(seconds=40))
    assert pace.rate == pytest.approx(100 * MB)
    assert pace.seconds_left(4 * 10**9, TOTAL) == pytest.approx((TOTAL - 4 * 10**9) / (100 * MB), rel=0.01)


def test_work_that_begins_in_fits_gets_no_promise_until_it_was_watched_for_longer():
    burst = [(0.0, 0), (10.0, 5000 * MB), (20.0, 5010 * MB), (30.0, 5020 * MB), (40.0, 5030 * MB)]
    assert follow(*burst).seconds_left(5030 * MB, TOTAL) is None
    later = [(40.0 + at, 5030 * MB + at * MB) for at in range(10, 101, 10)]
    assert follow(*burst, *later).seconds_left(6 * 10**9, TOTAL) is not None


def test_one_slow_reading_does_not_make_the_time_left_jump():
    pace = follow(*steady(seconds=280))
    before = pace.seconds_left(28 * 10**9, TOTAL)
    after = follow((290, 28 * 10**9 + MB), pace=pace).seconds_left(28 * 10**9, TOTAL)
    assert before is not None
    assert after is not None
    assert after < before * 1.1


def test_it_follows_when_the_work_becomes_slower():
    pace = follow(*steady(seconds=300))
    pace = follow(*steady(start=310, seconds=600, rate=10 * MB, done=30 * 10**9), pace=pace)
    assert pace.rate == pytest.approx(10 * MB, rel=0.05)


def test_readings_a_minute_apart_are_enough():
    """When nobody looks."""
    pace = follow(*steady(seconds=600, every=60))
    assert pace.rate == pytest.approx(100 * MB)


def test_readings_a_second_apart_do_not_pile_up():
    pace = follow(*steady(seconds=2000, every=1))
    assert len(pace.samples) <= WINDOW / 5 + 3
    assert pace.rate == pytest.approx(100 * MB, rel=0.05)


def test_a_pause_begins_anew():
    pace = follow(*steady())
    assert follow((210, 20 * 10**9), running=False, pace=pace).samples == ()
    assert follow((500, 20 * 10**9), (510, 21 * 10**9), pace=WorkRate()).seconds_left(0, TOTAL) is None


@pytest.mark.parametrize(
    "reading",
    [(210.0, 19 * 10**9), (5.0, 21 * 10**9), (200 + LONGEST_GAP + 1, 21 * 10**9)],
    ids=["a step back, as after a restart", "a clock that begins anew", "a long gap"],
)
def test_what_cannot_be_compared_begins_anew(reading):
    pace = follow(reading, pace=follow(*steady()))
    assert [(sample.at, sample.done) for sample in pace.samples] == [reading]
    assert pace.seconds_left(0, TOTAL) is None


def test_work_that_stands_still_makes_no_promise_and_says_so():
    pace = follow(*steady(seconds=100), *((100.0 + at, 10 * 10**9) for at in range(10, 201, 10)))
    assert pace.stalled_seconds >= STANDING
    assert pace.seconds_left(10 * 10**9, TOTAL) is None
    work = LongWork("scrub", "running", None, None, 1, 2)
    assert progress.describe_progress(work, left=None, standing=pace.stalled_seconds) == "no progress for 3 min"


def test_a_scan_that_looks_around_first_does_not_stand_still():
    pace = WorkRate()
    for at in range(0, 300, 10):
        pace = pace.add_sample(RateSample(at, 0, at * MB), running=True)
    assert pace.stalled_seconds == 0
    assert pace.seconds_left(0, TOTAL) is None


def test_what_is_over_its_total_makes_no_promise():
    """zpool-scrub(8): a scrub of a pool in use may go a little beyond."""
    pace = follow(*steady())
    assert pace.seconds_left(TOTAL, TOTAL) is None
    assert pace.seconds_left(TOTAL + 1, TOTAL) is None


def test_what_would_take_months_is_not_promised():
    assert follow(*steady(rate=1000)).seconds_left(0, TOTAL) is None


@given(
    st.lists(st.tuples(st.floats(0, 10**6), st.integers(0, 2**63 - 1), st.booleans()), max_size=60),
    st.integers(0, 2**63 - 1),
)
def test_no_sequence_of_readings_makes_a_wrong_promise(readings, total):
    pace = WorkRate()
    for at, done, running in readings:
        pace = pace.add_sample(RateSample(at, done), running=running)
        assert pace.rate >= 0
        left = pace.seconds_left(done, total)
        assert left is None or left >= 0
        assert all(one.at <= other.at and one.done <= other.done for one, other in pairwise(pace.samples))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(61, 120), (3599, 3600), (3601, 3900), (7 * 3600 + 1, 7.5 * 3600), (50 * 3600 + 1, 51 * 3600)],
)
def test_a_time_left_is_as_exact_as_it_can_be_meant_and_never_too_short(seconds, shown):
    assert round_time_left(seconds) == shown


@pytest.mark.parametrize(
    ("state", "left", "words"),
    [
        ("running", None, "estimating the time left"),
        ("running", 30, "less than a minute left"),
        ("running", 11400, "about 3 h 10 min left"),
        ("paused", 11400, "paused"),
        ("waiting", 11400, "waiting until every disk of the group is back and rebuilt"),
    ],
)
def test_the_phrase_beside_the_percent(state, left, words):
    assert progress.describe_progress(LongWork("expand", state, None, None, 1, 2), left=left, standing=0) == words
