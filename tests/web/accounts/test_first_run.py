from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from appliance.errors import Reason, Refused
from appliance.system import time_zone
from tests.reasons import codes_of_form
from tests.web.conftest import ADDRESS
from tests.web.reading import Page, text_of
from tests.web.routes import ROUTES
from web import language
from web.accounts import first_run, forms
from web.box import time_zone_choices
from web.jobs import confirm
from web.jobs.models import Job

STYLE = Path(__file__).parents[3] / "web/static/larder.css"
GOOD = {"username": "admin", "password": "long and plain words", "again": "long and plain words"}


@pytest.fixture
def code() -> str:
    return first_run.make_code()


def answers(code: str, **changes: str) -> dict[str, str]:
    return {"code": code, **GOOD, **changes}


@pytest.mark.parametrize("method", ["get", "post"])
def test_before_set_up_every_address_leads_to_the_set_up_page(anonymous, code, method):
    for route in ROUTES:
        if route.name not in {"setup", "ready"}:
            response = getattr(anonymous, method)(route.url)
            assert (response.status_code, response.get("Location")) == (302, "/setup/"), route


def test_an_address_that_does_not_exist_leads_there_too(anonymous, code):
    assert anonymous.get("/accounts/signup/").get("Location") == "/setup/"


def test_the_right_code_makes_the_one_administrator_and_signs_in(anonymous, code, calm):
    response = anonymous.post("/setup/", answers(code))
    assert (response.status_code, response["Location"]) == (302, "/")
    made = User.objects.get()
    assert (made.username, made.is_superuser, made.check_password(GOOD["password"])) == ("admin", True, True)
    assert anonymous.get("/").status_code == 200


@pytest.mark.parametrize(
    "written", [str.lower, lambda code: code.replace("-", ""), lambda code: f" {code[:3]} {code[3:]} "]
)
def test_the_code_may_be_typed_as_people_type(anonymous, code, written):
    assert anonymous.post("/setup/", answers(written(code))).status_code == 302


@pytest.mark.parametrize("wrong", ["AAAAA-AAAAA", "", "é" * 10, "A" * 41])
def test_a_wrong_code_makes_nobody(anonymous, code, wrong):
    response = anonymous.post("/setup/", answers(wrong))
    assert response.status_code == 400
    assert Page(response).field_error("id_code")
    assert not User.objects.exists()
    assert first_run.CODE.exists()


def test_a_wrong_code_is_told_in_a_sentence(anonymous, code):
    assert "That is not the code that the box shows." in text_of(anonymous.post("/setup/", answers("AAAAA-AAAAA")))


def test_without_a_code_file_no_code_is_right(anonymous):
    assert anonymous.post("/setup/", answers("")).status_code == 400
    assert not first_run.code_is_right("")
    first_run.CODE.write_text("")
    assert not first_run.code_is_right("")


@pytest.mark.parametrize(
    ("field", "changes", "sentence"),
    [
        ("password", {"password": "short", "again": "short"}, "too short"),
        (
            "password",
            {"password": "passwordpassword1", "again": "passwordpassword1", "username": "passwordpassword"},
            "too similar",
        ),
        ("again", {"again": "something else"}, "The two passwords differ."),
        ("username", {"username": "a b\n"}, "Enter a valid username"),
        ("username", {"username": "\x00admin"}, "Null characters"),
        ("password", {"password": "", "again": ""}, "Fill this in."),
    ],
)
def test_a_wrong_answer_gets_its_sentence_at_its_field(anonymous, code, field, changes, sentence):
    response = anonymous.post("/setup/", answers(code, **changes))
    page = Page(response)
    assert response.status_code == 400
    assert page.field_error(f"id_{field}")
    assert sentence in page.text
    assert not User.objects.exists()


def test_a_wrong_answer_never_shows_the_password_again(anonymous, code):
    assert GOOD["password"].encode() not in anonymous.post("/setup/", answers("AAAAA-AAAAA")).content


def test_afterwards_the_set_up_page_is_gone(anonymous, code):
    anonymous.post("/setup/", answers(code))
    for client in (anonymous, Client(**ADDRESS)):
        assert client.get("/setup/").status_code == 404
        assert client.post("/setup/", answers(code, username="eve")).status_code == 404
    assert User.objects.count() == 1


def test_the_code_file_goes_when_the_code_was_used(anonymous, code):
    assert first_run.CODE.stat().st_mode & 0o777 == 0o600
    anonymous.post("/setup/", answers(code))
    assert not first_run.CODE.exists()


def test_the_second_of_two_makes_nobody():
    assert first_run.make_administrator("first", GOOD["password"])
    assert first_run.make_administrator("second", GOOD["password"]) is None
    assert [user.username for user in User.objects.all()] == ["first"]


def test_a_second_form_with_the_right_code_is_too_late_even_where_the_page_was_open(anonymous, code, monkeypatch):
    """As in another process that looked a moment before the first form arrived."""
    anonymous.post("/setup/", answers(code))
    first_run.CODE.write_text(code)
    monkeypatch.setattr(first_run, "is_set_up", lambda: False)
    late = Client(**ADDRESS)
    assert late.post("/setup/", answers(code, username="eve")).status_code == 404
    assert [user.username for user in User.objects.all()] == ["admin"]
    assert "larder-session" not in late.cookies


def test_another_process_sees_that_set_up_is_done(anonymous, code):
    first_run.make_administrator("admin", GOOD["password"])
    assert not first_run.known_set_up
    assert anonymous.get("/").get("Location") == "/login/?next=/"


def test_guessing_is_throttled_for_everybody_together(code):
    for number in range(10):
        guesser = Client(HTTP_X_REAL_IP=f"192.168.1.{number}")
        assert guesser.post("/setup/", answers("AAAAA-AAAAA")).status_code == 400
    response = Client(HTTP_X_REAL_IP="192.168.1.99").post("/setup/", answers(code))
    assert response.status_code == 429
    assert "Wait a minute" in text_of(response)
    assert not User.objects.exists()


def test_the_set_up_form_needs_its_token(code):
    response = Client(enforce_csrf_checks=True, **ADDRESS).post("/setup/", answers(code))
    assert response.status_code == 403
    assert not User.objects.exists()


def test_every_code_is_new_and_long():
    codes = {first_run.make_code() for _ in range(20)}
    assert len(codes) == 20
    assert all(len(code) == 11 and set(code) <= {*first_run.ALPHABET, "-"} for code in codes)


@pytest.mark.parametrize("shape", ["{}-{}", "{}{}", " {} {} ", "{} - {}", "{}–{}", "{}\u00a0{}"])
@pytest.mark.parametrize("case", [str.upper, str.lower])
def test_code_is_taken_however_it_is_typed(anonymous, shape, case):
    code = first_run.make_code()
    typed = case(shape.format(*code.split("-")))
    assert anonymous.post("/setup/", answers(typed)).status_code == 302


def declarations(selector: str) -> dict[str, str]:
    """What a rule of the style sheet sets, with the lengths that it names by tokens."""
    sheet = STYLE.read_text()
    tokens = dict(re.findall(r"(--\d+): ([\d.]+rem);", sheet))
    (rule,) = re.findall(rf"^ *{re.escape(selector)}[^{{}}]* \{{([^{{}}]*)\}}", sheet, re.MULTILINE)
    rule = re.sub(r"var\((--\d+)\)", lambda found: tokens[found[1]], rule).replace(" !important", "")
    return dict(re.findall(r"([\w-]+): ([^;]+);", rule))


def test_field_of_the_code_shows_every_letter_of_it_and_the_dash(anonymous, code):
    """Each takes the width of a letter (``1ch``) and the space behind it; the field's width
    includes padding and border."""
    (field,) = [found for _tag, found in Page(anonymous.get("/setup/")).elements if found.get("name") == "code"]
    assert "code" in field["class"].split()
    assert int(field["maxlength"]) >= len(code)
    assert "size" not in field
    of_code, of_inputs = declarations(".code"), declarations("input:not(")
    width = re.fullmatch(r"calc\((\d+) \* \(1ch \+ ([\d.]+em)\) \+ ([\d.]+)rem\)", of_code["inline-size"])
    assert width, of_code["inline-size"]
    assert int(width[1]) >= len(code)
    assert width[2] == of_code["letter-spacing"]
    assert "var(--mono)" in of_code["font"]
    assert "padding" not in of_code
    beside = float(of_inputs["padding"].split()[-1].removesuffix("rem"))
    border = float(of_inputs["border"].partition("px")[0]) / 16
    assert float(width[3]) >= 2 * (beside + border)


# --- the time zone --------------------------------------------------------------------------------------------------
@pytest.fixture
def own_clock(monkeypatch):
    """A box with systemd, whose zone is UTC."""
    monkeypatch.setattr(time_zone_choices, "can_be_set", lambda: True)
    monkeypatch.setattr(time_zone, "read_zone_name", lambda: "UTC")
    monkeypatch.setattr(forms, "read_zone_name", lambda: "UTC")


def test_time_zone_chosen_at_set_up_is_set_by_a_job(anonymous, code, calm, own_clock):
    assert anonymous.post("/setup/", answers(code, time_zone="Europe/Berlin")).status_code == 302
    assert json.loads(Job.objects.get().operation) == {"kind": "set-time-zone", "zone": "Europe/Berlin"}


@pytest.mark.parametrize("chosen", [{}, {"time_zone": ""}, {"time_zone": "UTC"}])
def test_zone_that_is_set_already_makes_no_job(anonymous, code, calm, own_clock, chosen):
    assert anonymous.post("/setup/", answers(code, **chosen)).status_code == 302
    assert not Job.objects.exists()


def test_zone_that_is_not_offered_makes_nobody(anonymous, code, own_clock):
    page = anonymous.post("/setup/", answers(code, time_zone="Europe/Atlantis"))
    assert codes_of_form(page, "time_zone") == ["invalid_choice"]
    assert not User.objects.exists()


def test_set_up_starts_at_the_zone_of_the_browser_but_keeps_what_was_chosen(anonymous, code, own_clock):
    assert "data-browser-zone" in anonymous.get("/setup/").content.decode()
    again = anonymous.post("/setup/", answers("AAAAA-AAAAA", time_zone="Asia/Kolkata")).content.decode()
    assert "data-browser-zone" not in again
    assert '<option value="Asia/Kolkata" selected>Kolkata</option>' in again


def test_set_up_is_done_although_the_zone_cannot_be_set(anonymous, code, calm, own_clock, monkeypatch):
    def refuse(*_given: object, **_named: object) -> None:
        raise Refused(Reason("secret-not-stored", "There is no room."))

    monkeypatch.setattr(confirm, "start_without_review", refuse)
    page = anonymous.post("/setup/", answers(code, time_zone="Europe/Berlin"), follow=True)
    assert "The time zone was not set. There is no room. You can set it on the System page." in text_of(page)
    assert User.objects.exists()


def test_container_has_the_zone_of_its_host(anonymous, code, monkeypatch):
    monkeypatch.setattr(time_zone_choices, "can_be_set", lambda: False)
    assert "time_zone" not in anonymous.get("/setup/").content.decode()


# --- the language ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("browser", "first"), [("nl-BE,nl;q=0.9", "nl"), ("en-US", "en-gb"), ("de", "en-gb"), ("", "en-gb")]
)
def test_set_up_starts_in_the_language_of_the_browser(anonymous, code, dutch, browser, first):
    page = anonymous.get("/setup/", headers={"Accept-Language": browser}).content.decode()
    assert f'<option value="{first}" selected>' in page
    assert f'<html lang="{"nl" if first == "nl" else "en-GB"}">' in page


@pytest.mark.parametrize(
    ("browser", "chosen", "stored"),
    [("nl", {"language": "en-gb"}, "en-gb"), ("en", {"language": "nl"}, "nl"), ("nl", {}, "nl"), ("de", {}, "en-gb")],
)
def test_language_chosen_at_set_up_is_that_of_the_box(anonymous, code, calm, browser, chosen, stored):
    sent = anonymous.post("/setup/", answers(code, **chosen), headers={"Accept-Language": browser})
    assert sent.status_code == 302
    assert language.language_of_box() == stored


def test_language_that_is_not_offered_makes_nobody(anonymous, code):
    page = anonymous.post("/setup/", answers(code, language="xx"))
    assert codes_of_form(page, "language") == ["invalid_choice"]
    assert not User.objects.exists()
