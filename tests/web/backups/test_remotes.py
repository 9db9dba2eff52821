"""Pages of other computers that backups go to, and the worker's part in copies that lie there."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance import snapshot_names
from appliance.agent.registry import decode_operation
from appliance.backups import run_mark, tasks
from appliance.backups.remote.instructions import SCRIPT
from appliance.backups.remote.send_backup import COMPLETE, SendBackup
from appliance.backups.remote.set_up import AddRemote, TestRemote
from appliance.backups.tasks import BackupTask
from appliance.facts.remote import Remote, fingerprint_of
from appliance.operation import Operation, as_json
from tests.unit.made import dataset, disk
from tests.web import rows
from tests.web.reading import Page
from tests.web.rows import HOST_KEY, OTHER_HOST_KEY, REMOTE
from tests.web.system.test_queries import queries
from web.backups import status
from web.backups.models import BackupRecord
from web.inventory import store
from web.inventory.models import PoolRow
from web.jobs.models import Job
from workers import backups

PHOTOS = 5
TASK = BackupTask(key="0123abcd", pool=0, remote=REMOTE.id, path="photos")
PAGE = f"/backups/computers/{REMOTE.id}/"
BACKUP = f"/backups/of/{PHOTOS}/0123abcd/"
ANSWERS = {
    "pool": f"computer-{REMOTE.id}",
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


def box(*found: BackupTask, remote: Remote | None = REMOTE) -> None:
    photos = dataset("tank/photos", guid=PHOTOS, used=10**9, backup=tasks.encode_tasks(found), backup_source="local")
    rows.put(
        pools=[rows.pool_of("tank", 1000, disk(1), disk(2))],
        datasets=[dataset("tank", guid=1), photos if found else replace(photos, backup="", backup_source="none")],
        disks=[],
        accounts=[],
        shares=[],
    )
    rows.put_remotes(*([remote] if remote else ()))
    for task in found:
        BackupRecord.objects.get_or_create(
            dataset_key=str(PHOTOS), task=task.key, defaults={"since": timezone.now() - timedelta(hours=1)}
        )
    store.checked("snapshots", changed=True)


def only() -> status.BackupStatus:
    (found,) = status.read_statuses(status.read_facts())
    return found


def ended_run(at: datetime, *left: int, state: str = Job.State.DONE) -> Job:
    """A run to the computer that has ended."""
    operation = SendBackup(
        dataset="tank/photos", key="0123abcd", remote=REMOTE.id, moment=snapshot_names.format_moment(at)
    )
    mark = run_mark.mark_of(operation.moment, at, left)
    assert mark
    made = rows.planned(operation)
    Job.objects.filter(pk=made.pk).update(state=state, finished=at, log=["one", f"{COMPLETE}{mark.text}", "two"])
    return Job.objects.get(pk=made.pk)


def operation_of(model: type[Operation]) -> Any:
    found = decode_operation(Job.objects.latest("created").operation)
    assert isinstance(found, model)
    return found


# --- the pages of computers -----------------------------------------------------------------------------------------
def test_no_computer_yet_says_what_it_is_good_for(web):
    box(remote=None)
    page = Page(web.get("/backups/computers/"))
    assert "No other computer yet" in page.text and "Add a computer" in page.text


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "ready"),
        ({"host_key": "", "offered_key": HOST_KEY}, "not confirmed"),
        ({"offered_key": OTHER_HOST_KEY}, "key changed"),
        ({"tested": None}, "not tested yet"),
        ({"problem": "attic.lan, port 22 cannot be reached"}, "not ready"),
    ],
)
def test_each_computer_is_listed_with_its_state(web, changes, word):
    box(remote=replace(REMOTE, **changes))
    assert word in Page(web.get("/backups/computers/")).text
    assert word in Page(web.get(PAGE)).text


def test_page_shows_each_thing_that_is_done_there(web):
    box(remote=replace(REMOTE, host_key="", offered_key=HOST_KEY, tested=None))
    response = web.get(PAGE)
    page = Page(response)
    assert fingerprint_of(HOST_KEY) in page.text
    assert 'restrict,command="/usr/local/lib/larder-peer tank/attic" ssh-ed25519 CCC' in page.text
    assert "zfs allow -u larder-backup create,mount,receive:append,userprop,send tank/attic" in page.text
    assert "zfs create -o canmount=off -o mountpoint=none -o readonly=on" in page.text
    assert "cannot destroy what is there" in page.text
    assert "Nothing else is" not in page.text and "set -fu" in page.text


def test_script_is_downloaded_as_it_is(web):
    response = web.get("/backups/computers/larder-peer/")
    assert response.content == SCRIPT.read_bytes()
    assert "attachment" in response["Content-Disposition"] and response["Content-Type"].startswith("text/plain")


def test_what_the_last_test_said_is_on_the_page(web):
    box(remote=replace(REMOTE, problem="<b>userprop is missing</b>"))
    response = web.get(PAGE)
    assert "<b>userprop" not in response.content.decode() and "userprop is missing" in Page(response).text


def test_other_host_key_shows_both_and_leads_to_a_review(web):
    box(remote=replace(REMOTE, offered_key=OTHER_HOST_KEY))
    page = Page(web.get(PAGE))
    assert fingerprint_of(HOST_KEY) in page.text and fingerprint_of(OTHER_HOST_KEY) in page.text
    review = Page(web.get(f"{PAGE}host-key/"))
    assert "Confirm the new one only if you know why it changed" in review.text
    assert 'name="password"' in web.get(f"{PAGE}host-key/").content.decode()


def test_host_key_that_is_confirmed_cannot_be_confirmed_again(web):
    box()
    assert web.get(f"{PAGE}host-key/").status_code == 404


def test_unknown_computer_has_no_page(web):
    box()
    for path in ("", "host-key/", "remove/"):
        assert web.get(f"/backups/computers/1badcafe/{path}").status_code == 404


def test_computer_is_added_by_its_form(web):
    box(remote=None)
    response = web.post(
        "/backups/computers/new/", {"host": "nas.lan", "port": 22, "user": "backup", "root": "tank/attic"}
    )
    assert response.status_code == 302
    made = operation_of(AddRemote)
    assert (made.host, made.port, made.user, made.root) == ("nas.lan", 22, "backup", "tank/attic")


@pytest.mark.parametrize(
    "wrong", [{"host": "-oProxyCommand=id"}, {"user": "a b"}, {"root": "../tank"}, {"port": 0}, {"root": "tank/a b"}]
)
def test_what_is_no_computer_is_refused_with_its_field(web, wrong):
    box(remote=None)
    given = {"host": "nas.lan", "port": 22, "user": "backup", "root": "tank/attic", **wrong}
    assert web.post("/backups/computers/new/", given).status_code == 400
    assert not Job.objects.exists()


def test_same_folder_there_is_refused(web):
    box()
    given = {"host": "attic.lan", "port": 22, "user": "larder-backup", "root": "tank/attic"}
    response = web.post("/backups/computers/new/", given)
    assert response.status_code == 400 and "can already go to that folder" in Page(response).text


def test_test_starts_a_job(web):
    box()
    assert web.post(f"{PAGE}test/").status_code == 302
    assert operation_of(TestRemote).remote == REMOTE.id


def test_computer_in_use_is_not_removed(web):
    box(TASK)
    response = web.get(f"{PAGE}remove/", follow=True)
    assert "is backed up there" in Page(response).text
    assert "tank/photos" in Page(web.get(PAGE)).text


def test_removing_needs_the_password(web):
    box()
    response = web.get(f"{PAGE}remove/")
    assert 'name="password"' in response.content.decode() and "stay" in Page(response).text


# --- backups that go there ------------------------------------------------------------------------------------------
def test_computer_is_among_the_places_to_copy_to(web):
    box()
    page = Page(web.get(f"/backups/of/{PHOTOS}/new/"))
    assert "attic.lan (1 TB free)" in page.text
    response = web.post(f"/backups/of/{PHOTOS}/new/", ANSWERS)
    assert response.status_code == 200
    text = Page(response).text
    assert "tank/attic/photos on attic.lan" in text and "how long they stay is decided on that computer" in text


def test_computer_whose_key_was_not_confirmed_is_none_of_them(web):
    box(remote=replace(REMOTE, host_key="", offered_key=HOST_KEY))
    assert "attic.lan" not in Page(web.get(f"/backups/of/{PHOTOS}/new/")).text
    assert web.post(f"/backups/of/{PHOTOS}/new/", ANSWERS).status_code == 400


def test_name_that_ssh_could_not_carry_is_refused_with_its_field(web):
    box()
    response = web.post(f"/backups/of/{PHOTOS}/new/", {**ANSWERS, "name": "my photos"})
    assert response.status_code == 400 and "On another computer a copy has a name of letters" in Page(response).text


def test_backup_says_where_it_goes_and_can_be_run(web):
    box(TASK)
    page = Page(web.get(BACKUP))
    assert "attic.lan" in page.text and "tank/attic/photos" in page.text and "Back up now" in page.text
    assert "shows only when they are fetched" in " ".join(page.text.split()) and "Scrubbed" not in page.text
    assert "Compare now" not in page.text and "not connected" not in page.text
    assert web.post(f"{BACKUP}run/").status_code == 302
    found = operation_of(SendBackup)
    assert (found.dataset, found.remote) == ("tank/photos", REMOTE.id)
    assert web.post(f"{BACKUP}run/").status_code == 302 and Job.objects.count() == 1


def test_backup_can_be_changed_and_stays_where_it_is(web):
    box(TASK)
    response = web.post(f"{BACKUP}edit/", {**ANSWERS, "every": "weekly"})
    assert response.status_code == 200 and "every Sunday" in Page(response).text


def test_compare_of_a_copy_that_is_elsewhere_is_refused(web):
    box(TASK)
    assert web.post(f"{BACKUP}compare/").status_code == 409
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("remote", "word"), [(None, "removed"), (replace(REMOTE, offered_key=OTHER_HOST_KEY), "key changed")]
)
def test_backup_that_cannot_run_says_why(web, remote, word):
    box(TASK, remote=remote)
    assert only().word == word and only().state == "attention"
    page = Page(web.get(BACKUP))
    assert word in page.text and "Back up now" not in page.text
    assert word in Page(web.get("/backups/")).text


# --- the worker -----------------------------------------------------------------------------------------------------
def test_first_run_starts_without_anybody():
    box(TASK)
    job = backups.start_due_backups()
    assert job and job.kind == "send-backup"
    assert backups.start_due_backups() is None  # one at a time over the network


def test_first_copy_over_the_network_keeps_no_copy_to_a_pool_waiting():
    """It may take days; the disks of this box have nothing to do with it. The same holds the other way round."""
    local = BackupTask(key="89abcdef", pool=2000, path="backups/photos")
    box(TASK, local)
    both = [rows.pool_of("tank", 1000, disk(1), disk(2)), rows.pool_of("safe", 2000, disk(3), disk(4))]
    rows.put(pools=both)
    started = [backups.start_due_backups() for _turn in range(3)]
    assert sorted(job.kind for job in started if job) == ["run-backup", "send-backup"] and started[2] is None
    Job.objects.filter(kind="send-backup").update(state=Job.State.FAILED, created=timezone.now() - timedelta(days=1))
    again = backups.start_due_backups()
    assert again and again.kind == "send-backup" and Job.objects.filter(kind="run-backup", state__in=Job.OPEN).exists()


@pytest.mark.parametrize("there", [REMOTE.id, "00c0ffee"])
def test_run_that_hangs_on_a_stopped_pool_keeps_only_its_own_computer(there):
    """Another run to that computer would wait for its lock, and everything over the network with it."""
    box(TASK)
    stopped = replace(rows.pool_of("gone", 3000, disk(5)), state="SUSPENDED")
    rows.put(pools=[*(one.fact for one in PoolRow.objects.all()), stopped])
    hangs = SendBackup(
        dataset="gone/films", key="feed5678", remote=there, moment=snapshot_names.format_moment(timezone.now())
    )
    Job.objects.create(
        kind="send-backup", subject="gone/films", operation=as_json(hangs), backup=hangs.key, state=Job.State.RUNNING
    )
    job = backups.start_due_backups()
    assert (job is None) is (there == REMOTE.id)


def test_complete_run_is_remembered_and_the_next_is_due_tomorrow():
    box(TASK)
    at = timezone.now().replace(microsecond=0) - timedelta(minutes=5)
    ended_run(at)
    assert backups.start_due_backups() is None
    assert only().good == at and only().word == "good"
    assert BackupRecord.objects.get().pool_name == "attic.lan"


def test_run_that_left_a_folder_out_is_no_good_copy():
    box(TASK)
    ended_run(timezone.now() - timedelta(minutes=5), 6, state=Job.State.FAILED)
    backups.start_due_backups()
    assert only().good is None and only().word == "last run failed"


def test_failed_run_is_tried_again_after_a_rest(time_machine):
    box(TASK)
    job = ended_run(timezone.now(), 6, state=Job.State.FAILED)
    Job.objects.filter(pk=job.pk).update(created=timezone.now())
    assert backups.start_due_backups() is None
    time_machine.shift(timedelta(minutes=16))
    assert backups.start_due_backups() is not None


def test_copy_that_is_too_old_and_another_host_key_are_faults():
    box(TASK, remote=replace(REMOTE, offered_key=OTHER_HOST_KEY))
    BackupRecord.objects.update(since=timezone.now() - timedelta(days=9))
    found = {fault.kind: fault for fault in backups.backup_faults(timezone.now())}
    assert set(found) == {"backup.old", "backup.host-key"}
    assert "attic.lan shows another host key" in found["backup.host-key"].summary
    assert found["backup.host-key"].link == PAGE


def test_nothing_is_started_to_a_computer_that_shows_another_key():
    box(TASK, remote=replace(REMOTE, offered_key=OTHER_HOST_KEY))
    assert backups.start_due_backups() is None
    assert not Job.objects.exists()


def test_pages_read_no_more_rows_with_more_computers(web):
    box(TASK)
    for path in ("/backups/", "/backups/computers/", PAGE):
        web.get(path)
        few = len(queries(web, path))
        rows.put_remotes(REMOTE, *(replace(REMOTE, id=f"{number:08x}", root=f"tank/{number}") for number in range(9)))
        assert len(queries(web, path)) == few
        rows.put_remotes(REMOTE)
