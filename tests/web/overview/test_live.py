from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.unit.made import disk
from tests.web import rows
from tests.web.reading import Page, text_of
from tests.web.routes import JOB, PHOTOS, TANK
from web.inventory import store
from web.inventory.models import Progress, Source
from web.jobs.models import Job

LIVE = [
    "/", "/disks/", "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/", "/pools/", f"/pools/{TANK}/", f"/pools/{TANK}/reports/",
    f"/pools/{TANK}/history/", f"/pools/{TANK}/events/", "/folders/", f"/folders/{PHOTOS}/",
    "/users/", "/jobs/", f"/jobs/{JOB}/", "/alerts/", "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/health/",
]  # fmt: skip
live = pytest.mark.parametrize("url", LIVE)


def ask(web, url: str, tag: str = ""):
    return web.get(url, {"part": "live"}, **({"HTTP_IF_NONE_MATCH": tag} if tag else {}))


@live
def test_live_part_equals_the_part_of_the_whole_page(web, box, url):
    whole, part = web.get(url), ask(web, url)
    assert part.status_code == 200
    assert b"<html" not in part.content
    ids = [found.get("id") for _tag, found in Page(part).elements]
    assert "live" in ids
    assert all(word in text_of(whole) for word in text_of(part).split())


@live
def test_page_names_the_address_of_its_live_part(web, box, url):
    (address,) = (found["data-live"] for _tag, found in Page(web.get(url)).elements if "data-live" in found)
    assert web.get(address)["ETag"]


@live
def test_unchanged_part_is_not_sent(web, box, url):
    first = ask(web, url)
    again = ask(web, url, first["ETag"])
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])


@live
def test_changed_row_sends_the_part_again(web, box, url):
    first = ask(web, url)
    store.checked("disks", changed=True)
    again = ask(web, url, first["ETag"])
    assert again.status_code == 200
    assert again["ETag"] != first["ETag"]


@live
def test_every_response_says_when_facts_were_checked(web, box, url):
    first = ask(web, url)
    times = [checked for checked in Source.objects.values_list("checked", flat=True) if checked]
    assert first["X-Larder-Checked"] == min(times).isoformat()
    store.checked("pools", changed=False)
    again = ask(web, url, first["ETag"])
    assert again.status_code == 304
    assert again["X-Larder-Checked"] >= first["X-Larder-Checked"]


def test_weak_tag_from_compression_still_matches(web, box):
    assert ask(web, "/", f"W/{ask(web, '/')['ETag']}").status_code == 304


@pytest.mark.parametrize("tag", ['"other"', "nonsense", '"', "*", 'W/"x", "y"'])
def test_another_tag_gets_the_part(web, box, tag):
    assert ask(web, "/", tag).status_code in ({200, 304} if tag == "*" else {200})


def test_equal_facts_keep_the_tag(web, box):
    first = ask(web, "/disks/")
    rows.put(disks=rows.recorded_disks([rows.recorded_pool()]))
    assert ask(web, "/disks/", first["ETag"]).status_code == 304


def test_changed_disk_is_shown(web, box):
    first = ask(web, "/disks/")
    rows.put(disks=[disk(1, model="A NEW DISK")])
    again = ask(web, "/disks/", first["ETag"])
    assert again.status_code == 200
    assert "A NEW DISK" in text_of(again)


def test_progress_of_a_job_is_shown_at_once(web, box):
    job = rows.job(state=Job.State.RUNNING)
    first = ask(web, f"/jobs/{job.pk}/")
    Progress.objects.create(job=job.pk, percent=7, phrase="Erasing")
    store.touch("jobs")
    again = ask(web, f"/jobs/{job.pk}/", first["ETag"])
    assert "Erasing" in text_of(again)


def test_action_in_another_window_is_shown(web, box):
    for act in ("stop", "acknowledge"):
        job = rows.job(state=Job.State.QUEUED if act == "stop" else Job.State.FAILED)
        tag = ask(web, f"/jobs/{job.pk}/")["ETag"]
        web.post(f"/jobs/{job.pk}/{act}/")
        assert ask(web, f"/jobs/{job.pk}/", tag).status_code == 200


def test_a_new_trouble_is_shown(web, box, monkeypatch):
    from web.jobs import queue

    tag = ask(web, "/pools/")["ETag"]
    monkeypatch.setattr(queue, "reachable", lambda: False)
    again = ask(web, "/pools/", tag)
    assert again.status_code == 200
    assert "queue (Redis) is not running" in text_of(again)


def test_a_tag_belongs_to_one_page(web, box):
    assert len({ask(web, url)["ETag"] for url in LIVE}) == len(LIVE)
    assert web.get("/jobs/", {"part": "live", "page": "2"})["ETag"] != ask(web, "/jobs/")["ETag"]


def test_live_parts_are_not_cached(web, box):
    assert ask(web, "/")["Cache-Control"] == "no-store"


def test_unknown_part_is_the_whole_page(web, box):
    assert b"<html" in web.get("/", {"part": "../../etc/passwd"}).content


def test_live_parts_need_a_sign_in(anonymous, admin, box):
    assert ask(anonymous, "/").status_code == 302


def test_part_of_a_deleted_object_is_not_found(web, box):
    tag = ask(web, f"/pools/{TANK}/")["ETag"]
    rows.put(pools=[])
    assert ask(web, f"/pools/{TANK}/", tag).status_code == 404


# --- looking asks for fresh facts -----------------------------------------------------------------------------
def test_open_page_requests_fresh_facts_every_three_seconds(web, calm):
    for _ in range(5):
        web.get("/")
        ask(web, "/disks/")
    assert calm == [("workers.collect",)]
    Source.objects.filter(name="looking").update(requested=timezone.now() - timedelta(seconds=4))
    web.get("/")
    assert calm == [("workers.collect",)] * 2


def test_opening_a_page_keeps_the_tag(web, box):
    tag = ask(web, "/")["ETag"]
    Source.objects.filter(name="looking").update(requested=None)
    assert ask(web, "/", tag).status_code == 304


def test_only_changed_rows_are_written(calm):
    pools = [rows.pool_of("one", 1000), rows.pool_of("two", 2000)]
    from web.inventory.models import PoolRow

    def put(found: list) -> bool:
        return store.replace(PoolRow, found, lambda pool: str(pool.guid))

    assert put(pools)
    assert not put(pools)
    assert put([replace(pools[0], state="DEGRADED")])
    assert [row.fact.state for row in PoolRow.objects.all()] == ["DEGRADED"]
    assert put([])
    assert not PoolRow.objects.exists()
