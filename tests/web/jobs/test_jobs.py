from __future__ import annotations

import uuid

import pytest
from django.utils import timezone

from appliance import agent_client
from appliance.errors import Failed, Reason, Refused
from appliance.operation import Plan, Step
from appliance.system import paths
from tests.unit.made import dataset
from tests.web import rows
from tests.web.reading import Page, text_of
from tests.web.routes import ELSEWHERE
from web.inventory.models import Progress
from web.jobs import confirm
from web.jobs.models import Job

State = Job.State


def test_all_jobs_are_listed_the_newest_first_fifty_on_a_page(web, calm):
    for number in range(60):
        rows.job(title=f"Create the folder tank/f{number}")
    first, second = text_of(web.get("/jobs/")), text_of(web.get("/jobs/?page=2"))
    assert first.index("tank/f59 ") < first.index("tank/f10 ")
    assert "tank/f9 " not in first
    assert "tank/f9 " in second
    assert "Page 2 of 2" in second


@pytest.mark.parametrize(("state", "word"), [(state.value, state.label) for state in State])
def test_every_state_has_its_word_on_both_pages(web, calm, state, word):
    job = rows.job(state=state, text="What became of it.")
    assert word.lower() in text_of(web.get("/jobs/")).lower()
    page = text_of(web.get(f"/jobs/{job.pk}/"))
    assert word.lower() in page.lower()
    assert job.open or "What became of it." in page


def test_a_job_shows_its_plan_its_commands_what_was_done_and_what_the_system_said(web, calm):
    job = rows.job(
        state=State.FAILED, done=["create"], log=["cannot create 'tank/films': out of space"], text="It failed."
    )
    page = Page(web.get(f"/jobs/{job.pk}/"))
    for words in (
        "The folder tank/films: photos.",
        "zfs create -- tank/films",
        "Done: Create tank/films",
        "out of space",
        "It failed.",
        "by admin",
        str(job.pk),
    ):
        assert words in page.text


@pytest.mark.parametrize("state", [state.value for state in State])
def test_only_what_is_done_is_told_as_done_in_a_heading(web, calm, state):
    job = rows.job(state=state, starts=timezone.now())
    page = web.get(f"/jobs/{job.pk}/").content.decode()
    assert ('<h2 id="steps-title">The folder tank/films: photos.</h2>' in page) is (state == State.DONE)
    assert "The folder tank/films: photos." in page


def test_a_job_under_way_shows_how_far_it_is(web, calm):
    job = rows.job(state=State.RUNNING)
    Progress.objects.create(job=job.pk, percent=42, phrase="Erasing")
    for url in (f"/jobs/{job.pk}/", "/"):
        text = text_of(web.get(url))
        assert "42 %" in text
        assert "Erasing" in text
    assert "42 %" in text_of(web.get("/jobs/"))


def test_a_waiting_job_ends_at_once_when_it_is_stopped(web, calm):
    job = rows.job()
    agent_client.leave_secret(str(job.pk), "canary-passphrase")
    response = web.post(f"/jobs/{job.pk}/stop/")
    job.refresh_from_db()
    assert response["Location"] == f"/jobs/{job.pk}/"
    assert (job.state, job.text) == (State.CANCELLED, "Stopped before it began. Nothing was changed.")
    assert not list(paths.SECRETS.iterdir())


def test_a_job_under_way_is_stopped_through_the_agent(web, calm, monkeypatch):
    job = rows.job(state=State.RUNNING)
    asked = []
    monkeypatch.setattr(
        agent_client, "send_request", lambda request, **_more: asked.append(request) or {"outcome": {"stopping": True}}
    )
    assert web.post(f"/jobs/{job.pk}/stop/").status_code == 302
    assert asked == [{"verb": "stop", "job": str(job.pk)}]
    job.refresh_from_db()
    assert job.state == State.RUNNING


@pytest.mark.parametrize(
    "error", [Failed("Larder's agent does not answer"), Refused(Reason("", "Larder's agent does not answer"))]
)
def test_an_agent_that_does_not_answer_is_said(web, calm, monkeypatch, error):
    def ask(*_args: object, **_more: object) -> None:
        raise error

    monkeypatch.setattr(agent_client, "send_request", ask)
    response = web.post(f"/jobs/{rows.job(state=State.RUNNING).pk}/stop/")
    assert response.status_code == 503
    assert "agent does not answer" in text_of(response)


@pytest.mark.parametrize("state", [State.DONE, State.FAILED, State.REFUSED, State.CANCELLED, State.INTERRUPTED])
def test_a_job_that_has_ended_cannot_be_stopped(web, calm, monkeypatch, state):
    monkeypatch.setattr(agent_client, "send_request", lambda *_args, **_more: pytest.fail("the agent was asked"))
    job = rows.job(state=state, text="As it was.")
    assert web.post(f"/jobs/{job.pk}/stop/").status_code == 302
    job.refresh_from_db()
    assert (job.state, job.text) == (state, "As it was.")


def test_what_ended_badly_stands_on_the_overview_until_it_was_seen(web, calm):
    rows.recorded_box()
    job = rows.job(state=State.FAILED, text="The disk vanished.")
    assert "The disk vanished." in text_of(web.get("/"))
    web.post(f"/jobs/{job.pk}/acknowledge/")
    assert "The disk vanished." not in text_of(web.get("/"))
    assert "Dismiss" not in text_of(web.get(f"/jobs/{job.pk}/"))


def test_both_small_acts_work_without_scripts(web, calm):
    waiting, failed = rows.job(), rows.job(state=State.FAILED)
    assert Page(web.get(f"/jobs/{waiting.pk}/")).form(f"/jobs/{waiting.pk}/stop/").method == "post"
    assert Page(web.get(f"/jobs/{failed.pk}/")).form(f"/jobs/{failed.pk}/acknowledge/").method == "post"


@pytest.mark.parametrize("target", ELSEWHERE)
def test_acknowledging_never_leads_to_another_site(web, calm, target):
    response = web.post(f"/jobs/{rows.job(state=State.FAILED).pk}/acknowledge/", {"next": target})
    assert response["Location"] == "/"


def test_acknowledging_leads_where_it_was_asked_to(web, calm):
    job = rows.job(state=State.FAILED)
    assert web.post(f"/jobs/{job.pk}/acknowledge/", {"next": "/disks/"})["Location"] == "/disks/"
    assert web.post(f"/jobs/{job.pk}/acknowledge/")["Location"] == f"/jobs/{job.pk}/"


def test_a_job_that_failed_can_be_planned_again_under_a_new_id(web, calm):
    rows.put(datasets=[dataset("tank")])
    job = rows.job(state=State.FAILED)
    form = Page(web.get(f"/jobs/{job.pk}/again/")).form("/jobs/confirm/")
    assert uuid.UUID(form.data["job"]) != job.pk
    assert web.post("/jobs/confirm/", form.data).status_code == 302
    assert sorted(Job.objects.values_list("state", flat=True)) == ["failed", "queued"]


def test_planning_again_says_what_speaks_against_it_now(web, calm):
    rows.put(datasets=[])
    response = web.get(f"/jobs/{rows.job(state=State.FAILED).pk}/again/")
    assert response.status_code == 409
    assert "The folder tank is no longer there." in text_of(response)


def test_an_operation_of_another_version_cannot_be_planned_again(web, calm):
    job = rows.job(state=State.FAILED, operation='{"kind":"Gone"}')
    response = web.get(f"/jobs/{job.pk}/again/")
    assert response.status_code == 409
    assert "Nothing was changed" in text_of(response)


@pytest.mark.parametrize(
    "state",
    [state for state in State if state not in {State.FAILED, State.REFUSED, State.INTERRUPTED, State.CANCELLED}],
)
def test_only_what_did_not_end_well_offers_to_be_planned_again(web, calm, state):
    assert "Try again" not in text_of(web.get(f"/jobs/{rows.job(state=state).pk}/"))


def test_a_job_with_an_empty_plan_still_has_its_page(web, calm):
    assert web.get(f"/jobs/{rows.job(plan={}).pk}/").status_code == 200


def test_stored_plan_keeps_its_keys():
    stored = confirm.plan_as_stored(Plan("It.", (Step("a", "Do it", "zfs list", print),), {}, details={"Size": "1 B"}))
    assert stored["steps"] == [{"name": "a", "title": "Do it", "shown": "zfs list", "undo": ""}]
    assert stored["facts"] == {"Size": "1 B"}
