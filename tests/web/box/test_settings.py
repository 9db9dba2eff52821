"""The settings of the box on its page, and the reviews of changing them."""

from __future__ import annotations

import dataclasses
import json

import pytest

from tests.reasons import codes_of_form
from tests.web.reading import Page, text_of
from tests.web.rows import BOX, put_box
from web.jobs.models import Job

ZONE = "/system/time-zone/"


def test_page_of_the_box_leads_to_its_time_zone(web, calm):
    put_box()
    page = web.get("/system/")
    assert "Time zone Europe/Berlin" in text_of(page)
    assert f'href="{ZONE}"' in page.content.decode()


def test_time_zone_of_a_container_is_that_of_its_host(web, calm):
    put_box(dataclasses.replace(BOX, has_systemd=False))
    page = web.get("/system/")
    assert "which has the clock of its host" in text_of(page)
    assert ZONE not in page.content.decode()


def test_form_has_the_zone_that_is_set(web, calm):
    put_box()
    page = web.get(ZONE)
    assert '<option value="Europe/Berlin" selected>Berlin</option>' in page.content.decode()
    assert "Choose a time zone" not in text_of(page)


def test_form_has_no_zone_where_the_one_that_is_set_is_not_offered(web, calm):
    put_box(dataclasses.replace(BOX, time_zone=""))
    assert '<option value="" selected>Choose a time zone</option>' in web.get(ZONE).content.decode()


def test_zone_is_reviewed_with_both_times_and_becomes_a_job(web, calm):
    put_box()
    page = Page(web.get(ZONE, {"zone": "Asia/Kolkata"}))
    assert "(IST) in Asia/Kolkata" in page.text
    assert "the hours of all schedules" in page.text
    assert web.post("/jobs/confirm/", page.form("/jobs/confirm/").data).status_code == 302
    assert json.loads(Job.objects.get().operation) == {"kind": "set-time-zone", "zone": "Asia/Kolkata"}


@pytest.mark.parametrize(("zone", "code"), [("", "required"), ("Europe/Atlantis", "invalid_choice"), ("../UTC", "invalid_choice")])  # fmt: skip
def test_zone_that_is_not_offered_is_refused_at_its_field(web, calm, zone, code):
    put_box()
    page = web.get(ZONE, {"zone": zone})
    assert page.status_code == 400
    assert codes_of_form(page, "zone") == [code]
