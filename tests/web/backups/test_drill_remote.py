"""Testing a restore from another computer: the page, the schedule, what is remembered, and what is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance.backups import drill_base, tasks
from appliance.backups.drill_base import Rehearsal
from appliance.backups.remote.drill_remote import DrillRemote
from appliance.backups.remote.restore_remote import RemotePart, RestoreRemote
from appliance.backups.remote.send_backup import SendBackup
from appliance.backups.tasks import BackupTask
from appliance.facts import user_properties
from appliance.facts.datasets import Dataset, Property
from appliance.facts.remote import Remote
from appliance.operation import Operation, as_json, kind_of
from tests.reasons import codes_on_page
from tests.unit.made import dataset
from tests.web import rows
from tests.web.backups.test_proof import REHEARSAL, ended
from tests.web.backups.test_remotes import ANSWERS, BACKUP, PHOTOS, TASK, box, ended_run, only, operation_of
from tests.web.reading import Page
from tests.web.rows import OTHER_HOST_KEY, REMOTE
from web.backups import proof
from web.backups.models import BackupRecord
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import Progress
from web.jobs.models import BY_SCHEDULE, Job
from workers import backups

MONTHLY = BackupTask(key="0123abcd", pool=0, remote=REMOTE.id, path="photos", drill=True)


def copied(task: BackupTask = MONTHLY, *, remote: Remote = REMOTE) -> None:
    """The folder has a complete copy of some minutes ago on the other computer, which the worker has remembered."""
    box(task)
    at = timezone.now().replace(microsecond=0) - timedelta(minutes=5)
    ended_run(at)
    BackupRecord.objects.update(good=at)
    rows.put_remotes(remote)


def text(web: Any) -> str:
    return " ".join(Page(web.get(BACKUP)).text.split())


def ran_test(**changes: Any) -> None:
    """A test by schedule has ended with this result."""
    job = backups.start_due_backups()
    assert job and job.kind == "drill-remote"
    found = Rehearsal(**{**REHEARSAL, **changes})
    ended(job, drill_base.PREFIX, found, failed=bool(found.different))
    backups.start_due_backups()


def with_dataset(*changed: Dataset) -> None:
    """The box with these datasets, in place of those of the same name."""
    names = {one.name for one in changed}
    here = [one for one in store.facts().datasets if one.name not in names]
    rows.put(datasets=[*here, *changed])


# --- the page -------------------------------------------------------------------------------------------------------
def test_page_claims_no_more_than_that_it_arrived_and_offers_the_test(web):
    copied(TASK)
    assert [level.name for level in proof.levels(only())] == ["Arrived", "Restored as a test"]
    said = text(web)
    assert "Nobody has tried yet whether the whole folder comes back." in said and "Test a restore" in said
    assert "Whether their files are right shows only when they are fetched" in said
    assert "Compare now" not in said and "Scrubbed" not in said


def test_review_says_what_is_fetched_where_and_that_nothing_stays(web):
    copied(TASK)
    page = web.get(f"{BACKUP}drill/")
    review = " ".join(Page(page).text.split())
    assert page.status_code == 200 and "fetched from attic.lan" in review
    assert "to tank/drill-0123abcd, where nobody can see it" in review and "Then all of it is removed" in review
    assert "ssh larder-backup@attic.lan 'tree photos'" in review
    assert 'name="password"' not in page.content.decode()


def test_computer_with_another_host_key_is_refused_and_not_offered(web):
    copied(TASK, remote=replace(REMOTE, offered_key=OTHER_HOST_KEY))
    answer = web.get(f"{BACKUP}drill/")
    assert answer.status_code == 409 and codes_on_page(answer) == ["remote-key-changed"]
    assert f"{BACKUP}drill/" not in web.get(BACKUP).content.decode()


def test_no_room_is_refused_with_both_numbers_and_said_on_the_page(web):
    copied()
    (photos,) = [one for one in store.facts().datasets if one.name == "tank/photos"]
    with_dataset(dataset("tank", guid=1, available=39 * 10**8, used=61 * 10**8), replace(photos, referenced=3 * 10**9))
    assert backups.start_due_backups() is None
    answer = web.get(f"{BACKUP}drill/")
    assert answer.status_code == 409 and codes_on_page(answer) == ["drill-no-room"]
    assert "there is no room for it now: it needs 3" in text(web)


def test_locked_folder_is_refused_not_tried_by_schedule_and_named_on_the_page(web):
    copied()
    with_dataset(
        dataset(
            "tank/photos/secret",
            guid=7,
            encryption="aes-256-gcm",
            encryption_root="tank/photos/secret",
            key_status="unavailable",
        )
    )
    assert backups.start_due_backups() is None
    answer = web.get(f"{BACKUP}drill/")
    assert answer.status_code == 409 and codes_on_page(answer) == ["dataset-locked"]
    assert "it waits until you unlock tank/photos/secret" in text(web)
    with_dataset(
        *(
            dataset(
                f"tank/photos/s{at}",
                guid=70 + at,
                encryption="aes-256-gcm",
                encryption_root=f"tank/photos/s{at}",
                key_status="unavailable",
            )
            for at in range(6)
        )
    )
    assert (
        "until you unlock tank/photos/s0, tank/photos/s1, tank/photos/s2, tank/photos/s3, tank/photos/s4 and 2 more."
        in text(web)
    )


def test_monthly_test_can_be_chosen_for_another_computer(web):
    box(TASK)
    review = Page(web.post(f"{BACKUP}edit/", {**ANSWERS, "drill": "on"})).text
    assert "Once a month the whole folder is restored as a test" in review
    box(remote=REMOTE)
    review = Page(web.post(f"/backups/of/{PHOTOS}/new/", {**ANSWERS, "drill": "on"})).text
    assert "Once a month the whole folder is restored as a test" in review and '"drill":true' in review


# --- the schedule ---------------------------------------------------------------------------------------------------
def test_restore_is_tested_by_schedule_only_where_that_was_chosen():
    copied(TASK)
    assert backups.start_due_backups() is None
    Job.objects.all().delete()
    copied()
    job = backups.start_due_backups()
    assert job and job.kind == "drill-remote" and job.created_by == BY_SCHEDULE
    made: DrillRemote = operation_of(DrillRemote)
    assert (made.dataset, made.key, made.remote, made.pool) == ("tank/photos", "0123abcd", REMOTE.id, "tank")
    assert backups.start_due_backups() is None


def test_test_waits_for_a_month_and_rests_for_a_day_after_a_failure(time_machine):
    copied()
    job = backups.start_due_backups()
    assert job
    Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED, finished=timezone.now())
    assert backups.start_due_backups() is None
    assert only().word == "good, restore not proved"
    time_machine.shift(timedelta(hours=25))
    BackupRecord.objects.update(good=timezone.now())
    ended_run(timezone.now())
    ran_test()
    assert backups.start_due_backups() is None
    time_machine.shift(timedelta(days=31))
    BackupRecord.objects.update(good=timezone.now())
    ended_run(timezone.now())
    job = backups.start_due_backups()
    assert job and job.kind == "drill-remote"


def test_backup_that_is_due_goes_before_a_test_and_waits_while_one_runs():
    box(MONTHLY)
    job = backups.start_due_backups()
    assert job and job.kind == "send-backup"
    Job.objects.all().delete()
    copied()
    job = backups.start_due_backups()
    assert job and job.kind == "drill-remote"
    BackupRecord.objects.update(good=timezone.now() - timedelta(days=2))
    ended_run(timezone.now() - timedelta(days=2))
    assert backups.start_due_backups() is None


OFFICE = replace(REMOTE, id="00c0ffee", host="office.lan")
ELSEWHERE = BackupTask(key="feed5678", pool=0, remote=OFFICE.id, path="photos")
MOMENT = "2026.11.22-02.00.00"
ALSO_THERE = BackupTask(key="beef5678", pool=0, remote=REMOTE.id, path="photos-2")


def drilled_beside(task: BackupTask) -> Job:
    """A test of a restore from ``REMOTE`` runs, and another backup is due."""
    copied()
    drill = backups.start_due_backups()
    assert drill and drill.kind == "drill-remote"
    (photos,) = [one for one in store.facts().datasets if one.name == "tank/photos"]
    with_dataset(replace(photos, backup=tasks.encode_tasks((MONTHLY, task))))
    rows.put_remotes(REMOTE, OFFICE)
    BackupRecord.objects.create(dataset_key=str(PHOTOS), task=task.key, since=timezone.now() - timedelta(hours=1))
    return drill


def test_backup_to_another_computer_does_not_wait_for_a_test():
    drilled_beside(ELSEWHERE)
    job = backups.start_due_backups()
    assert job and job.kind == "send-backup"
    assert operation_of(SendBackup).remote == OFFICE.id


def test_backup_to_the_computer_that_a_test_fetches_from_waits():
    drill = drilled_beside(ALSO_THERE)
    assert backups.start_due_backups() is None
    Job.objects.filter(pk=drill.pk).update(state=Job.State.FAILED, finished=timezone.now())
    job = backups.start_due_backups()
    assert job and operation_of(SendBackup).key == ALSO_THERE.key


def under_way(operation: Operation, **progress: Any) -> Job:
    """Somebody has started this, and the agent has said how it is."""
    job = rows.job(
        kind=kind_of(operation), subject=operation.subject, operation=as_json(operation), state=Job.State.RUNNING
    )
    Progress.objects.create(job=job.pk, **progress)
    return job


def restore(**changes: Any) -> RestoreRemote:
    """A folder comes back from ``REMOTE``."""
    part = RemotePart(name="films", guid=55, snapshot=101, short="larder-backup-x", original=9, size=10**9)
    given = {
        "remote": REMOTE.id,
        "copy": "films",
        "guid": 55,
        "parts": (part,),
        "created": 1764000000,
        "parent": "tank",
        "name": "films",
        "token": "0123abcd",
    }
    return RestoreRemote(**{**given, **changes})


def due(*found: BackupTask) -> None:
    """These backups are due, and nothing is under way."""
    box(*found)
    rows.put_remotes(REMOTE, OFFICE)


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("fetches", ["drill", "restore"])
def test_run_that_waits_for_what_fetches_from_its_computer_keeps_no_other_computer(fetches, waits):
    """Only a run that sends uses the network; one that waits for its computer does not use it yet."""
    due(ELSEWHERE)
    drill = DrillRemote(dataset="tank/photos", key=MONTHLY.key, remote=REMOTE.id, pool="tank")
    under_way(restore() if fetches == "restore" else drill)
    by_hand = SendBackup(dataset="tank/films", key="beef5678", remote=REMOTE.id, moment=MOMENT)
    under_way(by_hand, waits=waits)
    job = backups.start_due_backups()
    assert (job is not None and operation_of(SendBackup).remote == OFFICE.id) is waits


def test_waiting_run_keeps_its_own_computer():
    """Another run to it would wait as well, and one more each time that it is looked for what is due."""
    due(TASK)
    under_way(SendBackup(dataset="tank/films", key="beef5678", remote=REMOTE.id, moment=MOMENT), waits=True)
    assert backups.start_due_backups() is None


def test_restore_keeps_only_its_own_computer_from_backups():
    due(TASK, ELSEWHERE)
    job = under_way(restore())
    started = [backups.start_due_backups() for _look in range(2)]
    assert started[0] and operation_of(SendBackup).remote == OFFICE.id
    assert started[1] is None
    Job.objects.filter(pk__in=(job.pk, started[0].pk)).update(state=Job.State.FAILED, finished=timezone.now())
    assert backups.start_due_backups() and operation_of(SendBackup).remote == REMOTE.id


@pytest.mark.parametrize(
    ("place", "goes_on"), [({"name": "photos"}, False), ({"name": "photos-2"}, True), ({"parent": "tank/photos"}, True)]
)
def test_backup_of_a_folder_that_a_restore_has_for_itself_waits(place, goes_on):
    """A folder restored into another stays out of that one's backup until it is at its place."""
    due(ELSEWHERE)
    under_way(restore(**place))
    assert (backups.start_due_backups() is not None) is goes_on


def test_test_of_a_restore_waits_for_a_restore():
    """The restore is urgent, and a test would slow it down."""
    copied()
    rows.put_remotes(REMOTE, OFFICE)
    job = under_way(restore(remote=OFFICE.id))
    assert backups.start_due_backups() is None
    Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED, finished=timezone.now())
    assert backups.start_due_backups() and operation_of(DrillRemote).remote == REMOTE.id


def test_only_one_test_fetches_over_the_network_at_a_time():
    drilled_beside(replace(ELSEWHERE, drill=True))
    BackupRecord.objects.filter(task=ELSEWHERE.key).update(good=timezone.now())
    assert backups.start_due_backups() is None
    Job.objects.filter(kind="drill-remote").update(state=Job.State.FAILED, finished=timezone.now())
    job = backups.start_due_backups()
    assert job and operation_of(DrillRemote).key == ELSEWHERE.key


@pytest.mark.parametrize("remote", [replace(REMOTE, offered_key=OTHER_HOST_KEY), replace(REMOTE, host_key="")])
def test_computer_that_cannot_be_signed_in_to_is_not_tried(remote):
    copied(remote=remote)
    assert backups.start_due_backups() is None


def test_what_an_interrupted_test_left_is_removed_and_not_while_one_runs():
    copied()
    noted = {user_properties.DRILL: Property("0123abcd", "local")}
    job = backups.start_due_backups()
    assert job and job.kind == "drill-remote"
    with_dataset(dataset("tank/drill-0123abcd", guid=77, properties=noted))
    assert DatasetRow.objects.filter(name="tank/drill-0123abcd").exists()
    assert backups.start_due_backups() is None
    Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED)
    again = backups.start_due_backups()
    assert again and again.kind == "remove-drill"


# --- what is remembered and told ------------------------------------------------------------------------------------
def test_line_and_level_say_when_it_was_restored_and_compared(web, time_machine):
    copied()
    ran_test()
    time_machine.shift(timedelta(days=3))
    level = {level.name: level for level in proof.levels(only())}["Restored as a test"]
    assert (level.state, level.word) == ("healthy", "equal") and "412 files compared" in level.text
    assert "· restored as a test 3 days ago (in 12 min)" in text(web), text(web)


def test_part_that_was_left_out_is_not_called_equal():
    copied()
    ran_test(skipped=("tank/photos/secret",))
    level = {level.name: level for level in proof.levels(only())}["Restored as a test"]
    assert (level.state, level.word) == ("attention", "in part") and "Not compared: tank/photos/secret." in level.text


def test_difference_is_critical_with_its_path(web):
    copied()
    ran_test(different=1, differences=("trip/one.jpg: has different contents",))
    (fault,) = [one for one in backups.backup_faults(timezone.now()) if one.kind == "backup.drill"]
    assert "tank/photos" in fault.summary and "trip/one.jpg" in fault.detail and fault.link == BACKUP
    assert (only().state, only().word) == ("failed", "restores differently")
    assert "trip/one.jpg" in text(web)


def test_result_of_a_test_of_another_kind_is_not_taken_for_it():
    """A task keeps its key; what was found of copies in a pool says nothing of those elsewhere."""
    copied(TASK)
    job = rows.job(kind="drill-backup", subject="tank/photos", operation='{"key":"0123abcd"}')
    line = f"{drill_base.PREFIX}{msgspec.json.encode(Rehearsal(**REHEARSAL)).decode()}"
    Job.objects.filter(pk=job.pk).update(state=Job.State.DONE, finished=timezone.now(), log=[line])
    backups.start_due_backups()
    assert only().proof.drilled is None


def test_test_under_way_is_on_the_page(web):
    copied()
    job = backups.start_due_backups()
    assert job
    assert "Restore test" in text(web)
