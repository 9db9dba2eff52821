from __future__ import annotations

import socket

import pytest
from django.test import Client

from tests.web import rows
from tests.web.conftest import ADDRESS, PASSWORD
from tests.web.reading import Page, assert_nothing_inline
from tests.web.routes import pages
from web.allowed_hosts import OwnNames

POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
}


@pages
def test_every_page_is_under_the_policy_and_keeps_to_it_and_no_browser_stores_it(web, box, route):
    for response in (web.get(route.url), web.get(route.url, {"part": "live"}), Client(**ADDRESS).get(route.url)):
        assert set(response["Content-Security-Policy"].split("; ")) == POLICY
        assert "unsafe" not in response["Content-Security-Policy"]
        assert (response["X-Frame-Options"], response["X-Content-Type-Options"]) == ("DENY", "nosniff")
        assert response["Referrer-Policy"] == "same-origin"
        assert "no-store" in response["Cache-Control"]
        if response["Content-Type"].startswith("text/html"):
            assert_nothing_inline(response)


def test_pages_of_the_wizard_and_of_refusals_keep_to_it_too(web, calm):
    disks = rows.empty_box()
    chosen = {"name": "tank", "disks": [disk.path for disk in disks[:4]], "layout": "raidz2-1"}
    for response in [
        *(
            web.get("/pools/new/", {**chosen, "step": step})
            for step in ("name", "disks", "layout", "options", "review")
        ),
        web.get("/pools/new/", {"name": "log", "step": "disks"}),
        web.post("/jobs/confirm/", {"operation": "{}"}),
        web.get("/nowhere/"),
        Client(enforce_csrf_checks=True, **ADDRESS).post("/login/"),
        Client(**ADDRESS).get("/login/"),
    ]:
        assert set(response["Content-Security-Policy"].split("; ")) == POLICY
        assert_nothing_inline(response)


def test_the_set_up_page_keeps_to_it_too(anonymous):
    response = anonymous.get("/setup/")
    assert response.status_code == 200
    assert_nothing_inline(response)


def test_cookies_are_kept_from_scripts_from_plain_http_and_from_other_sites(anonymous, admin):
    cookies = [anonymous.get("/login/").cookies["larder-csrf"]]
    cookies.append(anonymous.post("/login/", {"login": "admin", "password": PASSWORD}).cookies["larder-session"])
    for cookie in cookies:
        assert (cookie["secure"], cookie["httponly"], cookie["samesite"]) == (True, True, "Strict")
        assert cookie["domain"] == ""


def test_no_page_may_be_read_by_another_site(web, box):
    assert "Access-Control-Allow-Origin" not in web.get("/", HTTP_ORIGIN="https://evil.example")


def test_a_form_sent_from_another_site_is_refused(strict, box):
    token = Page(strict.get("/folders/new/")).form(of="name").data["csrfmiddlewaretoken"]
    answers = {"parent": "tank", "name": "films", "preset": "general", "csrfmiddlewaretoken": token}
    refused = strict.post("/folders/new/", answers, HTTP_ORIGIN="https://evil.example")
    assert refused.status_code == 403
    assert strict.post("/folders/new/", answers).status_code == 302


@pytest.fixture
def own(tmp_path, settings) -> OwnNames:
    settings.ALLOWED_HOSTS = OwnNames(tmp_path / "addresses")
    (tmp_path / "addresses").write_text("192.168.1.10\n[fd00::10]\n")
    return settings.ALLOWED_HOSTS


@pytest.mark.parametrize(
    "host", ["evil.example", "192.168.1.11", "testserver", "evil.example:443", "[fd00::11]", "*", "a b", ""]
)
def test_a_foreign_name_is_turned_away_without_a_page(anonymous, admin, own, host):
    for url in ("/", "/login/", "/setup/", "/ready/", "/nowhere/"):
        response = anonymous.get(url, HTTP_HOST=host)
        assert response.status_code == 400
        assert b"Use its own name or its address." in response.content
        assert b"<" not in response.content


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:8443", "[::1]", "192.168.1.10", "192.168.1.10:443", "[fd00::10]"]
)
def test_the_box_answers_to_its_addresses(anonymous, admin, own, host):
    assert anonymous.get("/login/", HTTP_HOST=host).status_code == 200


def test_the_box_answers_to_its_name(anonymous, admin, own):
    name = socket.gethostname().split(".")[0]
    for host in (name, name.upper(), f"{name}.local", f"{name}.lan", f"{name}.home.arpa"):
        assert anonymous.get("/login/", HTTP_HOST=host).status_code == 200
    assert anonymous.get("/login/", HTTP_HOST=f"{name}.evil.example").status_code == 400


def test_a_new_address_is_accepted_as_soon_as_the_worker_has_seen_it(anonymous, admin, own):
    assert anonymous.get("/login/", HTTP_HOST="10.0.0.5").status_code == 400
    beside = own.addresses.with_suffix(".new")
    beside.write_text("10.0.0.5\n")
    beside.replace(own.addresses)
    assert anonymous.get("/login/", HTTP_HOST="10.0.0.5").status_code == 200
    assert anonymous.get("/login/", HTTP_HOST="192.168.1.10").status_code == 400


@pytest.mark.parametrize("line", ["*", ".", ".evil.example", "evil.example", "testserver"])
def test_only_addresses_count_in_the_file_of_addresses(anonymous, admin, own, line):
    own.addresses.write_text(f"192.168.1.10\n{line}\n[{line}]\n")
    assert set(own) - {"192.168.1.10"} == set(OwnNames(own.addresses.with_name("none")))
    assert anonymous.get("/login/", HTTP_HOST="www.evil.example").status_code == 400


def test_without_the_file_the_box_still_answers_to_its_name(anonymous, admin, own):
    own.addresses.unlink()
    assert anonymous.get("/login/", HTTP_HOST="localhost").status_code == 200
    assert "*" not in list(own)
