"""A pool that was there and is not is told, unless somebody took it away on purpose."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from appliance.facts.box import Pool
from tests.web import rows
from web.alerts.models import PoolDay
from web.inventory.models import Event
from web.jobs.models import Job
from workers import evaluate_alerts

NOW = datetime.now(UTC)


@pytest.fixture
def pool(calm) -> Pool:
    """The recorded pool, seen yesterday and today."""
    found = rows.recorded_box()
    rows.put(datasets=[rows.dataset("tank")])
    for ago in (1, 0):
        evaluate_alerts.store_pool_days([found], NOW - timedelta(days=ago))
    return found


def exported(name: str, at: datetime, kind: str = "sysevent.fs.zfs.pool_export") -> None:
    Event.objects.create(file=f"{at.timestamp()}.json", source="zed", kind=kind, subject=name, received=at)


def test_a_pool_that_is_here_is_not_missed(pool):
    assert list(evaluate_alerts.note_missing_pools([pool])) == []


def test_a_pool_that_could_not_be_brought_in_at_start_is_missed_until_it_is_here(pool):
    for _look in range(2):
        assert list(evaluate_alerts.note_missing_pools([])) == [(str(pool.guid), "tank")]
    assert list(evaluate_alerts.note_missing_pools([pool])) == []


def test_another_pool_that_was_exported_and_an_export_of_long_ago_explain_nothing(pool):
    exported("other", NOW)
    exported("tank", NOW - timedelta(days=3))
    assert list(evaluate_alerts.note_missing_pools([])) == [(str(pool.guid), "tank")]


@pytest.mark.parametrize("kind", ["sysevent.fs.zfs.pool_export", "sysevent.fs.zfs.pool_destroy"])
def test_a_pool_that_somebody_exported_or_destroyed_is_not_missed_also_when_its_event_is_forgotten(pool, kind):
    exported("tank", NOW, kind)
    assert list(evaluate_alerts.note_missing_pools([])) == []
    Event.objects.all().delete()
    assert list(evaluate_alerts.note_missing_pools([])) == []


@pytest.mark.parametrize(("kind", "state", "missed"), [("export-pool", "done", 0), ("destroy-pool", "done", 0), ("destroy-pool", "failed", 1), ("start-scrub", "done", 1)])  # fmt: skip
def test_a_job_that_took_it_away_explains_it_and_one_that_failed_does_not(pool, kind, state, missed):
    rows.job(kind=kind, subject="tank", state=Job.State(state))
    assert len(list(evaluate_alerts.note_missing_pools([]))) == missed


def test_a_pool_that_came_back_is_missed_when_it_goes_again(pool):
    exported("tank", NOW)
    assert list(evaluate_alerts.note_missing_pools([])) == []
    Event.objects.all().delete()
    evaluate_alerts.store_pool_days([pool], NOW)
    assert PoolDay.objects.filter(ended=False).exists()
    assert list(evaluate_alerts.note_missing_pools([])) == [(str(pool.guid), "tank")]
