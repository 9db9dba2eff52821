"""Daily upkeep: copy the settings database, keep records on pools up to date, and remove old jobs and sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime
from functools import partial

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db.models import Q
from django.utils import timezone

from appliance.errors import Failed
from appliance.message import Message, join_messages
from web import row_retention
from web.accounts import first_run
from web.jobs.models import AUTOMATIC, Job
from web.system import database
from workers import collectors, pool_records
from workers.alerts import self_faults
from workers.interval import Interval

SECONDS_BETWEEN_LOOKS = 3600.0
SECONDS_TO_SETTLE = 120.0
MOST_BATCHES = 50  # in one look; the next goes on
looks = Interval(SECONDS_BETWEEN_LOOKS, after=SECONDS_TO_SETTLE)


def run_housekeeping() -> None:
    """Run each stage under its own guard; a failure becomes an alert."""
    now = timezone.now()
    for name, stage in STAGES.items():
        collectors.update_source(self_faults.SOURCE + name, partial(stage, now))


def copy_settings(now: datetime) -> bool:
    """Copy the settings where a copy is due and Larder is set up; whether it was made."""
    path = self_faults.settings_file()
    if not path.is_file() or not first_run.is_set_up() or not database.copy_due(path, now):
        return False
    try:
        database.make_copy(path, now)
    except sqlite3.Error as problem:
        restart = Message("Restart the box: Larder then restores the newest copy.")
        why = join_messages([f"{problem}.", restart if database.is_damage(problem) else ""])
        raise Failed(Message("The settings database cannot be copied"), why) from problem
    return True


def remove_jobs(now: datetime) -> bool:
    """Remove ended jobs: of users after a year, of schedules after two weeks."""
    ended = Job.objects.exclude(state__in=Job.OPEN)
    scheduled = Q(created_by__in=AUTOMATIC)
    removed = 0
    for rows, kept in (
        (ended.filter(scheduled), row_retention.JOBS_OF_SCHEDULES),
        (ended.exclude(scheduled), row_retention.JOBS_OF_USERS),
    ):
        for _batch in range(MOST_BATCHES):
            old = row_retention.choose_older(rows, "created", than=now - kept, kept=row_retention.JOBS_ANYWAY)
            count = old.delete()[0]
            removed += count
            if not count:
                break
    return bool(removed)


def remove_sessions(now: datetime) -> bool:
    """Remove ended sessions and their records of origin."""
    removed = 0
    for _batch in range(MOST_BATCHES):
        keys = list(Session.objects.filter(expire_date__lt=now).values_list("pk", flat=True)[:200])
        if not keys:
            break
        removed += Session.objects.filter(pk__in=keys).delete()[0]
    alive = Session.objects.values("session_key")
    orphans = list(UserSession.objects.exclude(session_key__in=alive).values_list("pk", flat=True)[:1000])
    removed += UserSession.objects.filter(pk__in=orphans).delete()[0]
    return bool(removed)


STAGES: dict[str, Callable[[datetime], bool]] = {
    "copy": copy_settings,
    "record": pool_records.record_settings,
    "jobs": remove_jobs,
    "sessions": remove_sessions,
}
