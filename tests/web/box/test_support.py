"""The page of the support bundle: what it says, what it asks of the agent, and that the rows in it hold no secret."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from appliance.errors import Failed
from appliance.support.sections import OWN, SECTIONS
from tests.web.reading import text_of
from web import agent
from web.alerts.models import Alert, MailSettings
from web.box import support, support_rows
from web.jobs.models import Job

HOOK = "https://hooks.example.org/services/canary-T0K3N?key=canary-key"
FILES = {"versions.txt": "Larder 0.1.0\n<script>alert(1)</script>\n", "journal.txt": "a line\n"}


@pytest.fixture(autouse=True)
def shelf(monkeypatch) -> support.Shelf:
    """A shelf of its own; what would be done in a thread waits in ``waiting``."""
    found = support.Shelf()
    for module in ("web.box.support", "web.box.support_views"):
        monkeypatch.setattr(f"{module}.SHELF", found)
    return found


@pytest.fixture
def waiting(monkeypatch) -> list[Any]:
    works: list[Any] = []
    monkeypatch.setattr(support, "start_thread", works.append)
    return works


@pytest.fixture
def asked(monkeypatch) -> list[dict[str, Any]]:
    """What the agent was asked for; it answers with a bundle of FILES."""
    requests: list[dict[str, Any]] = []

    def make_file(request: dict[str, Any], *, silence: float, report: Any) -> tuple[dict[str, Any], int]:
        requests.append(request)
        report({"file": "smart.txt", "at": 5, "of": 10})
        with tempfile.TemporaryFile() as file:
            with zipfile.ZipFile(file, "w") as archive:
                for name, text in FILES.items():
                    archive.writestr(name, text)
            file.flush()
            return {"size": 1, "files": [[name, "this", len(text)] for name, text in FILES.items()]}, os.dup(
                file.fileno()
            )

    monkeypatch.setattr(agent, "make_file", make_file)
    return requests


def count_handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_page_says_what_will_be_in_it_before_it_is_made(web, calm):
    text = text_of(web.get("/system/support/"))
    for name, holds in [*((one.name, one.holds) for one in SECTIONS), *OWN.items()]:
        assert name in text
        assert holds[1:] in text
    assert "Create the bundle" in text


def test_bundle_is_made_shown_looked_at_and_downloaded(web, calm, waiting, asked, shelf):
    assert web.post("/system/support/make/", {"masked": ["names"]}).status_code == 302
    assert asked == []
    page = web.get("/system/support/")
    assert "Making the bundle" in text_of(page)
    assert "every 2s" in page.content.decode()
    waiting.pop()()
    assert asked[0]["masked"] == ["names"]
    page = web.get("/system/support/")
    assert "The bundle is ready." in text_of(page)
    assert "every 2s" not in page.content.decode()
    key = shelf.bundle.key
    looked = web.get(f"/system/support/{key}/versions.txt/")
    assert "&lt;script&gt;" in looked.content.decode()
    assert "<script>alert" not in looked.content.decode()
    sent = web.get(f"/system/support/{key}/download/")
    assert sent["Content-Disposition"].startswith("attachment")
    with zipfile.ZipFile(io.BytesIO(b"".join(sent.streaming_content))) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == FILES


def test_second_request_while_one_is_made_begins_no_other(web, calm, waiting, asked):
    for _time in range(2):
        web.post("/system/support/make/")
    assert len(waiting) == 1


def test_discarded_bundle_is_gone_and_its_file_closed(web, calm, waiting, asked, shelf):
    web.post("/system/support/make/")
    waiting.pop()()
    bundle = shelf.bundle
    handle, key = bundle.handle, bundle.key
    os.fstat(handle)
    web.post("/system/support/discard/")
    with pytest.raises(OSError):
        os.fstat(handle)
    assert web.get(f"/system/support/{key}/download/").status_code == 404


def test_bundle_that_was_discarded_while_it_was_made_is_closed(web, calm, waiting, asked, shelf):
    web.post("/system/support/make/")
    web.post("/system/support/discard/")
    before = count_handles()
    waiting.pop()()
    assert count_handles() == before
    assert shelf.current() is None


def test_old_bundle_is_forgotten(web, calm, waiting, asked, shelf, monkeypatch):
    web.post("/system/support/make/")
    waiting.pop()()
    shelf.bundle.begun -= support.SECONDS_KEPT + 1
    assert "The bundle is ready." not in text_of(web.get("/system/support/"))


@pytest.mark.parametrize("error", [Failed("Larder's agent does not answer", "it is not running"), RuntimeError("odd")])
def test_failure_is_said_and_can_be_tried_again(web, calm, waiting, monkeypatch, error):
    def fail(*_args: object, **_more: object) -> None:
        raise error

    monkeypatch.setattr(agent, "make_file", fail)
    web.post("/system/support/make/")
    waiting.pop()()
    text = text_of(web.get("/system/support/"))
    assert "The bundle could not be made." in text
    assert "Create the bundle" in text


@pytest.mark.parametrize("name", ["../../etc/passwd", "README", "%2e%2e", "journal.txt%00"])
def test_only_files_of_the_bundle_can_be_looked_at(web, calm, waiting, asked, shelf, name):
    web.post("/system/support/make/")
    waiting.pop()()
    assert web.get(f"/system/support/{shelf.bundle.key}/{name}/").status_code == 404


def test_rows_in_it_hold_no_secret_and_what_must_be_hidden_is_named(web, box, waiting, asked):
    MailSettings.objects.create(pk=1, host="smtp.example.org", user="anna", webhook=HOOK, critical="otto@example.org")
    Alert.objects.create(
        kind="mail.failing",
        subject="mail",
        severity="warning",
        summary="Mail cannot be sent.",
        first_seen="2026-03-01T12:00Z",
    )
    Job.objects.create(
        title="Failed job",
        subject="tank",
        kind="x",
        created_by="admin",
        state="failed",
        log=["it broke"],
        operation='{"secret": "canary"}',
    )
    web.post("/system/support/make/")
    waiting.pop()()
    own = "\n".join(asked[0]["own"].values())
    assert "canary" not in own
    assert "Mail cannot be sent." in own
    assert "it broke" in own
    assert {HOOK, "canary-T0K3N", "key=canary-key"} <= set(asked[0]["secrets"])
    assert {"admin", "anna", "otto"} <= set(asked[0]["users"])
    assert {"smtp.example.org", "hooks.example.org"} <= set(asked[0]["hosts"])


def test_queries_do_not_grow_with_alerts_and_jobs(web, box, django_assert_max_num_queries):
    for number in range(30):
        Alert.objects.create(
            kind="mail.failing", subject=str(number), severity="warning", summary="x", first_seen="2026-03-01T12:00Z"
        )
        Job.objects.create(title="x", subject="tank", kind="x", created_by="admin", state="failed", log=["it broke"])
    with django_assert_max_num_queries(14):
        support_rows.own_files()
