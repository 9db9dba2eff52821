from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import time_machine
from django.utils import timezone
from django_htmx.http import HTMX_STOP_POLLING
from msgspec.structs import replace

from tests.unit.made import disk
from tests.web import rows
from tests.web.reading import Page, text_of
from tests.web.routes import JOB, PHOTOS, TANK
from web.inventory import store
from web.inventory.models import Progress, Source
from web.jobs.models import Job

ROOT = Path(__file__).resolve().parents[3]
LIVE = [
    "/",
    "/disks/",
    "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/",
    "/pools/",
    f"/pools/{TANK}/",
    f"/pools/{TANK}/reports/",
    f"/pools/{TANK}/history/",
    f"/pools/{TANK}/events/",
    "/folders/",
    f"/folders/{PHOTOS}/",
    "/users/",
    "/jobs/",
    f"/jobs/{JOB}/",
    "/alerts/",
    "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/health/",
]
live = pytest.mark.parametrize("url", LIVE)


def ask(web, url: str, tag: str = "", **more: str):
    """Ask for the live part of a page as htmx does."""
    return web.get(url, HTTP_HX_REQUEST="true", **({"HTTP_IF_NONE_MATCH": tag} if tag else {}), **more)


def times_of(response) -> dict[str, str]:
    return json.loads(response["HX-Trigger"])["factsChecked"]


@live
def test_live_part_equals_the_part_of_the_whole_page(web, box, url):
    with time_machine.travel(timezone.now(), tick=False):  # "4 seconds ago" may be 5 in the next answer
        whole, part = web.get(url), ask(web, url)
    assert part.status_code in {200, HTMX_STOP_POLLING}
    assert b"<html" not in part.content
    ids = [found.get("id") for _tag, found in Page(part).elements]
    assert "live" in ids
    assert all(word in text_of(whole) for word in text_of(part).split())


@live
def test_page_names_the_address_of_its_live_part(web, box, url):
    (part,) = (found for _tag, found in Page(web.get(f"{url}?page=1")).elements if found.get("id") == "live")
    assert part["hx-get"] == f"{url}?page=1"
    assert re.match(
        r"every [1-3]s, visibilitychange from:document$|visibilitychange from:document$", part["hx-trigger"]
    )
    assert "[" not in part["hx-trigger"]  # a filter would be evaluated, which the policy forbids
    assert ask(web, part["hx-get"])["ETag"]


@live
def test_page_carries_the_tag_of_its_part(web, box, url):
    (part,) = (found for _tag, found in Page(web.get(url)).elements if found.get("id") == "live")
    headers = json.loads(part["hx-headers"])
    assert ask(web, url, headers["If-None-Match"]).status_code == 304


@live
def test_part_brings_the_tools_of_the_header(web, box, url):
    (tools,) = (found for _tag, found in Page(ask(web, url)).elements if found.get("id") == "header-tools")
    assert tools["hx-swap-oob"] == "morph"
    (tools,) = (found for _tag, found in Page(web.get(url)).elements if found.get("id") == "header-tools")
    assert "hx-swap-oob" not in tools


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
    assert again.status_code in {200, HTMX_STOP_POLLING}
    assert again["ETag"] != first["ETag"]


@live
def test_every_response_says_when_facts_were_checked(web, box, url):
    first = ask(web, url)
    times = [checked for checked in Source.objects.values_list("checked", flat=True) if checked]
    assert times_of(first)["at"] == min(times).isoformat()
    store.checked("pools", changed=False)
    again = ask(web, url, first["ETag"])
    assert again.status_code == 304
    assert times_of(again)["at"] >= times_of(first)["at"]
    assert times_of(again)["now"] > times_of(first)["now"]


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
        assert ask(web, f"/jobs/{job.pk}/", tag).status_code == HTMX_STOP_POLLING


def test_a_new_trouble_is_shown(web, box, monkeypatch):
    from web.jobs import queue

    tag = ask(web, "/pools/")["ETag"]
    monkeypatch.setattr(queue, "is_reachable", lambda: False)
    again = ask(web, "/pools/", tag)
    assert again.status_code == 200
    assert "queue (Redis) is not running" in text_of(again)


def test_a_tag_belongs_to_one_page(web, box):
    assert len({ask(web, url)["ETag"] for url in LIVE}) == len(LIVE)
    assert ask(web, "/jobs/?page=2")["ETag"] != ask(web, "/jobs/")["ETag"]


def test_live_parts_are_not_cached(web, box):
    assert ask(web, "/")["Cache-Control"] == "no-store"


def test_caches_keep_the_part_and_the_page_apart(web, box):
    assert "HX-Request" in web.get("/")["Vary"]
    assert "HX-Request" in ask(web, "/")["Vary"]


def test_only_htmx_is_answered_that_nothing_changed(web, box):
    tag = ask(web, "/")["ETag"]
    assert b"<html" in web.get("/", HTTP_IF_NONE_MATCH=tag).content


def test_live_parts_need_a_sign_in(anonymous, admin, box):
    assert ask(anonymous, "/").status_code == 302
    shown = ask(anonymous, "/pools/", HTTP_HX_CURRENT_URL="http://testserver/pools/")
    assert (shown.status_code, shown["HX-Redirect"], shown.content) == (200, "/login/?next=/pools/", b"")


def test_ended_job_is_not_asked_for_any_more(web, box):
    job = rows.job(state=Job.State.RUNNING)
    assert ask(web, f"/jobs/{job.pk}/").status_code == 200
    Job.objects.filter(pk=job.pk).update(state=Job.State.DONE)
    ended = ask(web, f"/jobs/{job.pk}/")
    assert ended.status_code == HTMX_STOP_POLLING
    assert b"every" not in ended.content


# --- redirects and whole pages, as htmx gets them ---------------------------------------------------------------
HERE = {"HTTP_HX_REQUEST": "true", "HTTP_HX_CURRENT_URL": "http://testserver/jobs/?page=2"}


def test_redirect_to_the_page_that_asked_keeps_its_place(web, box):
    job = rows.job(state=Job.State.FAILED)
    answer = web.post(f"/jobs/{job.pk}/acknowledge/", {"next": "/jobs/"}, **HERE)
    assert (answer.status_code, answer["Location"]) == (302, "/jobs/?page=2")


def test_redirect_elsewhere_is_followed_by_the_browser(web, box):
    job = rows.job(state=Job.State.FAILED)
    answer = web.post(f"/jobs/{job.pk}/acknowledge/", {"next": "/"}, **HERE)
    assert (answer.status_code, answer["HX-Redirect"]) == (200, "/")


def test_whole_page_takes_the_place_of_the_page_that_asked(web, box):
    answer = web.get("/nowhere/", **HERE)
    assert (answer.status_code, answer["HX-Retarget"], answer.get("HX-Push-Url")) == (404, "body", None)


def test_live_part_that_is_gone_leaves_the_page_alone(web, box):
    answer = web.get("/nowhere/", HTTP_HX_TRIGGER="live", **HERE)
    assert answer.status_code == 404
    assert "HX-Retarget" not in answer


def test_notice_of_an_act_comes_with_the_part_and_stays_for_the_window_that_acted(web, box, monkeypatch):
    disk_page = "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/"
    web.post(f"{disk_page}locate/", {"next": disk_page})  # without an agent here: the notice says so
    assert b"toast-error" not in web.get(disk_page, HTTP_HX_REQUEST="true", HTTP_HX_TRIGGER="live").content
    part = web.get(disk_page, HTTP_HX_REQUEST="true")
    assert b'hx-swap-oob="beforeend:#messages"' in part.content
    assert b"toast-error" in part.content


# --- forms -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "url",
    [
        f"/folders/{PHOTOS}/share/",
        f"/shares/{PHOTOS}/nfs/",
        f"/snapshots/of/{PHOTOS}/take/",
        "/folders/new/",
        "/alerts/mail/",
        "/alerts/tests/",
        f"/pools/{TANK}/schedule/scrub/",
    ],
)
def test_wrong_form_comes_back_alone_with_its_errors(web, box, url):
    wrong = {"name": "a/b", "every": "sometimes", "short": "sometimes", "port": "many", "clients": "?", "sent": "1"}
    whole = web.post(url, wrong)
    assert (whole.status_code, b"<html" in whole.content) == (400, True)
    part = web.post(url, wrong, HTTP_HX_REQUEST="true", HTTP_HX_CURRENT_URL=f"http://testserver{url}")
    assert (part.status_code, part["HX-Retarget"], part["HX-Reswap"]) == (400, "#form", "outerHTML")
    tag, form = Page(part).elements[0]
    assert (tag, form["id"], form["method"]) == ("form", "form", "post")
    assert b"error-summary" in part.content


def test_script_of_the_pages_is_short():
    assert len((ROOT / "web/static/larder.js").read_text().splitlines()) < 120


def test_part_of_a_deleted_object_is_not_found(web, box):
    tag = ask(web, f"/pools/{TANK}/")["ETag"]
    rows.put(pools=[])
    assert ask(web, f"/pools/{TANK}/", tag).status_code == 404


# --- looking asks for fresh facts -----------------------------------------------------------------------------
def test_open_page_requests_fresh_facts_every_three_seconds(web, calm):
    with time_machine.travel(timezone.now(), tick=False) as clock:  # ten pages take longer than that on a busy computer
        for _ in range(5):
            web.get("/")
            ask(web, "/disks/")
        assert calm.count(("workers.collect",)) == 1
        clock.shift(4)
        web.get("/")
    assert calm.count(("workers.collect",)) == 2


@pytest.mark.parametrize(
    "url",
    [
        "/benchmarks/new/ashift/",
        "/benchmarks/client/",
        "/imports/new/smb/",
        "/folders/new/",
        "/pools/new/",
        f"/pools/{TANK}/replace/",
    ],
)
def test_opening_a_form_that_offers_facts_requests_fresh_ones(web, box, calm, url):
    assert web.get(url).status_code == 200
    assert calm.count(("workers.collect",)) == 1


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
