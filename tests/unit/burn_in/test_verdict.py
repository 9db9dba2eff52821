from __future__ import annotations

import pytest

from appliance.burn_in.regions import RegionResult, split_disk
from appliance.burn_in.verdict import DriveFigures, find_slow, judge_disk
from appliance.layout.geometry import MIB

REGIONS = split_disk(8 * 10**12)
TESTS = {"short": {"passed": True, "text": ""}, "long": {"passed": True, "text": ""}}
NONE = DriveFigures({"reallocated": 0, "pending": 0, "crc": 0}, True)


def results(**changes) -> list[RegionResult]:
    """A hard disk of 8 TB: from 200 MB/s at the beginning to 100 at the end."""
    found = [
        RegionResult(
            number=region.number, written=(200 - region.number // 2) * 10**6, read=(205 - region.number // 2) * 10**6
        )
        for region in REGIONS
    ]
    for number, result in changes.items():
        found[int(number[1:])] = result
    return found


def judged(before=NONE, after=NONE, tests=TESTS, found=None, **more):
    return judge_disk(before, after, tests, REGIONS, results() if found is None else found, **more)


def test_disk_without_a_fault_is_clean_although_its_inner_tracks_are_slower():
    assert judged().state == "clean"
    assert judged().findings == ()


@pytest.mark.parametrize(
    ("problem", "words"),
    [("read", "could not be read back"), ("write", "could not be written"), ("changed", "other data than was written")],
)
def test_bad_region_is_named_with_its_place(problem, words):
    verdict = judged(found=results(_30=RegionResult(number=30, problem=problem, at=1170000000000)))
    assert verdict.state == "failed"
    assert words in verdict.findings[0].text
    assert "Region 31 (1160 GB to 1200 GB)" in verdict.findings[0].text
    assert "byte 1170000000000" in verdict.findings[0].text


def test_slow_region_is_named_with_how_much_longer_it_took():
    found = results(_30=RegionResult(number=30, written=180 * 10**6, read=30 * 10**6))
    verdict = judged(found=found)
    (slow,) = find_slow(REGIONS, found)
    assert (slow.region.number, slow.reading) == (30, True)
    assert 6.0 < slow.times < 6.7
    assert "reading at 30 MB/s" in verdict.findings[0].text
    assert 1000 < slow.lost < 1200


@pytest.mark.parametrize(
    ("rate", "state"), [(30, "failed"), (47, "failed"), (50, "watch"), (90, "watch"), (110, "clean")]
)
def test_disk_with_a_region_that_takes_four_times_as_long_is_refused(rate, state):
    """Around it, reading goes at 190 MB/s."""
    assert judged(found=results(_30=RegionResult(number=30, written=180 * 10**6, read=rate * 10**6))).state == state


def test_few_seconds_more_are_no_slow_region_however_many_times_they_are():
    regions = split_disk(400 * MIB)
    found = [RegionResult(number=region.number, written=10**8, read=10**8) for region in regions]
    found[4] = RegionResult(number=4, written=10**7, read=10**8)  # four seconds instead of half a one
    assert find_slow(regions, found) == []
    found[4] = RegionResult(number=4, written=10**6, read=10**8)
    assert [one.region.number for one in find_slow(regions, found)] == [4]


def limited(numbers: range, rate: int) -> list[RegionResult]:
    """The disk where these regions were tested with that limit in MB/s."""
    limit = rate * 10**6
    slow = {f"_{number}": RegionResult(number=number, written=limit, read=limit, rate=limit) for number in numbers}
    return results(**slow)


@pytest.mark.parametrize("numbers", [range(50, 53), range(50, 60), range(50, 150), range(50, 200), range(1, 50)])
def test_limit_that_is_chosen_on_the_way_makes_no_region_slow(numbers):
    assert find_slow(REGIONS, limited(numbers, 20)) == []
    assert find_slow(REGIONS, limited(range(1, 201), 20)) == []


def test_slow_region_is_found_on_either_side_of_a_new_limit():
    found = limited(range(50, 150), 100)
    found[49] = RegionResult(number=49, written=180 * 10**6, read=30 * 10**6)
    found[52] = RegionResult(number=52, written=100 * 10**6, read=20 * 10**6, rate=100 * 10**6)
    assert [(one.region.number, one.state) for one in find_slow(REGIONS, found)] == [(49, "failed"), (52, "failed")]


def test_region_without_a_limit_is_compared_with_others_without_one():
    """Among neighbours at 20 MB/s it would seem to be as fast as they are."""
    found = limited(range(50, 65), 20)
    found[49] = RegionResult(number=49, written=180 * 10**6, read=20 * 10**6)
    assert [one.region.number for one in find_slow(REGIONS, found)] == [49]


def test_few_regions_have_no_median():
    assert find_slow(REGIONS, results()[:5]) == []  # the first is an end
    assert find_slow(REGIONS, [*results()[:5], RegionResult(number=5, written=1, read=1)])


@pytest.mark.parametrize(("name", "state"), [("reallocated", "failed"), ("pending", "failed"), ("crc", "watch")])
def test_growing_counts_are_told_with_the_difference(name, state):
    verdict = judged(after=DriveFigures({**NONE.counts, name: 4}, True), before=DriveFigures({**NONE.counts, name: 1}))
    assert verdict.state == state
    assert "4" in verdict.findings[0].text
    assert "3 more than before" in verdict.findings[0].text


def test_old_counts_of_bad_sectors_are_a_reason_to_look_and_old_cable_faults_are_not():
    old = DriveFigures({"reallocated": 8, "crc": 5}, True)
    verdict = judged(before=old, after=old)
    assert verdict.state == "watch"
    assert len(verdict.findings) == 1


def test_figure_that_was_not_told_before_is_not_called_growth():
    verdict = judged(before=DriveFigures(), after=DriveFigures({"reallocated": 8}, True))
    assert verdict.state == "watch"
    assert "more than before" not in verdict.findings[0].text


def test_failed_selftest_and_a_failing_drive_are_failures_and_come_first():
    verdict = judged(
        after=DriveFigures({}, False), tests={"short": {"passed": False, "text": "read failure"}}, hottest=60
    )
    assert verdict.state == "failed"
    assert [finding.state for finding in verdict.findings] == ["failed", "failed", "watch"]
    assert "read failure" in verdict.findings[0].text


def test_selftest_without_a_result_is_looked_at_but_not_one_that_the_drive_cannot_do():
    assert judged(tests={"long": {"passed": None, "text": "Aborted by host"}}).state == "watch"
    assert judged(tests={"long": {"passed": None, "able": False, "text": ""}}).state == "clean"


def test_disk_of_which_nothing_was_tested_is_never_clean():
    nothing = {kind: {"passed": None, "able": False, "text": ""} for kind in ("short", "long")}
    assert judged(tests=nothing, found=[]).state == "watch"


def test_warm_disk_is_a_reason_to_look():
    assert judged(hottest=54).state == "clean"
    assert judged(hottest=61, warm=60).state == "watch"
