from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from appliance.datasets.access_note import AccessNote, encode_note
from appliance.facts.sharing import Account, Group
from appliance.system import paths
from tests.reasons import codes_of_form, codes_on_page
from tests.unit.made import dataset
from tests.web import rows
from tests.web.reading import Page, text_of
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import AccountRow
from web.jobs.models import Job
from web.users.views import read_user_facts

CANARY = "canary-password-77"


@pytest.fixture
def people(calm) -> None:
    rows.put(accounts=["anna"])


@pytest.fixture
def folder(people) -> str:
    """A folder with an access note that was applied; the address of its access page."""
    photos = dataset("tank/photos", access_source="local")
    said = AccessNote(guid=photos.guid, people={"anna": "read"}, groups={"family": "change"}, done=True)
    rows.put(accounts=["anna", "ben"], groups=[Group("family", 20000, ("ben",))])
    rows.put(datasets=[dataset("tank"), replace(photos, access=encode_note(said.with_numbers(read_user_facts())))])
    return f"/folders/{photos.guid}/access/"


def put_people(*people: Account) -> None:
    store.replace(AccountRow, people, lambda account: account.name)


def test_users_are_listed(web, people):
    assert "anna" in text_of(web.get("/users/"))


def test_new_user_is_reviewed_and_password_asked_twice(web, people):
    page = Page(web.post("/users/new/", {"name": "ben"}))
    assert "useradd" in page.text
    form = page.form("/jobs/confirm/")
    assert not Job.objects.exists()
    response = web.post("/jobs/confirm/", {**form.data, "secret": CANARY, "again": CANARY})
    job = Job.objects.get()
    assert response["Location"] == f"/jobs/{job.pk}/"
    assert job.kind == "create-account"
    assert CANARY not in job.operation + str(job.plan)
    assert (paths.SECRETS / str(job.pk)).read_text() == CANARY


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "required"),
        ("Anna", "user-name-invalid"),
        ("-x", "user-name-invalid"),
        ("a b", "user-name-invalid"),
        ("a\nb", "invisible-characters"),
        ("a:b", "user-name-invalid"),
        ("a\x00", "null_characters_not_allowed"),
        ("root", "name-used-by-system"),
        ("larder", "name-used-by-system"),
        ("larder-nobody", "name-used-by-system"),
        ("x" * 32, "user-name-invalid"),
        ("anna", "user-exists"),
    ],
)
def test_wrong_user_name_is_refused_at_its_field(web, people, name, code):
    response = web.post("/users/new/", {"name": name})
    assert response.status_code == 400
    assert codes_of_form(response, "name") == [code]
    assert Page(response).field_error("id_name")
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("secret", "again", "field", "code"),
    [
        ("short77", "short77", "secret", "password-too-short"),
        ("x" * 128, "x" * 128, "secret", "password-too-long"),
        (f"{CANARY}\n[global]", f"{CANARY}\n[global]", "secret", "invisible-characters"),
        (CANARY, "different", "again", "secrets-differ"),
    ],
)
@pytest.mark.parametrize("who", ["new", "known"])
def test_wrong_password_is_refused_at_its_field(web, people, who, secret, again, field, code):
    asked = web.post("/users/new/", {"name": "ben"}) if who == "new" else web.get("/users/anna/password/")
    form = Page(asked).form("/jobs/confirm/")
    response = web.post("/jobs/confirm/", {**form.data, "secret": secret, "again": again})
    page = Page(response)
    assert response.status_code == 400
    assert codes_on_page(response) == [code]
    assert page.field_error(field)
    assert secret.encode() not in response.content
    assert not Job.objects.exists()


def test_new_password_is_job(web, people):
    form = Page(web.get("/users/anna/password/")).form("/jobs/confirm/")
    answers = {**form.data, "secret": CANARY, "again": CANARY}
    assert {web.post("/jobs/confirm/", answers)["Location"] for _ in range(2)} == {f"/jobs/{Job.objects.get().pk}/"}


def test_review_after_error_leads_back_to_users(web, people):
    form = Page(web.get("/users/anna/password/")).form("/jobs/confirm/")
    again = Page(web.post("/jobs/confirm/", {**form.data, "secret": "", "again": ""})).form("/jobs/confirm/")
    assert again.data["back"] == "/users/"
    assert again.data["job"] == form.data["job"]


def test_list_shows_disabled_users_and_display_names(web, people):
    put_people(Account("anna", 10000, "<b>Anna</b>"), Account("ben", 10001, disabled=True))
    response = web.get("/users/")
    assert b"<b>Anna</b>" not in response.content
    assert "<b>Anna</b>" in text_of(response)
    assert "disabled" in text_of(response)


def test_home_folder_is_created_with_user(web, folder):
    page = Page(web.post("/users/new/", {"name": "cleo", "display": "Cleo", "home": "tank"}))
    assert "The user gets the folder tank/cleo, which nobody else may enter." in page.text
    response = web.post("/users/new/", {"name": "cleo", "home": "elsewhere"})
    assert response.status_code == 400
    assert Page(response).field_error("id_home")


def test_user_is_disabled_and_enabled_by_button(web, people):
    for _ in range(2):
        web.post("/users/anna/switch/", {"to": "off"})
    job = Job.objects.get()
    assert '"enabled":false' in job.operation
    assert "Disable anna is running" in text_of(web.get("/users/anna/account/"))


def test_disabled_user_gets_no_new_password(web, people):
    put_people(Account("anna", 10000, disabled=True))
    response = web.get("/users/anna/password/")
    assert (response.status_code, codes_on_page(response)) == (409, ["user-disabled"])
    assert "Enable anna" in text_of(web.get("/users/anna/account/"))


def test_display_name_is_job_or_refused(web, people):
    refused = web.post("/users/anna/name/", {"display": "a:b"})
    assert (refused.status_code, codes_on_page(refused)) == (400, ["display-name-invalid"])
    assert not Job.objects.exists()
    assert web.post("/users/anna/name/", {"display": "Anna Ö"}).status_code == 302
    assert Job.objects.get().kind == "rename-account"


def test_remove_review_says_what_happens_to_files(web, folder):
    assert "belong to nobody" in text_of(web.get("/users/anna/remove/"))
    assert "The files go to ben" in text_of(web.get("/users/anna/remove/", {"heir": "ben"}))
    assert "gets a snapshot first" in text_of(web.get("/users/anna/remove/", {"heir": "ben"}))
    for heir, code in (("anna", "heir-is-removed"), ("eve", "user-missing"), ("-x", "user-name-invalid")):
        refused = web.get("/users/anna/remove/", {"heir": heir})
        assert (refused.status_code, codes_on_page(refused)) == (409, [code])


def test_group_is_created_changed_and_emptied(web, folder):
    web.post("/groups/new/", {"name": "club", "members": ["anna", "ben"]})
    assert '"members":["anna","ben"]' in Job.objects.get().operation
    Job.objects.all().delete()
    assert "checked" in web.get("/groups/family/members/").content.decode()
    web.post("/groups/family/members/", {})
    assert '"members":[]' in Job.objects.get().operation or "members" not in Job.objects.get().operation


@pytest.mark.parametrize(
    ("name", "code"),
    [("sudo", "name-used-by-system"), ("anna", "user-exists"), ("family", "group-exists"), ("", "required")],
)
def test_wrong_group_name_is_refused_at_its_field(web, folder, name, code):
    response = web.post("/groups/new/", {"name": name})
    assert response.status_code == 400
    assert Page(response).field_error("id_name")
    assert codes_of_form(response, "name") == [code]


def test_unknown_user_is_refused_as_member(web, folder):
    response = web.post("/groups/family/members/", {"members": ["eve"]})
    assert response.status_code == 400
    assert codes_of_form(response, "members") == ["invalid_choice"]


def test_access_table_shows_note_and_leads_to_review(web, folder):
    shown = web.get(folder).content.decode()
    assert 'aria-label="anna: read" checked' in shown
    assert 'aria-label="family: read and change" checked' in shown
    assert 'aria-label="ben: default" checked' in shown
    page = Page(
        web.post(folder, {"everybody": "none", "person-anna": "change", "person-ben": "", "group-family": "none"})
    )
    assert "anna can read and change it" in page.text
    form = page.form("/jobs/confirm/")
    assert not Job.objects.exists()
    web.post("/jobs/confirm/", form.data)
    assert Job.objects.get().kind == "set-access"


@pytest.mark.parametrize("chosen", [True, False])
def test_access_takes_snapshot_first_unless_unticked(web, folder, chosen):
    form = Page(web.get(folder)).form(of="before")
    assert form.data["before"] == "on"
    fields = {name: value for name, value in form.data.items() if chosen or name != "before"}
    page = web.post(folder, fields)
    assert page.status_code == 200
    before = json.loads(page.context["operation_json"]).get("before", "")
    assert before.startswith("larder-before-20") == chosen
    assert ("Take a snapshot first" in text_of(page)) == chosen


@pytest.mark.parametrize(
    "levels",
    [{}, {"everybody": "own"}, {"everybody": "none", "person-anna": "x"}, {"everybody": "none", "group-family": ""}],
)
def test_invalid_access_levels_are_refused(web, folder, levels):
    response = web.post(folder, levels)
    assert (response.status_code, codes_on_page(response)) == (400, ["access-level-invalid"])


def test_user_page_and_folder_page_show_access(web, folder):
    assert "tank/photos" in text_of(web.get("/users/anna/account/"))
    assert "No folder names ben" in text_of(web.get("/users/ben/account/"))
    assert "Group family read and change" in text_of(web.get(folder.replace("access/", "")))


def test_user_page_shows_shares_that_name_the_user(web, calm):
    put_people(Account("anna", 1000), Account("ben", 1001))
    setting = {
        "smb": {"name": "photos", "write": ["anna"], "read": ["ben"]},
        "nfs": {"hosts": ["192.168.1.0/24"], "write": False, "everybody_as": "anna"},
    }
    rows.put(datasets=[dataset("tank/photos", share=json.dumps(setting), share_source="local"), dataset("tank/films")])
    text = text_of(web.get("/users/anna/account/"))
    assert "No folder names" not in text
    assert "tank/photos read and change over SMB tank/photos read over NFS" in text
    assert "tank/photos read over SMB" in text_of(web.get("/users/ben/account/"))
    assert "over NFS" not in text_of(web.get("/users/ben/account/"))


def test_access_not_applied_to_all_files_is_shown(web, folder):
    photos = DatasetRow.objects.get(name="tank/photos").fact
    rows.put(datasets=[replace(photos, access=photos.access.replace("true", "false"))])
    assert "Not applied to all files" in text_of(web.get(folder))
    assert "not applied to all files" in text_of(web.get(folder.replace("access/", "")))


def test_note_of_another_box_is_shown_as_invalid_with_real_access(web, folder):
    put_people(Account("anna", 1001), Account("ben", 1000))
    for page in (folder, folder.replace("access/", "")):
        text = text_of(web.get(page))
        assert "From another box, not valid here." in text
        assert "Right now the files let in: group family (read and change), ben (read)." in text
    assert "Group family read and change" not in text
    assert "tank/photos" not in text_of(web.get("/users/anna/account/"))
    chosen = Page(web.get(folder)).form(of="person-anna").data
    assert chosen["person-anna"] == "read"


def test_note_without_numbers_is_shown_as_uncertain(web, folder):
    photos = DatasetRow.objects.get(name="tank/photos").fact
    text = encode_note(AccessNote(guid=photos.guid, people={"anna": "read"}, done=True))
    rows.put(datasets=[replace(photos, access=text)])
    page = text_of(web.get(folder.replace("access/", "")))
    assert "From an earlier version of Larder, not certain here." in page
    assert "Right now" not in page


def test_access_table_without_users_says_so(web, people):
    rows.put(accounts=[], groups=[], datasets=[dataset("tank/photos")])
    page = text_of(web.get(f"/folders/{dataset('tank/photos').guid}/access/"))
    assert "There are no users yet" in page
    assert "This has not been set yet" in page
