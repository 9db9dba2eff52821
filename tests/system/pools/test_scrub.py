"""Checking a pool through the pages: begin, pause, go on, stop; what was repaired and what was lost is told."""

from __future__ import annotations

import pytest

from deploy.image.machine import wait_for
from tests.system.care import held, press, reported, reports, scan_of, spoil
from tests.system.moving import guid_of
from tests.visitor import Answer, create_pool, disk_paths


@pytest.fixture(scope="module")
def tank(appliance, visitor) -> str:
    """A mirror made by hand, with a file; the address of its page."""
    create_pool(appliance, "-O", "compression=off", "tank", "mirror", *disk_paths(appliance, 1, 2))
    appliance.shell(
        "head -c 16M /dev/urandom > /tank/kept.bin; head -c 4M /dev/urandom > /tank/lost.bin; zpool sync tank"
    )
    page = f"/pools/{guid_of(appliance, 'tank')}/"
    visitor.wait_until(page, "Scrub now", "Scrub every month", timeout=60)
    return page


def test_a_check_is_begun_paused_gone_on_with_and_stopped_by_the_page(appliance, visitor, tank):
    with held(appliance):
        press(visitor, tank, f"{tank}scrub/", act="start")
        visitor.wait_until(tank, "Scrubbing tank", "Pause the scrub", timeout=90)
        assert scan_of(appliance, "tank")["state"] == "SCANNING"
        press(visitor, tank, f"{tank}scrub/", act="pause")
        visitor.wait_until(tank, "paused", "Resume the scrub", timeout=90)
        assert scan_of(appliance, "tank")["scrub_pause"]
        press(visitor, tank, f"{tank}scrub/", act="start")
        visitor.wait_until(tank, "Pause the scrub", without=("Resume the scrub",), timeout=90)
        assert not scan_of(appliance, "tank")["scrub_pause"]
        job = visitor.confirm(visitor.get(f"{tank}scrub/stop/"))
        assert visitor.ended(job).startswith("Done."), visitor.ended(job)
    assert scan_of(appliance, "tank")["state"] == "CANCELED"
    visitor.wait_until(tank, "Scrub stopped", "Scrub now", timeout=90)
    assert reported(appliance, visitor, "tank", "scrub", 1)["outcome"] == "stopped"


def test_a_second_beginning_is_refused_with_a_sentence(appliance, visitor, tank):
    with held(appliance):
        appliance.run("zpool", "scrub", "tank")
        visitor.wait_until(tank, "Pause the scrub", timeout=60)
        answer = press(visitor, tank, f"{tank}scrub/", act="start")
        assert answer.status == 409
        assert "is already running" in answer.words
        appliance.run("zpool", "scrub", "-s", "tank")
    reported(appliance, visitor, "tank", "scrub", 2)


def test_a_check_begun_by_hand_is_on_the_overview_and_in_the_tray(appliance, visitor, tank):
    known = len(reports(appliance, "tank", "scrub"))
    with held(appliance):
        appliance.run("zpool", "scrub", "tank")
        words = visitor.wait_until("/", "Scrubbing tank", "estimating the time left", timeout=60).words
        assert "1 running" in words
    assert reported(appliance, visitor, "tank", "scrub", known + 1)["outcome"] == "finished"
    visitor.wait_until(tank, "Everything was read and nothing was wrong.", timeout=60)


def test_damage_on_one_disk_is_repaired_and_told(appliance, visitor, tank):
    before, known = appliance.run("sha256sum", "/tank/kept.bin"), len(reports(appliance, "tank", "scrub"))
    spoil(appliance, "tank", "/tank/kept.bin", disk_paths(appliance, 2)[0])
    press(visitor, tank, f"{tank}scrub/", act="start")
    visitor.wait_until(tank, "was damaged on a disk and was rewritten from the others. Nothing was lost.", timeout=180)
    report = reported(appliance, visitor, "tank", "scrub", known + 1)
    assert report["repaired"] > 0
    assert (report["errors"], report["damaged"]) == (0, 0)
    assert report["repaired"] == scan_of(appliance, "tank")["processed"]
    assert "checksum" in visitor.get(f"{tank}reports/").words
    assert appliance.run("sha256sum", "/tank/kept.bin") == before


def test_a_file_that_is_lost_on_both_disks_is_named(appliance, visitor, tank):
    known = len(reports(appliance, "tank", "scrub"))
    spoil(appliance, "tank", "/tank/lost.bin", *disk_paths(appliance, 1, 2), count=2)
    press(visitor, tank, f"{tank}scrub/", act="start")
    visitor.wait_until(tank, "1 file could not be repaired", timeout=180)
    assert "/tank/lost.bin" in visitor.get(f"{tank}reports/").words
    assert reported(appliance, visitor, "tank", "scrub", known + 1)["damaged"] == 1
    appliance.run("rm", "/tank/lost.bin")


def test_history_and_events_say_what_was_done_in_plain_words(visitor, tank):
    visitor.wait_until(
        f"{tank}history/", "The pool was created.", "The scrub was asked to stop.", "zpool create", "root", timeout=90
    )
    visitor.wait_until(f"{tank}history/?show=all", "A scrub began.", timeout=60)
    visitor.wait_until(f"{tank}events/", "The scrub finished.", "gave back something other", timeout=60)


def set_on(appliance) -> list[str]:
    said = appliance.run("zpool", "get", "-H", "-o", "value", "autoexpand,comment", "tank")
    return said.strip().splitlines()


def shown(page: Answer) -> bool:
    return 'aria-checked="true"' in page.text and 'value="Anna&#x27;s films"' in page.text


def test_settings_of_the_pool_are_changed_by_its_page(appliance, visitor, tank):
    page = f"{tank}settings/"
    visitor.wait_until(page, "Grow when all disks of a group are larger", timeout=60)
    review = press(visitor, page, page, name="autoexpand", value="on")
    assert "grows at once" in review.words
    visitor.confirm(review)
    press(visitor, page, page, name="comment", comment="Anna's films")
    wait_for("both to be set", lambda: set_on(appliance) == ["on", "Anna's films"], timeout=90)
    wait_for("both to be shown", lambda: shown(visitor.get(page)), timeout=60)


def test_trimming_is_begun_by_the_page_and_its_end_is_told_once(appliance, visitor, tank):
    assert "trim unsupported" not in appliance.run("zpool", "status", "-t", "tank")
    press(visitor, tank, f"{tank}trim/", act="start")
    visitor.wait_until(tank, "Trimming", timeout=120)
    # It may be at its end already, and then there is nothing to stop, or take hours on disks that are emulated.
    answer = press(visitor, tank, f"{tank}trim/", act="stop")
    assert answer.status in {200, 409}, answer.words
    assert reported(appliance, visitor, "tank", "trim", 1, timeout=180)["outcome"] in {"stopped", "finished"}
    visitor.wait_until(tank, "Trim now", timeout=60)


def test_a_schedule_is_kept(visitor, tank):
    page = f"{tank}schedule/scrub/"
    press(visitor, page, page, every="week", first="2", last="4")
    visitor.wait_until(tank, "Scrub every week between 02:00 and 04:00", timeout=30)


def test_reports_outlive_the_pool_in_memory(appliance, visitor, tank):
    """Facts are read anew after a restart of the worker; no end is told twice."""
    before = len(reports(appliance, "tank", "scrub"))
    appliance.run("systemctl", "restart", "larder-worker")
    visitor.wait_until("/", without=("worker is not running",), timeout=120)
    reported(appliance, visitor, "tank", "scrub", before)
