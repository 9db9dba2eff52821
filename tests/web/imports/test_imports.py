"""Pages of imports of files from another NAS."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import agent_client
from appliance.agent.registry import decode_operation
from appliance.errors import Failed
from appliance.facts.file_import import FileImport, ImportResult
from appliance.facts.remote import fingerprint_of
from appliance.imports.run_import import RunImport
from appliance.imports.set_up import AddImport
from appliance.imports.try_import import TestImport
from tests.unit.made import dataset, disk
from tests.web import rows
from tests.web.reading import Page
from tests.web.rows import HOST_KEY, IMPORT, OTHER_HOST_KEY
from web.inventory import store
from web.inventory.models import ImportRow
from web.jobs.models import Job
from workers import imports

PAGE = f"/imports/{IMPORT.id}/"
ANSWERS = {
    "host": "nas.lan",
    "port": 22,
    "user": "admin",
    "path": "/volume1/photos",
    "folder": "5",
    "existing": "none",
    "owners": "1026=anna\n ben = anna",
}
RESULT = ImportResult(datetime(2026, 1, 2, tzinfo=UTC), 120, 0, 0)


def box(*imports: FileImport, **photos: Any) -> None:
    found = dataset("tank/photos", guid=5, **{"mountpoint": "/tank/photos", "mounted": True, **photos})
    rows.put(
        pools=[rows.pool_of("tank", 1000, disk(1), disk(2))],
        datasets=[dataset("tank", guid=1), found],
        disks=[],
        accounts=["anna"],
        shares=[],
    )
    rows.put_imports(*imports)


def operation_of(kind: type) -> Any:
    found = decode_operation(Job.objects.latest("created").operation)
    assert isinstance(found, kind)
    return found


def test_no_import_yet_says_what_is_needed(web):
    box()
    page = Page(web.get("/imports/"))
    assert "No imports yet" in page.text and "an SMB share" in page.text
    assert "Import files" in Page(web.get("/folders/")).text


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"host_key": "", "offered_key": HOST_KEY, "found": None}, "not confirmed"),
        ({"offered_key": OTHER_HOST_KEY}, "key changed"),
        ({"found": None}, "not tested yet"),
        ({"problem": "nas.lan, port 22 cannot be reached"}, "not ready"),
        ({}, "ready"),
        ({"began": True}, "interrupted"),
        ({"began": True, "problem": "nas.lan, port 22 cannot be reached"}, "interrupted"),
        ({"began": True, "result": RESULT}, "done"),
        ({"began": True, "result": replace(RESULT, different=2)}, "with differences"),
    ],
)
def test_each_import_is_listed_with_its_state(web, changes, word):
    box(replace(IMPORT, **changes))
    assert word in Page(web.get("/imports/")).text
    assert word in Page(web.get(PAGE)).text


def test_form_makes_the_operation(web):
    box()
    response = web.post("/imports/new/ssh/", ANSWERS)
    assert response.status_code == 302 and "/jobs/" in response["Location"]
    made = operation_of(AddImport)
    assert made.owners == {"1026": "anna", "ben": "anna"}
    assert (made.host, made.user, made.path, made.dataset, made.guid, made.existing) == (
        "nas.lan",
        "admin",
        "/volume1/photos",
        "tank/photos",
        5,
        "none",
    )


@pytest.mark.parametrize(
    ("field", "bad", "says"),
    [
        ("host", "-oProxyCommand=id", "Enter a name such as"),
        ("user", "a b", "name contains only"),
        ("path", "photos", "whole path there"),
        ("path", "/volume1/*", "whole path there"),
        ("existing", "keep", "only in an empty folder"),
        ("owners", "1026", "needs an equals sign"),
        ("owners", "*=anna", "a name or a number"),
        ("owners", "1026=nobody-here", "There is no user nobody-here"),
        ("folder", "7", "Select a valid choice"),
    ],
)
def test_form_refuses_what_the_agent_would_refuse(web, field, bad, says):
    box()
    page = Page(web.post("/imports/new/ssh/", {**ANSWERS, field: bad}))
    assert says in page.text
    assert not Job.objects.exists()


@pytest.mark.parametrize("changes", [{"readonly": True}, {"mounted": False}, {"copy_of": '{"guid":9,"raw":false}'}])
def test_folder_that_cannot_be_written_is_not_offered(web, changes):
    box(**changes)
    assert "tank/photos" not in Page(web.get("/imports/new/ssh/")).text


def test_page_shows_the_host_key_and_the_line_that_lets_this_box_in(web):
    box(replace(IMPORT, host_key="", offered_key=HOST_KEY, found=None))
    page = Page(web.get(PAGE))
    assert fingerprint_of(HOST_KEY) in page.text
    assert f"restrict ssh-ed25519 {'C' * 68} larder-import-0badcafe" in page.text
    assert "Start the import" not in page.text


def test_page_shows_what_was_counted_and_what_is_left_out(web):
    box(IMPORT)
    page = Page(web.get(PAGE))
    assert "120 files" in page.text and "100 files" in page.text
    assert "Left out: 1" in page.text and "@eaDir: a folder of the other NAS's own" in page.text
    assert "Start the import" in page.text


def test_page_says_when_there_is_not_enough_room(web):
    box(replace(IMPORT, free=10**6))
    assert "not enough" in Page(web.get(PAGE)).text


def test_other_host_key_takes_the_start_away(web):
    box(replace(IMPORT, offered_key=OTHER_HOST_KEY))
    page = Page(web.get(PAGE))
    assert "Start the import" not in page.text and "may be answering in its place" in page.text
    assert "Confirm the new one only if" in Page(web.get(f"{PAGE}host-key/")).text


def test_review_says_what_is_copied_and_that_nothing_is_deleted(web):
    box(IMPORT)
    page = Page(web.get(f"{PAGE}run/"))
    assert "100 files" in page.text and "Nothing is deleted" in page.text and "rsync --rsh=ssh" in page.text
    assert "groups and access lists of the other NAS are not copied" in page.text
    assert "--delete" not in page.text and "BatchMode" not in page.text


def test_test_makes_its_job(web):
    box(IMPORT)
    web.post(f"{PAGE}test/")
    assert operation_of(TestImport).task == IMPORT.id


def test_problem_of_the_other_side_is_text(web):
    box(replace(IMPORT, problem="<b>no</b>", path="/a <i>b"))
    assert "<b>no" not in web.get(PAGE).content.decode() and "<i>b" not in web.get("/imports/").content.decode()


def test_report_is_a_text_file(web, monkeypatch):
    box(replace(IMPORT, began=True, result=RESULT))
    monkeypatch.setattr(agent_client, "send_request", lambda _request, **_how: {"facts": {"text": "all <fine>\n"}})
    response = web.get(f"{PAGE}report/")
    assert response.content == b"all <fine>\n" and response["Content-Type"].startswith("text/plain")
    assert "attachment" in response["Content-Disposition"]


def test_report_that_cannot_be_read_says_so(web, monkeypatch):
    def fail(_request: object, **_how: object) -> None:
        raise Failed("Larder's agent does not answer")

    box(replace(IMPORT, began=True, result=RESULT))
    monkeypatch.setattr(agent_client, "send_request", fail)
    assert "cannot be read now" in Page(web.get(f"{PAGE}report/")).text


def test_unknown_import_has_no_page(web):
    box(IMPORT)
    for path in ("", "host-key/", "run/", "report/", "remove/"):
        assert web.get(f"/imports/1badcafe/{path}").status_code == 404


def test_run_names_its_folder(web):
    box(IMPORT)
    response = web.get(f"{PAGE}run/")
    assert response.context["operation"].dataset == "tank/photos"
    assert isinstance(response.context["operation"], RunImport)


# --- kinds of sources ------------------------------------------------------------------------------------------------
SHARE = {"host": "nas.lan", "port": 445, "user": "anna", "path": "photos/2019", "folder": "5", "existing": "none"}
SMB = replace(IMPORT, protocol="smb", port=445, user="anna", path="/photos", host_key="", public_key="")


def test_kind_of_source_is_asked_first(web):
    box()
    page = Page(web.get("/imports/new/"))
    for words in ("Another NAS over SSH", "Windows or SMB share", "NFS export", "rsync service"):
        assert words in page.text
    assert web.get("/imports/new/ftp/").status_code == 404


@pytest.mark.parametrize(
    ("protocol", "changes", "path", "asks"),
    [
        ("smb", {}, "/photos/2019", True),
        ("smb", {"user": ""}, "/photos/2019", False),
        ("rsync", {"port": 873, "path": "/photos"}, "/photos", True),
        ("rsync", {"port": 873, "user": ""}, "/photos/2019", False),
        ("nfs", {"port": 2049, "path": "/volume1/photos", "owners": "1026=anna"}, "/volume1/photos", False),
    ],
)
def test_review_of_a_share_asks_for_both_passwords(web, protocol, changes, path, asks):
    box()
    response = web.post(f"/imports/new/{protocol}/", {**SHARE, **changes})
    made = response.context["operation"]
    assert (made.protocol, made.path, made.port) == (protocol, path, changes.get("port", 445))
    page = Page(response)
    assert response.context["needs_proof"]
    assert ("Password of the user over there" in page.text) == asks
    assert "Nothing proves that it is the right computer" in page.text


@pytest.mark.parametrize(
    ("protocol", "changes", "says"),
    [
        ("smb", {"host": "fd00::5"}, "an address such as 192.168.1.20"),
        ("smb", {"user": "anna,rw"}, "letters, digits, spaces"),
        ("smb", {"path": "photos,rw"}, "has a comma"),
        ("smb", {"path": "/"}, "name of the share or module"),
        ("nfs", {"path": "volume1"}, "whole path there"),
        ("nfs", {"path": "/volume1", "owners": "ben=anna"}, "by number only"),
        ("rsync", {"user": "a:b"}, "letters, digits, spaces"),
        ("rsync", {"owners": "ben=anna"}, "by number only"),
        ("rsync", {"path": "a/../b"}, "name of the share or module"),
    ],
)
def test_form_of_each_kind_refuses_what_it_cannot_reach(web, protocol, changes, says):
    box()
    page = Page(web.post(f"/imports/new/{protocol}/", {**SHARE, **changes}))
    assert says in page.text
    assert not Job.objects.exists()


def test_share_has_no_owners_to_map(web):
    box()
    assert "Owners" not in Page(web.get("/imports/new/smb/")).text
    assert "Owners" in Page(web.get("/imports/new/nfs/")).text


@pytest.mark.parametrize(
    ("protocol", "by"),
    [("ssh", "the name or number there"), ("nfs", "the number there"), ("rsync", "the number there")],
)
def test_owners_are_named_as_the_source_sends_them(web, protocol, by):
    box()
    assert f"A line for each user there: {by}, an equals sign" in Page(web.get(f"/imports/new/{protocol}/")).text


def test_page_of_a_share_has_no_host_key(web):
    box(replace(SMB, found=None))
    page = Page(web.get(PAGE))
    assert "Windows or SMB share: //nas.lan/photos" in page.text and "not tested yet" in page.text
    assert "authorized_keys" not in page.text and "Host key" not in page.text and "Start the import" not in page.text
    box(SMB)
    page = Page(web.get(PAGE))
    assert "ready" in page.text and "Start the import" in page.text
    assert "authorized_keys" not in Page(web.get(f"{PAGE}remove/")).text


def test_password_over_there_can_be_changed(web):
    box(SMB)
    assert f"{PAGE}password/" in web.get(PAGE).content.decode()
    page = Page(web.get(f"{PAGE}password/"))
    assert "signs in at nas.lan as anna with this password" in page.text
    assert "Password of the user over there" in page.text
    box(replace(SMB, user=""))
    assert f"{PAGE}password/" not in web.get(PAGE).content.decode()
    assert "signs in without a password" in Page(web.get(f"{PAGE}password/")).text


# --- going on after an interruption ----------------------------------------------------------------------------------
def ended(*states: str) -> None:
    for number, state in enumerate(states):
        made = rows.planned(RunImport(task=IMPORT.id, dataset="tank/photos", moment=f"2026.11.22-19.00.0{number}"))
        Job.objects.filter(pk=made.pk).update(state=state)


def runs() -> int:
    return Job.objects.filter(kind="run-import", state=Job.State.QUEUED).count()


@pytest.mark.parametrize(
    ("states", "goes_on"),
    [
        (["interrupted"], 1),
        (["done", "interrupted"], 1),
        (["interrupted", "interrupted"], 1),
        (["interrupted", "interrupted", "interrupted"], 0),
        (["interrupted", "failed"], 0),
        (["interrupted", "cancelled"], 0),
        (["interrupted", "running"], 0),
        ([], 0),
    ],
)
def test_interrupted_import_goes_on_once_and_a_failed_one_waits(web, states, goes_on):
    box(replace(IMPORT, began=True))
    store.checked("datasets", changed=True)
    ended(*states)
    imports.resume_imports()
    assert runs() == goes_on
    imports.resume_imports()
    assert runs() == goes_on


def test_an_odd_import_keeps_no_other_from_going_on(web):
    box(replace(IMPORT, began=True))
    store.checked("datasets", changed=True)
    ended("interrupted")
    ImportRow.objects.create(key="0", name="odd", facts="{}")
    imports.resume_imports()
    assert runs() == 1


def test_import_that_may_not_go_on_rests_and_is_logged_once_until_it_does(web, caplog, monkeypatch):
    monkeypatch.setattr(imports, "_refused", {})
    began = replace(IMPORT, began=True)
    box(began)
    store.checked("datasets", changed=True)
    ended("interrupted")
    rows.put_imports(replace(began, host_key=""))

    def look(after: int) -> None:
        for key in imports._refused:
            imports._refused[key] -= after
        imports.resume_imports()

    def warnings() -> int:
        return len([one for one in caplog.records if IMPORT.id in one.getMessage()])

    look(0)
    look(imports.SECONDS_OF_REST + 1)
    assert (runs(), warnings()) == (0, 1)
    rows.put_imports(began)
    look(imports.SECONDS_BETWEEN_LOOKS)
    assert runs() == 0
    look(imports.SECONDS_OF_REST + 1)
    assert (runs(), imports._refused) == (1, {})
    Job.objects.filter(state=Job.State.QUEUED).update(state=Job.State.INTERRUPTED)
    rows.put_imports(replace(began, host_key=""))
    look(0)
    assert (runs(), warnings()) == (0, 2)
