"""Pages that browse snapshots: they show what the agent answers and never trust it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from appliance.errors import Failed, Reason, Refused
from tests.web import rows
from tests.web.snapshots.test_snapshots import COPY, fill, put_one
from tests.web.system.test_queries import queries
from web.inventory.dataset_models import SnapshotRow
from web.jobs.models import Job
from web.snapshots import browse_views, file_preview

HOSTILE = "%3Cscript%3Ealert(1)%3C%2Fscript%3E%FF%0A"


class Agent:
    """Stands in for the agent: records requests and gives the set answer."""

    def __init__(self, tmp_path: Path) -> None:
        self.asked: list[dict[str, Any]] = []
        self.says: Any = {}
        self.content = b"hello"
        self.place = tmp_path / "content"

    def last(self, request, *, silence):
        self.asked.append(request)
        if isinstance(self.says, Exception):
            raise self.says
        return {"facts": self.says}

    def open_file(self, request, *, silence):
        self.last(request, silence=silence)
        self.place.write_bytes(self.content)
        return {"size": len(self.content), "mtime": 1.5}, os.open(self.place, os.O_RDONLY)


@pytest.fixture
def agent(tmp_path, monkeypatch):
    stand_in = Agent(tmp_path)
    monkeypatch.setattr("appliance.agent_client.send_request", stand_in.last)
    monkeypatch.setattr("appliance.agent_client.open_file", stand_in.open_file)
    return stand_in


@pytest.fixture
def url(calm) -> str:
    (dataset,) = fill(3)
    row = SnapshotRow.objects.order_by("created")[1]
    return f"/snapshots/of/{dataset.guid}/{row.guid}/"


def entry(name: str, kind: str = "file", now: str = "same") -> dict[str, Any]:
    return {"name": name, "kind": kind, "size": 10, "mtime": 1e300, "now": now}


def test_folder_shows_deleted_files_and_links_to_other_snapshots(web, agent, url):
    agent.says = {
        "entries": [entry("sub", "folder"), entry(HOSTILE, now="gone"), entry("l", "link")],
        "total": 3,
        "next": "1x",
    }
    page = web.get(f"{url}files/", {"path": "my%20trip"})
    text = page.content.decode()
    assert page.status_code == 200
    assert (
        agent.asked[0] | {"verb": "list-folder", "snapshot": "tank/d0@s0001", "path": "my%20trip", "after": ""}
        == agent.asked[0]
    )
    assert '<h1 class="break">my trip</h1>' in text
    assert "deleted since" in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "a link, which is not followed" in text
    assert "path=my%2520trip/sub" in text
    assert "Earlier" in text
    assert "Later" in text
    assert "after=1x" in text


def test_page_of_a_file_without_a_path_is_that_of_the_folder(web, agent, url):
    answer = web.get(f"{url}file/")
    assert (answer.status_code, answer["Location"]) == (302, f"{url}files/")
    assert agent.asked == []


def test_times_are_local_with_time_zone(web, agent, url, monkeypatch):
    monkeypatch.setattr("web.system.timezone.box_zone", lambda: ZoneInfo("Europe/Berlin"))
    agent.says = {"entries": [entry("a") | {"mtime": 1_753_000_000}], "total": 1, "next": ""}
    assert "20 Jul 2025, 10:26 CEST" in web.get(f"{url}files/").content.decode()


@pytest.mark.parametrize("path", ["..", "a/../b", "%252e%252e", "/etc", "%00", "%2500", "a%252Fb", "a%0ab", "%FF"])
def test_path_that_leads_elsewhere_is_404_without_asking_agent(web, agent, url, path):
    for page in ("files", "file", "content", "restore"):
        assert web.get(f"{url}{page}/?path={path}").status_code == 404
    assert agent.asked == []


@pytest.mark.parametrize(
    "problem",
    [
        Refused(Reason("folder-not-in-snapshot", "There is no such folder in this snapshot.")),
        Failed("Larder's agent does not answer"),
    ],
)
def test_agent_errors_are_shown_on_page(web, agent, url, problem):
    agent.says = problem
    for page in ("files/", "file/?path=a", "difference/"):
        answer = web.get(f"{url}{page}")
        assert answer.status_code == 200
        assert str(problem).replace("'", "&#x27;") in answer.content.decode()
    assert web.get(f"{url}content/?path=a").status_code == 409


def test_stopped_pool_is_not_asked(web, agent, url):
    rows.put(pools=[replace(rows.pool_of("tank", 1000), state="SUSPENDED")])
    assert "has stopped" in web.get(f"{url}files/").content.decode()
    assert agent.asked == []


def test_preview_shows_text_and_pictures_by_content(web, agent, url):
    agent.content = b"<script>alert(1)</script>"
    text = web.get(f"{url}file/?path=a.txt").content.decode()
    assert "&lt;script&gt;" in text
    assert "<script>alert" not in text
    agent.content = b"\x89PNG\r\n\x1a\n" + b"\0" * 50
    assert 'class="preview" src=' in web.get(f"{url}file/?path=a.txt").content.decode()
    agent.content = b"MZ\0\0"
    assert "shows text and pictures" in web.get(f"{url}file/?path=a.png").content.decode()
    agent.content = b""
    assert "<pre" in web.get(f"{url}file/?path=empty").content.decode()


def test_download_cannot_run_and_keeps_name(web, agent, url):
    for content, query in (
        (b"<html><script>1</script>", "&look="),
        (b"<svg xmlns='x' onload='1'/>", "&look="),
        (b"\xff\xd8\xff", ""),
    ):
        agent.content = content
        answer = web.get(f"{url}content/?path=sub/%25C3%25BC%25220%250A.html{query}")
        assert answer.getvalue() == content
        assert answer["Content-Type"] == "application/octet-stream"
        assert answer["Content-Disposition"].startswith("attachment; filename*=utf-8''%C3%BC%220")
        assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Length"] == str(len(content))
        answer.close()
    agent.content = b"\xff\xd8\xff\xe0"
    answer = web.get(f"{url}content/?path=a.jpg&look=")
    assert (answer["Content-Type"], answer["Content-Disposition"]) == ("image/jpeg", 'inline; filename="a.jpg"')
    answer.close()


def test_downloads_leave_threads_for_pages(web, agent, url):
    held = [web.get(f"{url}content/?path=a") for _ in range(2)]
    assert [one.status_code for one in held] == [200, 200]
    assert web.get(f"{url}content/?path=a").status_code == 409
    for one in held:
        one.close()
        one.close()
    again = web.get(f"{url}content/?path=a")
    assert again.status_code == 200
    again.close()
    agent.says = Failed("x")
    for _ in range(3):
        assert web.get(f"{url}content/?path=a").status_code == 409
    assert browse_views.DOWNLOADS._value == 2


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("web.snapshots.file_preview.picture_of", OSError(5, "Input/output error")),
        ("web.snapshots.file_preview.picture_of", RuntimeError("x")),
        ("web.snapshots.browse_views.content_disposition_header", RuntimeError("x")),
        ("appliance.agent_client.open_file", RuntimeError("x")),
    ],
)
def test_failed_download_makes_room_for_next(web, agent, url, monkeypatch, place, error):
    def fails(*_args: Any, **_more: Any) -> None:
        raise error

    web.raise_request_exception = False
    with monkeypatch.context() as patch:
        patch.setattr(place, fails)
        for _ in range(3):
            answer = web.get(f"{url}content/?path=a&look=")
            assert answer.status_code == (409 if isinstance(error, OSError) else 500)
    answer = web.get(f"{url}content/?path=a")
    assert answer.status_code == 200
    answer.close()
    assert browse_views.DOWNLOADS._value == 2


def test_versions_are_a_timeline(web, agent, url):
    guid = SnapshotRow.objects.all()[0].guid
    version = {
        "there": True,
        "first": "s0000",
        "last": "s0001",
        "guid": guid,
        "count": 2,
        "kind": "file",
        "size": 3,
        "mtime": 5.0,
    }
    agent.says = {"versions": [version, {**version, "there": False, "count": 1}], "now": "gone", "complete": False}
    text = " ".join(web.get(f"{url.rsplit('/', 2)[0]}/versions/?path=a.txt").content.decode().split())
    assert "in 2 snapshots, from s0000 to s0001" in text
    assert "Not there in 1 snapshot" in text
    assert f"{guid}/restore/?path=a.txt" in text
    assert "more snapshots than could be looked into" in text
    assert "It is no longer in the folder." in text


def test_difference_is_in_words(web, agent, url):
    agent.says = {
        "changes": [
            {"what": "moved", "kind": "file", "path": "a%20b", "to": "c"},
            {"what": "gone", "kind": "folder", "path": "old", "to": ""},
        ],
        "complete": False,
    }
    later = SnapshotRow.objects.order_by("-created")[0]
    text = web.get(f"{url}difference/", {"until": later.guid}).content.decode()
    assert agent.asked[0]["until"] == later.name
    assert "0 new, 0 changed, 1 moved, 1 deleted" in text
    assert "There are more" in text
    assert "a b" in text


def test_restore_starts_without_review_and_asks_where(web, agent, url):
    page = web.get(f"{url}restore/?path=my%2520trip")
    assert "Restore my trip" in page.content.decode()
    assert web.post(f"{url}restore/?path=my%2520trip", {"place": "elsewhere"}).status_code == 400
    assert Job.objects.count() == 0
    assert web.post(f"{url}restore/?path=my%2520trip", {"place": "back"}).status_code == 302
    operation = json.loads(Job.objects.get().operation)
    assert (operation["path"], operation["place"]) == ("my%20trip", "back")


def test_restore_out_of_a_copy_without_its_original_leads_to_the_whole_folder_instead(web, agent, calm):
    copy, url = put_one(**COPY)
    for page in (
        web.get(f"{url}restore/?path=my%2520trip"),
        web.post(f"{url}restore/?path=my%2520trip", {"place": "free"}),
    ):
        text = page.content.decode()
        assert "finds no original of the copy tank/backups/a on this box" in text
        assert f'href="/backups/copies/{copy.guid}/restore/"' in text
        assert 'name="place"' not in text
        assert "Mount it" not in text
    assert Job.objects.count() == 0


def test_rollback_review_says_what_is_lost_and_asks_for_name(web, agent, url):
    page = web.get(f"{url}roll-back/")
    assert "checked" in page.content.decode()
    text = web.get(f"{url}roll-back/?answered=1&way_back=on").content.decode()
    assert "everything written to tank/d0 after" in text
    assert "tank/d0: s0002" in text
    assert "checkpoint" in text
    assert 'data-confirm-name="tank/d0"' in text
    SnapshotRow.objects.filter(short="s0002").update(clones="tank/copy")
    answer = web.get(f"{url}roll-back/?answered=1&way_back=on")
    assert answer.status_code == 400
    assert [error.code for error in answer.context["form"].errors.as_data()["__all__"]] == ["newer-snapshot-needed"]


def test_rollback_page_says_what_happens_to_files(web, agent, url):
    agent.says = {
        "changes": [
            {"what": "new", "kind": "file", "path": HOSTILE, "to": ""},
            *({"what": "gone", "kind": "file", "path": f"f-{number}", "to": ""} for number in range(30)),
        ],
        "complete": True,
    }
    text = web.get(f"{url}roll-back/").content.decode()
    (asked,) = agent.asked
    assert (asked["verb"], asked["until"]) == ("read-difference", "")
    assert "New files: will be deleted</span><span>1<" in text
    assert "Deleted files: will be restored</span><span>30<" in text
    assert "&lt;script&gt;" in text
    assert "f-18" in text
    assert "f-19" not in text  # with a hyphen, which no token of the page has
    assert "See all that would be undone" in text
    # Not enough time, nothing changed, and an error; the review itself does not ask the agent.
    agent.says = {"changes": [], "complete": False}
    assert "There was not enough time to find the changes." in web.get(f"{url}roll-back/").content.decode()
    agent.says = {"changes": [], "complete": True}
    assert "No file has changed since." in web.get(f"{url}roll-back/").content.decode()
    agent.says = Failed("Larder's agent does not answer")
    assert "could not be read: Larder" in web.get(f"{url}roll-back/").content.decode()
    agent.asked.clear()
    assert web.get(f"{url}roll-back/?answered=1").status_code == 200
    assert agent.asked == []


def test_difference_says_that_more_snapshots_follow(web, agent, url):
    assert "You can compare with the next" not in web.get(f"{url}difference/").content.decode()
    SnapshotRow.objects.all().delete()
    (dataset,) = fill(120)
    first = SnapshotRow.objects.filter(dataset_key=str(dataset.guid)).order_by("created")[0]
    text = web.get(f"/snapshots/of/{dataset.guid}/{first.guid}/difference/").content.decode()
    assert "You can compare with the next 100 snapshots." in text


def test_folder_of_many_names_needs_no_more_queries(web, agent, url):
    agent.says = {"entries": [entry("a")], "total": 1, "next": ""}
    web.get(f"{url}files/")
    one = len(queries(web, f"{url}files/"))
    agent.says = {"entries": [entry(f"f{number}") for number in range(200)], "total": 50000, "next": "1f199"}
    assert len(queries(web, f"{url}files/")) == one


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"GIF89a..", "picture"),
        (b"RIFF1234WEBPVP8", "picture"),
        ("ü".encode() * 40000, "text"),
        (b"\xff\xfe", "nothing"),
        (b"a\0b", "nothing"),
        (b"<svg/>", "text"),
        (b"", "text"),
    ],
)
def test_preview_does_not_trust_file_name(content, kind, tmp_path):
    (tmp_path / "x").write_bytes(content)
    with (tmp_path / "x").open("rb") as stream:
        found = file_preview.preview_of(stream, len(content))
    assert found.kind == kind
    assert found.whole == (len(content) <= file_preview.MOST_TEXT)
