"""What happened on the box in the last seven days, in one list: jobs, alerts, and scrubs and other long work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec
from django.urls import reverse
from django.utils.translation import gettext

from appliance.formatting import capitalize_opening
from web.alerts.models import Alert
from web.inventory.models import SnapshotRow
from web.jobs.models import AUTOMATIC, Job
from web.pools.models import WorkReport
from web.system.templatetags.formatting import job_state
from web.translation import text_of

WEEK = timedelta(days=7)
MOST = 8


class Happening(msgspec.Struct, frozen=True):
    """One line: ``state`` is that of its icon, ``word`` says the state for a user who cannot see the icon."""

    at: datetime
    state: str
    word: str
    text: str
    link: str


class Week(msgspec.Struct, frozen=True):
    """The newest happenings first, how many older ones there are, and how many snapshots were taken."""

    newest: list[Happening]
    more: int
    snapshots: int


def read_week(now: datetime) -> Week:
    """The last seven days. Four queries, each with a limit."""
    since = now - WEEK
    found = sorted(
        [*ended_jobs(since), *week_alerts(since), *week_reports(since)], key=lambda one: one.at, reverse=True
    )
    snapshots = SnapshotRow.objects.filter(created__gt=since).count()
    return Week(found[:MOST], max(len(found) - MOST, 0), snapshots)


def ended_jobs(since: datetime) -> Iterator[Happening]:
    """What somebody asked for. What schedules do is told by its result, or as an alert where it fails."""
    rows = Job.objects.filter(finished__gt=since).exclude(created_by__in=AUTOMATIC).order_by("-finished")
    for row in rows.defer("plan", "log", "operation", "text")[:50]:
        if row.finished:
            word = row.get_state_display()
            yield Happening(row.finished, job_state(row.state), word, row.title, reverse("job", args=[row.pk]))


def week_alerts(since: datetime) -> Iterator[Happening]:
    """Alerts that began or ended, and good news. One whose fault is gone but that is not resolved yet is left out: by the
    time that it is read, it would contradict the rest of the page."""
    rows = Alert.objects.filter(first_seen__gt=since).exclude(gone__isnull=False, cleared=None)
    for row in rows[:50]:
        at, word = (
            (row.cleared, gettext("Resolved")) if row.cleared else (row.first_seen, capitalize_opening(row.state_word))
        )
        yield Happening(at, row.mark_state, word, row.summary, reverse("alert", args=[row.pk]))


def week_reports(since: datetime) -> Iterator[Happening]:
    """Scrubs, rebuilds and other long work that ended."""
    for row in WorkReport.objects.filter(ended__gt=since).order_by("-ended")[:50]:
        report = row.report
        text = f"{text_of(report.title)}: {row.pool}"
        if report.ended:
            link = reverse("pool_reports", args=[row.pool_key])
            yield Happening(report.ended, report.state, capitalize_opening(text_of(report.word)), text, link)
