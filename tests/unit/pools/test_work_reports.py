"""What a report says of how long work ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from appliance.facts.box import Vdev
from appliance.pools.work_reports import Report, Wear, wear_of
from tests.unit.made import recorded_pool

START = datetime(2026, 11, 1, 1, tzinfo=UTC)
CLEAN = Report("scrub", "finished", START, START + timedelta(hours=3, minutes=10), looked=10**12)


def test_a_clean_scrub_says_so_and_how_long_it_took():
    assert (CLEAN.state, CLEAN.word, CLEAN.seconds) == ("healthy", "clean", 11400)
    assert "nothing was wrong" in CLEAN.sentence


def test_repaired_is_not_damaged():
    found = replace(CLEAN, repaired=12 * 2**20)
    assert (found.state, found.word) == ("repaired", "repaired")
    assert found.sentence == "12.6 MB was damaged on a disk and was rewritten from the others. Nothing was lost."


@pytest.mark.parametrize(
    ("errors", "damaged", "words"),
    [
        (3, 2, "2 files could not be repaired"),
        (1, 0, "1 error could not be repaired"),
        (0, 1, "1 file could not be repaired"),
    ],
)
def test_what_could_not_be_repaired_is_never_called_clean(errors, damaged, words):
    found = replace(CLEAN, errors=errors, damaged=damaged, repaired=2**20)
    assert (found.state, found.word) == ("failed", "damage left")
    assert words in found.sentence
    assert "Nothing was lost" not in found.sentence
    assert "nothing was wrong" not in found.sentence


def test_damage_of_the_pools_own_records_is_told_apart_from_files():
    """The names are those of the recorded damage."""
    names = ("<metadata>:<0x47>", "<metadata>:<0x4c>", "/dam/photo.raw")
    found = replace(CLEAN, errors=133, damaged=3, files=names).sentence
    assert "1 file could not be repaired and should be restored" in found
    assert "2 records of the pool itself" in found
    only = replace(CLEAN, errors=2, damaged=1, files=names[:1]).sentence
    assert "file could not" not in only
    assert "1 record of the pool itself" in only


def test_a_stopped_scrub_does_not_say_that_all_is_well():
    found = replace(CLEAN, outcome="stopped", repaired=2**20)
    assert (found.state, found.word) == ("empty", "stopped")
    assert "was not checked" in found.sentence
    assert "1.05 MB was repaired by then" in found.sentence


@pytest.mark.parametrize(("started", "ended"), [(None, START), (START, None), (START, START - timedelta(days=1))])
def test_where_the_clock_was_set_or_the_beginning_is_not_known_no_time_is_made_up(started, ended):
    assert replace(CLEAN, started=started, ended=ended).seconds is None


@pytest.mark.parametrize("kind", ["resilver", "expand", "remove", "trim", "initialize", "something new"])
@pytest.mark.parametrize("outcome", ["finished", "stopped"])
def test_every_kind_has_a_sentence(kind, outcome):
    found = replace(CLEAN, kind=kind, outcome=outcome)
    assert found.sentence.endswith(".")
    assert found.title
    assert ("before" in found.sentence) == (outcome == "stopped")


def test_requests_that_failed_while_trimming_are_told():
    assert "3 requests failed" in replace(CLEAN, kind="trim", errors=3).sentence


def test_the_disks_with_errors_are_named():
    worn = Vdev("ata-B", "disk", 2, "ONLINE", checksum_errors=7)
    pool = replace(
        recorded_pool(),
        vdevs=(Vdev("mirror-0", "mirror", 9, "ONLINE", children=(Vdev("ata-A", "disk", 1, "ONLINE"), worn)),),
    )
    assert wear_of(pool) == (Wear("ata-B", 0, 0, 7),)
