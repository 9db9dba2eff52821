"""Pages that bring a copy back from another computer: what they list, what they refuse, and what is reviewed."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.errors import Failed
from tests.web.backups.test_remotes import BACKUP, PAGE, TASK, box
from tests.web.reading import Page
from web import agent

URL = f"{PAGE}copies/photos/restore/"
PART = {"name": "photos", "guid": 55, "snapshot": 101, "short": "larder-backup-x", "original": 5, "size": 10**9}
TREE: dict[str, Any] = {
    "original": 5,
    "folders": 2,
    "parts": [PART],
    "moments": [{"short": "larder-backup-x", "created": 1764000000}],
}
COPIES = [{"name": "photos", "original": 5, "short": "larder-backup-2026.11.22-02.00.00", "snapshots": 3}]


@pytest.fixture
def asked(monkeypatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def last(request: dict[str, Any], **_how: Any) -> dict[str, Any]:
        found.append(request)
        return {"facts": COPIES if request["verb"] == "list-remote-copies" else TREE}

    monkeypatch.setattr(agent, "last", last)
    box(TASK)
    return found


def answers(**changes: str) -> dict[str, str]:
    return {"snapshot": "larder-backup-x", "parent": "tank", "name": "photos-restored", "rate": "", **changes}


def test_pages_lead_to_it(web, asked):
    assert f"{PAGE}copies/" in web.get(PAGE).content.decode()
    page = web.get(f"{PAGE}copies/")
    assert URL in page.content.decode() and "tank/photos" in Page(page).text
    assert web.get(BACKUP).status_code == 200


def test_copy_of_which_none_is_complete_is_listed_as_that(web, asked, monkeypatch):
    partial = {"name": "letters", "original": 9, "short": "", "snapshots": 0}
    monkeypatch.setattr(agent, "last", lambda *_words, **_how: {"facts": [*COPIES, partial]})
    page = web.get(f"{PAGE}copies/")
    assert "No complete copy yet" in Page(page).text
    assert "copies/letters/" not in page.content.decode()


def test_name_beside_the_original_is_proposed_and_reviewed(web, asked):
    page = web.get(URL).content.decode()
    assert 'value="photos-restored"' in page and "(newest)" in page
    text = Page(web.post(URL, answers())).text
    assert "tank/photos is still there and stays as it is" in text
    assert "Left out, since there is no copy of that moment or an earlier one: 1 folder" in text
    assert "nothing on this box is overwritten" in text
    assert {"verb": "read-remote-copy", "remote": "0badcafe", "copy": "photos", "moment": "larder-backup-x"} in asked


@pytest.mark.parametrize(
    "changes",
    [{"name": "photos"}, {"name": "../etc"}, {"snapshot": "larder-backup-y"}, {"snapshot": "x y"}, {"rate": "0"}],
)
def test_name_that_is_taken_or_a_moment_that_is_none_is_refused_in_the_form(web, asked, changes):
    assert web.post(URL, answers(**changes)).status_code == 400


def test_computer_that_cannot_be_asked_is_named_with_what_to_do(web, asked, monkeypatch):
    def last(*_words: object, **_how: object) -> object:
        raise Failed("attic.lan, port 22 cannot be reached", "Is it switched on and connected to the network?")

    monkeypatch.setattr(agent, "last", last)
    for url in (URL, f"{PAGE}copies/"):
        assert "Is it switched on" in Page(web.get(url)).text


def test_answer_that_is_none_is_not_believed(web, asked, monkeypatch):
    monkeypatch.setattr(agent, "last", lambda *_words, **_how: {"facts": {"moments": "x"}})
    for url in (URL, f"{PAGE}copies/"):
        assert "does not understand" in Page(web.get(url)).text
