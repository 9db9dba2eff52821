"""Rows hold English text and, while languages are offered, what it was made from; pages show
it in the reader's words."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.template import Context, Template

from appliance import message as messages
from appliance.alerts.fault import Fault
from appliance.message import Message, message_of
from web import translation
from web.alerts import reconcile
from web.alerts.models import Alert, AlertNote
from web.inventory.models import Progress
from web.jobs.models import Job
from web.said import said_in
from workers import run_job

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
DUTCH = {
    "{pool} is full.": "{pool} zit vol.",
    "{n} disks": "{n} schijven",
    "Create {pool}": "{pool} maken",
    "It ended on {what}.": "Het eindigde op {what}.",
}
FULL = Message("{pool} is full.", pool="<tank>")


@pytest.fixture
def offered(monkeypatch):
    monkeypatch.setattr(translation, "gettext", lambda text: DUTCH.get(text, text))
    monkeypatch.setattr(messages, "_reader", translation.message_text)


def job(**values) -> Job:
    row = Job(kind="create-pool", subject="tank", operation="{}", digest="", created_by="admin", **values)
    row.save()
    return row


def test_template_shows_a_message_in_the_readers_words(offered):
    shown = Template("{{ a }}|{{ b }}|{% blocktranslate %}It: {{ a }}{% endblocktranslate %}")
    page = shown.render(Context({"a": FULL, "b": "<plain>"}))
    assert page == "&lt;tank&gt; zit vol.|&lt;plain&gt;|It: &lt;tank&gt; zit vol."


def test_nested_message_is_translated_too(offered):
    assert translation.message_text(Message("It ended on {what}.", what=Message("{n} disks", n=2))) == (
        "Het eindigde op 2 schijven."
    )


def test_job_keeps_english_text_and_what_it_was_made_from(offered):
    title, plan = Message("Create {pool}", pool="tank"), {"summary": FULL, "steps": [{"title": FULL, "name": "create"}]}
    pk = job(title=title, plan=plan, said=said_in(title, plan)).pk
    with connection.cursor() as cursor:
        cursor.execute("SELECT title, plan FROM jobs_job")
        stored = cursor.fetchone()
    assert stored[0] == "Create tank"
    assert json.loads(stored[1])["summary"] == "<tank> is full."
    row = Job.objects.get(pk=pk)
    assert translation.text_of(row.title) == "tank maken"
    assert translation.text_of(row.plan["summary"]) == translation.text_of(row.steps[0]["title"]) == "<tank> zit vol."
    assert row.steps[0]["name"] == "create"


def test_end_of_a_job_is_kept_with_its_message(offered):
    pk = job(title="Create tank", state=Job.State.RUNNING).pk
    run_job.finish_job(
        str(pk), {"state": "failed", "text": str(FULL), "notes": ["raw"], "messages": {str(FULL): FULL.as_json()}}
    )
    row = Job.objects.get(pk=pk)
    assert (row.state, row.text, row.log) == ("failed", "<tank> is full.", ["raw"])
    assert translation.text_of(row.text) == "<tank> zit vol."


def test_progress_is_kept_with_its_message(offered):
    pk = str(job(title="Create tank", state=Job.State.RUNNING).pk)
    said = {"percent": 5, "phrase": str(FULL), "messages": {str(FULL): FULL.as_json()}}
    run_job.store_progress(pk, said, None)
    assert translation.text_of(Progress.objects.get(job=pk).phrase) == "<tank> zit vol."
    run_job.store_progress(pk, {"percent": 9, "phrase": "raw"}, None)
    assert (Progress.objects.get(job=pk).phrase, Progress.objects.get(job=pk).said) == ("raw", {})


def test_alert_and_its_notes_are_kept_with_their_messages(offered):
    reconcile.reconcile_alerts([Fault("disk.failing", "ata-1", FULL, "As smartctl says.")], NOW)
    row, note = Alert.objects.get(), AlertNote.objects.get()
    assert (row.summary, row.detail, note.text) == ("<tank> is full.", "As smartctl says.", "<tank> is full.")
    assert translation.text_of(row.summary) == translation.text_of(note.text) == "<tank> zit vol."
    assert not reconcile.reconcile_alerts([Fault("disk.failing", "ata-1", FULL, "As smartctl says.")], NOW)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"A": None},
        {"A": {"template": "B", "arguments": {}}},
        {"A": {"template": "{x}", "arguments": {}}},
        {"A": {"template": "{x.y}", "arguments": {"x": "1"}}},
        {"A": {"template": 5, "arguments": []}},
    ],
)
def test_text_stays_as_it_is_where_what_is_kept_does_not_say_it(said):
    assert message_of("A", said) == "A"
    assert type(message_of("A", said)) is str
