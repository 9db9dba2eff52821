"""The page that restores a whole folder: what it proposes, what it refuses, and what is reviewed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from appliance import snapshot_names
from appliance.agent.registry import decode_operation
from appliance.backups.origin import Origin
from appliance.backups.restore_folder import RestoreFolder
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Dataset, Property, Snapshot
from tests.reasons import codes_of_form, codes_on_page
from tests.unit.made import dataset
from tests.web import rows
from tests.web.backups.test_backups import COPY, PHOTOS, TASK, box, copied, copy_of, photos
from tests.web.reading import Page
from web.backups import status
from web.backups.restore_views import kept_in, operation_of, proposed_place
from web.inventory.dataset_models import SnapshotRow
from web.jobs.models import Job
from workers import backups, collect_snapshots

URL = f"/backups/copies/{COPY}/restore/"
NEW, OLD = datetime(2026, 11, 22, 2, tzinfo=UTC), datetime(2026, 11, 20, 2, tzinfo=UTC)
ROOT, TRIP = "safe/backups/photos", "safe/backups/photos/trip"


def trip() -> Dataset:
    return copy_of(dataset("tank/photos/trip", guid=6), TRIP, 56)


@pytest.fixture
def two() -> None:
    """The original is there; its copy has two moments, and of the folder below it only the newer one."""
    box(photos(TASK), copy_of(photos(), ROOT, COPY), trip())
    for number, at in ((1, OLD), (2, NEW)):
        copied(ROOT, COPY, at, number)
    copied(TRIP, 56, NEW, 3)


@pytest.fixture
def gone() -> None:
    """The original is no longer there."""
    box(copy_of(photos(), ROOT, COPY))
    copied(ROOT, COPY, NEW)


def short_of(at: datetime) -> str:
    return snapshot_names.name_for(snapshot_names.BACKUP, at)


def answers(at: datetime = NEW, **changes: str) -> dict[str, str]:
    return {"snapshot": short_of(at), "parent": "tank", "name": "photos-restored", **changes}


def test_pages_of_the_backup_and_of_the_copy_lead_to_it(web, two):
    assert URL in web.get(f"/backups/of/{PHOTOS}/0123abcd/").content.decode()
    assert URL in web.get(f"/folders/{COPY}/").content.decode()
    assert "Restore this folder" not in web.get(f"/folders/{PHOTOS}/").content.decode()


def test_newest_moment_and_a_name_beside_the_original_are_proposed(web, two):
    page = web.get(URL).content.decode()
    assert page.index(short_of(NEW)) < page.index(short_of(OLD))
    assert 'value="photos-restored"' in page
    assert '<option value="tank" selected>' in page
    assert "safe/backups" not in page.partition('name="parent"')[2].partition("</select>")[0]


def test_own_name_in_another_pool_is_proposed_where_the_original_is_gone(web, gone):
    page = web.get(URL).content.decode()
    assert 'value="photos"' in page and '<option value="tank" selected>' in page


def test_place_of_the_original_is_proposed_where_the_copy_remembers_it(web):
    noted = {"larder:origin": Property(Origin(name="tank/family/holidays").text, "local")}
    copy = replace(copy_of(photos(), ROOT, COPY), properties=noted)
    box(copy, dataset("tank/family", guid=8))
    assert proposed_place(copy, status.read_facts()) == ("tank/family", "holidays")
    box(copy)  # the folder that it was in is gone as well
    assert proposed_place(copy, status.read_facts()) == ("tank", "photos")


def test_copies_without_their_folder_are_listed_and_lead_to_it(web, two):
    assert "Copies without their folder" not in Page(web.get("/backups/")).text
    aside = dataset("safe/backups/old photos", guid=90, copy_of=CopyMark(0, raw=False).text)
    box(
        copy_of(photos(), ROOT, COPY),
        trip(),
        aside,
        dataset("safe/backups", guid=9, copy_of=CopyMark(0, raw=False).text),
    )
    page = web.get("/backups/").content.decode()
    assert URL in page and "/backups/copies/90/restore/" in page
    assert "/backups/copies/56/" not in page and "/backups/copies/9/" not in page


def test_proposed_name_is_free(two):
    box(photos(TASK), copy_of(photos(), ROOT, COPY), dataset("tank/photos-restored", guid=8))
    facts = status.read_facts()
    assert proposed_place(copy_of(photos(), ROOT, COPY), facts) == ("tank", "photos-restored-2")


def test_review_has_every_folder_of_that_moment(web, two):
    answer = web.post(URL, answers())
    text = Page(answer).text
    assert answer.status_code == 200
    assert f"{ROOT} and 1 below it" in text and "tank/photos-restored" in text
    assert "tank/photos is still there and stays as it is" in text
    assert "shares, snapshot schedule, backups" in text


def test_folder_without_a_copy_of_that_moment_is_left_out_and_named(web, two):
    text = Page(web.post(URL, answers(OLD))).text
    assert f"Left out, since there is no copy of that moment or an earlier one: {TRIP}" in text


def test_folder_in_which_nothing_had_changed_since_comes_back_with_its_date(web):
    box(photos(TASK), copy_of(photos(), ROOT, COPY), trip())
    for number, at in ((1, OLD), (2, NEW)):
        copied(ROOT, COPY, at, number)
    copied(TRIP, 56, OLD, 3)  # the later backup sent nothing of it
    text = Page(web.post(URL, answers())).text
    assert f"{ROOT} and 1 below it" in text and "Left out" not in text
    assert f"As of an earlier copy {TRIP} (20 November 2026" in text
    assert "everything as it was on 22 November 2026" in text


def brought(review: HttpResponse) -> dict[str, str]:
    """What the reviewed restore brings: of each folder the name of its snapshot."""
    operation = decode_operation(review.context["operation_json"])  # type: ignore[attr-defined]  # of the test client
    assert isinstance(operation, RestoreFolder)
    return dict(name.split("@") for name, _guid in operation.snapshots)


def test_newest_moment_is_that_of_the_folder_below_that_was_copied_last(web):
    """A backup sends nothing of a folder in which nothing has changed, so the top may have no
    copy of the newest moments."""
    box(photos(TASK), copy_of(photos(), ROOT, COPY), trip())
    copied(ROOT, COPY, OLD, 1)
    copied(TRIP, 56, OLD, 2)
    copied(TRIP, 56, NEW, 3)
    options = web.get(URL).content.decode()
    assert options.index(short_of(NEW)) < options.index("(newest)") < options.index(short_of(OLD))
    page = web.post(URL, answers())
    assert brought(page) == {ROOT: short_of(OLD), TRIP: short_of(NEW)}
    text = Page(page).text
    assert "everything as it was on 22 November 2026" in text
    assert f"As of an earlier copy {ROOT} (20 November 2026" in text and f"{TRIP} (" not in text
    assert brought(web.post(URL, answers(OLD))) == {ROOT: short_of(OLD), TRIP: short_of(OLD)}


def test_folder_below_of_which_only_newer_copies_are_kept_comes_back(web):
    box(photos(TASK), copy_of(photos(), ROOT, COPY), trip())
    copied(ROOT, COPY, OLD, 1)
    copied(TRIP, 56, NEW, 2)
    page = web.post(URL, answers())
    assert brought(page) == {ROOT: short_of(OLD), TRIP: short_of(NEW)}
    assert "Left out" not in Page(page).text


def test_folder_among_copies_that_is_none_gives_no_moment(web):
    box(photos(TASK), copy_of(photos(), ROOT, COPY), dataset(TRIP, guid=56))
    copied(ROOT, COPY, OLD, 1)
    copied(TRIP, 56, NEW, 2)
    assert short_of(NEW) not in web.get(URL).content.decode()
    assert web.post(URL, answers()).status_code == 400


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"name": "photos"}, "dataset-exists"), ({"name": "../etc"}, "folder-name-invalid")],
)
def test_name_that_is_taken_or_none_is_refused_in_the_form(web, two, changes, code):
    answer = web.post(URL, answers(**changes))
    assert answer.status_code == 400
    assert codes_of_form(answer, "name") == [code]
    assert not Job.objects.exists()


def test_place_among_copies_or_a_moment_of_another_copy_is_no_choice(web, two):
    assert web.post(URL, answers(parent="safe/backups")).status_code == 400
    assert web.post(URL, {**answers(), "snapshot": "12"}).status_code == 400


def test_folder_without_room_is_refused_with_numbers(web, two):
    SnapshotRow.objects.all().delete()
    collect_snapshots.row_of(str(COPY), Snapshot(f"{ROOT}@s", 12, 1, NEW, referenced=2**50)).save()
    answer = web.post(URL, {**answers(), "snapshot": "s"})
    assert answer.status_code == 400
    assert "It needs about" in Page(answer).text


def test_what_is_no_copy_cannot_be_restored(web, two):
    answer = web.get(f"/backups/copies/{PHOTOS}/restore/")
    assert answer.status_code == 409 and codes_on_page(answer) == ["not-a-copy"]
    assert web.get("/backups/copies/999/restore/").status_code == 404


def test_home_of_copies_is_no_copy(web):
    box(photos(), dataset("safe/backups", guid=9, copy_of=CopyMark(0, raw=False).text))
    assert codes_on_page(web.get("/backups/copies/9/restore/")) == ["not-a-copy"]


def test_copy_on_which_nothing_has_arrived_says_so(web):
    box(photos(TASK), copy_of(photos(), ROOT, COPY))
    assert "No complete copy yet" in Page(web.get(URL)).text


def test_queries_do_not_grow_with_folders_and_moments(web, two):
    web.get(URL)
    with CaptureQueriesContext(connection) as few:
        web.post(URL, answers())
    more = [copy_of(dataset(f"tank/photos/{n}", guid=100 + n), f"{ROOT}/{n}", 200 + n) for n in range(20)]
    box(photos(TASK), copy_of(photos(), ROOT, COPY), trip(), *more)
    for number, one in enumerate(more):
        copied(one.name, one.guid, NEW, 10 + number)
    for number in range(20):
        copied(ROOT, COPY, OLD - timedelta(days=number + 1), 50 + number)
    with CaptureQueriesContext(connection) as many:
        web.post(URL, answers())
    assert len(many) == len(few)


def test_restored_folder_is_linked_when_the_job_is_done(web, gone):
    copy, facts = copy_of(photos(), ROOT, COPY), status.read_facts()
    operation = operation_of(copy, kept_in(copy, facts), answers(name="photos"))
    assert isinstance(operation, RestoreFolder)
    job = rows.job(kind="restore-folder", subject=operation.subject, state=Job.State.DONE)
    assert "/folders/77/" not in web.get(f"/jobs/{job.pk}/").content.decode()
    box(copy_of(photos(), ROOT, COPY), dataset("tank/photos", guid=77))
    assert "/folders/77/" in web.get(f"/jobs/{job.pk}/").content.decode()


def test_no_backup_begins_while_a_folder_is_restored(two):
    rows.job(kind="restore-folder", subject="tank/photos-restored", state=Job.State.RUNNING)
    assert backups.start_due_backups() is None
