from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.formatting import (
    BINARY,
    DECIMAL,
    about_days,
    and_more,
    binary_text,
    capitalize_opening,
    disk_label,
    disk_size,
    link_label,
    names_text,
    number_text,
    rate_text,
    size_of,
    size_text,
    size_typed,
    space_in,
    text_in,
)
from appliance.message import Message, words_of
from tests.unit.made import disk

UNITS = pytest.mark.parametrize("units", [DECIMAL, BINARY], ids=["decimal", "binary"])


@pytest.mark.parametrize(
    ("size", "decimal", "binary"),
    [
        (0, "0 B", "0 B"),
        (999, "999 B", "999 B"),
        (1000, "1 kB", "1000 B"),
        (1024, "1.02 kB", "1 KiB"),
        (1536, "1.54 kB", "1.5 KiB"),
        (2 * 10**12, "2 TB", "1.82 TiB"),
        (3748834235840, "3.75 TB", "3.41 TiB"),
        (1023 * 2**30, "1.1 TB", "1023 GiB"),
        (int(999.7 * 10**9), "1 TB", "931 GiB"),
        (2**60, "1153 PB", "1024 PiB"),
    ],
)
def test_size_has_three_figures_and_a_unit(size, decimal, binary):
    assert (size_text(size), binary_text(size)) == (decimal, binary)
    with space_in(lambda: BINARY):
        assert size_text(size) == binary
    assert size_text(size) == decimal


def test_rates_and_disk_sizes_stay_decimal_whatever_was_chosen():
    with space_in(lambda: BINARY):
        assert rate_text(117_900_000) == "118 MB/s"
        assert disk_size(2000398934016) == "2 TB"


def test_units_chosen_in_one_thread_do_not_reach_another():
    seen = []
    with space_in(lambda: BINARY):
        other = threading.Thread(target=lambda: seen.append(size_text(10**12)))
        other.start()
        other.join()
    assert seen == ["1 TB"]


def test_units_are_back_after_an_error():
    with pytest.raises(ValueError, match="wrong"), space_in(lambda: BINARY):
        raise ValueError("wrong")
    assert size_text(10**12) == "1 TB"


@UNITS
@given(size=st.integers(min_value=0, max_value=2**64))
def test_what_it_says_is_within_one_percent_and_has_no_exponent(units, size):
    number, unit = text_in(units, size).split()
    assert "e" not in number
    assert abs(float(number) * units.base ** units.names.index(unit) - size) <= size / 100


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (500 * 10**9, "500 GB"),
        (8 * 2**30, "8 GiB"),
        (614 * 2**20, "614 MiB"),
        (1, "1"),
        (0, "0"),
    ],
)
def test_size_is_typed_in_the_unit_with_the_fewest_figures(size, text):
    assert size_typed(size) == text


@given(st.integers(min_value=0, max_value=2**64))
def test_what_stands_in_a_form_is_read_as_the_same_bytes(size):
    assert size_of(size_typed(size)) == size


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
    assert disk_size(size) == text


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


MARKS = {"{more},{less}": "{more}.{less}", "{whole}.{part}": "{whole},{part}"}


@pytest.mark.parametrize(
    ("said", "dutch"),
    [
        (number_text("4,000,787.25"), "4.000.787,25"),
        (number_text("1,000"), "1.000"),
        (size_text(1_820_000_000_000), "1,82 TB"),
        (rate_text(84_900_000), "84,9 MB/s"),
        (disk_size(1_500_000_000_000), "1,5 TB"),
    ],
)
def test_numbers_are_written_with_the_marks_of_the_reader(said, dutch):
    assert words_of(said, lambda template: MARKS.get(template, template)) == dutch


def test_number_without_marks_is_plain_text():
    assert not any(isinstance(text, Message) for text in (number_text("400"), size_text(10**12), rate_text(10**8)))


def test_list_that_is_cut_ends_with_the_number_of_the_others():
    names = ["a", "b", "c"]
    assert [str(names_text(names, most)) for most in (3, 2)] == ["a, b, c", "a, b and 1 more"]
    assert str(names_text(names, 1, "; ")) == "a and 2 more"
    assert [str(and_more(names, more, "; ")) for more in (0, 4)] == ["a; b; c", "a; b; c and 4 more"]
    assert str(and_more([], 4)) == "4 more folders"
