"""Restore files: from a folder's page over its snapshots or a search to the job, and what cannot be is said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.errors import Reason, Refused
from tests.web import rows
from tests.web.snapshots.test_browse import HOSTILE, agent, entry
from tests.web.snapshots.test_snapshots import fill
from tests.web.system.test_queries import queries
from web.inventory.dataset_models import DatasetRow, SnapshotReading, SnapshotRow
from web.jobs.models import Job

__all__ = ["agent"]
HTMX = {"HX-Request": "true"}


@pytest.fixture
def url(calm) -> str:
    (dataset,) = fill(3)
    return f"/snapshots/of/{dataset.guid}/restore/"


def result(*hits: dict[str, Any], after: str = "", full: bool = False, complete: bool = True) -> dict[str, Any]:
    return {"found": list(hits), "searched": 2, "total": 3, "after": after, "full": full, "complete": complete}


def hit(name: str, **more: Any) -> dict[str, Any]:
    row = SnapshotRow.objects.order_by("created")[1]
    return {"entry": entry(name, **more), "snapshot": row.short, "guid": row.guid}


def words(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_snapshots_are_a_time_line_that_leads_into_them(web, agent, url):
    text = words(web.get(url))
    for row in SnapshotRow.objects.all():
        assert f"/{row.guid}/files/" in text
    assert agent.asked == []  # nothing is read before something is asked for


def test_search_shows_what_was_found_with_its_state(web, agent, url):
    agent.says = result(hit("trip/my%20letter.txt", now="gone"), hit(HOSTILE), hit("letters", kind="folder"))
    text = words(web.get(url, {"q": "letter"}))
    asked = agent.asked[0]
    assert (asked["verb"], asked["dataset"], asked["text"], asked["after"]) == (
        "search-names",
        "tank/d0",
        "letter",
        "",
    )
    assert "trip/my letter.txt" in text
    assert "deleted since" in text
    assert "3 found in 3 snapshots." in text
    assert "<script>alert" not in text
    assert "hx-get" not in text.partition('id="found"')[2]


def test_found_file_is_restored_with_one_click(web, agent, url):
    agent.says = result(hit("a.txt"))
    row = SnapshotRow.objects.order_by("created")[1]
    action = f"{url.removesuffix('restore/')}{row.guid}/restore/?path=a.txt"
    assert f'action="{action}"' in words(web.get(url, {"q": "a"}))
    assert web.post(action, {"place": "free"}).status_code == 302
    job = Job.objects.get()
    assert {"place": "free", "path": "a.txt"}.items() <= json.loads(job.operation).items()


def test_search_goes_on_by_itself_and_by_a_link(web, agent, url):
    agent.says = result(hit("a.txt"), after="17")
    text = words(web.get(url, {"q": "a"}))
    assert 'hx-trigger="load"' in text
    assert "2 of 3 snapshots searched." in text
    assert "q=a&amp;after=17&amp;shown=1" in text
    part = words(web.get(url, {"q": "a", "after": "17", "shown": "1"}, headers=HTMX))
    assert "<html" not in part
    assert agent.asked[-1] | {"after": "17", "room": 199} == agent.asked[-1]


def test_too_many_results_ask_for_more_of_the_name(web, agent, url):
    agent.says = result(hit("a.txt"), full=True)
    assert "Stopped after 1 results. Type more of the name" in words(web.get(url, {"q": "a"}))


def test_folders_that_could_not_be_read_are_said(web, agent, url):
    agent.says = result(complete=False)
    assert "could not be read" in words(web.get(url, {"q": "a"}))


def test_refused_search_says_why(web, agent, url):
    agent.says = Refused(Reason("search-text-invalid", "Type a part of the name."))
    assert "Type a part of the name." in words(web.get(url, {"q": "a/b"}))


@pytest.mark.parametrize(
    "query", [{"shown": "x"}, {"shown": "9" * 30}, {"shown": "-4"}, {"after": "'"}, {"after": "9" * 99}]
)
def test_odd_position_is_no_error(web, agent, url, query):
    agent.says = result()
    assert web.get(url, {"q": "a", **query}).status_code == 200
    assert 1 <= agent.asked[0]["room"] <= 200


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"key_status": "unavailable", "encryption_root": "tank/d0", "mounted": False}, "is locked"),
        ({"mounted": False}, "is not mounted"),
        ({"kind": "volume"}, "is a volume"),
    ],
)
def test_folder_whose_files_are_not_there_says_so(web, agent, url, changes, says):
    dataset = DatasetRow.objects.get(name="tank/d0").fact
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[replace(dataset, **changes)])
    assert says in words(web.get(url))
    agent.says = result()
    assert says in words(web.get(url, {"q": "a"}))
    assert bool(agent.asked) is (says == "is not mounted")


def test_pages_cost_the_same_for_many_snapshots(web, agent, calm):
    (dataset,) = fill(3)
    url = f"/snapshots/of/{dataset.guid}/restore/"
    web.get(url)
    few = len(queries(web, url))
    agent.says = result(*[hit(f"a{number}") for number in range(3)])
    searched = len(queries(web, f"{url}?q=a"))
    SnapshotRow.objects.all().delete()
    (dataset,) = fill(40)
    url = f"/snapshots/of/{dataset.guid}/restore/"
    agent.says = result(*[hit(f"a{number}") for number in range(100)])
    assert len(queries(web, url)) == few
    assert len(queries(web, f"{url}?q=a")) == searched


def test_folders_with_snapshots_are_offered(web, url):
    SnapshotReading.objects.get_or_create(
        dataset_key=url.split("/")[3], defaults={"dataset": "tank/d0", "at": rows.LONG_AGO, "count": 3}
    )
    SnapshotReading.objects.update(count=3)
    assert url in words(web.get("/snapshots/restore/"))
    assert url in words(web.get("/snapshots/restore/", {"q": "D0"}))
    assert "No matching folder" in words(web.get("/snapshots/restore/", {"q": "nothing"}))


def test_folder_page_and_snapshots_lead_to_it(web, url):
    key = url.split("/")[3]
    assert url in words(web.get(f"/folders/{key}/"))
    assert "/snapshots/restore/" in words(web.get("/snapshots/"))
