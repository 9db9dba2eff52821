"""What happened on the box in the last seven days, in one list: jobs, alerts, and scrubs and other long work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec
from django.db.models import Count, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from appliance.formatting import capitalize_opening
from web.alerts.models import Alert
from web.inventory.dataset_models import SnapshotRow
from web.jobs.models import AUTOMATIC, BY_SCHEDULE, Job
from web.pools.models import WorkReport
from web.system.templatetags.formatting import job_state
from web.translation import text_of

WEEK = timedelta(days=7)
MOST = 8
BACKUPS = ("run-backup", "send-backup")


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
        [*ended_jobs(since), *week_alerts(since), *week_reports(since)],
        key=lambda one: one.at,
        reverse=True,
    )
    snapshots = SnapshotRow.objects.filter(created__gt=since).count()
    return Week(found[:MOST], max(len(found) - MOST, 0), snapshots)


def ended_jobs(since: datetime) -> Iterator[Happening]:
    """What somebody asked for, and one line for all backups that schedules started.
    What other schedules do is told by its result, or as an alert where it fails."""
    week = Job.objects.filter(finished__gt=since)
    backups = week.filter(created_by=BY_SCHEDULE, kind__in=BACKUPS)
    rows = (
        week.filter(~Q(created_by__in=AUTOMATIC) | Q(pk=Subquery(backups.order_by("-finished").values("pk")[:1])))
        .annotate(runs=count_of(backups), bad=count_of(backups.exclude(state=Job.State.DONE)))
        .order_by("-finished")
    )
    for row in rows.defer("plan", "log", "operation", "text")[:50]:
        if row.finished and row.created_by in AUTOMATIC:
            yield scheduled_backups(row, row.finished, row.runs or 0, row.bad or 0)
        elif row.finished:
            word = row.get_state_display()
            yield Happening(row.finished, job_state(row.state), word, row.title, reverse("job", args=[row.pk]))


def count_of(rows: QuerySet[Job]) -> Subquery:
    """How many rows, within another query; NULL for none. They are all of one maker."""
    return Subquery(rows.order_by().values("created_by").annotate(count=Count("pk")).values("count"))


def scheduled_backups(last: Job, at: datetime, runs: int, bad: int) -> Happening:
    """How many backups ran by their schedules, how many of them were not done, and how the last one ended."""
    text = ngettext("Scheduled backups: {count} run", "Scheduled backups: {count} runs", runs)
    if bad:
        text = ngettext(
            "Scheduled backups: {count} run, {bad} not done", "Scheduled backups: {count} runs, {bad} not done", runs
        )
    word = gettext("Last: {state}").format(state=str(last.get_state_display()).lower())
    return Happening(at, job_state(last.state), word, text.format(count=runs, bad=bad), reverse("backups"))


def week_alerts(since: datetime) -> Iterator[Happening]:
    """Alerts that began or ended, and good news. One whose fault is gone but that is not resolved yet is left out: by
    the time that it is read, it would contradict the rest of the page."""
    rows = Alert.objects.alias(moment=Coalesce("cleared", "first_seen")).filter(moment__gt=since)
    for row in rows.exclude(gone__isnull=False, cleared=None).order_by("-moment", "-pk")[:50]:
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
