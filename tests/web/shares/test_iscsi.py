"""A volume over iSCSI: its page, the form, the review with its secrets, and why it cannot be seen."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.datasets.set_target import SetTarget
from appliance.facts.sharing import Share
from appliance.shares.iscsi.diagnose import TargetDiagnosis, explain_diagnosis
from appliance.shares.iscsi.part import PREFIX, Iscsi
from appliance.system import paths
from tests.reasons import codes_of_form
from tests.unit.made import dataset
from tests.web import rows
from tests.web.reading import Page, assert_nothing_inline, text_of
from web import agent
from web.jobs.models import Job
from web.shares.iscsi_form import proposed_name

VOLUME = dataset("tank/disk1", kind="volume", mounted=False, mountpoint="", volsize=2**30)
SHARED = replace(VOLUME, share=json.dumps({"iscsi": {"name": "disk1"}}), share_source="local")
DESK = "iqn.1991-05.com.microsoft:desk"
AT = f"/folders/{VOLUME.guid}/"
ANSWERS = {"name": "disk1", "initiators": "", "user": "", "back_user": "", "addresses": "", "block": "512"}
SECRET, BACK = "twelve-signs+1", "another-one-22"


def put(volume=VOLUME, *open_by: str, served: bool = False, more=()) -> None:
    shares = [Share("iscsi", f"{PREFIX}disk1", "/dev/zvol/tank/disk1", open_by)] if served else []
    rows.put(
        pools=[rows.pool_of("tank", 1000)],
        datasets=[dataset("tank"), volume, *more],
        accounts=[],
        shares=shares,
        disks=[],
    )


@pytest.fixture
def box(calm) -> None:
    put()


def confirmed(web, review, **typed: str):
    page = Page(review)
    form = next(form for form in page.forms if form.action.endswith("/jobs/confirm/"))
    return web.post("/jobs/confirm/", {**dict(form.values), **typed})


def operation() -> SetTarget:
    found = decode_operation(Job.objects.get().operation)
    assert isinstance(found, SetTarget)
    return found


def test_page_of_a_volume_says_that_it_is_off_and_has_no_switches_of_folders(web, box):
    response = web.get(AT)
    assert_nothing_inline(response)
    text = text_of(response)
    assert "Disk for another computer (iSCSI)" in text
    assert '<span class="switch switch-off">off</span>' in response.content.decode()
    assert "Windows and Mac (SMB)" not in text


def test_page_of_a_served_volume_says_how_to_reach_it_and_who_is_connected(web, calm):
    put(SHARED, DESK, served=True)
    text = text_of(web.get(AT))
    assert f"{PREFIX}disk1" in text
    assert f"Connected {DESK}" in text
    assert "every computer that reaches this box" in text
    assert "off: no secret is asked for" in text
    put(SHARED)
    assert '<span class="switch switch-off">not served</span>' in web.get(AT).content.decode()
    put(replace(SHARED, key_status="unavailable", encryption="on", encryption_root="tank/disk1"))
    assert "until it is unlocked" in text_of(web.get(AT))


def test_without_chap_the_review_warns_and_asks_for_the_administrators_password(web, box):
    text = text_of(web.post(f"{AT}iscsi/", ANSWERS))
    assert "can read, change and erase the whole volume, without a secret" in text
    assert "One computer at a time" in text
    assert "password" in text.lower()


def test_chap_both_ways_asks_for_two_secrets_which_go_to_the_agent_alone(web, box):
    answers = {
        **ANSWERS,
        "user": "desk",
        "back_user": "box",
        "initiators": f"{DESK.upper()}\n{DESK}",
        "addresses": "192.168.1.10",
    }
    review = web.post(f"{AT}iscsi/", answers)
    assert "Secret of this box" in text_of(review)
    both = {"secret": SECRET, "again": SECRET, "secret-back": BACK, "again-back": BACK}
    response = confirmed(web, review, **both)
    assert response.status_code == 302, text_of(response)
    part = Iscsi(name="disk1", user="desk", back_user="box", initiators=(DESK,), addresses=("192.168.1.10",))
    assert operation() == SetTarget(dataset=VOLUME.name, guid=VOLUME.guid, iscsi=part, new_secret=True)
    job = Job.objects.get()
    assert not [text for text in (job.operation, json.dumps(job.plan), job.log) if SECRET in text or BACK in text]
    assert (paths.SECRETS / str(job.pk)).read_text() == f"{SECRET} {BACK}"


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ({"secret": "short"}, "chap-secret-invalid"),
        ({"secret": "x" * 17}, "chap-secret-invalid"),
        ({"secret": "two words 12", "again": "two words 12"}, "chap-secret-invalid"),
        ({"again": "other-secret-1"}, "secrets-differ"),
        ({"secret-back": "", "again-back": ""}, "chap-secret-invalid"),
        ({"secret-back": SECRET, "again-back": SECRET}, "chap-secrets-equal"),
    ],
)
def test_wrong_secrets_are_refused_and_not_shown(web, box, typed, code):
    review = web.post(f"{AT}iscsi/", {**ANSWERS, "user": "desk", "back_user": "box"})
    both = {"secret": SECRET, "again": SECRET, "secret-back": BACK, "again-back": BACK}
    response = confirmed(web, review, **(both | typed))
    assert response.status_code == 400
    assert SECRET.encode() not in response.content
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("answers", "field", "code"),
    [
        ({"name": "../x"}, "name", "target-name-invalid"),
        ({"name": "ÄÖ"}, "name", "target-name-invalid"),
        ({"initiators": "my pc"}, "initiators", "initiator-invalid"),
        ({"addresses": "0.0.0.0"}, "addresses", "portal-address-invalid"),
        ({"addresses": "box.local"}, "addresses", "portal-address-invalid"),
        ({"user": "a b"}, "user", "chap-user-invalid"),
        ({"back_user": "box"}, "user", "chap-one-way-missing"),
        ({"user": "box", "back_user": "box"}, "back_user", "chap-users-equal"),
    ],
)
def test_answers_that_cannot_be_served_are_refused_at_their_field(web, box, answers, field, code):
    assert code in codes_of_form(web.post(f"{AT}iscsi/", {**ANSWERS, **answers}), field)


def test_names_of_other_volumes_and_mixed_addresses_are_refused(web, calm):
    other = dataset(
        "tank/disk2",
        kind="volume",
        mounted=False,
        mountpoint="",
        share=json.dumps({"iscsi": {"name": "disk1"}}),
        share_source="local",
    )
    put(more=(other,))
    assert codes_of_form(web.post(f"{AT}iscsi/", ANSWERS), "name") == ["target-name-taken"]
    answers = {**ANSWERS, "name": "mine", "addresses": "192.168.1.10"}
    assert codes_of_form(web.post(f"{AT}iscsi/", answers), "addresses") == ["portals-mixed"]


def test_locked_volume_is_refused(web, calm):
    put(replace(VOLUME, key_status="unavailable", encryption="on", encryption_root="tank/disk1"))
    assert "is locked" in text_of(web.post(f"{AT}iscsi/", ANSWERS))


def test_secret_of_now_stays_unless_a_new_one_is_wanted(web, calm):
    put(replace(VOLUME, share=json.dumps({"iscsi": {"name": "disk1", "user": "desk"}}), share_source="local"))
    changed = {**ANSWERS, "user": "desk", "initiators": DESK}
    assert "Secret" not in text_of(web.post(f"{AT}iscsi/", changed))
    assert "Secret once more" in text_of(web.post(f"{AT}iscsi/", {**changed, "new_secret": "on"}))
    assert "Secret of this box" in text_of(web.post(f"{AT}iscsi/", {**changed, "back_user": "box"}))


def test_new_secret_is_proposed_where_the_volume_came_without_its_secret_from_another_box(web, calm):
    volume = replace(VOLUME, share=json.dumps({"iscsi": {"name": "disk1", "user": "desk"}}), share_source="local")
    for served in (False, True):
        put(volume, served=served)
        assert web.get(f"{AT}iscsi/").context["form"].initial["new_secret"] is not served


def test_stopping_names_who_loses_the_disk_and_is_agreed_to_only_with_them(web, calm):
    put(SHARED, served=True)
    quiet = web.get(f"{AT}iscsi/stop/")
    assert "sees its disk fail" not in text_of(quiet)
    put(SHARED, f"{DESK} (192.168.1.20)", served=True)
    answer = confirmed(web, quiet)
    assert answer.status_code == 409
    assert "Something changed since you looked" in text_of(answer)
    assert not Job.objects.exists()
    loud = web.get(f"{AT}iscsi/stop/")
    assert f"{DESK} (192.168.1.20) uses it as a disk now" in text_of(loud)
    assert confirmed(web, loud).status_code == 302
    assert operation() == SetTarget(dataset=VOLUME.name, guid=VOLUME.guid)


@pytest.mark.parametrize("page", ["rename/?answered=1&parent=tank&name=disk9"])
def test_other_changes_name_who_loses_the_disk(web, calm, page):
    put(SHARED, DESK, served=True)
    assert f"{DESK} uses it as a disk now" in text_of(web.get(f"{AT}{page}"))


def test_a_folder_is_no_disk(web, box):
    for page in ("iscsi/", "iscsi/stop/", "iscsi/why/"):
        assert web.get(f"/folders/{dataset('tank').guid}/{page}").status_code == 404


def test_why_says_what_is_in_the_way(web, calm, monkeypatch):
    put(SHARED)
    seen = {"on": True, "agreed": True, "locked": "", "device": True, "served": False, "connected": []}
    monkeypatch.setattr(agent, "last", lambda _request, silence: {"facts": seen})
    text = text_of(web.get(f"{AT}iscsi/why/"))
    assert "1 problem found" in text
    assert "The kernel does not serve it" in text
    seen["served"] = True
    assert "No problem found on this box" in text_of(web.get(f"{AT}iscsi/why/"))


def test_why_says_what_was_changed_by_hand_and_leads_there(web, calm, monkeypatch):
    put(SHARED)
    by_hand = [{"kind": "chap-off", "what": "", "wanted": ""}, {"kind": "initiator-added", "what": DESK, "wanted": ""}]
    seen = {"on": True, "agreed": True, "device": True, "served": True, "by_hand": by_hand}
    monkeypatch.setattr(agent, "last", lambda _request, silence: {"facts": seen})
    page = web.get(f"{AT}iscsi/why/")
    assert "The target was changed by hand CHAP was switched off" in text_of(page)
    assert f"{DESK} may connect too." in text_of(page)
    assert 'href="/shares/by-hand/"' in page.content.decode()


def test_why_says_that_it_could_not_be_looked_at(web, calm):
    put(SHARED)
    assert "could not be checked" in text_of(web.get(f"{AT}iscsi/why/"))


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"on": False}, "The switch is off"),
        ({"locked": "tank/disk1"}, "The volume is locked"),
        ({"device": False}, "The volume is not in its place"),
        ({"agreed": False}, "It was not switched on here"),
        ({"secret": False}, "This box does not have the secret"),
        ({"served": False}, "The kernel does not serve it"),
        ({"silent": ("127.0.0.1",)}, "Nothing answers on port 3260"),
        ({"foreign": ("192.168.1.10",)}, "192.168.1.10 is no address of this box"),
    ],
)
def test_each_thing_in_the_way_has_its_sentence(changes, title):
    good = TargetDiagnosis(on=True, agreed=True, device=True, served=True)
    assert [one.title for one in explain_diagnosis(SHARED, good) if one.state == "failed"] == []
    failed = [one.title for one in explain_diagnosis(SHARED, replace_struct(good, changes)) if one.state == "failed"]
    assert failed == [title]


def replace_struct(seen: TargetDiagnosis, changes: dict[str, object]) -> TargetDiagnosis:
    import msgspec

    return msgspec.structs.replace(seen, **changes)


def test_volume_that_came_with_a_pool_is_offered_on_its_page(web, calm):
    put(SHARED)
    page = web.get("/pools/1000/")
    assert "tank/disk1 asks to be shared as disk1" in text_of(page)
    assert f'href="{AT}iscsi/"' in page.content.decode()
    put(SHARED, served=True)
    assert "asks to be shared" not in text_of(web.get("/pools/1000/"))


def test_search_finds_a_served_volume_and_leads_to_its_page(web, calm):
    put(SHARED, served=True)
    page = web.get("/search/?q=disk1")
    assert f"{PREFIX}disk1 over iSCSI" in text_of(page)


def test_proposed_name_is_one_that_is_taken():
    for name in ("tank/vm/disk1", "Tank/My-Disk", f"tank/{'a' * 200}", "tank/___", "a.b/c:d"):
        assert Iscsi(name=proposed_name(name))


def test_snapshot_of_a_volume_says_what_it_is(web, box):
    assert "crash-consistent" in text_of(web.get(f"/snapshots/of/{VOLUME.guid}/take/"))
