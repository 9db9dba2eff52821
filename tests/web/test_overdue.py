"""Work by schedule that did not happen is told, and only then."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from appliance import schedules
from appliance.facts import LongWork, Pool, Scan
from tests.web import rows
from web.inventory import store
from web.pools.models import CareSchedule
from workers import overdue

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def box(calm, monkeypatch) -> None:
    monkeypatch.setattr(schedules, "box_zone", lambda: UTC)


def told(ended: datetime | None, *, state: str = "finished", every: str = "") -> list[str]:
    """What is said of a pool whose last check ended then, or is paused or running."""
    pool: Pool = rows.recorded_box()
    begun = (ended or NOW) - timedelta(hours=5)
    done = ended if state == "finished" else None
    work = LongWork("scrub", state, begun, done, 1, 2)
    rows.put(datasets=[rows.dataset("tank", created=NOW - timedelta(days=400))])
    rows.put(pools=[replace(pool, scan=Scan("scrub", "finished", begun, done, 1, 1, 1, 0), work=(work,))])
    if every:
        CareSchedule.objects.create(pool_key=str(pool.guid), kind="scrub", every=every, first=1, last=6)
    return [fault.summary for fault in overdue.of(store.facts(), NOW)]


def test_a_pool_that_was_checked_as_its_schedule_wants_is_no_alert():
    assert told(NOW - timedelta(days=30)) == []
    assert told(NOW - timedelta(days=40)) == []  # due, and there are two weeks for it


def test_a_check_that_did_not_happen_is_told():
    assert told(NOW - timedelta(days=60)) == ["tank was not checked in time."]


def test_a_schedule_that_was_switched_off_misses_nothing():
    assert told(NOW - timedelta(days=600), every="never") == []


def test_a_check_under_way_is_not_missed_but_one_that_somebody_paused_and_forgot_is():
    assert told(None, state="running") == []
    assert told(None, state="paused") == ["tank was not checked in time."]
