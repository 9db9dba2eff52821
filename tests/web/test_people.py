from __future__ import annotations

import pytest

from appliance import places
from tests.web import rows
from tests.web.reading import Page, text_of
from web.jobs.models import Job

CANARY = "canary-password-77"


@pytest.fixture
def people(calm) -> None:
    rows.put(accounts=["anna"])


def test_everybody_is_listed(web, people):
    assert "anna" in text_of(web.get("/people/"))


def test_a_new_account_is_reviewed_and_its_password_asked_twice(web, people):
    page = Page(web.post("/people/new/", {"name": "ben"}))
    assert "useradd" in page.text
    form = page.form("/jobs/confirm/")
    assert not Job.objects.exists()
    response = web.post("/jobs/confirm/", {**form.data, "secret": CANARY, "again": CANARY})
    job = Job.objects.get()
    assert response["Location"] == f"/jobs/{job.pk}/"
    assert job.kind == "CreateAccount"
    assert CANARY not in job.operation + str(job.plan)
    assert (places.SECRETS / str(job.pk)).read_text() == CANARY


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "Give the account a name"),
        ("Anna", "begins with a small letter"),
        ("-x", "begins with a small letter"),
        ("a b", "begins with a small letter"),
        ("a\nb", "a line break or another invisible character"),
        ("a:b", "begins with a small letter"),
        ("a\x00", "Null characters"),
        ("root", "The system itself uses the name root."),
        ("larder", "The system itself uses the name larder."),
        ("larder-nobody", "The system itself uses"),
        ("x" * 32, "at most 31"),
        ("anna", "There is already an account anna."),
    ],
)
def test_a_wrong_name_gets_its_sentence(web, people, name, sentence):
    response = web.post("/people/new/", {"name": name})
    page = Page(response)
    assert response.status_code == 400
    assert sentence in page.text
    assert page.field_error("id_name")
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("secret", "again", "field", "sentence"),
    [
        ("short77", "short77", "secret", "A password has at least 8 characters."),
        ("x" * 128, "x" * 128, "secret", "A password has at most 127 bytes."),
        (f"{CANARY}\n[global]", f"{CANARY}\n[global]", "secret", "a line break"),
        (CANARY, "different", "again", "The two differ."),
    ],
)
@pytest.mark.parametrize("who", ["new", "known"])
def test_a_wrong_password_gets_its_sentence(web, people, who, secret, again, field, sentence):
    asked = web.post("/people/new/", {"name": "ben"}) if who == "new" else web.get("/people/anna/password/")
    form = Page(asked).form("/jobs/confirm/")
    response = web.post("/jobs/confirm/", {**form.data, "secret": secret, "again": again})
    page = Page(response)
    assert response.status_code == 400
    assert sentence in page.text
    assert page.field_error(field)
    assert secret.encode() not in response.content
    assert not Job.objects.exists()


def test_a_new_password_is_a_job(web, people):
    form = Page(web.get("/people/anna/password/")).form("/jobs/confirm/")
    answers = {**form.data, "secret": CANARY, "again": CANARY}
    assert {web.post("/jobs/confirm/", answers)["Location"] for _ in range(2)} == {f"/jobs/{Job.objects.get().pk}/"}


def test_going_on_after_an_error_leads_back_to_the_people(web, people):
    form = Page(web.get("/people/anna/password/")).form("/jobs/confirm/")
    again = Page(web.post("/jobs/confirm/", {**form.data, "secret": "", "again": ""})).form("/jobs/confirm/")
    assert again.data["back"] == "/people/"
    assert again.data["job"] == form.data["job"]
