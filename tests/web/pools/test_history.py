"""What was: reports, history and events of a pool, a page at a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from appliance import agent_client
from appliance.errors import Failed
from tests.web import rows
from tests.web.reading import Page, text_of
from tests.web.routes import TANK
from web.inventory import store
from web.inventory.models import Event, HistoryLine, Source
from web.pools.models import WorkReport
from workers import collect_history

REPORTS, HISTORY, EVENTS = (f"/pools/{TANK}/{part}/" for part in ("reports", "history", "events"))
LINES = [
    "2026-11-20.23:14:05 zpool create tank raidz2 /dev/a [user 0 (root) on larder:linux]",
    "2026-11-20.23:14:06 [txg:90] scan setup func=1 mintxg=0 maxtxg=90 [on larder]",
    "2026-11-21.01:00:00 zpool scrub tank [user 0 (root) on larder:linux]",
]


def report(number: int = 0, **changes: Any) -> WorkReport:
    ended = rows.LONG_AGO + timedelta(days=number)
    made = {
        "key": f"k{number}",
        "pool_key": TANK,
        "pool": "tank",
        "kind": "scrub",
        "outcome": "finished",
        "ended": ended,
    }
    return WorkReport.objects.create(**{**made, **changes})


# --- reports --------------------------------------------------------------------------------------------------
def test_a_report_with_damage_names_the_files_and_the_disks(web, box):
    report(errors=2, damaged=300, files=["/tank/a.jpg", "tank/b@c:/d"], wear=[["ata-A", 0, 0, 7]], repaired=2**20)
    said = text_of(web.get(REPORTS))
    assert "300 files could not be repaired" in said
    assert "the first 2 of 300" in said
    assert "/tank/a.jpg tank/b@c:/d" in said
    assert "ata-A (0 read, 0 write, 7 checksum)" in said


def test_the_pools_page_has_the_latest_reports_and_no_others_reports(web, box):
    for number in range(5):
        report(number, repaired=(number + 1) * 2**30)
    report(9, pool_key="7", pool="attic", repaired=99 * 2**30)
    said = text_of(web.get(f"/pools/{TANK}/"))
    assert said.count("Scrub repaired") == 3
    assert "99 GiB" not in said
    assert text_of(web.get(REPORTS)).count("Scrub repaired") == 5


def test_without_reports_the_page_says_what_will_be_there(web, box):
    assert "No reports yet" in text_of(web.get(REPORTS))


def test_many_reports_have_pages(web, box):
    for number in range(60):
        report(number)
    assert "Page 1 of 2" in text_of(web.get(REPORTS))
    assert text_of(web.get(REPORTS, {"page": 2})).count("Scrub clean") == 10


# --- history --------------------------------------------------------------------------------------------------
@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the agent reads."""
    found = list(LINES)
    monkeypatch.setattr(
        agent_client,
        "send_request",
        lambda request, **_more: (
            {"facts": {"lines": list(found)}} if request == {"verb": "read-history", "pool": "tank"} else {}
        ),
    )
    return found


def test_looking_has_the_history_read_once_in_half_a_minute(web, box):
    for _ in range(3):
        web.get(HISTORY)
    assert box.count(("workers.read_history", TANK)) == 1
    Source.objects.filter(name=store.history_source(TANK)).update(requested=timezone.now() - timedelta(seconds=31))
    web.get(HISTORY)
    assert box.count(("workers.read_history", TANK)) == 2


def test_before_it_was_read_the_page_says_so(web, box):
    assert "Reading the history" in text_of(web.get(HISTORY))


def test_commands_are_shown_newest_first_and_the_rest_where_it_is_asked_for(web, box, lines):
    collect_history.collect_history(TANK)
    said = text_of(web.get(HISTORY))
    assert said.index("A scrub was asked for.") < said.index("The pool was created.")
    assert "zpool create tank raidz2 /dev/a" in said
    assert "root@larder" in said
    assert "A scrub began." not in said
    assert "A scrub began." in text_of(web.get(HISTORY, {"show": "all"}))


def test_the_same_history_again_moves_no_version_and_a_new_line_does(box, lines):
    collect_history.collect_history(TANK)
    source = Source.objects.filter(name=store.history_source(TANK))
    before = source.get().version
    collect_history.collect_history(TANK)
    assert source.get().version == before
    lines.append("2026-11-22.01:00:00 zpool scrub -s tank [user 0 (root) on larder:linux]")
    collect_history.collect_history(TANK)
    assert source.get().version > before
    assert HistoryLine.objects.count() == 4


def test_a_history_that_cannot_be_read_is_said_and_hides_nothing(web, box, lines, monkeypatch):
    collect_history.collect_history(TANK)

    def fail(*_args: Any, **_more: Any) -> None:
        raise Failed("Larder's agent does not answer")

    monkeypatch.setattr(agent_client, "send_request", fail)
    collect_history.collect_history(TANK)
    said = text_of(web.get(HISTORY))
    assert "Larder's agent does not answer" in said
    assert "The pool was created." in said


@pytest.mark.parametrize(
    "answer", [{}, {"facts": None}, {"facts": {"lines": None}}, {"facts": {"lines": [None, 7, {}]}}]
)
def test_an_odd_answer_is_no_history(web, box, monkeypatch, answer):
    monkeypatch.setattr(agent_client, "send_request", lambda *_args, **_more: answer)
    collect_history.collect_history(TANK)
    assert "ZFS keeps no command for this pool." in text_of(web.get(HISTORY))


def test_the_history_of_a_pool_that_is_gone_goes_too(box, lines):
    collect_history.collect_history(TANK)
    rows.put(pools=[])
    collect_history.collect_history(TANK)
    assert not HistoryLine.objects.exists()


def test_pages_keep_what_was_asked_for(web, box):
    at = timezone.now()
    HistoryLine.objects.bulk_create(
        HistoryLine(pool_key=TANK, number=number, at=at, kind="noted", text="scan done errors=0")
        for number in range(120)
    )
    response = web.get(HISTORY, {"show": "all", "page": 2})
    assert "Page 2 of 3" in text_of(response)
    links = [found.get("href") for tag, found in Page(response).elements if tag == "a"]
    assert "?show=all&page=3" in links


# --- events ---------------------------------------------------------------------------------------------------
def event(number: int, kind: str = "sysevent.fs.zfs.scrub_finish", **changes: Any) -> Event:
    made = {"file": f"{number}.json", "source": "zed", "kind": kind, "subject": "tank", "received": timezone.now()}
    return Event.objects.create(**{**made, **changes})


def test_events_of_this_pool_are_said_in_plain_words_and_book_keeping_is_left_out(web, box):
    event(1)
    event(
        2,
        "ereport.fs.zfs.checksum",
        fields={"ZEVENT_VDEV_PATH": "/dev/disk/by-id/ata-A-part1", "ZEVENT_VDEV_CKSUM_ERRORS": "4"},
    )
    event(3, "sysevent.fs.zfs.history_event")
    event(4, "sysevent.fs.zfs.scrub_start", subject="attic")
    event(5, source="smartd", kind="EmailTest")
    page = text_of(web.get(EVENTS))
    assert "The scrub finished." in page
    assert "ata-A gave back something other than what was written. 4 checksum errors" in page
    assert "history_event" not in page
    assert "began" not in page
    assert "EmailTest" not in page


def test_without_events_the_page_says_so(web, box):
    assert "No events" in text_of(web.get(EVENTS))


def test_many_events_have_pages(web, box):
    for number in range(60):
        event(number)
    assert "Page 1 of 2" in text_of(web.get(EVENTS))
