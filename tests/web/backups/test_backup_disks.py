"""Disks that come and go: imported for a run that is due, exported when nothing is left to do, left alone otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance.backups.run_backup import RunBackup
from appliance.backups.tasks import BackupTask
from appliance.backups.verify_backup import VerifyBackup
from appliance.errors import Reason
from appliance.facts.box import Facts, Use
from appliance.facts.importable import Importable
from appliance.operation import as_json
from appliance.pools.export_destroy import ExportPool
from appliance.pools.import_pool import ImportPool
from tests.unit.made import dataset, disk
from tests.web import rows
from tests.web.backups.test_backups import COPY, PHOTOS, SAFE, box, copied, copy_of, only, photos
from tests.web.reading import Page
from web.backups.models import BackupRecord
from web.inventory.dataset_models import SnapshotRow
from web.inventory.models import Progress
from web.jobs import queue
from web.jobs.models import BY_SCHEDULE, Job
from workers import backups

USB = 3000
DRAWER = BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", days=30, removable=True)
DRIVE = BackupTask(key="89abcdef", pool=USB, path="backups/photos", days=30, removable=True)
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


def two_plugged_in(name: str = "usb") -> None:
    """The disks of two backups of the same folder are here, and both backups are due."""
    box(photos(DRAWER, DRIVE), safe=False)
    second = disk(6, uses=(Use("exported", f"holds the pool {name}", str(USB), name),))
    rows.put(disks=[PLUGGED, second], importable=[Importable("safe", SAFE, "ONLINE"), Importable(name, USB, "ONLINE")])


def test_import_that_hangs_keeps_no_other_disk_waiting(searches):
    two_plugged_in()
    started = [backups.start_due_backups() for _look in range(3)]
    assert [(job.kind, job.subject) if job else None for job in started] == [
        ("import-pool", "safe"),
        ("import-pool", "usb"),
        None,
    ]


def test_disk_with_the_name_of_a_pool_that_is_being_imported_gets_another(searches):
    two_plugged_in("safe")
    started = [backups.start_due_backups() for _look in range(3)]
    assert [job.subject if job else None for job in started] == ["safe", "safe-2", None]


def test_pool_that_somebody_imports_under_another_name_is_not_imported_beside_that(searches):
    plugged_in()
    rows.job(
        kind="import-pool",
        subject="attic",
        operation=as_json(ImportPool(guid=SAFE, name="attic")),
        state=Job.State.RUNNING,
    )
    assert backups.start_due_backups() is None


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


def two_fetched() -> None:
    """Two disks were imported for backups, of which nothing is left to do."""
    box(
        photos(DRAWER, DRIVE),
        copy_of(photos(), "safe/backups/photos", COPY),
        copy_of(photos(), "usb/backups/photos", COPY + 1),
    )
    pools = [
        rows.pool_of("tank", 1000, disk(1), disk(2)),
        rows.pool_of("safe", SAFE, disk(5)),
        rows.pool_of("usb", USB, disk(6)),
    ]
    rows.put(pools=pools)
    now = timezone.now()
    for number, name in enumerate(("safe", "usb")):
        rows.job(kind="import-pool", subject=name, state=Job.State.DONE, created_by=BY_SCHEDULE)
        copied(f"{name}/backups/photos", COPY + number, now, number + 1)
    BackupRecord.objects.update(compared=now)


def test_export_that_hangs_keeps_no_other_disk_here():
    two_fetched()
    started = [backups.start_due_backups() for _look in range(3)]
    assert sorted((job.kind, job.subject) for job in started if job) == [
        ("export-pool", "safe"),
        ("export-pool", "usb"),
    ]
    assert started[2] is None


def test_export_that_is_refused_keeps_no_other_disk_here(monkeypatch):
    two_fetched()
    check = ExportPool.check

    def refuse(operation: ExportPool, facts: Facts) -> Iterator[Reason]:
        yield from check(operation, facts)
        if operation.pool == "safe":
            yield Reason("made-up", "Something speaks against it.")

    monkeypatch.setattr(ExportPool, "check", refuse)
    job = backups.start_due_backups()
    assert job and (job.kind, job.subject) == ("export-pool", "usb")


def test_export_that_failed_rests_and_keeps_no_other_disk_here(time_machine):
    """Somebody stands in a folder of the one disk: without a rest it would be tried every half
    minute, and nothing else."""
    two_fetched()
    first = backups.start_due_backups()
    Job.objects.filter(kind="export-pool").update(state=Job.State.FAILED)
    second = backups.start_due_backups()
    assert first and second and {first.subject, second.subject} == {"safe", "usb"}
    assert backups.start_due_backups() is None
    time_machine.shift(timedelta(minutes=16))
    again = backups.start_due_backups()
    assert again and (again.kind, again.subject) == ("export-pool", first.subject)


@pytest.mark.parametrize("by_hand", [False, True])
def test_backup_to_a_pool_whose_export_hangs_keeps_no_other_waiting(by_hand):
    two_fetched()
    SnapshotRow.objects.all().delete()
    export = ExportPool(pool="safe", guid=SAFE)
    rows.job(kind="export-pool", subject="safe", operation=as_json(export), state=Job.State.RUNNING)
    if by_hand:
        run = RunBackup(
            dataset="tank/photos", key=DRAWER.key, target="safe/backups/photos", moment="2026.11.22-02.00.00"
        )
        job = rows.job(kind="run-backup", subject="tank/photos", operation=as_json(run), state=Job.State.RUNNING)
        Progress.objects.create(job=job.pk, waits=True)
    assert backups.start_due_backups()
    started = Job.objects.latest("created")
    assert started.kind == "run-backup" and json.loads(started.operation)["key"] == DRIVE.key
    assert backups.start_due_backups() is None


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
    """One folder cannot be continued, so that the copy stays old: the disk must not be imported
    and exported without end."""
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
