"""The pages of a pool's care: checking, trimming, schedules, settings."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.facts.box import LongWork, Pool, PoolProperties
from tests.reasons import codes_of_form, codes_on_page
from tests.unit.made import dataset, disk, recorded_pool
from tests.web import rows
from tests.web.reading import Page, text_of
from tests.web.routes import TANK
from web.inventory import store
from web.inventory.models import PropertiesRow
from web.jobs.models import Job
from web.pools.models import CareSchedule

POOL = f"/pools/{TANK}/"
SCRUB, TRIM, SETTINGS = f"{POOL}scrub/", f"{POOL}trim/", f"{POOL}settings/"
SCHEDULE = f"{POOL}schedule/scrub/"


def work(kind: str = "scrub", state: str = "running") -> LongWork:
    return LongWork(kind, state, rows.LONG_AGO, None, 1, 10)


def put(*found: LongWork, **changes: Any) -> Pool:
    one = replace(recorded_pool(), **{"work": found, "scan": None, "can_trim": True, **changes})
    rows.put(pools=[one], datasets=[dataset("tank")], disks=[disk(1)], accounts=[], shares=[])
    values = {"autotrim": "off", "autoexpand": "on", "autoreplace": "off", "failmode": "wait", "comment": "films"}
    store.replace(PropertiesRow, [PoolProperties("tank", one.guid, values)], lambda found: str(found.guid))
    return one


def operation() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Job.objects.get().operation)
    return found


# --- checking and trimming ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("state", "url", "act", "kind"),
    [
        ("", SCRUB, "start", "start-scrub"),
        ("paused", SCRUB, "start", "start-scrub"),
        ("running", SCRUB, "pause", "pause-scrub"),
        ("", TRIM, "start", "start-trim"),
        ("running", TRIM, "stop", "stop-trim"),
    ],
)
def test_a_button_becomes_a_job_and_leads_back_to_the_pool(web, calm, state, url, act, kind):
    put(*([work("scrub" if url == SCRUB else "trim", state)] if state else []))
    assert web.post(url, {"act": act})["Location"] == POOL
    assert operation()["kind"] == kind
    assert operation()["pool"] == "tank"
    assert ("workers.run_job", str(Job.objects.get().pk)) in calm


def test_sent_twice_it_is_one_job_and_the_page_says_that_it_begins(web, calm):
    put()
    for _ in range(2):
        web.post(SCRUB, {"act": "start"})
    assert Job.objects.count() == 1
    page = Page(web.get(POOL))
    assert page.text.count("is about to start") == 1, "only where it belongs"
    assert not [form for form in page.forms if form.action == SCRUB]


@pytest.mark.parametrize(
    ("found", "url", "act", "code"),
    [
        ([work()], SCRUB, "start", "scrub-running"),
        ([work("resilver")], SCRUB, "start", "scrub-while-rebuilding"),
        ([], SCRUB, "pause", "scrub-not-running"),
        ([], TRIM, "stop", "trim-not-running"),
    ],
)
def test_scrub_or_trim_that_is_not_possible_is_refused(web, calm, found, url, act, code):
    put(*found)
    response = web.post(url, {"act": act})
    assert (response.status_code, codes_on_page(response)) == (409, [code])
    assert not Job.objects.exists()


def test_stopping_is_shown_before_and_confirmed(web, calm):
    put(work())
    review = web.get(f"{SCRUB}stop/")
    assert "zpool scrub -s -- tank" in text_of(review)
    assert "the rest is unchecked" in text_of(review)
    assert not Job.objects.exists()
    web.post("/jobs/confirm/", Page(review).form("/jobs/confirm/").data)
    assert operation()["kind"] == "stop-scrub"


@pytest.mark.parametrize(
    ("found", "shown", "hidden"),
    [
        ([], ["Scrub now", "Trim now"], ["Pause the scrub", "Stop the scrub", "Stop trimming"]),
        ([work()], ["Pause the scrub", "Stop the scrub", "Trim now"], ["Scrub now", "Resume the scrub"]),
        ([work(state="paused")], ["Resume the scrub", "Stop the scrub"], ["Scrub now", "Pause the scrub"]),
        ([work("resilver")], ["Trim now"], ["Scrub now", "Pause the scrub", "Stop the scrub"]),
        ([work("trim")], ["Scrub now", "Stop trimming"], ["Trim now"]),
    ],
)
def test_only_what_can_be_done_is_offered(web, calm, found, shown, hidden):
    put(*found)
    said = text_of(web.get(POOL))
    assert [words for words in shown if words not in said] == []
    assert [words for words in hidden if words in said] == []


def test_disks_that_cannot_be_trimmed_are_not_offered_it(web, calm):
    put(can_trim=False)
    assert "rim now" not in text_of(web.get(POOL))


def test_a_pool_that_does_not_work_is_offered_nothing(web, calm):
    put(state="SUSPENDED")
    said = text_of(web.get(POOL))
    assert "Scrub now" not in said
    assert "Trim now" not in said


# --- schedules ------------------------------------------------------------------------------------------------
GOOD = {"every": "week", "first": "22", "last": "4", "inside": "on"}


def test_a_pool_is_checked_every_month_in_the_small_hours_without_anybody_setting_it(web, calm):
    put()
    said = text_of(web.get(POOL))
    assert "Scrub every month between 01:00 and 06:00" in said
    assert "No automatic trim" in said
    assert not CareSchedule.objects.exists()


def test_a_pool_of_solid_state_disks_is_trimmed_every_month(web, calm):
    one = put()
    turning = [disk(path=device.path.rsplit("-part", 1)[0], rotational=False) for device in one.devices()]
    rows.put(disks=turning)
    assert "Trim every month" in text_of(web.get(POOL))


def test_a_schedule_is_kept_and_shown(web, calm):
    put()
    assert web.post(SCHEDULE, GOOD)["Location"] == POOL
    row = CareSchedule.objects.get()
    assert (row.pool_key, row.kind, row.every, row.first, row.last, row.inside) == (TANK, "scrub", "week", 22, 4, True)
    assert "Scrub every week between 22:00 and 04:00" in text_of(web.get(POOL))
    form = Page(web.get(SCHEDULE)).form(of="every").data
    assert {name: form[name] for name in GOOD} == GOOD
    assert not Job.objects.exists()


def test_a_schedule_sent_twice_is_one_and_keeps_what_was_noted_in_it(web, calm):
    put()
    CareSchedule.objects.create(pool_key=TANK, kind="scrub", every="month", first=1, last=6, held="a")
    for _ in range(2):
        web.post(SCHEDULE, GOOD)
    assert CareSchedule.objects.get().held == "a"


@pytest.mark.parametrize(
    "wrong", [{"every": "day"}, {"every": ""}, {"first": "24"}, {"last": "-1"}, {"first": "1; id"}, {"last": ""}]
)
def test_invalid_schedule_is_not_saved(web, calm, wrong):
    put()
    response = web.post(SCHEDULE, GOOD | wrong)
    assert response.status_code == 400
    assert Page(response).field_error(f"id_{next(iter(wrong))}")
    assert not CareSchedule.objects.exists()


def test_trimming_is_not_paused_by_hours(web, calm):
    put()
    assert "inside" not in Page(web.get(f"{POOL}schedule/trim/")).form(of="every").data
    web.post(f"{POOL}schedule/trim/", GOOD)
    assert CareSchedule.objects.get().inside is False


@pytest.mark.parametrize(
    "url", [f"{POOL}schedule/backup/", "/pools/1/schedule/scrub/", "/pools/1/settings/", "/pools/1/scrub/stop/"]
)
def test_unknown_pool_or_schedule_is_not_found(web, calm, url):
    put()
    assert web.get(url).status_code == 404


@pytest.mark.parametrize("url", ["/pools/1/scrub/", "/pools/1/trim/", "/pools/1/settings/"])
def test_nothing_is_done_to_a_pool_that_is_not_there(web, calm, url):
    put()
    assert web.post(url, {"act": "start", "name": "autotrim", "value": "on"}).status_code == 404
    assert not Job.objects.exists()


# --- settings -------------------------------------------------------------------------------------------------
def test_settings_are_said_in_plain_words(web, calm):
    put()
    page = Page(web.get(SETTINGS))
    assert "Trim as files are deleted" in page.text
    assert "everything waits until the disks are back" in page.text.lower()
    assert page.form(of="comment").data["comment"] == "films"
    switches = re.findall(
        r'<button class="switch switch-(on|off)" role="switch"[^>]*aria-checked="(true|false)"', web.get(SETTINGS).text
    )
    assert switches and all((value == "on") == (checked == "true") for value, checked in switches)


@pytest.mark.parametrize(("name", "value"), [("autotrim", "on"), ("autoexpand", "off"), ("autoreplace", "off")])
def test_a_switch_becomes_a_job(web, calm, name, value):
    put()
    assert web.post(SETTINGS, {"name": name, "value": value})["Location"] == SETTINGS
    assert operation() == {"kind": "set-pool-property", "pool": "tank", "name": name, "value": value}


@pytest.mark.parametrize(
    ("name", "words"), [("autoreplace", "erased without a question"), ("autoexpand", "grows at once")]
)
def test_what_cannot_be_taken_back_later_is_shown_before(web, calm, name, words):
    put()
    review = web.post(SETTINGS, {"name": name, "value": "on"})
    assert words in text_of(review)
    assert not Job.objects.exists()
    web.post("/jobs/confirm/", Page(review).form("/jobs/confirm/").data)
    assert operation() == {"kind": "set-pool-property", "pool": "tank", "name": name, "value": "on"}


def test_a_note_becomes_a_job(web, calm):
    put()
    web.post(SETTINGS, {"name": "comment", "comment": "Anna's"})
    assert operation()["value"] == "Anna's"


def test_note_that_is_not_ascii_is_refused_at_its_field(web, calm):
    put()
    response = web.post(SETTINGS, {"name": "comment", "comment": "Küche"})
    assert response.status_code == 400
    assert codes_of_form(response, "comment") == ["comment-not-ascii"]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("name", "value"), [("failmode", "panic"), ("multihost", "on"), ("autotrim", "maybe"), ("", "")]
)
def test_nothing_else_can_be_set(web, calm, name, value):
    put()
    assert web.post(SETTINGS, {"name": name, "value": value}).status_code == 409
    assert not Job.objects.exists()


def test_before_the_settings_were_read_the_page_says_so(web, calm):
    put()
    PropertiesRow.objects.all().delete()
    assert "Not read yet" in text_of(web.get(SETTINGS))
