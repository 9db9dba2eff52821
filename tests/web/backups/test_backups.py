"""Pages of backups and the worker's part: how each stands, setting one up, running, what is remembered."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from msgspec.structs import replace

from appliance import snapshot_names
from appliance.alerts.fault import Fault
from appliance.backups import copies, run_mark, tasks
from appliance.backups.run_backup import RunBackup
from appliance.backups.set_aside import SetCopyAside
from appliance.backups.set_backup import SetBackup
from appliance.backups.tasks import BackupTask
from appliance.backups.verify_backup import PREFIX, Comparison, VerifyBackup
from appliance.errors import Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts, PoolProperties
from appliance.facts.datasets import Dataset, Property, Snapshot
from appliance.facts.kept_copies import Keep
from appliance.operation import as_json, checked_plan
from tests.reasons import codes_of_form, codes_on_page, expect_refusal
from tests.unit.made import dataset, disk
from tests.web import rows
from tests.web.reading import Page
from tests.web.system.test_queries import queries
from web.backups import folder_backups, status
from web.backups.forms import BackupForm
from web.backups.models import BackupRecord
from web.inventory import store
from web.inventory.dataset_models import DatasetRow, SnapshotRow
from web.jobs.models import BY_SCHEDULE, Job
from workers import backups, collect_snapshots, guard

TANK, SAFE, PHOTOS, COPY = 1000, 2000, 5, 55
TASK = BackupTask(key="0123abcd", pool=SAFE, path="backups/photos")
ANSWERS = {
    "pool": SAFE,
    "name": "photos",
    "below": "on",
    "every": "daily",
    "hour": 2,
    "hourly": 24,
    "daily": 14,
    "weekly": 8,
    "monthly": 12,
    "days": 2,
}


def photos(*found: BackupTask, **changes: Any) -> Dataset:
    made = dataset("tank/photos", guid=PHOTOS, used=10**9, backup=tasks.encode_tasks(found), backup_source="local")
    return replace(made, **changes) if found else replace(made, backup="", backup_source="none", **changes)


def copy_of(one: Dataset, name: str, guid: int) -> Dataset:
    return dataset(name, guid=guid, copy_of=copies.mark_text(one), canmount="off", mounted=False, used=10**8)


def box(*folders: Dataset, safe: bool = True) -> None:
    pools = [rows.pool_of("tank", TANK, disk(1), disk(2))]
    tops = [dataset("tank", guid=1)]
    if safe:
        pools.append(rows.pool_of("safe", SAFE, disk(3), disk(4)))
        tops.append(dataset("safe", guid=2, available=10**12))
    rows.put(pools=pools, datasets=[*tops, *folders], disks=[], accounts=[], shares=[])
    for one in folders:
        for task in tasks.tasks_of(one):
            now = timezone.now()
            BackupRecord.objects.get_or_create(dataset_key=str(one.guid), task=task.key, defaults={"since": now})
    store.checked("snapshots", changed=True)


def copied(name: str, key: int, at: datetime, number: int = 1) -> None:
    made = Snapshot(f"{name}@{snapshot_names.name_for(snapshot_names.BACKUP, at)}", 10**6 + number, number, at)
    collect_snapshots.row_of(str(key), made).save()


def only() -> status.BackupStatus:
    (found,) = status.read_statuses(status.read_facts())
    return found


@pytest.fixture
def good() -> datetime:
    """The folder has a copy of an hour ago."""
    at = timezone.now() - timedelta(hours=1)
    box(photos(TASK), copy_of(photos(), "safe/backups/photos", COPY))
    copied("safe/backups/photos", COPY, at)
    return at


# --- how it stands --------------------------------------------------------------------------------------------------
def test_folder_without_a_backup_is_only_on_its_pool(web):
    box(photos())
    page = Page(web.get("/backups/"))
    assert "no backup" in page.text
    assert "1 folder has no backup" in page.text


def test_newest_copy_and_where_it_lies_are_listed(web, good):
    page = Page(web.get("/backups/"))
    assert "tank/photos" in page.text and "safe" in page.text and "every day at 02:00" in page.text
    assert only().word == "good" and only().good == good


def test_copy_that_is_too_old_says_so(web):
    box(photos(TASK), copy_of(photos(), "safe/backups/photos", COPY))
    copied("safe/backups/photos", COPY, timezone.now() - timedelta(days=3))
    assert only().word == "too old"
    assert "should never be older than 2 days" in Page(web.get(f"/backups/of/{PHOTOS}/0123abcd/")).text


def test_copy_dated_in_the_future_has_no_age_until_a_run_with_the_right_clock(web):
    """The clock was wrong once: such a copy must neither hide that no other one is made, nor start runs without end."""
    now = timezone.now()
    box(photos(TASK), copy_of(photos(), "safe/backups/photos", COPY))
    copied("safe/backups/photos", COPY, now + timedelta(days=900), number=1)
    assert (only().word, only().state) == ("age unknown", "attention")
    (fault,) = backups.backup_faults(now)
    assert fault.kind == "backup.old" and "dated in the future" in fault.detail
    page = Page(web.get(f"/backups/of/{PHOTOS}/0123abcd/")).text
    assert "Nobody can tell how old" in page and "1970" not in page and "1970" not in Page(web.get("/backups/")).text
    assert (job := backups.start_due_backups()) and job.kind == "run-backup"
    Job.objects.all().delete()
    copied("safe/backups/photos", COPY, now - timedelta(minutes=5), number=2)
    assert only().word == "good" and only().good == now - timedelta(minutes=5)
    assert (job := backups.start_due_backups()) is None or job.kind != "run-backup"


def test_run_with_nothing_new_makes_a_copy_from_the_future_good_again():
    at = timezone.now().replace(microsecond=0) - timedelta(hours=2)
    marked(at + timedelta(days=900), at)
    assert only().good == at and only().word == "good"


def test_mark_of_a_run_from_the_future_says_nothing():
    now = timezone.now().replace(microsecond=0)
    marked(now - timedelta(days=9), now + timedelta(days=900))
    assert only().good == now - timedelta(days=9) and only().word == "too old"


def marked(good: datetime, at: datetime, *left: int) -> None:
    """The latest run sent nothing, since nothing was new, and marked up to when the copy is complete."""
    mark = run_mark.mark_of("2026.11.23-10.00.00", at, left)
    assert mark
    noted = {user_properties.COPIED: Property(mark.text, "local")}
    box(photos(TASK), replace(copy_of(photos(), "safe/backups/photos", COPY), properties=noted))
    copied("safe/backups/photos", COPY, good)


def test_copy_of_a_folder_with_nothing_new_is_as_young_as_the_run_that_looked():
    at = timezone.now().replace(microsecond=0) - timedelta(hours=2)
    marked(at - timedelta(days=9), at)
    assert only().good == at and only().word == "good"
    assert backups.start_due_backups() is None or Job.objects.get().kind != "run-backup"


def test_copy_that_the_latest_run_left_out_for_a_failure_is_as_old_as_it_is():
    at = timezone.now().replace(microsecond=0) - timedelta(hours=2)
    marked(at - timedelta(days=9), at, PHOTOS)
    assert only().good == at - timedelta(days=9) and only().word == "too old"


def test_newest_copy_of_a_tree_is_that_of_its_oldest_part(good):
    trip = dataset("tank/photos/trip", guid=6)
    box(
        photos(TASK),
        trip,
        copy_of(photos(), "safe/backups/photos", COPY),
        copy_of(trip, "safe/backups/photos/trip", 56),
    )
    assert only().missing == ("tank/photos/trip",) and only().word == "incomplete"
    early = good - timedelta(days=1)
    copied("safe/backups/photos/trip", 56, early, 2)
    assert only().missing == () and only().good == early


def test_what_is_known_stays_while_the_disks_are_away(web, good):
    backups.start_due_backups()
    Job.objects.all().delete()
    box(photos(TASK), safe=False)
    found = only()
    assert (found.good, found.pool_name, found.word) == (good, "safe", "good, not connected")
    page = Page(web.get(f"/backups/of/{PHOTOS}/0123abcd/")).text
    assert "not connected; it was here just now" in page


def test_disk_in_the_drawer_says_when_it_was_seen_and_when_it_is_needed(web, good):
    drawer = BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", days=30, removable=True)
    box(photos(drawer), copy_of(photos(), "safe/backups/photos", COPY))
    backups.start_due_backups()
    Job.objects.all().delete()
    BackupRecord.objects.update(seen=timezone.now() - timedelta(days=12))
    box(photos(drawer), safe=False)
    BackupRecord.objects.update(good=timezone.now() - timedelta(days=12))
    listed = " ".join(Page(web.get("/backups/")).text.split())
    assert "last seen 12 days ago , needed in 17 days" in listed, listed
    page = " ".join(Page(web.get(f"/backups/of/{PHOTOS}/0123abcd/")).text.split())
    assert "it was here 12 days ago . The next copy is needed in 17 days ." in page, page


def test_folder_below_one_that_is_backed_up_is_not_called_bare(web, good):
    box(photos(TASK), dataset("tank/films", guid=8))
    facts = status.read_facts()
    found = {one.dataset.name: one for one in folder_backups.read_folders(facts, status.read_statuses(facts))}
    assert set(found) == {"tank/photos", "tank/films"}
    top = replace(dataset("tank", guid=1), backup=tasks.encode_tasks((TASK,)), backup_source="local")
    box(dataset("tank/films", guid=8))
    rows.put(datasets=[top, dataset("tank/films", guid=8)])
    facts = status.read_facts()
    found = {one.dataset.name: one for one in folder_backups.read_folders(facts, status.read_statuses(facts))}
    assert found["tank/films"].above == "tank"


def test_pages_take_as_many_queries_with_many_backups_as_with_one(web, good):
    one = len(queries(web, "/backups/"))
    many = [replace(photos(replace_key(number)), name=f"tank/f{number}", guid=100 + number) for number in range(40)]
    box(*many)
    assert len(queries(web, "/backups/")) <= one


def replace_key(number: int) -> BackupTask:
    return BackupTask(key=f"{number:08x}", pool=SAFE, path=f"backups/f{number}")


# --- setting up -----------------------------------------------------------------------------------------------------
def test_form_leads_to_a_review_that_says_what_is_copied_where(web):
    box(photos())
    review = web.post(f"/backups/of/{PHOTOS}/new/", ANSWERS)
    text = Page(review).text
    assert "tank/photos and all folders below it: copied to safe/backups/photos every day at 02:00" in text
    assert "24 hourly, 14 daily, 8 weekly and 12 monthly copies are kept" in text


@pytest.mark.parametrize(("more", "days"), [({}, 2), ({"removable": "on"}, 30), ({"removable": "on", "days": 9}, 9)])
def test_alert_comes_later_for_a_disk_that_comes_and_goes(more, days):
    box(photos())
    form = BackupForm({**ANSWERS, "days": "", **more}, dataset=photos(), facts=status.read_facts())
    assert form.is_valid(), form.errors
    assert form.task.days == days


def test_speed_and_its_hours_are_asked_for_reviewed_and_shown(web):
    box(photos())
    slow: dict[str, Any] = {"rate": 20, "slow_from": 8, "slow_until": 23}
    assert (
        "Speed: at most 20 MB/s between 08:00 and 23:00."
        in Page(web.post(f"/backups/of/{PHOTOS}/new/", {**ANSWERS, **slow})).text
    )
    assert "Speed" not in Page(web.post(f"/backups/of/{PHOTOS}/new/", {**ANSWERS, "rate": ""})).text
    assert web.post(f"/backups/of/{PHOTOS}/new/", {**ANSWERS, "rate": "fast"}).status_code == 400
    box(photos(BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", **slow)))
    assert "at most 20 MB/s between 08:00 and 23:00" in Page(web.get(f"/backups/of/{PHOTOS}/0123abcd/")).text
    form = web.get(f"/backups/of/{PHOTOS}/0123abcd/edit/").content.decode()
    assert 'name="rate" value="20"' in form and '<option value="23" selected' in form


def test_pool_of_the_folder_itself_is_not_offered(web):
    box(photos())
    page = web.get(f"/backups/of/{PHOTOS}/new/").content.decode()
    assert f'value="{SAFE}"' in page and f'value="{TANK}"' not in page


def test_pool_in_a_usb_case_is_taken_to_come_and_go(web):
    usb = disk(path="/dev/disk/by-id/usb-QEMU_QEMU_HARDDISK_LARDER-USB-1-0:0", name="sdf", serial="LARDER-USB-1")
    rows.put(
        pools=[rows.pool_of("tank", TANK, disk(1), disk(2)), rows.pool_of("drawer", SAFE, usb)],
        datasets=[dataset("tank", guid=1), dataset("drawer", guid=2, available=10**12), photos()],
        disks=[],
        accounts=[],
        shares=[],
    )
    page = web.get(f"/backups/of/{PHOTOS}/new/").content.decode()
    assert "drawer (USB disk, 1 TB free)" in page
    assert BackupForm(None, dataset=photos(), facts=status.read_facts())["removable"].initial is True
    box(photos())
    assert not BackupForm(None, dataset=photos(), facts=status.read_facts())["removable"].initial


def test_box_with_one_pool_is_told_that_it_needs_a_second(web):
    box(photos(), safe=False)
    assert "No second pool" in Page(web.get(f"/backups/of/{PHOTOS}/new/")).text


def test_place_that_is_taken_is_refused_at_its_field(web):
    box(photos(), dataset("safe/backups/photos", guid=9))
    answer = web.post(f"/backups/of/{PHOTOS}/new/", ANSWERS)
    assert answer.status_code == 400
    assert "backup-path-taken" in codes_of_form(answer, "name")


def facts_of(*folders: Dataset, safe: bool = True) -> Facts:
    box(*folders, safe=safe)
    return store.facts()


def test_backup_within_its_own_pool_is_refused():
    here = BackupTask(key="0123abcd", pool=TANK, path="backups/photos")
    with expect_refusal("backup-same-pool"):
        checked_plan(SetBackup(dataset="tank/photos", tasks=(here,)), facts_of(photos()))


@pytest.mark.parametrize(("value", "is_set"), [("wait", False), ("continue", True), ("panic", True)])
def test_pool_on_a_disk_that_comes_and_goes_waits_for_it(value, is_set):
    facts = facts_of(photos())
    facts = replace(facts, properties=(PoolProperties("safe", SAFE, {"failmode": value}),))
    task = BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", removable=True)
    operation = SetBackup(dataset="tank/photos", tasks=(task,))
    steps = [step.command_text for step in checked_plan(operation, facts).steps]
    assert ("zpool set failmode=wait safe" in steps) is is_set and len(steps) == 1 + is_set
    assert operation.probe("failmode", facts) is not is_set
    fixed = replace(task, removable=False)
    assert len(checked_plan(SetBackup(dataset="tank/photos", tasks=(fixed,)), facts).steps) == 1


def test_backup_of_a_copy_is_refused():
    copy = copy_of(photos(), "safe/backups/photos", COPY)
    back = BackupTask(key="0123abcd", pool=TANK, path="backups/photos")
    with expect_refusal("backup-of-copy"):
        checked_plan(SetBackup(dataset="safe/backups/photos", tasks=(back,)), facts_of(photos(), copy))


def test_same_place_twice_is_refused():
    with expect_refusal("backup-twice"):
        SetBackup(dataset="tank/photos", tasks=(TASK, BackupTask(key="0123abce", pool=SAFE, path="backups/photos")))


@pytest.mark.parametrize(
    ("then", "asks"),
    [
        ((TASK,), False),
        ((), True),
        ((BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", days=9),), True),
        ((BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", keep=Keep(daily=1)),), True),
        ((BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", below=False),), True),
        ((BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", hour=5, keep=Keep(daily=99)),), False),
    ],
)
def test_whatever_weakens_a_backup_needs_the_password(then, asks):
    facts, operation = facts_of(photos(TASK)), SetBackup(dataset="tank/photos", tasks=then)
    assert operation.needs_proof(facts, checked_plan(operation, facts)) is asks


def test_first_copy_that_may_not_fit_is_said():
    facts = facts_of(photos(used=10**13))
    plan = checked_plan(SetBackup(dataset="tank/photos", tasks=(TASK,)), facts)
    assert any("may not fit" in warning for warning in plan.warnings)


# --- running --------------------------------------------------------------------------------------------------------
def test_first_run_starts_by_itself_and_only_once():
    box(photos(TASK))
    job = backups.start_due_backups()
    assert job and job.kind == "run-backup" and job.created_by == BY_SCHEDULE
    assert backups.start_due_backups() is None


def test_backup_that_is_not_due_is_compared_and_then_left_alone(good):
    job = backups.start_due_backups()
    assert job and job.kind == "verify-backup" and '"cycle":5' in job.operation
    compared(job)
    assert backups.start_due_backups() is None
    assert only().compared == "40 files, 20 % of the data; all of it once in 5 weeks"


def test_next_comparison_takes_the_next_part_and_what_changed(good):
    job = backups.start_due_backups()
    assert job
    compared(job)
    backups.start_due_backups()
    BackupRecord.objects.update(compared=timezone.now() - timedelta(days=8))
    Job.objects.update(finished=timezone.now() - timedelta(days=9))
    second = backups.start_due_backups()
    assert second and '"turn":1' in second.operation and '"since":' in second.operation


def test_difference_is_critical_with_its_path(web, good):
    job = backups.start_due_backups()
    assert job
    compared(job, different=1, differences=("trip/one.jpg: has different contents",))
    backups.start_due_backups()
    (fault,) = backups.backup_faults(timezone.now())
    assert fault.kind == "backup.differs" and "trip/one.jpg" in fault.detail
    assert only().word == "differs from the original"
    assert "trip/one.jpg" in Page(web.get(f"/backups/of/{PHOTOS}/0123abcd/")).text


def week_later() -> Job:
    """The next comparison, a week after the last."""
    backups.start_due_backups()
    week = timedelta(days=7, hours=1)
    Job.objects.update(created=timezone.now() - week, finished=timezone.now() - week)
    BackupRecord.objects.update(compared=timezone.now() - week)
    copied("safe/backups/photos", COPY, timezone.now(), SnapshotRow.objects.count() + 10)
    job = backups.start_due_backups()
    assert job and job.kind == "verify-backup"
    return job


def found_difference() -> Job:
    """A comparison found one, and this is the next."""
    job = backups.start_due_backups()
    assert job
    compared(job, different=1, differences=("trip/one.jpg: has different contents",))
    return week_later()


def test_difference_stays_until_a_comparison_of_all_contents_finds_none(good):
    job = found_difference()
    assert '"cycle":1,' in job.operation
    compared(job)
    backups.start_due_backups()
    assert list(backups.backup_faults(timezone.now())) == [] and only().word == "good"
    assert '"cycle":5' in week_later().operation


def test_difference_is_not_forgotten_by_a_comparison_of_another_part(good):
    """Such as one that was under way already, or that an earlier version has started."""
    job = found_difference()
    part = VerifyBackup(dataset="tank/photos", key="0123abcd", target="safe/backups/photos", turn=1, cycle=5)
    Job.objects.filter(pk=job.pk).update(operation=as_json(part))
    compared(job)
    backups.start_due_backups()
    (fault,) = backups.backup_faults(timezone.now())
    assert fault.kind == "backup.differs" and "trip/one.jpg" in fault.detail
    assert BackupRecord.objects.filter(compared__gt=timezone.now() - timedelta(minutes=5)).exists()


def test_difference_is_not_forgotten_while_its_folder_cannot_be_compared(good):
    """The folder that differs may be the one that was left out; a volume has no files that could."""
    compared(found_difference(), skipped=("tank/photos",))
    assert [fault.kind for fault in faults_after_a_look()] == ["backup.differs"]
    compared(week_later(), skipped=("tank/photos/volume",))
    assert faults_after_a_look() == []


def test_difference_is_not_forgotten_where_more_folders_were_left_out_than_are_named(good):
    """Folders are named before volumes, so those without a name may be folders too, unless a volume has one."""
    names = ("tank/a", "tank/b")
    rows.put(datasets=[*store.facts().datasets, dataset(names[0]), dataset(names[1], kind="volume", mounted=False)])
    job = found_difference()
    BackupRecord.objects.update(skipped=list(names), more_skipped=1)
    compared(job, skipped=names[:1], more=1)
    assert [fault.kind for fault in faults_after_a_look()] == ["backup.differs"]
    compared(week_later(), skipped=names, more=1)
    assert faults_after_a_look() == []
    assert BackupRecord.objects.get().more_skipped == 1


def test_difference_is_not_forgotten_where_the_row_of_what_was_left_out_is_odd(good):
    job = found_difference()
    rows.put(datasets=[*store.facts().datasets, dataset("tank/photos/old")])
    found = Comparison(files=40, size=200, total=1000, entries=60, different=0, skipped=("tank/photos/old",))
    row = BackupRecord.objects.get()
    row.compared = timezone.now() - timedelta(days=36500)  # the folder is younger than that
    assert backups.clears_difference(job, found, row)
    DatasetRow.objects.filter(name="tank/photos/old").update(facts="{}")
    assert not backups.clears_difference(job, found, row)


def test_alert_says_how_many_differences_it_does_not_name(good):
    job = backups.start_due_backups()
    assert job
    compared(job, different=7, differences=("trip/one.jpg: has other contents",))
    (fault,) = faults_after_a_look()
    assert fault.detail == "trip/one.jpg: has other contents and 6 more"


def test_difference_in_a_folder_that_is_left_out_outlasts_one_in_another(good):
    compared(
        found_difference(), different=1, differences=("two.jpg: has different contents",), skipped=("tank/photos",)
    )
    backups.start_due_backups()
    compared(week_later(), skipped=("tank/photos",))
    assert [fault.kind for fault in faults_after_a_look()] == ["backup.differs"]


def faults_after_a_look() -> list[Fault]:
    backups.start_due_backups()
    return list(backups.backup_faults(timezone.now()))


def test_log_that_cannot_be_read_is_no_comparison():
    for lines in ([], ["compared nothing"], ["compared {"], ['compared {"files": "x"}']):
        assert backups.parse_comparison(lines) is None


def compared(job: Job, **changes: Any) -> None:
    """The comparison has ended, and found this."""
    found = Comparison(**{"files": 40, "size": 200, "total": 1000, "entries": 60, "different": 0, **changes})
    state = Job.State.FAILED if found.different else Job.State.DONE
    line = f"{PREFIX}{msgspec.json.encode(found).decode()}"
    Job.objects.filter(pk=job.pk).update(state=state, finished=timezone.now(), log=["One line.", line])


def test_folder_that_is_new_in_a_tree_is_copied_at_once(good):
    box(photos(TASK), dataset("tank/photos/new", guid=6), copy_of(photos(), "safe/backups/photos", COPY))
    assert backups.start_due_backups()


def test_run_that_failed_is_not_tried_again_at_once():
    box(photos(TASK))
    job = backups.start_due_backups()
    assert job
    Job.objects.update(state=Job.State.FAILED)
    assert backups.start_due_backups() is None
    Job.objects.update(created=timezone.now() - timedelta(minutes=16))
    second = backups.start_due_backups()
    assert second
    # After the second failure it rests for half an hour.
    Job.objects.update(state=Job.State.FAILED, created=timezone.now() - timedelta(hours=2))
    Job.objects.filter(pk=second.pk).update(created=timezone.now() - timedelta(minutes=16))
    assert backups.start_due_backups() is None
    Job.objects.filter(pk=second.pk).update(created=timezone.now() - timedelta(minutes=31))
    assert backups.start_due_backups()


def test_run_that_copied_everything_is_not_slowed_down_by_a_record_that_fails(time_machine):
    """The copies are complete; only the record of the box was not written. The next hour is another run's."""
    hourly = BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", every="hourly")
    for hour in range(6):
        box(photos(hourly), copy_of(photos(), "safe/backups/photos", COPY))
        BackupRecord.objects.update(compared=timezone.now())
        job = backups.start_due_backups()
        assert job and job.kind == "run-backup", f"hour {hour}"
        copied("safe/backups/photos", COPY, timezone.now().replace(microsecond=0), hour + 1)
        Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED, finished=timezone.now())
        assert backups.start_due_backups() is None
        time_machine.shift(timedelta(hours=1))


def test_run_that_leaves_a_new_folder_out_rests_though_the_others_are_copied(time_machine):
    """No copy of a folder is no complete run, however young the copies of the others are."""
    box(photos(TASK), dataset("tank/photos/2026", guid=6), copy_of(photos(), "safe/backups/photos", COPY))
    copied("safe/backups/photos", COPY, timezone.now(), 1)
    BackupRecord.objects.update(compared=timezone.now())
    job = backups.start_due_backups()
    assert job and job.kind == "run-backup"
    copied("safe/backups/photos", COPY, timezone.now() + timedelta(seconds=5), 2)
    Job.objects.update(state=Job.State.FAILED)
    time_machine.shift(timedelta(minutes=14))
    assert backups.start_due_backups() is None
    time_machine.shift(timedelta(minutes=2))
    assert backups.start_due_backups()


def test_comparison_that_fails_keeps_no_run_waiting(time_machine, good):
    """It rests longer with each failure, and copies are what counts."""
    hourly = BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", every="hourly")
    box(photos(hourly), copy_of(photos(), "safe/backups/photos", COPY))
    copied("safe/backups/photos", COPY, timezone.now(), 2)
    for minutes in (0, 16, 31):
        time_machine.shift(timedelta(minutes=minutes))
        job = backups.start_due_backups()
        assert job and job.kind == "verify-backup"
        Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED, finished=timezone.now())
    assert backups.start_due_backups() is None
    time_machine.shift(timedelta(minutes=14))
    job = backups.start_due_backups()
    assert job and job.kind == "run-backup"


def two_destinations(*, stopped: bool) -> None:
    """One comparison is under way, and another folder is due on another pool."""
    other = BackupTask(key="00000001", pool=3000, path="backups/music")
    music = dataset("tank/music", guid=9, backup=tasks.encode_tasks((other,)), backup_source="local")
    box(photos(TASK), music, copy_of(photos(), "safe/backups/photos", COPY), dataset("spare", guid=3, available=10**12))
    SnapshotRow.objects.all().delete()
    copied("safe/backups/photos", COPY, timezone.now())
    safe = replace(rows.pool_of("safe", SAFE, disk(3), disk(4)), state="SUSPENDED" if stopped else "ONLINE")
    rows.put(pools=[rows.pool_of("tank", TANK, disk(1), disk(2)), safe, rows.pool_of("spare", 3000, disk(5))])


def test_comparison_that_hangs_on_a_stopped_pool_stops_no_backup_to_another():
    """Its disk was pulled: what reads from it waits in the kernel until the disk is back."""
    two_destinations(stopped=False)
    comparison = VerifyBackup(dataset="tank/photos", key="0123abcd", target="safe/backups/photos")
    rows.job(kind="verify-backup", subject="tank/photos", state=Job.State.RUNNING, operation=as_json(comparison))
    assert backups.start_due_backups() is None  # two at a time slow each other down
    two_destinations(stopped=True)
    job = backups.start_due_backups()
    assert job and (job.kind, job.subject) == ("run-backup", "tank/music")
    assert backups.start_due_backups() is None


def test_destination_that_is_away_stops_no_other(good):
    away = BackupTask(key="00000001", pool=77, path="backups/films")
    films = dataset("tank/films", guid=8, backup=tasks.encode_tasks((away,)), backup_source="local")
    fresh = dataset("tank/music", guid=9, backup=tasks.encode_tasks((replace_key(3),)), backup_source="local")
    box(photos(TASK), films, fresh)
    job = backups.start_due_backups()
    assert job and job.subject == "tank/music"


def test_run_by_hand_leads_to_its_job(web, good):
    answer = web.post(f"/backups/of/{PHOTOS}/0123abcd/run/")
    job = Job.objects.get(kind="run-backup")
    assert answer["Location"] == f"/jobs/{job.pk}/"
    # Pressed twice, it is the same job.
    assert web.post(f"/backups/of/{PHOTOS}/0123abcd/run/")["Location"] == f"/jobs/{job.pk}/"


def test_run_without_its_pool_is_refused(web):
    box(photos(TASK), safe=False)
    answer = web.post(f"/backups/of/{PHOTOS}/0123abcd/run/")
    assert answer.status_code == 409 and codes_on_page(answer) == ["backup-pool-missing"]


def run_for(facts: Facts) -> RunBackup:
    pool, one = facts.pool_of(SAFE), facts.dataset("tank/photos")
    assert pool and one
    return RunBackup.of(one, TASK, pool, "2026.11.23-10.00.00")


def test_plan_names_each_folder_and_forces_nothing():
    facts = facts_of(photos(TASK), dataset("tank/photos/trip", guid=6))
    plan = checked_plan(run_for(facts), facts)
    assert [step.name for step in plan.steps] == ["record", "snapshot", "prepare", "copy-5", "copy-6", "check"]
    text = "\n".join(step.command_text for step in plan.steps)
    assert "zfs receive -u -s -h -o canmount=off -o mountpoint=none -o readonly=on" in text
    for word in ("-F", "-R", "-p ", "destroy"):
        assert word not in text


def test_encrypted_folder_is_sent_raw():
    facts = facts_of(photos(TASK, encryption="aes-256-gcm"))
    assert "zfs send -w -- tank/photos@" in "".join(
        step.command_text for step in checked_plan(run_for(facts), facts).steps
    )


def test_run_for_another_place_than_the_task_says_is_refused():
    facts = facts_of(photos(TASK))
    with expect_refusal("backup-moved"):
        checked_plan(
            RunBackup(dataset="tank/photos", key="0123abcd", target="safe/x", moment="2026.11.23-10.00.00"), facts
        )


def test_folder_with_another_identity_at_the_place_is_refused():
    facts = facts_of(photos(TASK), copy_of(dataset("tank/x", guid=99), "safe/backups/photos", COPY))
    with expect_refusal("backup-target-of-other"):
        checked_plan(run_for(facts), facts)


def test_probe_tells_what_has_arrived():
    facts = facts_of(photos(TASK), copy_of(photos(), "safe/backups/photos", COPY))
    operation = run_for(facts)
    made = Snapshot(f"tank/photos@{operation.short}", 77, 9, datetime(2026, 11, 23, tzinfo=UTC))
    there = replace(made, name=f"safe/backups/photos@{operation.short}")
    assert not operation.probe("snapshot", facts)
    assert operation.probe("snapshot", replace(facts, snapshots=(made,)))
    assert not operation.probe("copy-5", replace(facts, snapshots=(made,)))
    assert operation.probe("copy-5", replace(facts, snapshots=(made, there)))
    assert operation.probe("check", replace(facts, snapshots=(made, there)))
    assert not operation.probe("copy-5", replace(facts, snapshots=(made, replace(there, guid=78))))


def test_backup_that_came_with_disks_from_elsewhere_waits_until_it_is_set_here(web):
    box(photos(TASK))
    BackupRecord.objects.all().delete()
    assert backups.start_due_backups() is None
    assert only().word == "not confirmed"
    assert "confirm it" in Page(web.get(f"/backups/of/{PHOTOS}/0123abcd/")).text
    rows.job(
        kind="set-backup",
        subject="tank/photos",
        state=Job.State.DONE,
        operation=as_json(SetBackup(dataset="tank/photos", tasks=(TASK,))),
    )
    backups.start_due_backups()
    assert backups.start_due_backups() or Job.objects.filter(kind="run-backup").exists()


# --- alerts and what is remembered ------------------------------------------------------------------------------------
def test_copy_that_is_too_old_is_an_alert_with_its_folder():
    box(photos(TASK), copy_of(photos(), "safe/backups/photos", COPY))
    copied("safe/backups/photos", COPY, timezone.now() - timedelta(days=3))
    (fault,) = backups.backup_faults(timezone.now())
    assert fault.kind == "backup.old" and "tank/photos" in fault.summary


def test_backup_that_never_ran_is_an_alert_after_its_days():
    box(photos(TASK), safe=False)
    assert list(backups.backup_faults(timezone.now())) == []
    backups.start_due_backups()
    BackupRecord.objects.update(since=timezone.now() - timedelta(days=3))
    (fault,) = backups.backup_faults(timezone.now())
    assert "There is no copy yet." in fault.detail


def with_new_folder(*, safe: bool = True) -> None:
    """Two folders of a tree have copies of now; a new one has none."""
    one, trip = photos(TASK), dataset("tank/photos/trip", guid=6)
    copies_there = (copy_of(photos(), "safe/backups/photos", COPY), copy_of(trip, "safe/backups/photos/trip", 56))
    box(one, trip, dataset("tank/photos/2026", guid=7), *(copies_there if safe else ()), safe=safe)
    if not safe:
        return
    for number, (name, key) in enumerate((("safe/backups/photos", COPY), ("safe/backups/photos/trip", 56))):
        copied(name, key, timezone.now(), SnapshotRow.objects.count() + 10 + number)


def test_folder_that_is_never_copied_is_an_alert_after_the_days_of_its_backup(web, time_machine):
    """Its siblings are copied every day, so that nothing else is old."""
    with_new_folder()
    backups.start_due_backups()
    assert list(backups.backup_faults(timezone.now())) == []
    time_machine.shift(timedelta(days=2, hours=1))
    with_new_folder()
    backups.start_due_backups()
    (fault,) = backups.backup_faults(timezone.now())
    assert fault.kind == "backup.old" and fault.summary == "The backup of tank/photos is incomplete."
    assert "tank/photos/2026" in fault.detail and "tank/photos/trip" not in fault.detail
    Job.objects.all().delete()
    assert (only().state, only().word) == ("attention", "incomplete")
    said = " ".join(Page(web.get(f"/backups/of/{PHOTOS}/0123abcd/")).text.split())
    assert "Not copied yet: tank/photos/2026" in said and "Some folders have no copy yet." in said


def test_folder_that_is_never_copied_stays_an_alert_while_the_disks_are_away(time_machine):
    with_new_folder()
    backups.start_due_backups()
    time_machine.shift(timedelta(days=2, hours=1))
    with_new_folder()
    backups.start_due_backups()
    with_new_folder(safe=False)
    backups.start_due_backups()
    (fault,) = backups.backup_faults(timezone.now())
    assert "tank/photos/2026" in fault.detail and "not connected" in fault.detail
    box(photos(TASK), dataset("tank/photos/trip", guid=6), safe=False)  # somebody destroyed it
    assert list(backups.backup_faults(timezone.now())) == []


def test_folder_that_was_copied_at_last_is_no_alert_any_more(time_machine):
    with_new_folder()
    backups.start_due_backups()
    time_machine.shift(timedelta(days=3))
    with_new_folder()
    new = copy_of(dataset("tank/photos/2026", guid=7), "safe/backups/photos/2026", 57)
    rows.put(datasets=[*store.facts().datasets, new])
    assert [fault.kind for fault in backups.backup_faults(timezone.now())] == ["backup.old"]
    copied("safe/backups/photos/2026", 57, timezone.now(), 99)
    backups.start_due_backups()
    assert list(backups.backup_faults(timezone.now())) == [] and BackupRecord.objects.get().proof == {}


def test_folder_that_was_moved_into_a_backup_is_not_late_at_once():
    """How old it is says nothing of how long its copy has been missing."""
    with_new_folder()
    BackupRecord.objects.update(since=timezone.now() - timedelta(days=300))
    backups.start_due_backups()
    assert list(backups.backup_faults(timezone.now())) == []


def test_disk_that_is_in_a_drawer_is_no_alert_within_its_days():
    drawer = BackupTask(key="0123abcd", pool=SAFE, path="backups/photos", days=30)
    box(photos(drawer), copy_of(photos(), "safe/backups/photos", COPY))
    copied("safe/backups/photos", COPY, timezone.now() - timedelta(days=12))
    backups.start_due_backups()
    box(photos(drawer), safe=False)
    assert list(backups.backup_faults(timezone.now())) == []


def test_nothing_is_written_down_while_nothing_changes(good):
    backups.start_due_backups()
    with CaptureQueriesContext(connection) as seen:
        backups.start_due_backups()
    assert not [one for one in seen.captured_queries if not one["sql"].startswith("SELECT")]


def test_removed_task_is_forgotten_and_one_that_left_with_its_pool_is_not(good):
    backups.start_due_backups()
    rows.put(datasets=[dataset("safe", guid=2)])
    backups.start_due_backups()
    assert BackupRecord.objects.count() == 1
    box(photos())
    backups.start_due_backups()
    assert BackupRecord.objects.count() == 0


def test_task_cannot_be_made_from_nonsense():
    for wrong in ({"key": "x"}, {"pool": -1}, {"hour": 24}, {"days": 0}):
        with pytest.raises(Refused):
            BackupTask(**{"key": "0123abcd", "pool": 1, "path": "backups/a", **wrong})  # type: ignore[arg-type]


def test_copies_are_links_to_their_files(web, good):
    row = SnapshotRow.objects.get()
    assert f"/snapshots/of/{COPY}/{row.guid}/files/" in web.get(f"/backups/of/{PHOTOS}/0123abcd/").content.decode()


def test_record_that_cannot_be_written_keeps_no_backup_from_being_made(monkeypatch):
    box(photos(TASK))

    def fail(_one: status.BackupStatus) -> None:
        raise OSError("no space")

    monkeypatch.setattr(backups, "remember", fail)
    with pytest.raises(guard.PartlyFailed, match="tank/photos"):
        backups.start_due_backups()
    assert Job.objects.filter(kind="run-backup").exists()


def test_copy_that_cannot_be_continued_is_set_aside_from_its_page(web, good):
    rows.job(kind="run-backup", subject="tank/photos", state=Job.State.FAILED, operation='{"key": "0123abcd"}')
    page = web.get(f"/backups/of/{PHOTOS}/0123abcd/").content.decode()
    link = f"/backups/of/{PHOTOS}/0123abcd/aside/{COPY}/"
    assert link in page
    review = Page(web.get(link)).text
    assert "safe/backups/photos set aside" in review and "Nothing is destroyed" in review


def test_only_a_copy_can_be_set_aside(web, good):
    answer = web.get(f"/backups/of/{PHOTOS}/0123abcd/aside/{PHOTOS}/")
    assert answer.status_code == 409 and codes_on_page(answer) == ["not-a-copy"]


def test_setting_aside_takes_the_mark_away_first_and_then_the_name():
    copy = copy_of(photos(), "safe/backups/photos", COPY)
    facts = facts_of(photos(TASK), copy, dataset("safe/backups/photos set aside 2026-11-23", guid=9))
    operation = SetCopyAside.of(copy, facts, date(2026, 11, 23))
    assert operation.name == "photos set aside 2026-11-23 2"
    plan = checked_plan(operation, facts)
    assert [step.name for step in plan.steps] == ["unmark", "rename"]
    assert not operation.probe("rename", facts)
    moved = replace(copy, name=operation.target, copy_of='{"guid":0,"raw":false}')
    after = Facts(datasets=(moved,))
    assert operation.probe("unmark", after) and operation.probe("rename", after)
    # The next run finds no copy of the folder any more, and makes one.
    assert copies.names_of("safe/backups/photos", photos(), [photos()], after)[PHOTOS] == "safe/backups/photos"
