"""What the overview tells of the last week and of a pool's year."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.web import rows
from tests.web.reading import text_of
from web.alerts.models import Alert, PoolDay
from web.inventory import box
from web.inventory.dataset_models import SnapshotRow
from web.jobs.models import AUTOMATIC, BY_SCHEDULE, Job
from web.overview.trends import HEIGHT, WIDTH, draw_trend, pool_trends
from web.overview.week import MOST, read_week
from web.pools.models import WorkReport
from web.system.templatetags.formatting import job_state

NOW = timezone.now()
DAY = timedelta(days=1)


def ended(title: str, ago: timedelta, state: str = "done", by: str = "admin") -> Job:
    return Job.objects.create(title=title, subject="tank", created_by=by, state=state, finished=NOW - ago)


def alert(summary: str, ago: timedelta, **more: object) -> Alert:
    return Alert.objects.create(
        kind="pool.no-redundancy", subject=summary, severity="warning", summary=summary, first_seen=NOW - ago, **more
    )


def titles() -> list[str]:
    return [one.text for one in read_week(NOW).newest]


def test_week_lists_jobs_alerts_and_reports_newest_first(calm):
    ended("Create the folder tank/films", 2 * DAY)
    alert("tank is degraded.", DAY)
    WorkReport.objects.create(key="1", pool_key="7", pool="tank", kind="scrub", outcome="finished", ended=NOW - DAY / 2)
    assert titles() == ["Scrub: tank", "tank is degraded.", "Create the folder tank/films"]


def test_week_leaves_out_what_is_older_than_seven_days(calm):
    ended("old", 8 * DAY)
    alert("old alert", 8 * DAY)
    assert titles() == []


@pytest.mark.parametrize("by", AUTOMATIC)
def test_week_leaves_out_jobs_of_schedules(calm, by):
    ended("Take snapshots", DAY, by=by)
    assert titles() == []


def backup(ago: timedelta, state: str = "done", kind: str = "run-backup", by: str = BY_SCHEDULE) -> Job:
    return Job.objects.create(kind=kind, title="Back up", created_by=by, state=state, finished=NOW - ago)


def test_scheduled_backups_are_one_line_with_the_last_of_them(calm):
    for number in range(1, 4):
        backup(number * DAY)
    backup(4 * DAY, kind="send-backup")
    backup(8 * DAY)
    ended("Create the folder tank/films", DAY / 2)
    _job, one = read_week(NOW).newest
    assert (one.text, one.word, one.state, one.at) == ("Scheduled backups: 4 runs", "Last: done", "healthy", NOW - DAY)
    assert one.link == "/backups/"


def test_backups_that_were_not_made_are_counted(calm):
    backup(DAY, "failed")
    backup(2 * DAY, "interrupted")
    backup(3 * DAY)
    (one,) = read_week(NOW).newest
    assert (one.text, one.word) == ("Scheduled backups: 3 runs, 2 not done", "Last: failed")
    assert one.state == job_state("failed")


def test_backup_started_by_hand_is_a_line_of_its_own(calm):
    backup(DAY, by="admin")
    assert titles() == ["Back up"]


def test_alert_that_ended_is_told_as_resolved_at_its_end(calm):
    alert("tank is degraded.", 2 * DAY, state="cleared", cleared=NOW - DAY)
    (one,) = read_week(NOW).newest
    assert (one.word, one.state, one.at) == ("Resolved", "healthy", NOW - DAY)


def test_alert_of_long_ago_that_ended_this_week_is_told(calm):
    alert("tank is degraded.", 30 * DAY, state="cleared", cleared=NOW - DAY)
    alert("ended before", 30 * DAY, state="cleared", cleared=NOW - 8 * DAY)
    assert titles() == ["tank is degraded."]


def test_alert_that_ended_last_is_told_before_many_that_began_after_it(calm):
    alert("tank is degraded.", 6 * DAY, state="cleared", cleared=NOW - DAY / 24)
    for number in range(60):
        alert(f"alert {number}", DAY)
    assert titles()[0] == "tank is degraded."


def test_week_shows_the_newest_and_counts_the_rest(calm):
    for number in range(MOST + 5):
        ended(f"job {number}", number * timedelta(hours=1))
    week = read_week(NOW)
    assert [one.text for one in week.newest] == [f"job {number}" for number in range(MOST)]
    assert week.more == 5


def test_week_counts_snapshots_that_are_still_kept(calm):
    for number in range(5):
        SnapshotRow.objects.create(
            dataset_key="1",
            dataset="tank",
            short=f"s{number}",
            guid=str(number),
            txg=number,
            created=NOW - number * 2 * DAY,
        )
    assert read_week(NOW).snapshots == 4


def test_overview_shows_the_week(web, calm):
    ended("Create the folder tank/<b>films", DAY)
    assert "Create the folder tank/<b>films" in text_of(web.get("/"))


def days_of(guid: int, amounts: list[int], every: int = 6) -> None:
    for back, used in enumerate(reversed(amounts)):
        PoolDay.objects.create(guid=str(guid), name="tank", day=(NOW - back * every * DAY).date(), used=used, total=100)


def test_trend_is_a_line_from_the_first_day_to_today(calm):
    pool = rows.pool_of("tank", 1000)
    rows.put(pools=[pool])
    days_of(pool.guid, [10, 20, 40])
    ahead = (NOW + 1500 * DAY).date()  # stored while the clock was ahead
    PoolDay.objects.create(guid=str(pool.guid), name="tank", day=ahead, used=0, total=100)
    trend = pool_trends(box.read_box().cards, NOW)[str(pool.guid)]
    assert trend.points == f"0.0,{HEIGHT * 0.9:.1f} {WIDTH / 2:.1f},{HEIGHT * 0.8:.1f} {WIDTH:.1f},{HEIGHT * 0.6:.1f}"
    assert (trend.percent_then, trend.since) == (10, (NOW - 12 * DAY).date())


@pytest.mark.parametrize("amounts", [[], [10], [10, 20]])
def test_trend_of_less_than_two_weeks_has_no_line(calm, amounts):
    pool = rows.pool_of("tank", 1000)
    rows.put(pools=[pool])
    days_of(pool.guid, amounts)
    assert pool_trends(box.read_box().cards, NOW)[str(pool.guid)].points == ""


def test_trend_of_a_pool_that_is_over_full_stays_in_its_box():
    points = draw_trend([(NOW.date() + day * DAY, used) for day, used in enumerate((0.0, 1.5, 1.0))], "").points
    assert [float(point.split(",")[1]) for point in points.split()] == [HEIGHT, 0.0, 0.0]
