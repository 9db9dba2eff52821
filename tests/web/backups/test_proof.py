"""How well a backup is proved: the levels on its page, what is checked by schedule, what is remembered and told."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance.alerts.kinds import KINDS
from appliance.backups import check_keys, drill_base, tasks
from appliance.backups.check_keys import KeyCheck
from appliance.backups.drill_base import Rehearsal
from appliance.backups.set_backup import SetBackup
from appliance.backups.tasks import BackupTask
from appliance.datasets.encryption import key_store
from appliance.facts import user_properties
from appliance.facts.box import Scan
from appliance.facts.datasets import Property
from appliance.message import Message
from appliance.operation import checked_plan
from tests.reasons import codes_on_page
from tests.unit.made import dataset, disk
from tests.web import rows
from tests.web.backups.test_backups import (
    COPY,
    PHOTOS,
    SAFE,
    TASK,
    box,
    compared,
    copied,
    copy_of,
    facts_of,
    good,  # noqa: F401  # a fixture
    only,
    photos,
)
from tests.web.reading import Page
from web.backups import proof
from web.backups.models import BackupRecord
from web.inventory import store
from web.inventory.dataset_models import SnapshotRow
from web.inventory.models import PoolRow
from web.jobs.models import BY_SCHEDULE, Job
from web.said import said_in
from workers import backups

MONTHLY = BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", drill=True)
PAGE = f"/backups/of/{PHOTOS}/0123abcd/"
REHEARSAL: dict[str, Any] = {"seconds": 720, "parts": 1, "moved": 10**9, "files": 412, "size": 10**9, "different": 0}


def text(web: Any) -> str:
    return Page(web.get(PAGE)).text


def compared_lately() -> None:
    """The weekly comparison is done, so that another check comes next."""
    job = backups.start_due_backups()
    assert job and job.kind == "verify-backup"
    compared(job)


def ended(job: Job, prefix: str, found: msgspec.Struct, *, failed: bool = False) -> None:
    state = Job.State.FAILED if failed else Job.State.DONE
    line = f"{prefix}{msgspec.json.encode(found).decode()}"
    Job.objects.filter(pk=job.pk).update(state=state, finished=timezone.now(), log=["One line.", line])


def set_up(task: BackupTask, **changes: Any) -> datetime:
    """The folder has a copy of an hour ago."""
    at = timezone.now() - timedelta(hours=1)
    SnapshotRow.objects.all().delete()
    one = photos(task, **changes)
    box(
        one,
        replace(
            copy_of(one, "safe/backups/photos", COPY),
            encryption=one.encryption,
            encryption_root="safe/backups/photos" if one.encryption != "off" else "",
        ),
    )
    copied("safe/backups/photos", COPY, at)
    return at


def levels() -> dict[str, proof.Level]:
    return {level.name: level for level in proof.levels(only())}


# --- the levels -----------------------------------------------------------------------------------------------------
def test_new_copy_has_arrived_and_nothing_else_is_claimed(web, good):  # noqa: F811
    found = levels()
    assert {name: level.state for name, level in found.items()} == {
        "Arrived": "healthy",
        "Scrubbed": "unknown",
        "Compared with the originals": "unknown",
        "Restored as a test": "unknown",
    }
    assert "Nobody has tried yet whether the whole folder comes back." in text(web)


@pytest.mark.parametrize(
    ("began", "errors", "state", "says"),
    [
        (timedelta(minutes=-30), 0, "healthy", "the newest copy too"),
        (timedelta(days=-3), 0, "healthy", "What arrived later has not been read"),
        (timedelta(days=-3), 2, "failed", "2 blocks of the pool could not be repaired"),
    ],
)
def test_scrub_counts_for_what_was_there_when_it_began(web, good, began, errors, state, says):  # noqa: F811
    now = timezone.now()
    scrub(now + began, errors=errors)
    backups.start_due_backups()
    level = levels()["Scrubbed"]
    assert (level.state, level.at) == (state, now + began + timedelta(minutes=5))
    assert says in level.text
    assert "· scrubbed" in " ".join(text(web).split())


def scrub(began: datetime, *, errors: int = 0, kind: str = "scrub") -> None:
    row = PoolRow.objects.get(name="safe")
    ran = Scan(kind, "finished", began, began + timedelta(minutes=5), 10, 10, 10, errors)
    pools = [one.fact for one in PoolRow.objects.exclude(name="safe")]
    rows.put(pools=[*pools, replace(row.fact, scan=ran)])


def test_scrub_is_remembered_when_a_rebuild_takes_its_place(good):  # noqa: F811
    began = timezone.now() - timedelta(days=3)
    scrub(began)
    backups.start_due_backups()
    scrub(timezone.now() - timedelta(hours=2), kind="resilver")
    backups.start_due_backups()
    assert levels()["Scrubbed"].at == began + timedelta(minutes=5)


def test_comparison_that_left_folders_out_is_not_called_equal(web, good):  # noqa: F811
    job = backups.start_due_backups()
    assert job
    compared(job, skipped=("tank/photos/secret",))
    backups.start_due_backups()
    level = levels()["Compared with the originals"]
    assert (level.state, level.word) == ("attention", "in part") and "Not compared: tank/photos/secret." in level.text


@pytest.mark.parametrize("stored", [False, True])
def test_encrypted_backup_is_compared_where_the_key_is_stored_and_otherwise_says_why_not(web, stored):
    sealed(stored=stored)
    BackupRecord.objects.update(compared=None)
    datasets = store.facts().datasets
    rows.put(
        datasets=[
            replace(one, key_status="unavailable") if one.name == "safe/backups/photos" else one for one in datasets
        ]
    )
    job = backups.start_due_backups()
    assert [job.kind if job else ""] == (["verify-backup"] if stored else [""])
    if not stored:
        assert "Nothing here can be compared" in levels()["Compared with the originals"].text
    Job.objects.all().delete()
    assert ("Compare now" in text(web)) is stored and ("Nothing here can be compared" in text(web)) is not stored


def test_line_sums_up_what_was_checked(web, good):  # noqa: F811
    compared_lately()
    record = BackupRecord.objects.get()
    record.proof = msgspec.to_builtins(
        proof.Proof(drilled=timezone.now() - timedelta(days=20), seconds=720, moved=10**9, files=412)
    )
    record.save()
    backups.start_due_backups()
    said = " ".join(text(web).split())
    assert "Last good copy:" in said and "(40 files, 20 % of the data; all of it once in 5 weeks)" in said
    assert "· restored as a test" in said and "(in 12 min" in said, said


def test_record_that_cannot_be_read_claims_nothing(web, good):  # noqa: F811
    BackupRecord.objects.update(proof={"drilled": "yes"})
    assert only().proof == proof.Proof()


# --- a restore as a test ----------------------------------------------------------------------------------------------
def test_restore_is_tested_by_schedule_only_where_that_was_chosen(good):  # noqa: F811
    compared_lately()
    assert backups.start_due_backups() is None
    Job.objects.all().delete()
    set_up(MONTHLY)
    BackupRecord.objects.update(compared=timezone.now())
    job = backups.start_due_backups()
    assert job and job.kind == "drill-backup" and job.created_by == BY_SCHEDULE and '"pool":"tank"' in job.operation
    ended(job, drill_base.PREFIX, Rehearsal(**REHEARSAL))
    assert backups.start_due_backups() is None
    assert (only().proof.files, only().proof.seconds) == (412, 720)
    assert levels()["Restored as a test"].state == "healthy"
    Job.objects.update(created=timezone.now() - timedelta(days=31), finished=timezone.now() - timedelta(days=31))
    BackupRecord.objects.update(proof=msgspec.to_builtins(proof.Proof(drilled=timezone.now() - timedelta(days=31))))
    again = backups.start_due_backups()
    assert again and again.kind == "drill-backup"


def test_test_that_failed_is_not_tried_again_at_once_and_keeps_no_backup_from_being_made():
    set_up(MONTHLY)
    BackupRecord.objects.update(compared=timezone.now())
    job = backups.start_due_backups()
    assert job and job.kind == "drill-backup"
    Job.objects.update(state=Job.State.FAILED, finished=timezone.now())
    assert backups.start_due_backups() is None
    Job.objects.update(created=timezone.now() - timedelta(hours=25))
    again = backups.start_due_backups()
    assert again and again.kind == "drill-backup"


def fail_test(**changes: Any) -> Job:
    """A month after one that passed, a test ends without a result."""
    set_up(MONTHLY)
    month = msgspec.to_builtins(proof.Proof(drilled=timezone.now() - timedelta(days=31), moved=10**9, files=412))
    BackupRecord.objects.update(compared=timezone.now(), proof=month)
    job = backups.start_due_backups()
    assert job and job.kind == "drill-backup"
    why = Message("{count} of {count_2} folders could not be restored", count=1, count_2=1)
    ends = {"state": Job.State.FAILED, "finished": timezone.now(), "text": why, "said": said_in(why), **changes}
    Job.objects.filter(pk=job.pk).update(**ends)
    backups.start_due_backups()
    return job


def test_test_that_could_restore_nothing_is_an_alert_until_one_passes(web):
    """A former month's result says nothing of a copy that cannot be sent back any more."""
    job = fail_test()
    (fault,) = backups.backup_faults(timezone.now())
    assert (fault.kind, fault.summary) == (
        "backup.untested",
        "A restore test of the backup of tank/photos could not run.",
    )
    assert KINDS[fault.kind].severity == "warning"
    assert "1 of 1 folders could not be restored" in fault.detail
    level = levels()["Restored as a test"]
    assert (level.state, level.word) == ("attention", "test failed") and "1 of 1 folders" in level.text
    assert (only().state, only().word) == ("attention", "good, restore not proved")
    assert "restore test failed" in " ".join(text(web).split())
    Job.objects.all().delete()  # the jobs of long ago are forgotten
    backups.start_due_backups()
    assert list(backups.backup_faults(timezone.now()))
    passed = rows.job(kind="drill-backup", subject="tank/photos", operation=job.operation)
    ended(passed, drill_base.PREFIX, Rehearsal(**REHEARSAL))
    backups.start_due_backups()
    assert list(backups.backup_faults(timezone.now())) == [] and levels()["Restored as a test"].state == "healthy"


@pytest.mark.parametrize("state", [Job.State.CANCELLED, Job.State.INTERRUPTED, Job.State.REFUSED])
def test_test_that_was_stopped_cut_off_or_refused_says_nothing_of_the_copy(state):
    fail_test(state=state)
    assert list(backups.backup_faults(timezone.now())) == []
    assert levels()["Restored as a test"].state == "healthy"


def test_first_test_that_fails_is_told_too():
    fail_test()
    BackupRecord.objects.update(proof={})
    backups.start_due_backups()
    level = levels()["Restored as a test"]
    assert (level.state, level.word) == ("attention", "test failed")
    assert [fault.kind for fault in backups.backup_faults(timezone.now())] == ["backup.untested"]


def test_difference_is_critical_with_its_path(web):
    set_up(MONTHLY)
    BackupRecord.objects.update(compared=timezone.now())
    job = backups.start_due_backups()
    assert job
    found = {**REHEARSAL, "different": 1, "differences": ("trip/one.jpg: has different contents",)}
    ended(job, drill_base.PREFIX, Rehearsal(**found), failed=True)
    backups.start_due_backups()
    (fault,) = backups.backup_faults(timezone.now())
    assert fault.kind == "backup.drill" and "trip/one.jpg" in fault.detail
    assert KINDS[fault.kind].severity == "critical"
    assert only().word == "restores differently" and only().state == "failed"
    assert "trip/one.jpg" in text(web)


def test_review_says_where_to_and_that_nothing_stays(web, good):  # noqa: F811
    review = Page(web.get(f"{PAGE}drill/")).text
    assert "to tank/drill-0123abcd, where nobody can see it" in review
    assert "Then all of it is removed" in review


def crowded(tank: int, safe: int) -> None:
    """Pools with that much free, of 10 GB each; the copy has 3 GB."""
    one = photos(MONTHLY)
    tops = [
        dataset(name, guid=guid, available=free, used=10**10 - free)
        for name, guid, free in (("tank", 1, tank), ("safe", 2, safe))
    ]
    copy = replace(copy_of(one, "safe/backups/photos", COPY), referenced=3 * 10**9)
    pools = [rows.pool_of("tank", 1000, disk(1)), rows.pool_of("safe", SAFE, disk(3))]
    box(one)
    rows.put(pools=pools, datasets=[*tops, one, copy], disks=[], accounts=[], shares=[])
    copied("safe/backups/photos", COPY, timezone.now() - timedelta(hours=1))


def test_test_goes_where_there_is_room():
    crowded(tank=39 * 10**8, safe=5 * 10**9)
    BackupRecord.objects.update(compared=timezone.now())
    job = backups.start_due_backups()
    assert job and '"pool":"safe"' in job.operation


def test_no_room_anywhere_is_refused_with_both_numbers_and_said_on_the_page(web):
    crowded(tank=39 * 10**8, safe=2 * 10**9)
    BackupRecord.objects.update(compared=timezone.now())
    assert backups.start_due_backups() is None
    answer = web.get(f"{PAGE}drill/")
    assert answer.status_code == 409 and codes_on_page(answer) == ["drill-no-room"]
    said = " ".join(Page(answer).text.split())
    assert "needs about 3 GB" in said and "tank has 2.9 GB" in said
    assert "there is no room for it now" in " ".join(text(web).split())


def left_over() -> None:
    noted = {user_properties.DRILL: Property("0123abcd", "local")}
    one = photos(TASK)
    box(
        one,
        copy_of(one, "safe/backups/photos", COPY),
        dataset("tank/drill-0123abcd", guid=70, copy_of='{"guid":0,"raw":false}', properties=noted),
    )
    copied("safe/backups/photos", COPY, timezone.now() - timedelta(hours=1))


def test_what_an_interrupted_test_left_is_removed_before_anything_else_and_not_while_one_runs():
    left_over()
    job = backups.start_due_backups()
    assert job and job.kind == "remove-drill" and job.subject == "tank/drill-0123abcd"
    job.delete()
    running = rows.job(
        kind="drill-backup", subject="tank/photos", state=Job.State.RUNNING, operation='{"key":"0123abcd"}'
    )
    assert backups.start_due_backups() is None
    Job.objects.filter(pk=running.pk).update(state=Job.State.FAILED)
    again = backups.start_due_backups()
    assert again and again.kind == "remove-drill"
    Job.objects.filter(pk=again.pk).update(state=Job.State.FAILED)
    other = backups.start_due_backups()
    assert other and other.kind == "verify-backup"  # a removal that fails keeps nothing else from being done


def test_test_that_has_just_ended_is_not_taken_for_interrupted_before_the_folders_are_read_again():
    left_over()
    BackupRecord.objects.update(compared=timezone.now())
    now = timezone.now()
    store.checked("datasets", changed=True, at=now - timedelta(seconds=30))
    rows.job(
        kind="drill-backup", subject="tank/photos", state=Job.State.DONE, operation='{"key":"0123abcd"}', finished=now
    )
    assert backups.start_due_backups() is None
    store.checked("datasets", changed=True, at=now + timedelta(seconds=5))
    job = backups.start_due_backups()
    assert job and job.kind == "remove-drill"


def test_giving_up_the_monthly_test_needs_the_password():
    operation = SetBackup(dataset="tank/photos", tasks=(TASK,))
    facts = facts_of(photos(MONTHLY))
    assert operation.needs_proof(facts, checked_plan(operation, facts))
    back = SetBackup(dataset="tank/photos", tasks=(MONTHLY,))
    facts = facts_of(photos(TASK))
    plan = checked_plan(back, facts)
    assert not back.needs_proof(facts, plan) and "restored as a test" in plan.summary
    assert tasks.parse_tasks(tasks.encode_tasks((MONTHLY,))) == (MONTHLY,)


# --- keys -------------------------------------------------------------------------------------------------------------
def sealed(*, stored: bool) -> None:
    noted = {user_properties.UNLOCK: Property(key_store.box_mark(), "local")} if stored else {}
    set_up(TASK, encryption="aes-256-gcm", encryption_root="tank/photos", key_format="passphrase", properties=noted)
    BackupRecord.objects.update(compared=timezone.now())


def test_stored_key_is_tried_every_week():
    sealed(stored=True)
    job = backups.start_due_backups()
    assert job and job.kind == "check-backup-keys" and '"typed":true' not in job.operation
    ended(job, check_keys.PREFIX, KeyCheck(1, 1))
    assert backups.start_due_backups() is None
    assert levels()["Key opens it"].state == "healthy"


def test_key_that_is_not_stored_is_asked_for_and_never_tried_by_schedule(web):
    sealed(stored=False)
    assert backups.start_due_backups() is None
    assert levels()["Key opens it"].state == "attention"
    assert f"{PAGE}key/" in web.get(PAGE).content.decode()
    assert 'type="password"' in web.get(f"{PAGE}key/").content.decode()


def test_encrypted_backup_is_not_healthy_before_its_key_was_seen_to_open_it():
    sealed(stored=True)
    assert (only().state, only().word) == ("attention", "good, key not tried")
    job = backups.start_due_backups()
    assert job
    ended(job, check_keys.PREFIX, KeyCheck(1, 1))
    backups.start_due_backups()
    assert (only().state, only().word) == ("healthy", "good")


@pytest.mark.parametrize("stored", [True, False])
def test_key_of_a_folder_that_came_later_counts_as_untried_until_it_was_tried(stored):
    """It may have another phrase than the one that was tried."""
    sealed(stored=stored)
    job = rows.job(kind="check-backup-keys", subject="tank/photos", operation='{"key":"0123abcd"}')
    Job.objects.filter(pk=job.pk).update(created=timezone.now() - timedelta(days=2))
    ended(job, check_keys.PREFIX, KeyCheck(1, 1))
    assert backups.start_due_backups() is None
    assert (only().word, levels()["Key opens it"].word) == ("good", "yes")
    later = dataset("tank/photos/diary", guid=7, encryption="aes-256-gcm", encryption_root="tank/photos/diary")
    copy = replace(
        copy_of(later, "safe/backups/photos/diary", 57),
        encryption="aes-256-gcm",
        encryption_root="safe/backups/photos/diary",
    )
    rows.put(datasets=[*store.facts().datasets, later, copy])
    copied("safe/backups/photos/diary", 57, timezone.now(), 9)
    assert (only().state, only().word) == ("attention", "good, key not tried")
    level = levels()["Key opens it"]
    assert (level.state, level.word) == ("attention", "in part") and "1 of 2 encrypted copies" in level.text
    tried = backups.start_due_backups()  # what is stored is tried without waiting for next week
    assert [tried.kind if tried else ""] == (["check-backup-keys"] if stored else [""])


def key_was_tried() -> None:
    """A passphrase that somebody typed two days ago opens everything that there was."""
    sealed(stored=False)
    job = rows.job(kind="check-backup-keys", subject="tank/photos", operation='{"key":"0123abcd"}')
    ended(job, check_keys.PREFIX, KeyCheck(1, 1))
    Job.objects.filter(pk=job.pk).update(
        created=timezone.now() - timedelta(days=2), finished=timezone.now() - timedelta(days=2)
    )
    backups.start_due_backups()
    assert only().word == "good"


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("tank/photos", {"encryption_root": "tank"}),
        ("safe/backups/photos", {"guid": 99}),
        ("safe/backups/photos", {"key_format": "hex"}),
    ],
    ids=["the key of the folder above", "a new copy", "a key file"],
)
def test_another_key_counts_as_untried_though_as_many_copies_are_encrypted(what, changes):
    key_was_tried()
    rows.put(datasets=[replace(one, **changes) if one.name == what else one for one in store.facts().datasets])
    assert (only().state, only().word) == ("attention", "good, key not tried")
    level = levels()["Key opens it"]
    assert (level.state, level.word) == ("attention", "in part")
    assert "0 of 1 encrypted copy opens. Not tried: tank/photos." in level.text


def test_changed_key_counts_as_untried_from_the_first_copy_that_has_it():
    key_was_tried()
    at = timezone.now() - timedelta(minutes=90)  # the copy is of an hour ago
    job = rows.job(kind="change-key", subject="tank/photos", state="done")
    Job.objects.filter(pk=job.pk).update(finished=at + timedelta(minutes=60))
    backups.start_due_backups()
    assert only().word == "good", "the copy has the old key still"
    Job.objects.filter(pk=job.pk).update(finished=at)
    backups.start_due_backups()
    assert only().word == "good, key not tried"
    assert "Not tried: tank/photos." in levels()["Key opens it"].text
    again = rows.job(kind="check-backup-keys", subject="tank/photos", operation='{"key":"0123abcd"}')
    ended(again, check_keys.PREFIX, KeyCheck(1, 1))
    backups.start_due_backups()
    backups.start_due_backups()
    assert only().word == "good"


def test_folder_that_is_gone_leaves_no_key_to_try():
    key_was_tried()
    BackupRecord.objects.update(
        proof={
            **BackupRecord.objects.get().proof,
            "of": 2,
            "opened": 2,
            "tried": {**BackupRecord.objects.get().proof["tried"], "57": "7 passphrase"},
        }
    )
    assert only().word == "good"


def test_lists_of_what_could_not_be_checked_say_how_many_more_there_are(web):
    sealed(stored=True)
    names = tuple(f"tank/photos/s{at}" for at in range(5))
    compared(
        rows.job(kind="verify-backup", subject="tank/photos", operation='{"key":"0123abcd"}'), skipped=names, more=3
    )
    job = rows.job(kind="check-backup-keys", subject="tank/photos", operation='{"key":"0123abcd"}')
    ended(job, check_keys.PREFIX, KeyCheck(0, 9, names, (), 4), failed=True)
    drill = rows.job(kind="drill-backup", subject="tank/photos", operation='{"key":"0123abcd"}')
    ended(
        drill,
        drill_base.PREFIX,
        replace(Rehearsal(**REHEARSAL), skipped=names, more_skipped=2, gone=names, more_gone=1),
    )
    backups.start_due_backups()
    found = levels()
    assert (
        "Not compared: tank/photos/s0, tank/photos/s1, tank/photos/s2, tank/photos/s3, tank/photos/s4 and 3 more."
        in found["Compared with the originals"].text
    )
    assert "tank/photos/s4 and 4 more." in found["Key opens it"].text
    assert "tank/photos/s4 and 2 more. Compared with the copy alone: " in found["Restored as a test"].text
    assert "tank/photos/s4 and 1 more." in found["Restored as a test"].text
    assert "tank/photos/s4 and 3 more. Volumes have no files" in text(web)
    (fault,) = [one for one in backups.backup_faults(timezone.now()) if one.kind == "backup.key"]
    assert "tank/photos/s4 and 4 more." in fault.detail


def test_stored_key_that_does_not_open_the_copy_is_critical():
    sealed(stored=True)
    job = backups.start_due_backups()
    assert job
    ended(job, check_keys.PREFIX, KeyCheck(0, 1, ("tank/photos",)), failed=True)
    backups.start_due_backups()
    (fault,) = backups.backup_faults(timezone.now())
    assert fault.kind == "backup.key" and "tank/photos" in fault.summary
    assert (only().state, only().word) == ("failed", "key does not open it")


def test_phrase_that_was_mistyped_changes_nothing_that_is_known():
    sealed(stored=False)
    job = rows.job(kind="check-backup-keys", subject="tank/photos", operation='{"key":"0123abcd"}')
    ended(job, check_keys.PREFIX, KeyCheck(0, 1, (), ("tank/photos",)), failed=True)
    backups.start_due_backups()
    assert only().proof.keys is None and list(backups.backup_faults(timezone.now())) == []


# --- half received ----------------------------------------------------------------------------------------------------
def interrupted() -> None:
    one = photos(TASK)
    token = {"receive_resume_token": Property("1-abc", "none")}
    box(one, replace(copy_of(one, "safe/backups/photos", COPY), properties=token, used_by_children=2 * 10**9))
    copied("safe/backups/photos", COPY, timezone.now() - timedelta(hours=1))
    BackupRecord.objects.update(compared=timezone.now())  # so that no comparison begins


def test_what_is_half_received_is_shown_with_its_size_and_age(web):
    interrupted()
    backups.start_due_backups()
    said = " ".join(text(web).split())
    assert "Half received" in said and "safe/backups/photos 2 GB since" in said
    review = Page(web.get(f"{PAGE}discard/{COPY}/")).text
    assert "The part of an interrupted copy that has arrived is discarded" in review


def test_what_is_half_received_for_a_week_is_told_until_it_is_gone():
    interrupted()
    backups.start_due_backups()
    assert list(backups.backup_faults(timezone.now())) == []
    record = BackupRecord.objects.get()
    record.proof = {"received": {str(COPY): (timezone.now() - timedelta(days=8)).isoformat()}}
    record.save()
    backups.start_due_backups()
    (fault,) = backups.backup_faults(timezone.now())
    assert fault.kind == "backup.received" and "safe/backups/photos" in fault.detail
    set_up(TASK)
    backups.start_due_backups()
    assert BackupRecord.objects.get().proof == {} and list(backups.backup_faults(timezone.now())) == []


def test_what_a_run_under_way_receives_is_nothing_that_was_left(web):
    interrupted()
    rows.job(kind="run-backup", subject="tank/photos", state=Job.State.RUNNING, operation='{"key": "0123abcd"}')
    backups.start_due_backups()
    assert BackupRecord.objects.get().proof == {}
    assert "Half received" not in text(web)
