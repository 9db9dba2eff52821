"""The one form that shares a folder."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import HttpResponse
from msgspec.structs import replace

from appliance.datasets.access_note import AccessNote, encode_note
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Account
from appliance.system import paths
from tests.reasons import codes_of_form, codes_on_page
from tests.unit.made import dataset, shared
from tests.unit.shares.test_smb import HOSTILE_TEXT
from tests.web import rows
from tests.web.reading import Page, assert_nothing_inline, text_of
from tests.web.system.test_queries import queries
from web.jobs.models import Job
from web.shares import box_address
from web.shares.new_share_form import network_of

TANK = dataset("tank")
NEW = "/shares/new/"
ANSWERS = {"answered": "1", "filled": "1", "pool": "tank", "name": "photos", "smb": "on", "snapshots": "on"}


def put(*datasets: Dataset, accounts: tuple[str, ...] = ("anna", "ben")) -> None:
    rows.put(pools=[], datasets=[*datasets], accounts=list(accounts), groups=[], disks=[], shares=[])


@pytest.fixture
def tank(calm) -> None:
    put(TANK)


def ask(web: Any, **answers: Any) -> HttpResponse:
    given = {key: value for key, value in {**ANSWERS, **answers}.items() if value is not None}
    return web.get(f"{NEW}?{urlencode(given)}")


def hidden(response: HttpResponse) -> dict[str, str]:
    """What the review sends along."""
    return Page(response).form("/jobs/confirm/").data


def links(response: HttpResponse) -> set[str]:
    return {found.get("href", "") for tag, found in Page(response).elements if tag == "a"}


def reviewed(response: HttpResponse) -> dict[str, Any]:
    """The operation that a review shows."""
    assert response.status_code == 200, text_of(response)
    return json.loads(hidden(response)["operation"])


def test_form_proposes_windows_and_snapshots_and_everyone_may_change(web, tank):
    response = web.get(NEW)
    assert_nothing_inline(response)
    form = response.context["form"]
    assert [name for name in ("smb", "nfs", "afp", "snapshots") if form[name].value()] == ["smb", "snapshots"]
    assert [(line.who, line.value) for line in form.lines()] == [("anna", "change"), ("ben", "change")]
    assert form.new_lines() == []


def test_the_only_pool_is_not_asked_for_and_another_is_preselected_by_its_address(web, calm):
    put(TANK)
    assert '<input type="hidden" name="pool" value="tank"' in web.get(NEW).content.decode()
    put(TANK, dataset("attic"))
    assert web.get(f"{NEW}?pool=tank").context["form"]["pool"].value() == "tank"


def test_one_answered_form_leads_to_one_review_in_words(web, tank):
    response = ask(web, **{"user-anna": "change", "user-ben": "read"})
    operation = reviewed(response)
    assert operation["kind"] == "share-folder"
    assert (operation["dataset"], operation["people"]) == ("tank/photos", {"anna": "change", "ben": "read"})
    assert operation["smb"] == {"name": "photos", "write": ["anna"], "read": ["ben"]}
    assert operation["policy"]["hourly"] == 24
    text = text_of(response)
    for words in ("Can read and change anna", "Can only read ben", "as photos", "24 hourly"):
        assert words in text
    assert not Job.objects.exists()


def test_going_back_from_the_review_keeps_every_answer(web, tank):
    response = ask(web, **{"user-ben": "none", "nfs": "on", "hosts": "10.0.0.0/8", "snapshots": None})
    form = web.get(hidden(response)["back"]).context["form"]
    assert not form.is_bound
    assert (form["name"].value(), form["nfs"].value(), form["snapshots"].value()) == ("photos", True, False)
    assert form["hosts"].value() == "10.0.0.0/8"
    assert [line.value for line in form.lines()] == ["change", "none"]


@pytest.mark.parametrize(
    ("answers", "field", "code"),
    [
        ({"name": ""}, "name", "required"),
        ({"name": "a/b"}, "name", "folder-name-invalid"),
        ({"name": "taken"}, "name", "dataset-exists"),
        ({"name": "old"}, "name", "share-name-taken"),
        ({"pool": "attic"}, "pool", "invalid_choice"),
        ({"smb": None}, "smb", "share-without-protocol"),
        ({"nfs": "on"}, "hosts", "nfs-client-empty"),
        ({"nfs": "on", "hosts": "*"}, "hosts", "nfs-client-everybody"),
        ({"user-anna": "none", "user-ben": "none"}, "people", "share-without-users"),
        ({"user-anna": "all"}, "people", "access-level-invalid"),
        ({"rows": "1", "new-0": "Berta"}, "new_users", "user-name-invalid"),
        ({"rows": "1", "new-0": "anna"}, "new_users", "user-exists"),
        ({"rows": "2", "new-0": "cleo", "new-1": "cleo"}, "new_users", "new-user-twice"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(web, calm, answers, field, code):
    put(TANK, dataset("tank/taken"), shared("tank/deep/old"))
    response = ask(web, **answers)
    assert response.status_code == 400
    assert codes_of_form(response, field) == [code]
    assert codes_of_form(response) == [code]
    assert not Job.objects.exists()


@pytest.mark.parametrize("text", [one for one in HOSTILE_TEXT if one not in {"global", "homes"}])
def test_hostile_names_make_no_review(web, tank, text):
    for answers in ({"name": text}, {"rows": "1", "new-0": text}, {"nfs": "on", "hosts": text}):
        response = ask(web, **answers)
        assert response.status_code == 400 or not text.strip()
        assert f"<script>{text}" not in response.content.decode()
    assert not Job.objects.exists()


def test_full_pool_is_refused_at_the_pool(web, calm):
    put(replace(TANK, available=0))
    assert codes_of_form(ask(web), "pool") == ["dataset-full"]


def test_locked_pool_leads_to_unlocking_it(web, calm):
    put(replace(TANK, key_status="unavailable", mounted=False, encryption="aes-256-gcm"))
    assert "/pools/unlock/?dataset=tank" in links(web.get(NEW))
    assert codes_of_form(ask(web)) == ["invalid_choice"]


def test_without_a_pool_it_leads_to_creating_one(web, calm):
    put()
    assert "/pools/new/" in links(web.get(NEW))


def test_without_users_there_is_a_row_for_a_new_one(web, calm):
    put(TANK, accounts=())
    assert len(web.get(NEW).context["form"].new_lines()) == 1
    assert codes_of_form(ask(web, rows="1", **{"new-0": ""}), "people") == ["share-without-users"]
    operation = reviewed(ask(web, rows="1", **{"new-0": "anna", "new-0-may": "change"}))
    assert (operation["new_users"], operation["people"]) == (["anna"], {"anna": "change"})


def test_more_rows_for_new_users_come_by_a_button_and_keep_the_answers(web, tank):
    form = web.get(f"{NEW}?filled=1&name=photos&rows=1&new-0=cleo&new-0-may=read&more=2").context["form"]
    assert [(line.who, line.value) for line in form.new_lines()] == [("cleo", "read"), ("", "change")]
    assert form["name"].value() == "photos"
    assert web.get(f"{NEW}?more=9").context["form"].more == 0


def confirm(web: Any, response: HttpResponse, **secrets: str) -> HttpResponse:
    return web.post("/jobs/confirm/", {**hidden(response), **secrets})


def test_passwords_of_new_users_are_asked_for_on_the_review_and_go_to_the_agent_alone(web, tank):
    response = ask(web, rows="2", **{"new-0": "cleo", "new-1": "dora"})
    typed = {
        "secret-cleo": "canary one",
        "again-cleo": "canary one",
        "secret-dora": "canary two",
        "again-dora": "canary two",
    }
    assert confirm(web, response, **typed).status_code == 302
    job = Job.objects.get()
    assert json.loads((paths.SECRETS / str(job.pk)).read_text()) == {"cleo": "canary one", "dora": "canary two"}
    assert "canary" not in f"{job.operation}{job.plan}{job.log}{job.text}"


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({}, "secret-cleo"),
        ({"secret-cleo": "short", "again-cleo": "short"}, "secret-cleo"),
        ({"secret-cleo": "long enough", "again-cleo": "something else"}, "again-cleo"),
    ],
)
def test_wrong_password_is_said_at_its_field_and_nothing_is_made(web, tank, typed, field):
    response = confirm(web, ask(web, rows="1", **{"new-0": "cleo"}), **typed)
    assert response.status_code == 400
    assert f'id="{field}-error"' in response.content.decode()
    assert not Job.objects.exists()
    assert not list(paths.SECRETS.iterdir())


def test_form_sent_a_second_time_is_refused_at_the_name(web, calm):
    put(TANK, shared("tank/photos"))
    assert codes_of_form(ask(web), "name") == ["dataset-exists"]


def noted(**people: str) -> Dataset:
    photos = dataset()
    known = Facts(accounts=tuple(Account(name, uid) for name, uid in (("anna", 1000), ("ben", 1001))))
    note = AccessNote(guid=photos.guid, people=people, done=True).with_numbers(known)  # type: ignore[arg-type]
    return replace(photos, access=encode_note(note), access_source="local")


def test_existing_folder_keeps_its_name_and_proposes_who_may_use_it_now(web, calm):
    photos = noted(anna="read")
    rows.put(pools=[], datasets=[TANK, photos], accounts=["anna", "ben"], groups=[], disks=[], shares=[])
    form = web.get(f"{NEW}?folder={photos.guid}").context["form"]
    assert [line.value for line in form.lines()] == ["read", "none"]
    operation = reviewed(ask(web, folder=photos.guid, pool=None, name=None))
    assert (operation["dataset"], operation["guid"]) == ("tank/photos", photos.guid)
    assert operation["people"] == {}
    operation = reviewed(ask(web, folder=photos.guid, **{"user-ben": "change"}))
    assert operation["people"] == {"anna": "read", "ben": "change"}


def test_folder_that_is_shared_already_leads_to_its_page(web, calm):
    photos = shared()
    put(TANK, photos)
    assert web.get(f"{NEW}?folder={photos.guid}")["Location"] == f"/folders/{photos.guid}/"
    assert web.get(f"{NEW}?folder=5").status_code == 404


def test_schedule_that_is_there_is_not_set_again(web, calm):
    photos = replace(dataset(), policy='{"daily": 3}', policy_source="local")
    put(TANK, photos)
    response = web.get(f"{NEW}?folder={photos.guid}")
    assert "3 daily" in text_of(response)
    assert reviewed(ask(web, folder=photos.guid))["policy"] is None


def test_nfs_counts_everyone_as_the_first_who_may_change_it(web, tank):
    operation = reviewed(ask(web, nfs="on", hosts="192.168.1.0/24", **{"user-anna": "read"}))
    assert operation["nfs"] == {"hosts": ["192.168.1.0/24"], "everybody_as": "ben"}
    operation = reviewed(ask(web, nfs="on", hosts="192.168.1.0/24", **{"user-anna": "read", "user-ben": "none"}))
    assert operation["nfs"] == {"hosts": ["192.168.1.0/24"], "everybody_as": "anna", "write": False}


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.168.1.50", "192.168.1.0/24"),
        ("10.0.2.2", "10.0.2.0/24"),
        ("127.0.0.1", ""),
        ("8.8.8.8", ""),
        ("fe80::1", ""),
        ("", ""),
        ("nonsense", ""),
    ],
)
def test_network_proposed_is_that_of_the_computer_that_asks(address, network):
    assert network_of(address) == network


def test_queries_do_not_grow_with_users_and_folders(web, calm):
    put(TANK)
    web.get(NEW)  # whatever is remembered from page to page
    few = len(queries(web, NEW))
    put(TANK, *(dataset(f"tank/{n}") for n in range(50)), accounts=tuple(f"user{n}" for n in range(60)))
    assert len(queries(web, NEW)) == few


def ended(state: str, operation: dict[str, Any]) -> Job:
    return Job.objects.create(
        kind="share-folder",
        title="Share",
        subject="tank/photos",
        operation=json.dumps(operation),
        digest="0" * 16,
        plan={"summary": "", "steps": []},
        state=state,
        created_by="admin",
    )


def test_trying_again_plans_only_what_is_missing(web, calm):
    put(TANK)
    operation = reviewed(ask(web, **{"rows": "1", "new-0": "cleo"}))
    photos = dataset()
    put(TANK, photos, accounts=("anna", "ben", "cleo"))
    again = reviewed(web.get(f"/jobs/{ended('interrupted', operation).pk}/again/"))
    assert (again["guid"], again.get("new_users", [])) == (photos.guid, [])
    # One that was refused made nothing: the folder of that name is somebody else's.
    refused = web.get(f"/jobs/{ended('refused', operation).pk}/again/")
    assert "dataset-exists" in codes_on_page(refused)


AGENTS = {
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64)": "Windows",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)": "Mac",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)": "iPhone and iPad",
    "Mozilla/5.0 (Linux; Android 15; Pixel 8)": "Android",
    "Mozilla/5.0 (X11; Linux x86_64)": "Linux, on the desktop",
    "": "",
}


@pytest.mark.parametrize("agent", AGENTS)
def test_computer_that_asks_is_known_by_its_browser(agent):
    assert box_address.computer_of(agent) == AGENTS[agent]


@pytest.mark.parametrize(
    ("agent", "first"),
    [
        ("Windows NT 10.0", "\\\\vm.local\\photos"),
        ("Macintosh", "smb://vm.local/photos"),
        ("nonsense", "\\\\vm.local\\photos"),
    ],
)
def test_job_that_is_done_shows_the_address_for_the_computer_that_asks(web, calm, settings, agent, first):
    settings.BOX_NAME = "vm"
    put(TANK)
    job = ended("done", reviewed(ask(web, nfs="on", hosts="10.0.0.0/8")))
    put(TANK, shared())
    response = web.get(f"/jobs/{job.pk}/", HTTP_USER_AGENT=agent)
    page = assert_nothing_inline(response)
    shown = [found for tag, found in page.elements if tag == "pre" and found.get("id", "").startswith("address")]
    assert len(shown) > 5
    assert page.text.index(first) < page.text.index("Other computers")
    assert "nfs://vm.local/tank/photos" in page.text
    assert f"/folders/{dataset().guid}/" in links(response)


def test_result_has_the_number_of_the_box_beside_its_name(web, calm, settings):
    settings.BOX_NAME = "vm"
    put(TANK)
    job = ended("done", reviewed(ask(web)))
    put(TANK, shared())
    rows.put_box(replace(rows.BOX, ports=(replace(rows.ETH0, addresses=("192.168.1.5/24", "10.0.0.5/8")),)))
    text = text_of(web.get(f"/jobs/{job.pk}/", HTTP_USER_AGENT="Windows NT 10.0", HTTP_X_REAL_IP="10.0.0.9"))
    assert "If the name is not found: \\\\10.0.0.5\\photos" in text
    assert "The box has another address too, for computers in that network: 192.168.1.5" in text


def test_address_of_a_folder_that_was_not_read_yet_is_where_it_was_made(web, tank):
    job = ended("done", reviewed(ask(web, nfs="on", hosts="10.0.0.0/8")))
    page = Page(web.get(f"/jobs/{job.pk}/"))
    assert ":/tank/photos" in page.text
    assert "See the folder " not in page.text


def test_job_that_failed_or_shared_nothing_shows_no_address(web, calm):
    put(TANK)
    job = ended("failed", reviewed(ask(web)))
    assert "Open tank/photos on this computer" not in text_of(web.get(f"/jobs/{job.pk}/"))


def test_switch_without_users_leads_to_the_form_that_adds_one(web, calm):
    photos = dataset()
    put(TANK, photos, accounts=())
    form = f"{NEW}?folder={photos.guid}"
    assert form in links(web.get("/folders/"))
    assert form in links(web.get(f"/folders/{photos.guid}/"))
    assert form in links(web.get(f"/folders/{photos.guid}/share/"))
    assert web.post(f"/folders/{photos.guid}/switch/smb/on/")["Location"] == form
    assert "There are no users yet" in text_of(web.get(form))
    assert not Job.objects.exists()


def test_entry_is_on_overview_pool_and_folders(web, calm):
    pool = rows.recorded_box()
    assert NEW in links(web.get("/"))
    assert NEW in links(web.get("/folders/"))
    assert f"{NEW}?pool=tank" in links(web.get(f"/pools/{pool.guid}/"))


def test_folders_page_with_pools_alone_proposes_to_share_a_folder(web, tank):
    assert "No folders yet" in text_of(web.get("/folders/"))
