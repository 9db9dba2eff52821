from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.formatting import about_days, capitalize_opening, disk_label, link_label, maker_size, size_text
from tests.unit.made import disk


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (2 * 10**12, "1.82 TiB"),
        (3748834235840, "3.41 TiB"),
        (1023 * 2**30, "1023 GiB"),
        (int(999.7 * 2**20), "1000 MiB"),
        (2**60, "1024 PiB"),
    ],
)
def test_it_says_bytes_with_a_binary_unit(size, text):
    assert size_text(size) == text


@given(st.integers(min_value=0, max_value=2**64))
def test_it_never_says_bytes_with_an_exponent(size):
    assert "e" not in size_text(size)


@given(st.integers(min_value=0, max_value=2**64))
def test_what_it_says_is_within_one_percent(size):
    number, unit = size_text(size).split()
    said = float(number) * 1024 ** ("B", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit)
    assert abs(said - size) <= size / 100


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (2 * 10**12, "2 TB"),
        (2000398934016, "2 TB"),
        (1500301910016, "1.5 TB"),
        (500107862016, "500 GB"),
        (6442450944, "6.4 GB"),
        (10**6, "1 MB"),
        (5, "5 B"),
    ],
)
def test_it_says_a_disks_size_as_its_label_does(size, text):
    assert maker_size(size) == text


def test_it_names_a_disk_by_what_is_on_its_sticker():
    assert disk_label(disk(1)) == "WDC WD20EARS-00MVWB0 (serial WD-WCAZA0000001)"


def test_it_names_a_disk_without_serial_by_todays_name():
    assert disk_label(disk(1, serial="", model="")) == "A disk (sda)"


def test_a_sentence_begins_large_and_keeps_its_names():
    assert capitalize_opening("bay 3 (WDC WD20EARS)") == "Bay 3 (WDC WD20EARS)"
    assert capitalize_opening("") == ""


def test_a_disk_that_is_away_is_called_by_what_its_by_id_name_tells():
    assert link_label("ata-WDC_WD20EARS_WD-1") == "WDC WD20EARS (serial WD-1)"
    assert link_label("scsi-0LARDER_new7_NEW-7") == "LARDER new7 (serial NEW-7)"
    assert link_label("wwn-0x50014ee2") == "wwn-0x50014ee2"
    assert link_label("sda1") == "sda1"


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "0 days"),
        (1, "1 day"),
        (59, "59 days"),
        (60, "2 months"),
        (602, "20 months"),
        (725, "2 years"),
        (3649, "10 years"),
    ],
)
def test_forecast_is_no_more_exact_than_it_is(days, text):
    assert about_days(days) == text
