"""Long work is followed, and its end is told once: whatever happens between two looks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import agent_client
from appliance.errors import Failed
from appliance.facts.box import LongWork, Pool
from tests.unit.made import recorded_pool
from tests.web import rows
from tests.web.reading import text_of
from tests.web.routes import TANK
from web import row_retention
from web.inventory.models import Activity
from web.pools.models import WorkReport
from workers import collect_progress, work_reports

BEGAN = rows.LONG_AGO


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("time.monotonic", found)
    return found


@pytest.fixture(autouse=True)
def nothing_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_reports, "_tried", {})


def work(done: int = 0, state: str = "running", **changes: Any) -> LongWork:
    ended = BEGAN + timedelta(hours=2) if state in {"finished", "stopped"} else None
    return replace(LongWork("scrub", state, BEGAN, ended, done, 10**9), **changes)


def tank(*found: LongWork, **changes: Any) -> Pool:
    return replace(recorded_pool(), **{"work": found, **changes})


def look(*found: LongWork, **changes: Any) -> bool:
    """One reading, as the collector makes it."""
    pools = [tank(*found, **changes)] if found else []
    changed = collect_progress.update_activities(pools)
    work_reports.store_reports(pools)
    return changed


def after_a_restart() -> None:
    """The inventory is in memory: nothing of it is left."""
    Activity.objects.all().delete()


# --- following ------------------------------------------------------------------------------------------------
def test_a_scrub_is_followed_whoever_started_it(clock):
    assert look(work(10**8))
    row = Activity.objects.get()
    assert (row.pool, row.kind, row.state, row.percent, row.left) == ("tank", "scrub", "running", 10, None)
    assert row.phrase == "estimating the time left"
    for at in range(1, 7):
        clock.now += 10
        look(work(10**8 + at * 10**7))
    row.refresh_from_db()
    assert row.percent == 16
    assert row.rate == pytest.approx(10**6)
    assert row.left == pytest.approx(840, rel=0.01)
    assert row.phrase == "about 14 min left"


def test_a_paused_one_says_so_and_makes_no_promise(clock):
    for at in range(7):
        clock.now += 10
        look(work(at * 10**7))
    look(work(7 * 10**7, "paused"))
    row = Activity.objects.get()
    assert (row.state, row.phrase, row.left, row.rate) == ("paused", "paused", None, 0)
    clock.now += 3600
    look(work(8 * 10**7))
    row.refresh_from_db()
    assert row.phrase == "estimating the time left"


def test_what_a_person_would_not_see_moves_no_version(clock):
    look(work(10**8))
    clock.now += 3
    assert not look(work(10**8 + 1))
    clock.now += 3
    assert look(work(2 * 10**8))


def test_an_ended_one_that_stays_ended_changes_nothing():
    look(work(10**9, "finished"))
    look(work(10**9, "finished"))
    assert not look(work(10**9, "finished"))


def test_of_a_pool_that_is_gone_nothing_is_followed():
    look(work())
    assert look()
    assert not Activity.objects.exists()


def test_two_works_of_one_pool_are_two_rows():
    look(work(), work(kind="trim"), work(kind="expand", state="waiting"))
    assert set(Activity.objects.values_list("kind", "state")) == {
        ("scrub", "running"),
        ("trim", "running"),
        ("expand", "waiting"),
    }


def test_a_trim_that_was_paused_began_when_it_began():
    later = BEGAN + timedelta(hours=1)
    look(work(1, kind="trim"))
    look(work(1, "paused", kind="trim", started=later))
    look(work(2, kind="trim", started=later))
    assert Activity.objects.get().started == BEGAN


@pytest.mark.parametrize("done", [0, 2**63 - 1])
def test_any_amount_fits_into_a_row(done):
    look(work(done, total=2**63 - 1, errors=2**63 - 1))
    assert Activity.objects.get().done == done


# --- reports --------------------------------------------------------------------------------------------------
def test_a_scrub_that_ends_has_one_report_however_often_it_is_looked_at():
    for done, state in ((0, "running"), (10**9, "finished"), (10**9, "finished"), (10**9, "finished")):
        look(work(done, state, repaired=4096 if state == "finished" else 0))
    report = WorkReport.objects.get().report
    assert (report.outcome, report.seconds, report.repaired, report.errors) == ("finished", 7200, 4096, 0)


def test_one_that_ended_while_nobody_looked_has_its_report_after_the_restart_once():
    look(work(10))
    after_a_restart()
    look(work(10**9, "finished"))
    after_a_restart()
    look(work(10**9, "finished"))
    assert WorkReport.objects.count() == 1


def test_one_cut_off_by_a_power_cut_has_no_report_until_it_really_ends():
    look(work(5 * 10**8))
    after_a_restart()
    look(work(3 * 10**8))
    assert not WorkReport.objects.exists()
    look(work(10**9, "finished"))
    assert WorkReport.objects.get().outcome == "finished"


def test_the_next_scrub_has_a_report_of_its_own():
    look(work(10**9, "finished"))
    look(work(10**9, "finished", started=BEGAN + timedelta(days=30)))
    assert WorkReport.objects.count() == 2


def test_a_stopped_one_is_believed_at_the_second_look():
    """A rebuilding that begins anew for another disk looks stopped for a moment."""
    stopped = work(10, "stopped", kind="resilver")
    look(stopped)
    assert not WorkReport.objects.exists()
    look(work(0, kind="resilver", started=BEGAN + timedelta(hours=3)))
    assert not WorkReport.objects.exists()
    look(stopped)
    look(stopped)
    assert WorkReport.objects.get().outcome == "stopped"


def test_a_trim_is_reported_with_the_beginning_that_was_seen():
    look(work(1, kind="trim"))
    ended = work(10**9, "finished", kind="trim", started=None)
    look(ended)
    look(ended)
    assert WorkReport.objects.get().report.seconds == 7200


def test_a_trim_whose_beginning_nobody_saw_is_reported_without():
    ended = work(10**9, "finished", kind="trim", started=None)
    look(ended)
    after_a_restart()
    look(ended)
    report = WorkReport.objects.get().report
    assert (report.started, report.seconds) == (None, None)


def test_a_disk_taken_out_does_not_make_an_old_trim_a_new_one():
    ended = work(10**9, "finished", kind="trim", started=None)
    look(ended)
    after_a_restart()
    look(replace(ended, ended=BEGAN))
    assert WorkReport.objects.count() == 1


# --- damage ---------------------------------------------------------------------------------------------------
@pytest.fixture
def damage(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the agent is asked; it names two files."""
    asked: list[dict[str, Any]] = []

    def last(request: dict[str, Any], **_more: Any) -> dict[str, Any]:
        asked.append(request)
        return {"facts": {"count": 2, "files": ["/tank/a.jpg", "<metadata>:<0x0>"]}}

    monkeypatch.setattr(agent_client, "send_request", last)
    return asked


def test_only_where_there_is_damage_the_agent_names_the_files(damage):
    look(work(10**9, "finished"))
    assert damage == []
    look(work(10**9, "finished", started=BEGAN + timedelta(days=1), errors=2), errors=2)
    look(work(10**9, "finished", started=BEGAN + timedelta(days=1), errors=2), errors=2)
    assert damage == [{"verb": "read-damage", "pool": "tank"}]
    report = WorkReport.objects.filter(errors=2).get().report
    assert (report.damaged, report.files) == (2, ("/tank/a.jpg", "<metadata>:<0x0>"))


def test_while_the_agent_cannot_name_them_there_is_no_half_report(clock, monkeypatch, damage):
    def fail(*_args: Any, **_more: Any) -> None:
        asked.append(1)
        raise Failed("Larder's agent does not answer")

    asked: list[int] = []
    broken = work(10**9, "finished", errors=1)
    with monkeypatch.context() as patch:
        patch.setattr(agent_client, "send_request", fail)
        with pytest.raises(Failed):
            look(broken)
        clock.now += 3
        look(broken)
    assert asked == [1]
    assert not WorkReport.objects.exists()
    clock.now += 60
    look(broken)
    assert WorkReport.objects.get().damaged == 2


@pytest.mark.parametrize("answer", [{}, {"facts": None}, {"facts": {"count": "x", "files": None}}])
def test_an_odd_answer_of_the_agent_is_no_damage_made_up(monkeypatch, answer):
    monkeypatch.setattr(agent_client, "send_request", lambda *_args, **_more: answer)
    look(work(10**9, "finished", errors=1))
    report = WorkReport.objects.get().report
    assert (report.errors, report.damaged, report.files) == (1, 0, ())
    assert report.word == "damage left"


def test_old_reports_make_room(monkeypatch):
    monkeypatch.setattr(row_retention, "REPORTS_OF_POOL", 3)
    for day in range(6):
        look(work(10**9, "finished", started=BEGAN + timedelta(days=day), ended=BEGAN + timedelta(days=day, hours=1)))
    assert WorkReport.objects.count() == 3
    assert WorkReport.objects.filter(started=BEGAN + timedelta(days=5)).exists()


# --- on the pages ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("url", ["/", f"/pools/{TANK}/", "/jobs/"])
def test_work_under_way_is_on_the_overview_the_pools_page_and_in_the_tray(web, box, url):
    look(work(10**8, "paused"))
    said = text_of(web.get(url))
    assert "Scrubbing tank" in said
    assert "10 %" in said
    assert "1 running" in said  # the tray's own words, which no page's content may overwrite


def test_ended_work_is_not_shown_as_under_way(web, box):
    look(work(10**9, "finished"))
    assert "Scrubbing tank" not in text_of(web.get("/"))
    said = text_of(web.get(f"/pools/{TANK}/"))
    assert "Scrub clean" in said
    assert "took 2 h" in said
