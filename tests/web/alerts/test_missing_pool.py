"""A pool that was there and is not is told, unless somebody took it away on purpose."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from appliance.facts.box import Pool
from tests.web import rows
from web.alerts.models import Alert, PoolDay
from web.inventory import store
from web.inventory.models import Event
from web.jobs.models import Job
from workers.alerts import evaluate_alerts

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
    assert list(evaluate_alerts.note_missing_pools([str(pool.guid)])) == []


def test_a_pool_that_could_not_be_brought_in_at_start_is_missed_until_it_is_here(pool):
    for _look in range(2):
        assert list(evaluate_alerts.note_missing_pools([])) == [(str(pool.guid), "tank")]
    assert list(evaluate_alerts.note_missing_pools([str(pool.guid)])) == []


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


@pytest.mark.parametrize("told_by", ["event", "job"])
def test_a_pool_that_was_seen_while_the_clock_was_ahead_is_not_missed_once_it_is_exported(pool, told_by):
    evaluate_alerts.store_pool_days([pool], NOW + timedelta(days=1500))
    evaluate_alerts.store_pool_days([pool], NOW)
    assert list(evaluate_alerts.note_missing_pools([])) == [(str(pool.guid), "tank")]
    if told_by == "event":
        exported("tank", NOW)
    else:
        rows.job(kind="export-pool", subject="tank", state=Job.State.DONE)
    assert list(evaluate_alerts.note_missing_pools([])) == []


def test_export_of_a_day_before_explains_a_pool_that_was_seen_while_the_clock_was_ahead(pool):
    """The box was shut down right after the export."""
    PoolDay.objects.filter(day=NOW.date()).delete()
    evaluate_alerts.store_pool_days([pool], NOW + timedelta(days=1500))
    exported("tank", NOW - timedelta(days=1))
    assert list(evaluate_alerts.note_missing_pools([])) == []


def test_a_pool_is_missed_while_the_clock_is_behind(pool):
    PoolDay.objects.filter(day=NOW.date()).delete()
    PoolDay.objects.update(day=NOW.date() + timedelta(days=30))
    assert list(evaluate_alerts.note_missing_pools([])) == [(str(pool.guid), "tank")]


@pytest.mark.parametrize(
    ("kind", "state", "missed"),
    [
        ("export-pool", "done", 0),
        ("destroy-pool", "done", 0),
        ("destroy-pool", "failed", 1),
        ("start-scrub", "done", 1),
    ],
)
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


def test_the_alert_of_a_stopped_pool_that_does_not_come_back_stays_until_the_pool_is_exported(pool):
    for name in evaluate_alerts.READ:
        store.checked(name, changed=True)
    store.checked("zfs", changed=False)
    stopped = Alert.objects.filter(kind="pool.stopped")
    rows.put(pools=[replace(pool, state="SUSPENDED")])
    evaluate_alerts.evaluate_alerts(NOW)
    assert stopped.get().state == "open"
    rows.put(pools=[])
    evaluate_alerts.evaluate_alerts(NOW + timedelta(minutes=1))
    assert stopped.get().state == "open"
    exported("tank", NOW)
    evaluate_alerts.evaluate_alerts(NOW + timedelta(minutes=2))
    assert stopped.get().state == "cleared"
