"""The administrator's password on review pages, and jobs that wait for want of it: pages,
worker, and the agent itself."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from appliance import agent_client
from appliance.agent import delayed_jobs, proof
from appliance.alerts.kinds import KINDS
from appliance.errors import Failed
from appliance.facts.box import Disk
from tests.reasons import codes_on_page
from tests.unit.made import OLD, dataset, disk
from tests.web import rows
from tests.web.conftest import ADDRESS, PASSWORD
from tests.web.reading import Page, text_of
from tests.web.routes import PHOTOS
from web.inventory.dataset_models import SnapshotRow
from web.jobs.models import Job
from workers import run_job
from workers.alerts import evaluate_alerts

pytestmark = pytest.mark.usefixtures("agent_in_process", "calm")
CONFIRM = "/jobs/confirm/"
State = Job.State


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The agent's clock, which the test moves."""
    now = [100.0]
    monkeypatch.setattr(delayed_jobs, "clock", lambda: now[0])
    monkeypatch.setattr(delayed_jobs, "boot", lambda: "one")
    monkeypatch.setattr(run_job, "_mine", set())
    monkeypatch.setattr(run_job, "_sent", {})
    for name in (
        "collectors.collect_now",
        "collect_importable.search_after_job",
        "collect_dataset.reread_after_job",
        "benchmarks.continue_after_job",
        "collect_snapshots.doubt_snapshots",
    ):
        monkeypatch.setattr(f"workers.{name}", lambda *_words: None)
    return now


@pytest.fixture
def full() -> Disk:
    """A disk with data; erasing it needs the password."""
    rows.empty_box(1, disk(7, uses=(OLD,)))
    return disk(7, uses=(OLD,))


def review(web, full: Disk) -> Page:
    key = full.path.rsplit("/", 1)[-1]
    page = Page(web.get(f"/disks/{key}/wipe/", {"how": "quick", "review": "1"}))
    assert page.form(CONFIRM)
    return page


def confirm(web, page: Page, **answers: str):
    serial = json.loads(page.form(CONFIRM).data["operation"])["disk"].rsplit("_", 1)[-1]
    return web.post(CONFIRM, {**page.form(CONFIRM).data, "typed": serial, **answers})


def known(password: str = PASSWORD) -> None:
    proof.store_hash(password)


def test_the_review_of_what_destroys_asks_for_the_password_and_others_do_not(web, full):
    fields = {one.get("name"): one for name, one in review(web, full).elements if name == "input"}
    assert fields["password"]["type"] == "password"
    assert fields["password"]["autocomplete"] == "current-password"
    asked = {"step": "review", "name": "tank", "layout": "stripe", "disks": [disk(1).path]}
    harmless = Page(web.get("/pools/new/", asked))
    assert "password" not in {one.get("name") for name, one in harmless.elements if name == "input"}


def test_the_right_password_proves_this_very_job(web, full, agent_in_process):
    known()
    page = review(web, full)
    response = confirm(web, page, password=PASSWORD)
    job = Job.objects.get()
    assert response["Location"] == f"/jobs/{job.pk}/"
    assert proof.proof_file(str(job.pk)).exists()
    assert [one["verb"] for one in agent_in_process] == ["prove"]
    assert PASSWORD not in str(Job.objects.values().get())


def test_a_wrong_password_is_said_at_its_field_and_nothing_is_started(web, full):
    known()
    response = confirm(web, review(web, full), password="wrong words")
    page = Page(response)
    assert response.status_code == 400
    assert "not the administrator's password" in page.text
    assert page.field_error("password")
    assert not Job.objects.exists()
    assert "wrong words" not in response.content.decode()
    assert confirm(web, page, password=PASSWORD).status_code == 302  # the same page, the same job


def test_a_password_is_not_tried_while_something_else_is_missing(web, full):
    known()
    for _time in range(8):
        assert confirm(web, review(web, full), typed="", password="wrong words").status_code == 400
    assert proof.tries() == (0, 0.0)


def test_too_many_wrong_passwords_are_said_and_without_one_it_still_waits(web, full):
    known()
    for _time in range(proof.FREE_TRIES):
        confirm(web, review(web, full), password="wrong words")
    response = confirm(web, review(web, full), password=PASSWORD)
    assert codes_on_page(response) == ["password-wrong-too-often"]
    assert not Job.objects.exists()
    assert confirm(web, review(web, full), password="").status_code == 302


def test_an_agent_out_of_reach_is_said_and_nothing_is_started(web, full, monkeypatch):
    def silent(*_words, **_more):
        raise Failed("Larder's agent does not answer", "it is not running")

    monkeypatch.setattr(agent_client, "stream_replies", silent)
    response = confirm(web, review(web, full), password=PASSWORD)
    assert codes_on_page(response) == ["password-not-checked"]
    assert not Job.objects.exists()


def test_the_same_form_sent_twice_is_one_job(web, full):
    known()
    page = review(web, full)
    assert len({confirm(web, page, password=PASSWORD)["Location"] for _time in range(2)}) == 1
    assert Job.objects.count() == 1


# --- who knows the password ---------------------------------------------------------------------------------------
def test_first_set_up_makes_the_agent_know_the_password(anonymous):
    from web.accounts import first_run

    code = first_run.make_code()
    answers = {"code": code, "username": "admin", "password": PASSWORD, "again": PASSWORD}
    assert anonymous.post("/setup/", answers).status_code == 302
    proof.check(PASSWORD)


def test_the_first_sign_in_after_an_update_makes_it_known_and_later_ones_ask_nothing(
    anonymous, admin, agent_in_process
):
    for password in ("wrong words", PASSWORD, PASSWORD):
        anonymous.post("/login/", {"login": "admin", "password": password})
        anonymous.post("/logout/")
    proof.check(PASSWORD)
    assert [one["verb"] for one in agent_in_process] == ["keep-password"]


def test_the_first_password_typed_on_a_review_makes_it_known_and_only_if_it_is_right(web, full):
    assert codes_on_page(confirm(web, review(web, full), password="wrong words")) == ["password-not-yours"]
    assert not proof.is_set()
    assert confirm(web, review(web, full), password=PASSWORD).status_code == 302
    proof.check(PASSWORD)


def test_a_changed_password_is_the_agent_s_too(web, admin):
    known()
    answers = {"old_password": PASSWORD, "new_password1": "another long word", "new_password2": "another long word"}
    assert web.post("/account/password/", answers).status_code == 302
    proof.check("another long word")


def test_a_change_that_the_settings_disk_did_not_take_can_be_made_again(web, admin, monkeypatch):
    known()
    answers = {"old_password": PASSWORD, "new_password1": "another long word", "new_password2": "another long word"}

    def refuse(*_words: object, **_more: object) -> None:
        raise OperationalError("database or disk is full")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(type(admin), "save", refuse)
        with pytest.raises(OperationalError):
            web.post("/account/password/", answers)
    admin.refresh_from_db()
    assert admin.check_password(PASSWORD)
    assert web.post("/account/password/", answers).status_code == 302
    admin.refresh_from_db()
    assert admin.check_password("another long word")
    proof.check("another long word")


def test_where_the_agent_does_not_take_the_new_password_the_old_one_stays(web, admin):
    known("an older password")
    answers = {"old_password": PASSWORD, "new_password1": "another long word", "new_password2": "another long word"}
    response = web.post("/account/password/", answers)
    assert "The password stays as it was" in text_of(response)
    admin.refresh_from_db()
    assert admin.check_password(PASSWORD)


# --- waiting ------------------------------------------------------------------------------------------------------
@pytest.fixture
def waiting(web, full) -> Job:
    """A job that was confirmed without the password and handed to the agent."""
    confirm(web, review(web, full))
    run_job.run_job(str(Job.objects.get().pk))
    return Job.objects.get()


def test_without_the_password_the_job_waits_and_its_page_says_until_when(web, waiting):
    assert waiting.state == State.WAITING
    assert waiting.starts and waiting.starts > timezone.now()
    assert not waiting.worker
    text = text_of(web.get(f"/jobs/{waiting.pk}/"))
    assert "Waiting: starts at" in text
    assert "Cancel" in text
    assert "Waiting: starts at" in text_of(web.get("/"))


def test_the_worker_sends_a_waiting_job_when_it_starts_and_not_before(waiting, monkeypatch):
    assert run_job.jobs_to_start() == []
    Job.objects.update(starts=timezone.now() - timedelta(seconds=1))
    assert run_job.jobs_to_start() == [str(waiting.pk)]


def test_a_worker_that_is_ahead_of_the_agent_does_not_shorten_the_wait(waiting, clock):
    for _time in range(3):
        run_job.run_job(str(waiting.pk))
        assert Job.objects.get().state == State.WAITING
    clock[0] += delayed_jobs.MINUTES * 60 + 1
    run_job.run_job(str(waiting.pk))
    assert Job.objects.get().state not in {State.WAITING, State.QUEUED}


def test_a_waiting_job_is_cancelled_on_its_page(web, waiting, clock, calm):
    assert web.post(f"/jobs/{waiting.pk}/stop/").status_code == 302
    assert calm[-1] == ("workers.run_job", str(waiting.pk))
    run_job.run_job(str(waiting.pk))
    assert (Job.objects.get().state, Job.objects.get().text) == (State.CANCELLED, delayed_jobs.CANCELLED)


def test_a_job_cancelled_at_the_console_is_heard_of_by_the_worker(waiting):
    delayed_jobs.cancel(str(waiting.pk))
    assert run_job.jobs_to_start() == [str(waiting.pk)]
    run_job.run_job(str(waiting.pk))
    assert Job.objects.get().state == State.CANCELLED


def test_a_worker_that_died_hears_that_the_job_waits(waiting):
    Job.objects.update(state=State.RUNNING, worker="gone", starts=None)
    run_job.run_job(str(waiting.pk))
    assert Job.objects.get().state == State.WAITING


def test_what_waits_is_an_alert_with_the_page_on_which_it_is_cancelled(waiting):
    ((told, page),) = evaluate_alerts.waiting_jobs()
    assert (told.job, page) == (str(waiting.pk), f"/jobs/{waiting.pk}/")
    assert KINDS["job.waiting"].severity == "critical"


def test_what_nobody_asked_for_on_the_pages_is_shown_there_and_can_be_cancelled(web, anonymous, waiting):
    pk = waiting.pk
    Job.objects.all().delete()
    assert "Nobody asked for this on these pages" in text_of(web.get("/jobs/"))
    assert next(iter(evaluate_alerts.waiting_jobs()))[1] == "/jobs/"
    assert anonymous.post(f"/jobs/{pk}/stop/")["Location"].startswith("/login/")
    assert web.get(f"/jobs/{pk}/stop/").status_code == 405
    assert delayed_jobs.waiting_jobs()
    assert web.post(f"/jobs/{pk}/stop/")["Location"] == "/jobs/"
    assert delayed_jobs.waiting_jobs() == ()
    assert web.post(f"/jobs/{pk}/stop/").status_code == 404


def test_cancelling_needs_the_token_of_the_form(strict, waiting):
    assert strict.post(f"/jobs/{waiting.pk}/stop/", **ADDRESS).status_code == 403
    assert delayed_jobs.waiting_jobs()


# --- acts without a review page of their own ------------------------------------------------------------------------
def test_an_export_with_root_goes_over_a_review_that_asks_for_the_password(web):
    photos = dataset("tank/photos")
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[dataset("tank"), photos], disks=[], shares=[])
    answers = {"hosts": "192.168.1.0/24", "write": "on", "sync": "on", "root": "on"}
    page = Page(web.post(f"/shares/{photos.guid}/nfs/", answers))
    assert "Your password" in page.text
    assert not Job.objects.exists()
    assert web.post(CONFIRM, page.form(CONFIRM).data).status_code == 302
    assert json.loads(Job.objects.get().operation)["nfs"]["root"] is True


def test_switching_on_an_export_that_has_root_goes_over_a_review(web):
    share = json.dumps({"nfs": {"hosts": ["192.168.1.0/24"], "root": True}})
    photos = dataset("tank/photos", share=share, share_source="local")
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[dataset("tank"), photos], disks=[], shares=[])
    assert "Your password" in text_of(web.post(f"/folders/{photos.guid}/switch/nfs/on/"))
    assert not Job.objects.exists()


def test_releasing_a_held_snapshot_goes_over_a_review(web, box):
    row = SnapshotRow.objects.filter(dataset_key=str(PHOTOS)).get()
    SnapshotRow.objects.filter(pk=row.pk).update(holds=1)
    page = Page(web.post(f"/snapshots/of/{row.dataset_key}/{row.guid}/release/"))
    assert "Your password" in page.text
    assert web.post(CONFIRM, page.form(CONFIRM).data).status_code == 302
    assert "release-snapshot" in set(Job.objects.values_list("kind", flat=True))
