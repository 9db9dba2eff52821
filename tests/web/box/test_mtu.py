"""The MTU of a port: its form, the review of trying another, and the button that keeps it."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from appliance.system import mtu
from appliance.system.mtu import MtuStatus, Trial, Unreached
from tests.reasons import codes_of_form
from tests.web.reading import Page, text_of
from tests.web.rows import BOX, ETH0, put_box
from web.jobs.models import Job

PAGE = "/system/ports/eth0/mtu/"


def put_port(status: MtuStatus) -> None:
    put_box(replace(BOX, ports=(replace(ETH0, mtu=status),)))


def trial(**changes: object) -> MtuStatus:
    made = {"port": "eth0", "mtu": 9000, "former": 1500, "until": mtu.now() + 60, **changes}
    return MtuStatus(9000, trial=Trial(**made))  # type: ignore[arg-type]


def test_page_of_the_box_leads_to_the_form(web, calm):
    put_box()
    page = web.get("/system/")
    assert "MTU 1500 Change" in text_of(page)
    assert PAGE in page.content.decode()


def test_another_value_is_reviewed_and_becomes_a_job(web, calm):
    put_box()
    page = Page(web.get(PAGE, {"mtu": "9000"}))
    assert "for 90 seconds" in page.text
    assert "--on-active=90s" in page.text
    assert web.post("/jobs/confirm/", page.form("/jobs/confirm/").data).status_code == 302
    assert json.loads(Job.objects.get().operation) == {
        "kind": "try-mtu",
        "port": "eth0",
        "mtu": 9000,
        "former": 1500,
        "accepted": [],
    }


UNREACHED = Unreached(port="eth0", mtu=9000, at=0.0, deaf=("192.168.1.21",), silent=("192.168.1.22",))


def test_review_says_who_is_asked_before_a_larger_value_stays(web, calm):
    put_box()
    assert "Each computer that is connected is asked first" in Page(web.get(PAGE, {"mtu": "9000"})).text
    assert "is asked first" not in Page(web.get(PAGE, {"mtu": "1400"})).text


def test_computers_that_cannot_follow_are_named_before_it_is_tried_all_the_same(web, calm):
    put_port(MtuStatus(1500, unreached=UNREACHED))
    assert "9000 was not kept: not all computers can follow" in text_of(web.get("/system/"))
    assert "Frames of 9000 bytes did not reach 192.168.1.21. It is not known for 192.168.1.22: no ping" in text_of(
        web.get(PAGE)
    )
    page = Page(web.get(PAGE, {"mtu": "9000", "anyway": "on"}))
    assert "They may lose their connection until 1500 is back: 192.168.1.21, 192.168.1.22." in page.text
    assert web.post("/jobs/confirm/", page.form("/jobs/confirm/").data).status_code == 302
    assert json.loads(Job.objects.get().operation)["accepted"] == ["192.168.1.21", "192.168.1.22"]


@pytest.mark.parametrize("answers", [{"mtu": "9000"}, {"mtu": "4000", "anyway": "on"}])
def test_nobody_is_accepted_that_was_not_named_for_this_value(web, calm, answers):
    put_port(MtuStatus(1500, unreached=UNREACHED))
    page = Page(web.get(PAGE, answers))
    assert web.post("/jobs/confirm/", page.form("/jobs/confirm/").data).status_code == 302
    assert json.loads(Job.objects.get().operation)["accepted"] == []


def test_nobody_is_accepted_where_none_was_named(web, calm):
    put_box()
    assert "anyway" not in web.get(PAGE).content.decode()
    page = Page(web.get(PAGE, {"mtu": "9000", "anyway": "on"}))
    assert web.post("/jobs/confirm/", page.form("/jobs/confirm/").data).status_code == 302
    assert json.loads(Job.objects.get().operation)["accepted"] == []


@pytest.mark.parametrize("value", ["1279", "9217", "x", ""])
def test_value_that_cannot_be_is_refused(web, calm, value):
    put_box()
    assert web.get(PAGE, {"mtu": value}).status_code == 400


def test_same_value_is_refused(web, calm):
    put_box()
    assert codes_of_form(web.get(PAGE, {"mtu": "1500"}), "mtu") == ["mtu-same"]


def test_port_that_others_manage_says_who(web, calm):
    put_port(MtuStatus(1500, refusal="It is not in /etc/network/interfaces, so something else manages it."))
    page = web.get(PAGE, {"mtu": "9000"})
    assert "something else manages it" in text_of(page)
    assert not Job.objects.exists()


def test_trial_is_on_the_page_with_who_cannot_follow(web, calm):
    put_port(trial(tested=True, deaf=("192.168.1.21",)))
    page = text_of(web.get("/system/"))
    assert "9000 is being tried" in page
    assert "No full frame reached 192.168.1.21" in page
    assert "Does everything still work?" in page
    assert "It is not known" not in page
    put_port(trial(tested=True, silent=("192.168.1.22",)))
    page = text_of(web.get("/system/"))
    assert "It is not known whether full frames reach 192.168.1.22." in page
    assert "Full frames reach the computers" not in page


def test_keeping_is_a_job(web, calm):
    put_port(trial())
    assert web.post(f"{PAGE}keep/", {"mtu": "9000"}).status_code == 302
    assert json.loads(Job.objects.get().operation) == {"kind": "keep-mtu", "port": "eth0", "mtu": 9000, "former": 1500}


@pytest.mark.parametrize("status", [MtuStatus(1500), trial(mtu=4000)])
def test_nothing_is_kept_that_the_page_did_not_show(web, calm, status):
    put_port(status)
    assert web.post(f"{PAGE}keep/", {"mtu": "9000"}).status_code == 409
    assert not Job.objects.exists()


def test_unknown_port_is_not_found(web, calm):
    put_box()
    assert web.get("/system/ports/eth7/mtu/").status_code == 404
