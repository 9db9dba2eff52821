from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from appliance.burn_in.regions import (
    LEAST_REGIONS,
    MOST_REGIONS,
    RegionResult,
    decode_results,
    encode_result,
    span_text,
    split_disk,
)
from appliance.disks.exclusive_disk import ENDS
from appliance.disks.inventory import SMALLEST
from appliance.layout.geometry import MIB


@given(some.integers(SMALLEST // 512, 30 * 10**12 // 512).map(lambda sectors: sectors * 512))
def test_regions_cover_every_byte_once_and_the_ends_are_their_own(size):
    regions = split_disk(size)
    assert regions[0].start == 0
    assert regions[-1].end == size
    assert all(one.end == following.start for one, following in pairwise(regions))
    assert [one.number for one in regions] == list(range(len(regions)))
    assert [one.is_edge for one in regions] == [True, *[False] * (len(regions) - 2), True]
    assert all(one.start % MIB == 0 and one.size % MIB == 0 and one.size > 0 for one in regions[1:-1])
    # The probe reads the first and the last MiB: they are never written with anything but zeros.
    assert regions[0].size == ENDS
    assert ENDS <= regions[-1].size < ENDS + MIB
    assert len(regions) <= MOST_REGIONS + 2


@pytest.mark.parametrize(
    ("size", "length"), [(400 * MIB, 40 * MIB), (64 * 10**9, 512 * MIB), (8 * 10**12, 38147 * MIB)]
)
def test_region_is_a_bounded_piece_of_a_disk_of_any_size(size, length):
    regions = split_disk(size)
    assert regions[1].size == length
    assert len(regions) > LEAST_REGIONS


def test_disk_too_small_for_a_pool_has_no_regions():
    assert split_disk(SMALLEST - 512) == ()


def test_span_tells_neighbours_apart():
    one, other = (span_text(region) for region in split_disk(8 * 10**12)[30:32])
    assert (one, other) == ("1160 GB to 1200 GB", "1200 GB to 1240 GB")
    assert span_text(split_disk(400 * MIB)[1]) == "17 MB to 59 MB"


def test_results_are_found_among_other_notes_and_damaged_ones_are_left_out():
    result = RegionResult(number=3, written=5, read=7, problem="read", at=9)
    notes = ["A note", encode_result(result), "region {", 'region {"number": "x"}']
    assert list(decode_results(notes)) == [result]
