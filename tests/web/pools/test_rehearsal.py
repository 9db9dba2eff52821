"""The rehearsal of a rebuild: the form and its review, the pool's page before, during and after,
and the estimates from it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from appliance.agent.registry import decode_operation
from appliance.facts.datasets import Dataset
from appliance.rehearsal.rehearse import CleanUpRehearsal, RehearseRebuild
from tests.reasons import codes_of_form, codes_on_page
from tests.unit.made import dataset, path_of
from tests.unit.pools import shapes
from tests.unit.rehearsal.test_rehearse import RESULT, folder, noted, root
from tests.web import rows
from tests.web.pools.test_topology import seen
from tests.web.reading import Page, assert_nothing_inline, text_of
from tests.web.system.test_queries import queries
from web.jobs.models import Job
from web.pools.models import WorkReport

POOL, PAGE = "/pools/7/", "/pools/7/rehearsal/"
ANSWERS = {"answered": "1", "share": "25", "vdev": "102"}
GB = 10**9


def put(*datasets: Dataset, pool: Any = None) -> None:
    found = shapes.facts(pool or shapes.mirror())
    rows.put(
        pools=[pool or shapes.mirror()],
        datasets=list(datasets or (root(),)),
        disks=list(found.disks),
        accounts=[],
        shares=[],
    )


def links(page: Page) -> set[str]:
    return {found["href"] for tag, found in page.elements if tag == "a" and found.get("href")}


def test_form_offers_shares_with_their_time_and_the_disks_of_the_pool(web, calm):
    put()
    response = web.get(PAGE)
    assert response.status_code == 200
    assert_nothing_inline(response)
    text = text_of(response)
    assert "25 %: 500 GB of test data, about 2 h 47 min in all" in text
    assert "WD-WCAZA0000002" in text
    assert web.get(PAGE, {"answered": "1"}).status_code == 400


@pytest.mark.parametrize(
    ("field", "value"), [("share", "99"), ("share", "²"), ("vdev", "50"), ("vdev", "x"), ("vdev", "-1")]
)
def test_other_answers_are_refused_beside_their_field(web, calm, field, value):
    put()
    response = web.get(PAGE, {**ANSWERS, field: value})
    assert response.status_code == 400
    assert codes_of_form(response, field) == ["invalid_choice"]


def test_review_says_what_is_at_risk_and_confirming_makes_one_job(web, calm):
    put()
    response = web.get(PAGE, ANSWERS)
    assert response.status_code == 200
    text = text_of(response)
    assert "has no redundancy: if another disk fails, the pool is lost" in text
    assert "zpool offline -- tank 102" in text
    fields = Page(response).form("/jobs/confirm/").data
    web.post("/jobs/confirm/", {**fields, "typed": "other"})
    assert not Job.objects.exists()
    for _ in range(2):
        assert web.post("/jobs/confirm/", {**fields, "typed": "tank"}).status_code == 302
    (job,) = Job.objects.all()
    assert decode_operation(job.operation) == RehearseRebuild(pool="tank", guid=7, vdev=102, disk=path_of(2), share=25)


def test_pool_in_use_is_refused_with_the_reason_and_offers_nothing(web, calm):
    put(root(), dataset("tank/photos"))
    assert codes_on_page(web.get(PAGE)) == ["rehearsal-pool-has-folders"]
    response = web.get(PAGE, ANSWERS)
    assert (response.status_code, Job.objects.count()) == (409, 0)
    page = Page(web.get(POOL))
    assert PAGE not in links(page)
    assert "can be rehearsed" not in page.text


def test_empty_pool_offers_it_and_a_single_disk_does_not(web, calm):
    put()
    assert PAGE in links(Page(web.get(POOL)))
    put(pool=shapes.single())
    assert PAGE not in links(Page(web.get(POOL)))


def test_pool_page_tells_the_result(web, calm):
    put(root(properties=noted(RESULT)), dataset("tank/photos"))
    text = text_of(web.get(POOL))
    assert "a disk of 4 TB, 25 % full, was rebuilt in 3 h 12 min." in text
    assert "Rehearsed on 24 November 2026" in text
    put(root(properties=noted({**RESULT, "seconds": 30})))
    assert "was rebuilt in 30 s. That is too short for an estimate." in text_of(web.get(POOL))


def test_hostile_result_is_not_shown(web, calm):
    put(root(properties=noted({**RESULT, "disk": "<script>alert(1)</script>"})))
    assert b"<script>alert" not in web.get(POOL).content
    put(root(properties=noted("{" * 100)))
    assert "Rehearsed on" not in text_of(web.get(POOL))


def test_interrupted_rehearsal_leads_to_cleaning_up(web, calm):
    put(root(), folder(), pool=shapes.mirror("ONLINE", "OFFLINE"))
    page = Page(web.get(POOL))
    assert "A rehearsal of a rebuild was interrupted" in page.text
    assert "/pools/7/end/rehearsal/" in links(page)
    review = web.get("/pools/7/end/rehearsal/")
    assert "The disk is out of tank" in text_of(review)
    assert web.post("/jobs/confirm/", Page(review).form("/jobs/confirm/").data).status_code == 302
    (job,) = Job.objects.all()
    assert decode_operation(job.operation) == CleanUpRehearsal(pool="tank", guid=7)
    running = text_of(web.get(POOL))
    assert "is being rehearsed" in running
    assert "was interrupted" not in running


def test_nothing_to_clean_up_is_refused(web, calm):
    put()
    assert codes_on_page(web.get("/pools/7/end/rehearsal/")) == ["rehearsal-missing"]


def test_estimates_of_growth_and_replacement_are_taken_from_the_rehearsal(web, calm):
    seen(range(1, 7))
    pool = shapes.pool(*shapes.mirror().vdevs, allocated=1800 * GB, size=2000 * GB)
    put(root(properties=noted(RESULT), used=1800 * GB, used_by_data=1800 * GB, available=100 * GB), pool=pool)
    rows.put_box()
    assert "about 6 h 24 min (as long as the rehearsal of a rebuild took for each byte)" in text_of(
        web.get("/pools/7/growth/")
    )
    web.post("/pools/7/replace/", {"vdev": "102"})
    case = web.get("/pools/replacements/", follow=True)
    path = next(
        link for link in links(Page(case)) if link.startswith("/pools/replacements/") and link != "/pools/replacements/"
    )
    assert "about 6 h 24 min (as long as the rehearsal of a rebuild took for each byte)" in text_of(web.get(path))
    end = timezone.now() + timedelta(days=900)
    WorkReport.objects.create(
        key="a",
        pool_key="7",
        pool="tank",
        kind="resilver",
        outcome="finished",
        started=end - timedelta(hours=2),
        ended=end,
        looked=1800 * GB,
    )
    assert "about 2 h (as long as its last rebuild took for each byte)" in text_of(web.get(path))


def test_queries_do_not_grow_with_folders(web, calm):
    put(root(), dataset("tank/photos"))
    few = len(queries(web, POOL))
    put(root(), *(dataset(f"tank/{number}") for number in range(20)))
    assert len(queries(web, POOL)) <= few
