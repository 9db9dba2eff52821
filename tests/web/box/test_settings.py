"""The settings of the box on its page, and the reviews of changing them."""

from __future__ import annotations

import json

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance.system import time_sync
from appliance.system.time_sync import TimeSync
from tests.reasons import codes_of_form, codes_on_page
from tests.web.reading import Page, text_of
from tests.web.rows import BOX, put_box
from web import agent, allowed_hosts
from web.alerts.models import MailSettings
from web.allowed_hosts import BoxName
from web.jobs.models import Job
from workers import collect_box

NAME, SERVERS, ZONE = "/system/host-name/", "/system/time-servers/", "/system/time-zone/"


@pytest.fixture
def clients(monkeypatch) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    monkeypatch.setattr(agent, "last", lambda _request, silence: {"facts": found})
    return found


def test_page_of_the_box_leads_to_its_time_zone(web, calm):
    put_box()
    page = web.get("/system/")
    assert "Time zone Europe/Berlin" in text_of(page)
    assert f'href="{ZONE}"' in page.content.decode()


def test_time_zone_of_a_container_is_that_of_its_host(web, calm):
    put_box(replace(BOX, has_systemd=False))
    page = web.get("/system/")
    assert "which has the name and the clock of its host" in text_of(page)
    assert ZONE not in page.content.decode()


def test_form_has_the_zone_that_is_set(web, calm):
    put_box()
    page = web.get(ZONE)
    assert '<option value="Europe/Berlin" selected>Berlin</option>' in page.content.decode()
    assert "Choose a time zone" not in text_of(page)


def test_form_has_no_zone_where_the_one_that_is_set_is_not_offered(web, calm):
    put_box(replace(BOX, time_zone=""))
    assert '<option value="" selected>Choose a time zone</option>' in web.get(ZONE).content.decode()


def test_zone_is_reviewed_with_both_times_and_becomes_a_job(web, calm):
    put_box()
    page = Page(web.get(ZONE, {"zone": "Asia/Kolkata"}))
    assert "(IST) in Asia/Kolkata" in page.text
    assert "the hours of all schedules" in page.text
    assert web.post("/jobs/confirm/", page.form("/jobs/confirm/").data).status_code == 302
    assert json.loads(Job.objects.get().operation) == {"kind": "set-time-zone", "zone": "Asia/Kolkata"}


@pytest.mark.parametrize(
    ("zone", "code"), [("", "required"), ("Europe/Atlantis", "invalid_choice"), ("../UTC", "invalid_choice")]
)
def test_zone_that_is_not_offered_is_refused_at_its_field(web, calm, zone, code):
    put_box()
    page = web.get(ZONE, {"zone": zone})
    assert page.status_code == 400
    assert codes_of_form(page, "zone") == [code]


# --- the host name --------------------------------------------------------------------------------------------------
def test_host_name_is_reviewed_with_who_is_connected_and_becomes_a_job(web, calm, clients):
    put_box()
    clients.append({"protocol": "smb", "id": "1", "user": "anna", "machine": "mac", "shares": ["photos"]})
    page = Page(web.get(NAME, {"name": "Cellar"}))
    assert "anna (mac) is connected and will lose the connection." in page.text
    assert "https://cellar.local/" in page.text
    assert web.post("/jobs/confirm/", page.form("/jobs/confirm/").data).status_code == 302
    assert json.loads(Job.objects.get().operation) == {"kind": "set-host-name", "name": "cellar", "former": "attic"}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "required"),
        ("attic", "host-name-same"),
        ("localhost", "host-name-reserved"),
        ("my nas", "host-name-invalid"),
        ("a" * 16, "host-name-invalid"),
    ],
)
def test_host_name_that_cannot_be_is_refused_at_its_field(web, calm, clients, name, code):
    put_box()
    page = web.get(NAME, {"name": name})
    assert page.status_code == 400
    assert codes_of_form(page, "name") == [code]


@pytest.mark.parametrize("url", [NAME, SERVERS, ZONE])
def test_settings_wait_for_the_first_reading_and_are_the_hosts_in_a_container(web, calm, url):
    assert codes_on_page(web.get(url)) == ["box-not-read"]
    put_box(replace(BOX, has_systemd=False))
    assert codes_on_page(web.get(url)) == ["box-in-container"]


@pytest.mark.parametrize(
    ("address", "told"), [("https://attic.local", True), ("https://192.168.1.5", False), ("", False)]
)
def test_review_says_where_links_in_mails_lead_to_the_former_name(web, calm, clients, address, told):
    put_box()
    MailSettings.objects.update_or_create(pk=1, defaults={"address": address})
    assert ("Links in mails lead to" in text_of(web.get(NAME, {"name": "cellar"}))) is told


def test_pages_call_the_box_by_its_new_name_without_a_restart(web, calm, settings, monkeypatch):
    settings.BOX_NAME = BoxName()
    for name in ("attic", "cellar"):
        monkeypatch.setattr(allowed_hosts, "read_host_name", lambda name=name: name)
        assert f"· {name}" in text_of(web.get("/system/"))


def test_box_answers_to_its_new_name_and_for_now_to_the_former(monkeypatch, tmp_path):
    monkeypatch.setattr(allowed_hosts, "read_host_name", lambda: "cellar")
    monkeypatch.setattr("socket.gethostname", lambda: "attic.lan")
    assert {"cellar", "cellar.local", "attic", "attic.local"} <= set(allowed_hosts.OwnNames(tmp_path / "none"))


# --- the clock ------------------------------------------------------------------------------------------------------
ROUTER = TimeSync(
    on=True,
    synced=True,
    by_timesyncd=True,
    server="fritz.box",
    offset=0.0125,
    last=timezone.now(),
    servers=("fritz.box",),
)


@pytest.mark.parametrize(
    ("sync", "words"),
    [
        (ROUTER, ("synchronised with fritz.box", "Was off by 12 ms", "Time servers fritz.box")),
        (
            TimeSync(on=True, by_timesyncd=True),
            ("waiting for a time server", "Time servers Debian's servers", "reaches the internet"),
        ),
        (TimeSync(synced=True), ("synchronised, but no time service runs now",)),
        (TimeSync(), ("not set from the network", "Choose time servers")),
        (TimeSync(on=True, synced=True), ("Clock synchronised", "Another time service")),
    ],
)
def test_page_tells_the_state_of_the_clock(web, calm, sync, words):
    put_box(replace(BOX, time_sync=sync))
    page = web.get("/system/")
    assert all(word in text_of(page) for word in words), text_of(page)
    assert (f'href="{SERVERS}"' in page.content.decode()) is not sync.set_elsewhere


def test_time_servers_are_reviewed_and_become_a_job(web, calm):
    put_box(replace(BOX, time_sync=ROUTER))
    assert "fritz.box</textarea>" in web.get(SERVERS).content.decode()
    page = web.get(SERVERS, {"servers": "router\r\n192.168.1.1, fd00::1"})
    assert page.context["needs_proof"]
    servers = ["router", "192.168.1.1", "fd00::1"]
    assert json.loads(page.context["operation_json"]) == {"kind": "set-time-servers", "servers": servers}


def test_no_time_servers_are_those_of_debian(web, calm):
    put_box(replace(BOX, time_sync=ROUTER))
    assert "Debian's time servers on the internet" in text_of(web.get(SERVERS, {"servers": ""}))


@pytest.mark.parametrize(
    ("servers", "code"),
    [
        ("-x", "time-server-malformed"),
        ("a a", "time-server-twice"),
        (" ".join(f"s{n}" for n in range(9)), "time-servers-too-many"),
    ],
)
def test_time_servers_that_cannot_be_are_refused_at_their_field(web, calm, servers, code):
    put_box()
    page = web.get(SERVERS, {"servers": servers})
    assert page.status_code == 400
    assert codes_of_form(page, "servers") == [code]


def test_clock_is_asked_again_only_after_some_seconds(monkeypatch):
    asked = []
    monkeypatch.setattr(collect_box, "_sync", [])
    monkeypatch.setattr(time_sync, "read_time_sync", lambda: asked.append(1) or ROUTER)
    assert [collect_box.read_sync() for _ in range(3)] == [ROUTER] * 3
    assert len(asked) == 1
