"""What a page costs does not grow with the box."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.web import rows
from web.jobs.models import Job

PAGES = [
    "/",
    "/pools/",
    "/pools/1000/",
    "/disks/",
    "/disks/ata-D_0_a/",
    "/folders/",
    "/snapshots/",
    "/users/",
    "/users/anna0/account/",
    "/groups/group0/members/",
    "/folders/59003738/access/",
    "/jobs/",
    "/pools/new/?name=new&step=disks",
    "/pools/new/?name=new&step=layout",
    "/pools/1000/reports/",
    "/pools/1000/growth/",
    "/pools/1000/history/",
    "/pools/1000/events/",
    "/pools/1000/schedule/scrub/",
    "/pools/1000/settings/",
    "/disks/bays/",
    "/alerts/",
    "/disks/ata-D_0_a/health/",
    "/pools/1000/replace/",
    "/pools/1000/add/spare/",
    "/benchmarks/",
    "/benchmarks/new/disks/",
    "/pools/replacements/",
    "/pools/1000/vdev/1001/offline/",
]
PARTS = ["/jobs/?page=1", "/"]
MOST = 36


def queries(web, url: str, **headers: str) -> list[str]:
    """What was asked of both databases for one page."""
    with ExitStack() as stack:
        watched = [stack.enter_context(CaptureQueriesContext(connections[name])) for name in ("default", "inventory")]
        assert web.get(url, **headers).status_code == 200
    return [query["sql"] for one in watched for query in one.captured_queries]


def cost(web, count: int) -> dict[str, list[str]]:
    Job.objects.all().delete()
    rows.large_box(count)
    for url in ("/", "/pools/1000/", "/pools/1000/history/"):
        web.get(url)  # whatever is remembered from page to page
    pages = {url: queries(web, url) for url in PAGES}
    return pages | {f"the part of {url}": queries(web, url, HTTP_HX_REQUEST="true") for url in PARTS}


def test_no_page_asks_more_of_a_large_box_than_of_a_small_one(web, calm, time_machine):
    time_machine.move_to(
        timezone.now(), tick=False
    )  # the last page may be a minute after the first, and ask more for that
    small, large = cost(web, 2), cost(web, 40)
    for url in small:
        assert len(small[url]) == len(large[url]), (url, large[url])
        assert len(large[url]) <= MOST, (url, large[url])


@pytest.mark.parametrize("url", ["/folders/", "/jobs/"])
def test_a_list_of_thousands_is_read_a_page_at_a_time(web, calm, url):
    Job.objects.bulk_create(
        Job(title=f"j{at}", kind="create-dataset", subject="x", operation="{}", digest="", state="done")
        for at in range(2000)
    )
    rows.put(datasets=[rows.dataset(f"tank/f{number}") for number in range(2000)])
    response = web.get(url)
    assert len(response.content) < 200_000
    assert len(queries(web, url)) <= MOST


def test_where_nothing_changed_a_live_part_costs_next_to_nothing(web, calm):
    rows.large_box(40)
    tag = web.get("/", HTTP_HX_REQUEST="true")["ETag"]
    with (
        CaptureQueriesContext(connections["inventory"]) as inventory,
        CaptureQueriesContext(connections["default"]) as default,
    ):
        assert web.get("/", HTTP_HX_REQUEST="true", HTTP_IF_NONE_MATCH=tag).status_code == 304
    assert len(inventory.captured_queries) <= 6
    assert len(default.captured_queries) <= 2


def test_planning_a_pool_costs_the_same_whatever_else_is_in_the_box(web, calm):
    counts = []
    web.get("/")
    for count in (2, 40):
        rows.large_box(count)
        free = [rows.disk(number) for number in (1, 2)]
        rows.put(disks=[*free, *(row.fact for row in rows.DiskRow.objects.all())])
        url = f"/pools/new/?name=new&step=review&layout=mirror-1&disks={free[0].path}&disks={free[1].path}"
        counts.append(len(queries(web, url)))
    assert counts[0] == counts[1]


def test_a_page_of_the_folders_list_stays_under_60_kb(web, calm):
    rows.put(datasets=[rows.dataset(f"tank/folder number {number}") for number in range(1000)])
    for url in ("/folders/", "/folders/?page=2"):
        assert len(web.get(url).content) < 60_000
