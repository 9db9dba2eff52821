"""Pages of the recovery phrase: what they say, who may make one, and that it is stored nowhere."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from django.contrib.sessions.models import Session

from appliance import agent_client
from appliance.datasets.encryption import key_store
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box_record import BoxMark, BoxMarks
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Property
from appliance.recovery import recovery_key
from appliance.recovery.recovery_key import RecoveryState
from appliance.users.share_folder import ShareFolder
from tests.reasons import codes_of_form
from tests.unit.made import dataset, disk, shared
from tests.web import rows
from tests.web.reading import text_of
from web.backups import recovery
from web.jobs.models import Job

PHRASE = "E8HJ-N9GE-7ARV-QS1X-2N7K-VJHC-XA8B"
AT = 1_790_000_000
OLD = BoxMark(id="0123456789abcdef", host="attic", at=AT)


def box(*marks: BoxMark) -> None:
    noted = {"larder:box": Property(BoxMarks(boxes=marks).text, "local")}
    rows.put(
        pools=[rows.pool_of("tank", 1000, disk(1), disk(2))],
        datasets=[dataset("tank", guid=1, properties=noted), dataset("tank/photos", guid=5)],
        disks=[],
        accounts=[],
        shares=[],
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the agent was asked; it answers as the real one would."""
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(recovery_key, "read_state", lambda: RecoveryState())

    def answer(request: dict[str, Any], **_options: object) -> dict[str, Any]:
        said.append(request)
        if request["verb"] == "make-recovery-phrase":
            if request["password"] != "right":
                raise Refused(Reason("password-wrong", "That is not the password.", field="password"))
            return {"facts": {"phrase": PHRASE, "state": {}}}
        if request.get("phrase", PHRASE) != PHRASE:
            raise Refused(Reason("phrase-of-other", "Another one.", field="phrase"))
        return {"facts": {}}

    monkeypatch.setattr(agent_client, "send_request", answer)
    return said


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (RecoveryState(), "not made yet"),
        (RecoveryState(made=AT), "not typed back yet"),
        (RecoveryState(made=AT, confirmed=AT), "on paper"),
    ],
)
def test_page_says_how_the_phrase_stands(web, monkeypatch, state, word):
    box()
    monkeypatch.setattr(recovery_key, "read_state", lambda: state)
    page = text_of(web.get("/backups/recovery/"))
    assert word in page
    assert ("Type it back" in page) is bool(state.made and not state.confirmed)


def test_page_says_that_nobody_knows_while_the_agent_does_not_answer(web, monkeypatch):
    box()
    monkeypatch.setattr(recovery_key, "read_state", lambda: None)

    def fail(*_arguments: object, **_options: object) -> None:
        raise Failed("Larder's agent does not answer")

    monkeypatch.setattr(agent_client, "send_request", fail)
    page = text_of(web.get("/backups/recovery/"))
    assert "unknown" in page and "Make a recovery phrase" not in page


def test_folder_whose_key_this_box_does_not_store_is_named(web, asked):
    sealed = {"encryption": "aes-256-gcm", "key_status": "available"}
    rows.put(
        pools=[],
        disks=[],
        accounts=[],
        shares=[],
        datasets=[dataset("tank"), dataset("tank/vault", encryption_root="tank/vault", **sealed)],
    )
    assert "tank/vault" in text_of(web.get("/backups/recovery/"))


def test_phrase_is_shown_once_to_who_knows_the_password_and_stored_nowhere(web, asked):
    refused = web.post("/backups/recovery/new-phrase/", {"password": "wrong"})
    assert refused.status_code == 400 and codes_of_form(refused) == ["password-wrong"]
    shown = web.post("/backups/recovery/new-phrase/", {"password": "right"})
    assert PHRASE in shown.content.decode().replace("<wbr>", "").replace("</span>", "").replace(
        '<span\n    class="nowrap">', ""
    )
    assert "no-store" in shown["Cache-Control"] and 'hx-history="false"' in shown.content.decode()
    assert "right" not in text_of(shown).split()
    assert Job.objects.count() == 0
    assert PHRASE[:4] not in str(Session.objects.values_list("session_data", flat=True))
    assert PHRASE[:4] not in web.get("/backups/recovery/").content.decode()
    assert PHRASE[:4] not in web.get("/backups/recovery/new-phrase/").content.decode()


def test_phrase_is_typed_back_in_any_spelling(web, asked):
    assert web.post("/backups/recovery/confirm/", {"phrase": PHRASE.lower().replace("-", " ")}).status_code == 302
    assert asked[-1] == {"verb": "confirm-recovery-phrase", "phrase": PHRASE}
    for typed, code in (("E8HJ", "phrase-incomplete"), (PHRASE.replace("E", "F"), "phrase-mistyped")):
        answer = web.post("/backups/recovery/confirm/", {"phrase": typed})
        assert answer.status_code == 400 and codes_of_form(answer) == [code]
    assert len(asked) == 1  # what cannot be right is not asked


def test_backups_page_says_that_no_phrase_is_on_paper(web, monkeypatch):
    box()
    monkeypatch.setattr(recovery, "is_missing", lambda: True)
    assert "no recovery phrase" not in text_of(web.get("/backups/"))  # nothing is backed up yet


def test_record_of_another_box_is_found_and_that_of_this_one_is_not(monkeypatch):
    monkeypatch.setattr(key_store, "box_mark", lambda: OLD.id)
    box(OLD, BoxMark(id="fedcba9876543210", host="cellar", at=AT))
    from web.backups import status

    assert [one.mark.host for one in recovery.other_boxes(status.read_facts())] == ["cellar"]


RECORD = {
    "version": 1,
    "box": OLD.id,
    "host": "attic",
    "written": AT,
    "users": [{"name": "anna", "uid": 10003}],
    "folders": [
        {"name": "tank/photos", "guid": 5},
        {
            "name": "tank/music",
            "guid": 99,
            "settings": {
                "larder:share": '{"smb":{"name":"music","write":["anna"]}}',
                "larder:policy": '{"daily":3}',
            },
        },
        {"name": "tank/gone", "guid": 98, "settings": {"larder:share": '{"smb":{"name":"-x"}}'}},
    ],
    "sealed": True,
}
BOX = f"/backups/recovery/1000/{OLD.id}/"


@pytest.fixture
def old_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool with the record of a box that is lost, its photos, and a copy of its music."""
    noted = {"larder:box": Property(BoxMarks(boxes=(OLD,)).text, "local")}
    music = dataset("tank/backups/music", guid=7, copy_of=CopyMark(99, raw=False).text)
    rows.put(
        pools=[rows.pool_of("tank", 1000, disk(1), disk(2))],
        datasets=[dataset("tank", guid=1, properties=noted), dataset("tank/photos", guid=5), music],
        disks=[],
        accounts=[],
        shares=[],
    )
    monkeypatch.setattr(recovery_key, "read_state", lambda: RecoveryState())
    monkeypatch.setattr(agent_client, "send_request", lambda request, **_options: {"facts": RECORD})


def test_other_box_is_offered_with_its_users_and_folders(web, old_box):
    assert "has the record of attic" in text_of(web.get("/backups/recovery/"))
    page = web.get(BOX)
    text = text_of(page)
    assert "anna" in text and "Take the place of attic" in text
    for words in ("tank/photos here", "tank/music only as a copy", "tank/gone not here"):
        assert words in text, text
    assert "/backups/copies/7/restore/" in page.content.decode()


def test_review_shows_the_plan_and_asks_for_the_phrase(web, old_box):
    page = web.get(f"{BOX}take-place/")
    text = text_of(page)
    assert "Take the place of attic" in text and "Recovery phrase of the other box" in text


def test_record_that_is_not_on_that_pool_is_not_found(web, old_box):
    assert web.get("/backups/recovery/1000/ffffffffffffffff/").status_code == 404
    assert web.get(f"/backups/recovery/1/{OLD.id}/").status_code == 404


def test_hostile_record_is_a_refusal_and_no_page(web, old_box, monkeypatch):
    spoiled = RECORD | {"users": [{"name": "root", "uid": 0}]}
    monkeypatch.setattr(agent_client, "send_request", lambda request, **_options: {"facts": spoiled})
    for path in (BOX, f"{BOX}take-place/"):
        assert web.get(path).status_code == 409


def test_replaced_box_says_so_and_can_take_its_place_back(web, old_box, monkeypatch):
    monkeypatch.setattr(key_store, "box_mark", lambda: OLD.id)
    box(msgspec.structs.replace(OLD, by="attic2"))
    assert "attic2 has taken the place of this box" in text_of(web.get("/backups/recovery/"))
    assert "Take the place back" in text_of(web.get(BOX))


def test_restored_folder_is_shared_as_the_record_says_and_no_other(web, old_box):
    assert "as before" not in text_of(web.get(BOX))
    noted = {"larder:box": Property(BoxMarks(boxes=(OLD,)).text, "local")}
    rows.put(
        pools=[rows.pool_of("tank", 1000, disk(1), disk(2))],
        datasets=[
            dataset("tank", guid=1, properties=noted),
            dataset("tank/photos", guid=5),
            dataset("tank/music", guid=8),
            dataset("tank/gone", guid=9),
            shared("tank/sub/music", guid=10, share='{"smb":{"name":"other","write":["anna"]}}'),
        ],
        disks=[],
        accounts=["anna"],
        shares=[],
    )
    page = web.get(BOX)
    assert "Share tank/music as before" in text_of(page)
    assert text_of(page).count("as before") == 1  # what is shared already is another folder, and a bad setting is none
    review = web.get(f"{BOX}share/99/8/")
    assert review.status_code == 200, text_of(review)
    operation = review.context["operation"]
    assert isinstance(operation, ShareFolder)
    assert (operation.dataset, operation.guid) == ("tank/music", 8)
    assert operation.smb and operation.smb.write == ("anna",) and operation.policy
    for path in (f"{BOX}share/98/9/", f"{BOX}share/99/5/", f"{BOX}share/5/8/"):
        assert web.get(path).status_code == 404
