"""Disks that come and go: imported for a run that is due, exported when nothing is left to do, left alone otherwise."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance.backups.tasks import BackupTask
from appliance.backups.verify_backup import VerifyBackup
from appliance.facts.box import Use
from appliance.facts.importable import Importable
from appliance.operation import as_json
from tests.unit.made import dataset, disk
from tests.web import rows
from tests.web.backups.test_backups import COPY, PHOTOS, SAFE, box, copied, copy_of, only, photos
from tests.web.reading import Page
from web.backups.models import BackupRecord
from web.jobs import queue
from web.jobs.models import BY_SCHEDULE, Job
from workers import backups

DRAWER = BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", days=30, removable=True)
PLUGGED = disk(5, uses=(Use("exported", "holds the pool safe", str(SAFE), "safe"),))


@pytest.fixture
def searches(monkeypatch) -> list[str]:
    """Each search for pools that was asked for."""
    asked: list[str] = []
    monkeypatch.setattr(queue, "send", lambda task, *_given: asked.append(task))
    return asked


def plugged_in(task: BackupTask = DRAWER, *, found: bool = True) -> None:
    box(photos(task), safe=False)
    rows.put(disks=[PLUGGED], importable=[Importable("safe", SAFE, "ONLINE")] if found else [])


def last_copy(days: int) -> None:
    BackupRecord.objects.update(good=timezone.now() - timedelta(days=days), pool_name="safe")
    Job.objects.all().delete()


def test_disk_of_a_due_backup_is_searched_for_and_then_imported(searches):
    plugged_in(found=False)
    assert backups.start_due_backups() is None
    assert searches == ["workers.look_for_pools"]
    plugged_in()
    job = backups.start_due_backups()
    assert job and (job.kind, job.subject, job.created_by) == ("import-pool", "safe", BY_SCHEDULE)
    assert backups.start_due_backups() is None


def test_disk_that_is_not_due_stays_as_it_is_and_can_be_unplugged(web, searches):
    plugged_in()
    last_copy(0)
    assert backups.start_due_backups() is None
    assert only().word == "good, safe to unplug"
    assert "Safe to unplug" in Page(web.get(f"/backups/of/{PHOTOS}/0123abcd/")).text
    last_copy(1)
    assert backups.start_due_backups()


def test_pool_that_was_exported_by_hand_is_not_imported_again(searches):
    plugged_in(BackupTask(key="0123abcd", pool=SAFE, path="backups/photos"))
    assert backups.start_due_backups() is None and searches == []


def test_import_that_failed_is_not_tried_at_once(searches):
    plugged_in()
    job = backups.start_due_backups()
    assert job
    Job.objects.update(state=Job.State.FAILED)
    assert backups.start_due_backups() is None


def test_second_disk_with_the_name_of_a_pool_gets_another(searches):
    box(photos(DRAWER), safe=False)
    rows.put(disks=[PLUGGED], importable=[Importable("safe", SAFE, "ONLINE")], pools=[rows.pool_of("safe", 7, disk(1))])
    job = backups.start_due_backups()
    assert job and job.subject == "safe-2"


def complete() -> None:
    """The disk is in use, its copy and the comparison are of now."""
    box(photos(DRAWER), copy_of(photos(), "safe/backups/photos", COPY))
    now = timezone.now()
    copied("safe/backups/photos", COPY, now)
    BackupRecord.objects.update(compared=now)


def test_pool_that_was_fetched_is_released_when_nothing_is_left_to_do():
    rows.job(kind="import-pool", subject="safe", state=Job.State.DONE, created_by=BY_SCHEDULE)
    complete()
    job = backups.start_due_backups()
    assert job and (job.kind, job.subject) == ("export-pool", "safe")


def test_pool_with_a_folder_of_somebodys_own_stays():
    rows.job(kind="import-pool", subject="safe", state=Job.State.DONE, created_by=BY_SCHEDULE)
    complete()
    box(photos(DRAWER), copy_of(photos(), "safe/backups/photos", COPY), dataset("safe/films", guid=77))
    assert backups.start_due_backups() is None


def test_pool_that_somebody_imported_stays():
    rows.job(kind="import-pool", subject="safe", state=Job.State.DONE, created_by="admin")
    complete()
    assert backups.start_due_backups() is None


def test_disk_of_a_run_that_failed_is_left_alone_while_the_task_rests(searches, time_machine):
    """One folder cannot be continued, so that the copy stays old: the disk must not be imported and exported without end."""
    plugged_in()
    last_copy(3)
    rows.job(kind="run-backup", subject="tank/photos", state=Job.State.FAILED, operation='{"key":"0123abcd"}')
    assert backups.start_due_backups() is None
    time_machine.shift(timedelta(minutes=16))
    job = backups.start_due_backups()
    assert job and job.kind == "import-pool"


def test_disk_with_a_comparison_that_failed_is_imported_for_a_run_that_is_due(searches):
    plugged_in()
    last_copy(3)
    rows.job(kind="verify-backup", subject="tank/photos", state=Job.State.FAILED, operation='{"key":"0123abcd"}')
    job = backups.start_due_backups()
    assert job and job.kind == "import-pool"


def test_disk_that_stopped_under_a_comparison_is_not_released(searches):
    """The job waits in the kernel, and an export would wait beside it."""
    rows.job(kind="import-pool", subject="safe", state=Job.State.DONE, created_by=BY_SCHEDULE)
    complete()
    comparison = VerifyBackup(dataset="tank/photos", key="0123abcd", target="safe/backups/photos")
    rows.job(kind="verify-backup", subject="tank/photos", state=Job.State.RUNNING, operation=as_json(comparison))
    stopped = replace(rows.pool_of("safe", SAFE, disk(3), disk(4)), state="SUSPENDED")
    rows.put(pools=[rows.pool_of("tank", 1000, disk(1), disk(2)), stopped])
    assert backups.start_due_backups() is None
    # The original has stopped instead: the comparison still has the copy open.
    tank = replace(rows.pool_of("tank", 1000, disk(1), disk(2)), state="SUSPENDED")
    rows.put(pools=[replace(stopped, state="ONLINE"), tank])
    assert backups.start_due_backups() is None
