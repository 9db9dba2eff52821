"""What is kept and for how long, the daily copy of the settings, and that people hear of a
database that was restored."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.utils import timezone

from appliance.alerts.fault import Fault
from tests.unit.made import dataset
from web import row_retention
from web.alerts import reconcile
from web.alerts.models import Alert, AlertNote, MailSettings, Message
from web.inventory.dataset_models import SnapshotReading
from web.inventory.models import Source
from web.jobs.models import AUTOMATIC, BY_SCHEDULE, BY_SNAPSHOT_SCHEDULE, Job
from web.snapshots.models import MadeSnapshot
from web.system import database
from workers import collect_snapshots, housekeeping
from workers.alerts import evaluate_alerts, self_faults

DAY = timedelta(days=1)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings database on a disk; the rows of these tests are in memory."""
    path = tmp_path / "settings.sqlite3"
    with closing(sqlite3.connect(path)) as found:
        found.execute("CREATE TABLE words (word TEXT)")
        found.commit()
    monkeypatch.setattr(self_faults, "settings_file", lambda: path)
    return path


def job(by: str, age: timedelta, state: str = Job.State.DONE) -> Job:
    made = Job.objects.create(
        kind="prune-snapshots", title="Prune", subject="tank", operation="{}", digest="", state=state, created_by=by
    )
    Job.objects.filter(pk=made.pk).update(created=timezone.now() - age)
    return made


def left() -> set[object]:
    return set(Job.objects.values_list("pk", flat=True))


# --- jobs -------------------------------------------------------------------------------------------------------
@pytest.fixture
def few(monkeypatch):
    """Nothing is kept for being among the newest."""
    monkeypatch.setattr(row_retention, "JOBS_ANYWAY", 0)


@pytest.mark.parametrize("by", sorted(AUTOMATIC))
def test_ended_jobs_of_schedules_are_removed_after_two_weeks(few, by):
    job(by, 15 * DAY)
    job(by, 15 * DAY, Job.State.FAILED)
    newer = job(by, 13 * DAY)
    housekeeping.run_housekeeping()
    assert left() == {newer.pk}


def test_ended_jobs_of_people_are_removed_after_a_year(few):
    job("admin", 367 * DAY)
    newer = job("admin", 360 * DAY)
    housekeeping.run_housekeeping()
    assert left() == {newer.pk}


def test_open_jobs_are_never_removed(few):
    old = {job("admin", 4000 * DAY, state).pk for state in Job.OPEN} | {
        job(BY_SNAPSHOT_SCHEDULE, 4000 * DAY, Job.State.RUNNING).pk
    }
    housekeeping.run_housekeeping()
    assert left() == old


def test_the_newest_jobs_stay_when_the_clock_is_years_ahead(monkeypatch):
    monkeypatch.setattr(row_retention, "JOBS_ANYWAY", 3)
    jobs = [job(BY_SCHEDULE, number * DAY + 4000 * DAY) for number in range(6)]
    housekeeping.run_housekeeping()
    assert left() == {one.pk for one in jobs[:3]}


def test_many_old_jobs_are_removed_in_batches(few, django_assert_max_num_queries):
    for _number in range(450):
        job(BY_SNAPSHOT_SCHEDULE, 30 * DAY)
    newer = {job(BY_SNAPSHOT_SCHEDULE, DAY).pk for _number in range(450)}
    housekeeping.remove_jobs(timezone.now())
    assert left() == newer


# --- sessions ---------------------------------------------------------------------------------------------------
def test_ended_sessions_are_removed_and_open_ones_stay(web, admin):
    key = web.session.session_key
    Session.objects.create(session_key="ended", session_data="", expire_date=timezone.now() - DAY)
    for session in ("ended", key):
        UserSession.objects.create(user=admin, session_key=session, ip="192.168.1.2", user_agent="Firefox")
    housekeeping.run_housekeeping()
    assert set(Session.objects.values_list("pk", flat=True)) == {key}
    assert set(UserSession.objects.values_list("session_key", flat=True)) == {key}


# --- alerts -----------------------------------------------------------------------------------------------------
def test_time_line_of_a_long_alert_is_bounded_and_keeps_its_beginning():
    now = timezone.now()
    for percent in range(row_retention.NOTES_OF_ALERT + 50):
        reconcile.reconcile_alerts([Fault("pool.full80", "1", f"tank is {percent} % full.")], now + percent * DAY)
    notes = [note.text for note in AlertNote.objects.all()]
    assert len(notes) == row_retention.NOTES_OF_ALERT + 1
    assert notes[0] == "tank is 0 % full."
    assert notes[-1] == f"tank is {row_retention.NOTES_OF_ALERT + 49} % full."


def test_old_alerts_are_removed_also_where_many_newer_ones_ended(monkeypatch):
    monkeypatch.setattr(row_retention, "ALERTS_ANYWAY", 5)
    now = timezone.now()
    old = [
        Alert.objects.create(
            kind="disk.warm",
            subject=str(number),
            severity="warning",
            summary="",
            first_seen=now - 500 * DAY,
            state="cleared",
            cleared=now - 400 * DAY,
        )
        for number in range(3)
    ]
    Alert.objects.bulk_create(
        Alert(
            kind="disk.warm",
            subject=f"new {number}",
            severity="warning",
            summary="",
            first_seen=now - DAY,
            state="cleared",
            cleared=now - DAY,
        )
        for number in range(300)
    )
    row = Alert.objects.create(kind="disk.warm", subject="x", severity="warning", summary="", first_seen=now)
    reconcile.clear_alert(row, now, "It is over.")
    assert not Alert.objects.filter(pk__in=[one.pk for one in old]).exists()
    assert Alert.objects.count() == 301


# --- what schedules made ------------------------------------------------------------------------------------------
@pytest.fixture
def two_pools(monkeypatch):
    """tank/photos and backup/photos, each with a snapshot that a schedule made; nothing is asked of ZFS."""
    monkeypatch.setattr("appliance.zfs.list_snapshots.list_snapshots", lambda _names: ())
    monkeypatch.setattr("appliance.snapshots.bookmarks.read_bookmarks", lambda _names: ())
    every = [
        dataset(name, guid=number) for number, name in enumerate(("tank", "tank/photos", "backup", "backup/photos"), 1)
    ]
    for key in ("2", "4"):
        MadeSnapshot.objects.create(dataset_key=key, guid="9", grains="daily")
    collect_snapshots.update_snapshots(every)
    assert SnapshotReading.objects.count() == 4
    return every


def made() -> set[str]:
    return set(MadeSnapshot.objects.values_list("dataset_key", flat=True))


def test_records_of_a_destroyed_folder_are_removed(two_pools):
    collect_snapshots.update_snapshots([one for one in two_pools if one.name != "tank/photos"])
    assert made() == {"4"}


def test_records_of_a_pool_that_is_away_stay(two_pools):
    collect_snapshots.update_snapshots([one for one in two_pools if one.pool != "tank"])
    assert made() == {"2", "4"}


def test_records_stay_when_another_pool_of_that_name_comes(two_pools):
    other = [dataset("tank", guid=77)]
    collect_snapshots.update_snapshots([*other, *(one for one in two_pools if one.pool != "tank")])
    assert made() == {"2", "4"}


# --- copies -----------------------------------------------------------------------------------------------------
def test_settings_are_copied_once_a_day(file, admin):
    housekeeping.run_housekeeping()
    housekeeping.run_housekeeping()
    assert len(database.list_copies(file)) == 1


def test_settings_are_not_copied_before_there_is_an_administrator(file):
    housekeeping.run_housekeeping()
    assert database.list_copies(file) == []


def test_failing_stage_becomes_an_alert_and_stops_no_other(file, admin, few, box):
    job("admin", 400 * DAY)
    before = left()
    file.write_bytes(b"no database" * 5000)
    housekeeping.run_housekeeping()
    assert left() < before
    assert "not a database" in Source.objects.get(name="upkeep-copy").error
    evaluate_alerts.evaluate_alerts()
    assert Alert.objects.get(kind="upkeep.failed").summary == "The copy of the settings failed."


# --- a database that was restored -------------------------------------------------------------------------------
@pytest.mark.parametrize("copied", [True, False])
def test_restored_settings_are_told_on_the_overview_and_by_mail(file, web, box, copied):
    MailSettings.objects.create(pk=1, host="mail.example", critical="anna@example.org", warning="anna@example.org")
    if copied:
        database.make_copy(file, timezone.now() - DAY)
    file.write_bytes(b"")
    found = database.ensure_sound(file, timezone.now())
    assert found is not None
    evaluate_alerts.evaluate_alerts()
    evaluate_alerts.evaluate_alerts()
    row = Alert.objects.get(kind="settings.restored" if copied else "settings.lost")
    assert Message.objects.filter(alert=row, event="raised", way="mail").count() == 1
    page = web.get("/").content.decode()
    assert "settings were restored from a copy" in page if copied else "settings were lost" in page


def test_lost_settings_are_told_where_the_box_is_set_up_again(file, anonymous, settings):
    settings.DATABASES["default"]["NAME"] = str(file)
    file.write_bytes(b"")
    database.ensure_sound(file, timezone.now())
    try:
        assert "settings were lost" in anonymous.get("/setup/").content.decode()
    finally:
        settings.DATABASES["default"]["NAME"] = ":memory:"


def test_notice_ends_after_a_month(file, box):
    database.make_copy(file, timezone.now() - 60 * DAY)
    file.write_bytes(b"")
    database.ensure_sound(file, timezone.now() - 31 * DAY)
    assert list(self_faults.upkeep_faults(timezone.now())) == []
