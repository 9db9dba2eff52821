from __future__ import annotations

import re

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import connections
from django.test import Client

from tests.web.conftest import ADDRESS, PASSWORD
from tests.web.reading import Page, text_of
from web.inventory.router import InventoryRouter

NEW = "another long password"


pytestmark = pytest.mark.usefixtures("agent_in_process")


def sign_in(client: Client, password: str = PASSWORD, **more: str):
    return client.post("/login/", {"login": "admin", "password": password, **more})


@pytest.fixture
def browser(admin, calm) -> Client:
    """Signed in through the page."""
    client = Client(**ADDRESS)
    assert sign_in(client).status_code == 302
    return client


@pytest.fixture
def other(admin, calm) -> Client:
    client = Client(HTTP_X_REAL_IP="192.168.1.60", HTTP_USER_AGENT="Safari on the sofa")
    sign_in(client)
    return client


def test_the_form_asks_for_username_and_password_and_nothing_else(anonymous, admin):
    page = Page(anonymous.get("/login/"))
    labels = re.findall(r"<label[^>]*>([^<]+)", anonymous.get("/login/").content.decode())
    assert [label.strip() for label in labels] == ["Username", "Password"]
    assert set(page.form(of="login").data) == {"login", "password", "csrfmiddlewaretoken"}


def test_a_good_password_leads_to_the_page_that_was_asked_for(anonymous, admin, calm):
    response = anonymous.post("/login/?next=/disks/", {"login": "admin", "password": PASSWORD, "next": "/disks/"})
    assert (response.status_code, response["Location"]) == (302, "/disks/")
    assert anonymous.get("/disks/").status_code == 200


def test_who_is_signed_in_stays_so_for_two_weeks(anonymous, admin, calm):
    cookie = sign_in(anonymous).cookies["larder-session"]
    assert cookie["max-age"] == 14 * 24 * 3600


@pytest.mark.parametrize(
    ("name", "password"),
    [("admin", "wrong"), ("eve", PASSWORD), ("admin", ""), ("", PASSWORD), ("admin\x00", PASSWORD)],
)
def test_wrong_answers_sign_nobody_in(anonymous, admin, name, password):
    response = anonymous.post("/login/", {"login": name, "password": password})
    assert "error-summary" in response.content.decode()
    assert anonymous.get("/").status_code == 302


def test_a_wrong_password_and_a_wrong_name_get_the_same_sentence(anonymous, admin):
    wrong = [text_of(anonymous.post("/login/", {"login": name, "password": "no"})) for name in ("admin", "eve")]
    assert "This name and password do not go together." in wrong[0]
    assert wrong[0] == wrong[1]


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "///evil.example",
        "javascript:alert(1)",
        "/\t/evil.example",
        "http:evil.example",
        "\\\\evil.example",
        "https://testserver@evil.example/",
    ],
)
def test_signing_in_never_leads_to_another_site(anonymous, admin, calm, target):
    response = anonymous.post("/login/", {"login": "admin", "password": PASSWORD, "next": target})
    assert (response.status_code, response["Location"]) == (302, "/")


def test_guessing_is_throttled_with_a_sentence(anonymous, admin):
    for _ in range(5):
        sign_in(anonymous, "wrong")
    response = sign_in(anonymous)
    assert "Too many attempts" in text_of(response)
    assert anonymous.get("/").status_code == 302


def test_failing_under_a_name_at_one_address_keeps_nobody_out_at_another(admin, calm):
    eve = Client(HTTP_X_REAL_IP="192.168.1.66")
    for _ in range(8):
        sign_in(eve, "wrong")
    assert "Too many attempts" in text_of(sign_in(eve))
    assert sign_in(Client(HTTP_X_REAL_IP="192.168.1.9")).status_code == 302


def test_guessing_from_many_addresses_is_throttled_and_known_ones_are_let_through(browser):
    for number in range(50):
        sign_in(Client(HTTP_X_REAL_IP=f"192.168.2.{number}"), "wrong")
    assert "Too many attempts" in text_of(sign_in(Client(HTTP_X_REAL_IP="192.168.1.9")))
    browser.post("/logout/")
    assert "Too many attempts" in text_of(sign_in(browser))


def test_the_address_of_a_session_signs_in_while_the_box_is_guessed_at(browser):
    for number in range(55):
        sign_in(Client(HTTP_X_REAL_IP=f"192.168.2.{number}"), "wrong")
    assert sign_in(Client(**ADDRESS)).status_code == 302


def test_signing_in_well_uses_up_nothing_of_the_limit_for_the_box(admin, calm):
    for number in range(55):
        assert sign_in(Client(HTTP_X_REAL_IP=f"192.168.3.{number}")).status_code == 302
    assert sign_in(Client(HTTP_X_REAL_IP="192.168.1.9")).status_code == 302


def test_one_address_is_throttled_whatever_the_name(anonymous, admin):
    answers = [anonymous.post("/login/", {"login": f"name{number}", "password": "wrong"}) for number in range(40)]
    assert "Too many attempts" in text_of(answers[11])
    assert answers[-1].status_code == 429
    assert "Wait a minute" in text_of(answers[-1])


def test_attempts_are_counted_in_the_shared_database_and_not_in_the_process(anonymous, admin):
    for _ in range(5):
        sign_in(anonymous, "wrong")
    with connections["inventory"].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM cache WHERE cache_key LIKE '%login_failed%'")
        assert cursor.fetchone()[0] >= 2
        assert "Too many attempts" in text_of(sign_in(anonymous))
        # Nothing is left of the count once the rows are gone, so it was nowhere else.
        cursor.execute("DELETE FROM cache")
    assert sign_in(anonymous).status_code == 302


def test_the_counts_live_with_the_facts_and_not_on_the_system_disk():
    router = InventoryRouter()
    model = cache.cache_model_class  # type: ignore[attr-defined]  # the database's cache has it, the base class not
    assert {router.db_for_read(model), router.db_for_write(model)} == {"inventory"}
    assert "cache" not in connections["default"].introspection.table_names()


def test_signing_out_is_a_form_and_ends_the_session(browser):
    assert browser.get("/logout/").status_code == 405
    assert browser.get("/").status_code == 200
    key = browser.cookies["larder-session"].value
    assert browser.post("/logout/")["Location"] == "/login/"
    assert browser.get("/").status_code == 302
    assert not Session.objects.filter(pk=key).exists()
    assert browser.post("/logout/").status_code == 302


def test_signing_out_never_leads_to_another_site(browser):
    assert browser.post("/logout/", {"next": "https://evil.example/"})["Location"] == "/login/"


def test_every_session_is_listed_with_browser_address_and_which_is_this(browser, other):
    text = text_of(browser.get("/account/sessions/"))
    assert text.index("Firefox") < text.index("this one") < text.index("192.168.1.50") < text.index("Safari")
    assert "192.168.1.60" in text
    assert text.count("this one") == 1


def test_an_ended_session_no_longer_opens_anything(browser, other):
    row = UserSession.objects.get(ip="192.168.1.60")
    for _ in range(2):
        assert browser.post(f"/account/sessions/{row.pk}/end/")["Location"] == "/account/sessions/"
    assert other.get("/")["Location"] == "/login/?next=/"
    assert "Safari" not in text_of(browser.get("/account/sessions/"))


def test_a_copied_cookie_dies_with_its_session(browser, other):
    thief = Client(HTTP_X_REAL_IP="192.168.1.70")
    thief.cookies["larder-session"] = other.cookies["larder-session"].value
    assert thief.get("/").status_code == 200
    browser.post(f"/account/sessions/{UserSession.objects.get(ip='192.168.1.60').pk}/end/")
    assert thief.get("/").status_code == 302


def test_the_own_session_can_be_ended_too(browser):
    browser.post(f"/account/sessions/{UserSession.objects.get().pk}/end/")
    assert browser.get("/").status_code == 302


def test_a_session_of_somebody_else_cannot_be_ended(browser, django_user_model):
    eve = django_user_model.objects.create_user("eve", password=PASSWORD)
    row = UserSession.objects.create(user=eve, ip="192.168.1.80", session_key="x" * 32, user_agent="")
    browser.post(f"/account/sessions/{row.pk}/end/")
    assert UserSession.objects.filter(pk=row.pk).exists()


def change(client: Client, **changes: str):
    answers = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW, **changes}
    return client.post("/account/password/", answers)


def test_a_new_password_ends_every_other_session_and_keeps_this_one(browser, other, admin):
    assert change(browser)["Location"] == "/account/sessions/"
    assert "Every other session was signed out." in text_of(browser.get("/account/sessions/"))
    assert other.get("/").status_code == 302
    assert browser.get("/").status_code == 200
    admin.refresh_from_db()
    assert admin.check_password(NEW)
    assert len(UserSession.objects.purge_and_list(admin)) == 1


def test_a_new_password_gives_the_session_a_new_key(browser):
    before = browser.cookies["larder-session"].value
    change(browser)
    assert browser.cookies["larder-session"].value != before


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"old_password": "wrong"}, "id_old_password"),
        ({"new_password2": "different"}, "id_new_password2"),
        ({"new_password1": "short", "new_password2": "short"}, "id_new_password2"),
        ({"new_password1": "", "new_password2": ""}, "id_new_password1"),
    ],
)
def test_a_wrong_answer_changes_no_password(browser, other, admin, changes, field):
    response = change(browser, **changes)
    assert response.status_code == 400
    assert Page(response).field_error(field)
    admin.refresh_from_db()
    assert admin.check_password(PASSWORD)
    assert other.get("/").status_code == 200


def test_the_new_password_sent_twice_is_changed_once(browser, admin):
    change(browser)
    assert change(browser).status_code == 400
    admin.refresh_from_db()
    assert admin.check_password(NEW)


def test_guessing_the_old_password_is_throttled(browser, admin):
    for _ in range(5):
        change(browser, old_password="wrong")
    assert change(browser).status_code == 429
    admin.refresh_from_db()
    assert admin.check_password(PASSWORD)
