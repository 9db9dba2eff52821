"""The page of the system's log: its filters become a request of the agent, and what comes back is only text."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.errors import Failed
from tests.web.reading import text_of
from web import agent
from web.alerts.models import MailSettings

CURSOR = "s=0a;i=1;b=1;m=2;t=3;x=4"
LINE: dict[str, Any] = {"at": 1_790_000_000.25, "source": "smbd", "priority": 3, "text": "Connection denied"}


@pytest.fixture
def log(monkeypatch) -> dict[str, Any]:
    """What the agent answers, and what it was asked."""
    state: dict[str, Any] = {"facts": {"lines": [LINE], "after": "", "reached": LINE["at"]}, "asked": []}

    def last(request: dict[str, Any], *, silence: float) -> dict[str, Any]:
        state["asked"].append(request)
        if isinstance(state["facts"], Exception):
            raise state["facts"]
        return {"facts": state["facts"]}

    monkeypatch.setattr(agent, "last", last)
    return state


def test_filters_are_asked_of_the_agent_and_stay_chosen(web, calm, log):
    page = web.get("/system/log/", {"area": "shares", "severity": "error", "period": "week", "text": "denied"})
    assert log["asked"] == [
        {"verb": "read-log", "area": "shares", "severity": "error", "period": "week", "text": "denied", "after": ""}
    ]
    assert '<option value="shares" selected>' in page.content.decode()
    assert "Connection denied" in text_of(page)


def test_what_is_not_among_the_choices_is_as_if_not_given(web, calm, log):
    web.get("/system/log/", {"area": "--file=/etc/shadow", "severity": "x", "period": "\0"})
    assert {name: log["asked"][0][name] for name in ("area", "severity", "period")} == {
        "area": "all",
        "severity": "warning",
        "period": "day",
    }


def test_hostile_text_is_only_text(web, calm, log):
    log["facts"]["lines"] = [{**LINE, "text": "<script>alert(1)</script>{{ 7|add:7 }}", "source": "<b>x"}]
    content = web.get("/system/log/").content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{ 7|add:7 }}" in content
    assert "<b>x" not in content


def test_times_are_in_the_zone_of_the_box(web, calm, log, monkeypatch):
    from zoneinfo import ZoneInfo

    monkeypatch.setattr("web.system.timezone.box_zone", lambda: ZoneInfo("Asia/Kolkata"))
    assert "21 Sep, 19:43:20" in text_of(web.get("/system/log/"))


def test_older_page_keeps_the_filters_and_is_not_read_again(web, calm, log):
    log["facts"] |= {"after": CURSOR, "stopped": True}
    first = web.get("/system/log/", {"area": "storage", "text": "a&b"})
    assert "Searched back to" in text_of(first)
    assert "area=storage&amp;severity=warning&amp;period=day&amp;text=a%26b&amp;after=s%3D0a" in first.content.decode()
    assert "every 15s" in first.content.decode()
    older = web.get("/system/log/", {"area": "storage", "after": CURSOR})
    assert log["asked"][-1]["after"] == CURSOR
    assert "every 15s" not in older.content.decode()
    assert "Newest" in text_of(older)


def test_htmx_gets_the_part_and_nothing_where_nothing_is_new(web, calm, log):
    part = web.get("/system/log/", HTTP_HX_REQUEST="true")
    assert part.status_code == 200
    assert "<html" not in part.content.decode()
    same = web.get("/system/log/", HTTP_HX_REQUEST="true", HTTP_IF_NONE_MATCH=part["ETag"])
    assert same.status_code == 304
    log["facts"]["lines"] = [LINE, LINE]
    assert web.get("/system/log/", HTTP_HX_REQUEST="true", HTTP_IF_NONE_MATCH=part["ETag"]).status_code == 200


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"lines": []}, "No program wrote anything in this period."),
        ({"lines": [], "missing": True}, "No log of that start"),
        ({"lines": [], "stopped": True, "after": CURSOR, "reached": 5.0}, "nothing that fits was found so far"),
        (Failed("Larder's agent does not answer", "it is not running"), "The log could not be read."),
        ({"lines": [{"odd": 1}]}, "The log could not be read."),
    ],
)
def test_every_other_state_says_what_is_so(web, calm, log, facts, words):
    log["facts"] = facts
    page = web.get("/system/log/", {"severity": "all"})
    assert page.status_code == 200
    assert words in text_of(page)


def test_secrets_that_only_the_pages_know_are_hidden(web, calm, log):
    MailSettings.objects.create(pk=1, webhook="secret-topic-4711")
    log["facts"]["lines"] = [{**LINE, "text": "sent to secret-topic-4711"}]
    text = text_of(web.get("/system/log/"))
    assert "secret-topic-4711" not in text
    assert "sent to (hidden)" in text


def test_number_of_queries_does_not_grow_with_the_lines(web, calm, log, django_assert_max_num_queries):
    log["facts"]["lines"] = [LINE] * 100
    with django_assert_max_num_queries(12):
        web.get("/system/log/")
