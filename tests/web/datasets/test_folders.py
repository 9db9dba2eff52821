from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.datasets.access_note import AccessNote, encode_note
from appliance.datasets.permissions import SetAccess
from appliance.facts.box import Facts
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Account, Group, Share
from appliance.operation import checked_plan
from appliance.shares.set_share import SetShare
from appliance.shares.settings import ShareSetting, Smb
from tests.reasons import codes_of_form, codes_on_page
from tests.unit.made import dataset, shared
from tests.web import rows
from tests.web.reading import Page, text_of
from tests.web.system.test_queries import queries
from web.inventory import store
from web.jobs.models import Job

TANK, PHOTOS = dataset("tank"), dataset("tank/photos")
NEW, SHARE = "/folders/new/", f"/folders/{PHOTOS.guid}/share/"


@pytest.fixture
def folders(calm) -> list[Dataset]:
    found = [TANK, PHOTOS, dataset("tank/disk1", kind="volume", mounted=False, mountpoint="")]
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=found, accounts=["anna", "ben"], shares=[], disks=[])
    return found


def answers(**changes: object) -> dict[str, object]:
    return {"parent": "tank", "name": "films", "preset": "media", **changes}


def assert_refused(response, field: str, code: str = "") -> None:
    """``field`` empty: the form as a whole. ``code`` empty: whatever the reason."""
    assert response.status_code == 400
    page = Page(response)
    found = codes_of_form(response, field or "__all__")
    assert code in found if code else found
    assert page.field_error(f"id_{field}") or (field == "" and "error-summary" in response.content.decode())
    assert not Job.objects.exists()


def test_page_of_a_copy_offers_neither_shares_nor_access(web, calm):
    for kind in ("filesystem", "volume"):
        copy = dataset(
            "tank/backups/photos", kind=kind, mounted=False, mountpoint="none", copy_of=CopyMark(7, raw=False).text
        )
        rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[dataset("tank"), copy])
        page, of = web.get(f"/folders/{copy.guid}/").content.decode(), f"/folders/{copy.guid}/"
        assert f"{of}settings/" in page
        assert not [end for end in ("share/", "switch/", "iscsi/", "access/") if f"{of}{end}" in page]


# --- making a folder ------------------------------------------------------------------------------------------
def test_create_folder_becomes_job(web, folders, calm):
    response = web.post(NEW, answers())
    job = Job.objects.get()
    assert response["Location"] == f"/jobs/{job.pk}/"
    assert json.loads(job.operation) == {
        "kind": "create-dataset",
        "parent": "tank",
        "name": "films",
        "preset": "media",
        "limit": 0,
        "key": "",
    }
    assert ("workers.run_job", str(job.pk)) in calm


def test_create_folder_sent_twice_is_one_job(web, folders, calm):
    places = [web.post(NEW, answers())["Location"] for _ in range(2)]
    assert places == [f"/jobs/{Job.objects.get().pk}/"] * 2
    assert len([words for words in calm if words[0] == "workers.run_job"]) == 1


def test_create_folder_refuses_existing_folder(web, folders):
    web.post(NEW, answers())
    Job.objects.update(state=Job.State.DONE)
    rows.put(datasets=[*folders, dataset("tank/films")])
    assert web.post(NEW, answers()).status_code == 400
    assert Job.objects.count() == 1


def test_failed_create_can_be_tried_again(web, folders):
    web.post(NEW, answers())
    Job.objects.update(state=Job.State.FAILED)
    web.post(NEW, answers())
    assert Job.objects.count() == 2


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "required"),
        ("a/b", "folder-name-invalid"),
        ("../b", "folder-name-invalid"),
        ("-r", "folder-name-invalid"),
        ("a\nb", "invisible-characters"),
        ("a\x00b", "null_characters_not_allowed"),
        ("a@b", "folder-name-invalid"),
        ("a;b", "folder-name-invalid"),
        ("a'\"b", "folder-name-invalid"),
        ("a ", "folder-name-invalid"),
        ("x" * 61, "folder-name-too-long"),
        ("x" * 121, "max_length"),
        ("photos", "dataset-exists"),
        ("PHOTOS", "dataset-exists"),
    ],
)
def test_wrong_name_is_refused_and_answers_stay(web, folders, name, code):
    response = web.post(NEW, answers(name=name))
    assert_refused(response, "name", code)
    kept = Page(response).form(of="name").data
    assert (kept["parent"], kept["preset"]) == ("tank", "media")
    assert kept["name"].replace("\n", "") == name.replace("\n", "")


@pytest.mark.parametrize("parent", ["", "nowhere", "tank/disk1", "-r", "tank\n", "tank/../etc"])
def test_parent_not_in_list_is_refused(web, folders, parent):
    assert_refused(web.post(NEW, answers(parent=parent)), "parent")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (
            {"encryption": "aes-256-gcm", "key_status": "unavailable", "encryption_root": "tank"},
            "dataset-locked",
        ),
        ({"readonly": True}, "dataset-read-only"),
        ({"mountpoint": "legacy"}, "parent-without-mountpoint"),
    ],
)
def test_unsuitable_parent_is_refused(web, folders, changes, code):
    rows.put(datasets=[replace(TANK, **changes)])
    assert_refused(web.post(NEW, answers()), "parent", code)


@pytest.mark.parametrize("preset", ["", "games", "general\n"])
def test_unknown_preset_is_refused(web, folders, preset):
    assert_refused(web.post(NEW, answers(preset=preset)), "preset")


def test_parent_can_be_set_by_address(web, folders):
    assert Page(web.get(NEW, {"parent": "tank/photos"})).form(of="name").data["parent"] == "tank/photos"
    assert web.get(NEW, {"parent": "<script>"}).status_code == 200


def test_page_without_pool_leads_to_creating_one(web, calm):
    assert "A folder lives in a pool." in text_of(web.get(NEW))


def test_volumes_are_not_listed_as_folders(web, folders):
    assert "tank/disk1" not in text_of(web.get("/folders/"))


# --- sharing --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folders")
def test_agent_decodes_operation_with_digest_of_job(web):
    """A form gives "no" as a new string object; decoding JSON gives the default object,
    which is omitted when encoded."""
    web.post(SHARE, {"name": "photos", "user-anna": "change", "guest": "".join(["n", "o"])})
    job = Job.objects.get()
    assert checked_plan(decode_operation(job.operation), store.facts()).digest() == job.digest


def test_sharing_becomes_job(web, folders):
    response = web.post(SHARE, {"name": "photos", "user-anna": "change", "user-ben": "change"})
    job = Job.objects.get()
    assert response["Location"] == f"/jobs/{job.pk}/"
    operation = decode_operation(job.operation)
    assert operation == SetShare.of(
        "tank/photos", "smb", Smb(name="photos", write=("anna", "ben"), mac=False, previous=False)
    )


def test_share_sent_twice_is_one_job(web, folders):
    for _ in range(2):
        web.post(SHARE, {"name": "photos", "user-anna": "change"})
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "required"),
        ("global", "share-name-reserved"),
        ("Homes", "share-name-reserved"),
        ("x]\nroot preexec = reboot", "invisible-characters"),
        ("x]", "share-name-invalid"),
        ("a/b", "share-name-invalid"),
        ("%U", "share-name-invalid"),
        ("-x", "share-name-invalid"),
        ("x\x00", "null_characters_not_allowed"),
        ("x" * 61, "share-name-too-long"),
    ],
)
def test_wrong_share_name_is_refused_at_its_field(web, folders, name, code):
    response = web.post(SHARE, {"name": name, "user-ben": "read"})
    assert_refused(response, "name", code)
    assert chosen_levels(response) == {"user-anna": "none", "user-ben": "read"}


def test_share_name_in_use_is_refused(web, folders):
    rows.put(datasets=[TANK, PHOTOS, shared("tank/old", share='{"smb":{"name":"Photos","write":["anna"]}}')])
    assert_refused(web.post(SHARE, {"name": "photos", "user-anna": "change"}), "name", "share-name-taken")


@pytest.mark.parametrize(
    ("users", "code"),
    [
        ({}, "share-without-users"),
        ({"user-anna": "none", "user-ben": "none"}, "share-without-users"),
        ({"user-eve": "change"}, "invalid_choice"),
        ({"user-root": "read"}, "invalid_choice"),
        ({"user-": "change"}, "invalid_choice"),
        ({"user-anna": "all"}, "access-level-invalid"),
        ({"group-wheel": "read"}, "invalid_choice"),
    ],
)
def test_users_of_share_that_cannot_be_are_refused(web, folders, users, code):
    assert_refused(web.post(SHARE, {"name": "photos", **users}), "people", code)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"mounted": False}, "dataset-not-mounted"),
        ({"mounted": False, "encryption": "on", "key_status": "unavailable"}, "dataset-locked"),
    ],
)
def test_unavailable_folder_cannot_be_shared(web, folders, changes, code):
    rows.put(datasets=[TANK, replace(PHOTOS, **changes)])
    assert_refused(web.post(SHARE, {"name": "photos", "user-anna": "change"}), "", code)


def test_share_page_without_users_leads_to_creating_one(web, folders):
    rows.put(accounts=[])
    assert "No users yet" in text_of(web.get(SHARE))


def test_missing_folder_is_not_found(web, folders):
    rows.put(datasets=[TANK])
    for response in (web.get(SHARE), web.post(SHARE, {}), web.post(f"/folders/{PHOTOS.guid}/switch/smb/off/")):
        assert response.status_code == 404


@pytest.fixture
def served(folders) -> Dataset:
    found = replace(PHOTOS, share=shared().share, share_source="local")
    rows.put(datasets=[TANK, found], shares=[Share("smb", "photos", "/tank/photos")])
    return found


def test_served_share_is_on_and_shows_address(web, served):
    text = text_of(web.get(f"/folders/{PHOTOS.guid}/"))
    assert "on as photos" in " ".join(text.split())
    assert "smb://vm.local/" in text
    assert "\\\\vm.local\\" in text


def test_share_not_served_is_not_on(web, served):
    rows.put(shares=[])
    assert "not served" in text_of(web.get("/folders/"))


def test_switching_off_twice_is_one_job(web, served):
    for _ in range(2):
        assert web.post(f"/folders/{PHOTOS.guid}/switch/smb/off/")["Location"] == f"/folders/{PHOTOS.guid}/"
    assert decode_operation(Job.objects.get().operation) == SetShare.of("tank/photos", "smb", None)


def test_switching_off_twice_starts_nothing(web, folders):
    assert web.post(f"/folders/{PHOTOS.guid}/switch/smb/off/").status_code == 302
    assert not Job.objects.exists()


def switches(page: Page) -> list[str]:
    """The addresses of the buttons in the page's form of switches."""
    (form,) = (found for tag, found in page.elements if tag == "form" and found.get("id") == "switching")
    assert form["method"] == "post"
    assert form["hx-boost"] == "true"  # where scripts run, the address of the button is asked by htmx
    return [found["formaction"] for tag, found in page.elements if found.get("form") == "switching" and tag == "button"]


def test_switch_shows_running_job(web, served):
    rows.planned(SetShare.of("tank/photos", "smb", None))
    assert "turning off" in text_of(web.get("/folders/"))


def test_switches_show_that_the_form_that_shares_a_folder_turns_them(web, folders):
    rows.job(
        kind="share-folder",
        subject="tank/photos",
        operation='{"kind":"share-folder","dataset":"tank/photos","people":{"nfs":"read"},"smb":{"name":"photos"}}',
        state=Job.State.RUNNING,
    )
    folder = web.get(f"/folders/{PHOTOS.guid}/").context["folder"]
    assert [(switch.protocol, switch.turning) for switch in folder.switches if switch.turning] == [("smb", "on")]


def test_switch_works_without_scripts(web, served):
    page = Page(web.get("/folders/"))
    assert f"/folders/{PHOTOS.guid}/switch/smb/off/" in switches(page)


def test_d22_switch_is_itself_the_control_and_says_how_it_stands(web, served):
    """No picture with a button beside it: the one that shows the state is the button that changes it."""
    found = {
        element["formaction"].rsplit("/switch/", 1)[1]: (tag, element.get("role"), element.get("aria-checked"))
        for tag, element in Page(web.get("/folders/")).elements
        if str(PHOTOS.guid) in element.get("formaction", "")
    }
    assert found["smb/off/"] == ("button", "switch", "true")
    assert {state for address, state in found.items() if address != "smb/off/"} <= {("button", "switch", "false")}
    pictures = [
        element
        for tag, element in Page(web.get("/folders/")).elements
        if tag not in {"button", "a"} and "switch" in element.get("class", "").split()
    ]
    assert pictures == []


def test_failed_share_job_is_shown_on_folder_page(web, served):
    rows.planned(SetShare.of("tank/photos", "smb", None), state=Job.State.FAILED, text="Samba did not answer.")
    assert "Samba did not answer." in text_of(web.get(f"/folders/{PHOTOS.guid}/"))


def failed_switch(**changes) -> Job:
    how = {"state": Job.State.FAILED, "text": "Samba did not answer.", **changes}
    return rows.planned(SetShare.of("tank/photos", "smb", Smb(name="photos", write=("anna",))), **how)


@pytest.mark.parametrize("url", ["/folders/", f"/folders/{PHOTOS.guid}/"])
@pytest.mark.parametrize(
    ("state", "said"),
    [(Job.State.FAILED, "failed"), (Job.State.REFUSED, "was refused"), (Job.State.INTERRUPTED, "was interrupted")],
)
def test_failed_share_job_says_why_and_how_to_go_on_at_its_switch(web, folders, url, state, said):
    job = failed_switch(state=state)
    page = web.get(url)
    assert text_of(page).count(f"The last change {said}. Samba did not answer.") == 1
    links = [found.get("href") for _tag, found in Page(page).elements]
    assert f"/jobs/{job.pk}/again/" in links
    assert f"/jobs/{job.pk}/" in links
    assert f"/folders/{PHOTOS.guid}/switch/smb/on/" in switches(Page(page))


def test_failed_share_job_leads_to_adding_a_user_where_there_is_none(web, folders):
    failed_switch(text="There is no user anna.")
    rows.put(accounts=[])
    page = web.get("/folders/")
    assert "The last change failed. There is no user anna. Add a user and share it" in text_of(page)
    assert f"/shares/new/?folder={PHOTOS.guid}" in [found.get("href") for _tag, found in Page(page).elements]


def test_failure_at_a_switch_goes_once_seen_done_or_tried_again(web, folders):
    job = failed_switch()
    failed_switch(state=Job.State.RUNNING)
    assert "The last change" not in text_of(web.get("/folders/"))
    Job.objects.exclude(pk=job.pk).update(state=Job.State.DONE)
    assert "The last change" not in text_of(web.get("/folders/"))
    Job.objects.exclude(pk=job.pk).delete()
    assert "The last change failed" in text_of(web.get("/folders/"))
    web.post(f"/jobs/{job.pk}/acknowledge/", {"next": "/folders/"})
    assert "The last change" not in text_of(web.get("/folders/"))


def test_failure_is_said_at_the_switches_that_its_job_was_to_turn(web, folders):
    rows.job(
        kind="share-folder",
        subject="tank/photos",
        operation='{"kind":"share-folder","dataset":"tank/photos","people":{"nfs":"read"},'
        '"smb":{"name":"photos"},"afp":{"name":"photos"}}',
        state=Job.State.FAILED,
        text="The disk is full.",
    )
    folder = web.get(f"/folders/{PHOTOS.guid}/").context["folder"]
    assert [switch.protocol for switch in folder.switches if switch.failure] == ["smb", "afp"]


def test_list_costs_the_same_after_many_failures(web, folders):
    failed_switch()
    web.get("/folders/")  # whatever is remembered from page to page
    few = len(queries(web, "/folders/"))
    for number in range(20):
        rows.planned(SetShare.of("tank/photos", "smb", Smb(name=f"a{number}", write=("anna",))), state=Job.State.FAILED)
    assert len(queries(web, "/folders/")) == few


@pytest.mark.parametrize(
    "share",
    [
        "{",
        "[]",
        '{"smb":{"name":"x\\nroot preexec = reboot"}}',
        '{"smb":{"name":"<script>","write":["anna"]}}',
        "\x01",
    ],
)
def test_invalid_share_setting_is_ignored(web, folders, share):
    rows.put(
        datasets=[TANK, replace(PHOTOS, share=share, share_source="local")],
        shares=[Share("smb", "photos", "/tank/photos")],
    )
    text = text_of(web.get(f"/folders/{PHOTOS.guid}/"))
    assert "smb://" not in text
    assert "preexec" not in text


def test_received_share_setting_is_not_served(web, folders):
    rows.put(datasets=[TANK, shared(share_source="received")], shares=[])
    assert "smb://" not in text_of(web.get("/folders/"))


def test_every_share_field_reaches_operation(web, folders):
    wishes = {
        "name": "backups",
        "user-anna": "change",
        "user-ben": "read",
        "guest": "read",
        "recycle": "on",
        "hidden": "on",
        "mac": "on",
        "time_machine": "500",
        "exact_case": "on",
        "encrypt": "on",
        "previous": "on",
    }
    assert web.post(SHARE, wishes).status_code == 302
    assert decode_operation(Job.objects.get().operation) == SetShare.of(
        "tank/photos",
        "smb",
        Smb(
            name="backups",
            write=("anna",),
            read=("ben",),
            guest="read",
            hidden=True,
            recycle=True,
            exact_case=True,
            mac=True,
            time_machine=500 * 10**9,
            previous=True,
            encrypt=True,
        ),
    )


def test_words_for_the_list_of_a_share_and_for_access_to_the_files_differ(web, served):
    page = Page(web.get(f"/folders/{PHOTOS.guid}/"))
    assert "Change who may use this share" in page.text
    assert "Change access to its files" in page.text
    assert "who may use it" not in page.text
    assert SetAccess(dataset="tank/photos").title == "Set access to the files of tank/photos"


def chosen_levels(response) -> dict[str, str]:
    """The choice in each row of the users of a share; each row has one."""
    radios = [found for tag, found in Page(response).elements if tag == "input" and found.get("type") == "radio"]
    ticked = {found["name"]: found["value"] for found in radios if "checked" in found}
    assert list(ticked) == list(dict.fromkeys(found["name"] for found in radios))
    return ticked


def test_share_form_lists_everybody_once_with_one_choice(web, folders):
    part = Smb(name="photos", write=("anna",), read=("@family",))
    found = replace(PHOTOS, share=ShareSetting(smb=part).text(), share_source="local")
    rows.put(datasets=[TANK, found], groups=[Group("family", 20000, ("ben",))])
    page = web.get(SHARE)
    assert chosen_levels(page) == {"user-anna": "change", "user-ben": "none", "group-family": "read"}
    assert text_of(page).count("Who may use this share") == 1
    assert f"/folders/{PHOTOS.guid}/access/" in [one.get("href") for _tag, one in Page(page).elements]
    web.post(SHARE, {"name": "photos", "user-ben": "read", "group-family": "change"})
    smb = json.loads(Job.objects.get().operation)["smb"]
    assert (smb["write"], smb["read"]) == (["@family"], ["ben"])


def test_share_form_says_whose_files_allow_less(web, folders):
    known = Facts(accounts=(Account("anna", 1000), Account("ben", 1001)))
    note = AccessNote(guid=PHOTOS.guid, everybody="change", people={"ben": "read"}, done=True).with_numbers(known)
    rows.put(datasets=[TANK, replace(PHOTOS, access=encode_note(note), access_source="local")])
    assert text_of(web.get(SHARE)).count("The files only allow reading.") == 1
    assert "ben The files only allow reading." in text_of(web.get(SHARE))
    refused = web.post(SHARE, {"name": "", "user-ben": "read", "user-anna": "change"})
    assert "The files only allow" not in text_of(refused)


def test_share_form_shows_current_setting(web, folders):
    part = Smb(name="photos", write=("anna",), read=("ben",), recycle=True, time_machine=7 * 10**9)
    found = replace(PHOTOS, share=ShareSetting(smb=part).text(), share_source="local")
    rows.put(datasets=[TANK, found], shares=[Share("smb", "photos", "/tank/photos")])
    kept = Page(web.get(SHARE)).form(of="name").data
    assert (kept["time_machine"], kept["recycle"], kept["name"]) == ("7", "on", "photos")
    assert "hidden" not in kept


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"time_machine": "0"}, "time_machine", "min_value"),
        ({"time_machine": "-1"}, "time_machine", "min_value"),
        ({"time_machine": "9" * 30}, "time_machine", ""),
        ({"guest": "perhaps"}, "guest", ""),
    ],
)
def test_invalid_share_fields_are_refused(web, folders, changes, field, code):
    assert_refused(web.post(SHARE, {"name": "photos", "user-anna": "change", **changes}), field, code)


def test_one_click_shares_folder_with_all_users(web, folders):
    turn_on = f"/folders/{PHOTOS.guid}/switch/smb/on/"
    assert turn_on in switches(Page(web.get("/folders/")))
    assert web.post(turn_on, {"from": "list"})["Location"] == "/folders/"
    (job,) = Job.objects.all()
    assert decode_operation(job.operation) == SetShare.of(
        "tank/photos", "smb", Smb(name="photos", write=("anna", "ben"))
    )
    assert "turning on" in text_of(web.get("/folders/"))


def test_one_click_without_users_leads_to_adding_one(web, folders):
    rows.put(accounts=[])
    response = web.post(f"/folders/{PHOTOS.guid}/switch/smb/on/")
    assert response["Location"] == f"/shares/new/?folder={PHOTOS.guid}"
    assert not Job.objects.exists()


def htmx_on(path: str) -> dict[str, str]:
    return {"HTTP_HX_REQUEST": "true", "HTTP_HX_CURRENT_URL": f"http://testserver{path}"}


def test_switch_brings_the_list_as_it_is_shown(web, folders):
    answer = web.post(f"/folders/{PHOTOS.guid}/switch/smb/on/", {"from": "list"}, **htmx_on("/folders/?page=1"))
    assert answer["Location"] == "/folders/?page=1"
    part = web.get(answer["Location"], **htmx_on("/folders/?page=1"))
    assert b"<html" not in part.content
    assert "turning on" in text_of(part)


def test_refused_switch_says_why_in_its_place(web, folders):
    rows.put(accounts=[])
    answer = web.post(f"/folders/{PHOTOS.guid}/switch/smb/on/", **htmx_on("/folders/"))
    assert (answer.status_code, codes_on_page(answer)) == (409, ["share-without-users"])
    page = Page(answer)
    assert b"<html" not in answer.content
    assert answer["HX-Retarget"] == f".share:has(#smb-{PHOTOS.guid})"
    assert f"smb-{PHOTOS.guid}" in [found.get("id") for _tag, found in page.elements]
    assert f"/shares/new/?folder={PHOTOS.guid}" in [found.get("href") for _tag, found in page.elements]
    assert not Job.objects.exists()


@pytest.mark.parametrize("way", ["smb/sideways", "ftp/on", "global/off"])
def test_unknown_switch_is_not_found(web, folders, way):
    assert web.post(f"/folders/{PHOTOS.guid}/switch/{way}/").status_code == 404
