"""Pages of pairings, and the address that another Larder asks without a session."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.utils import timezone
from msgspec.structs import replace

from appliance import agent_client
from appliance.agent.registry import decode_operation
from appliance.agent.request_registry import decode_request
from appliance.backups.pairing import codes
from appliance.backups.pairing.pair_box import PairBox
from appliance.backups.pairing.receive_copies import ReceiveCopies
from appliance.errors import Failed, Reason, Refused
from appliance.facts.datasets import Property
from appliance.facts.receiver import Receiver
from appliance.operation import Operation
from tests.unit.made import dataset, disk
from tests.web import rows
from tests.web.reading import Page
from tests.web.rows import RECEIVER, REMOTE
from tests.web.system.test_queries import queries
from web.jobs.models import Job

LIST, PAGE = "/backups/receiving/", f"/backups/receiving/{RECEIVER.id}/"
CODE = codes.spell_digits("7KQ2MT0B8R0XHVN4J3P")
PUBLIC = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{'A' * 43}"
PAIRED = replace(RECEIVER, public_key=PUBLIC, sender="cellar", paired=datetime(2026, 1, 2, tzinfo=UTC))
KEPT = {"hourly": 24, "daily": 14, "weekly": 8, "monthly": 12, "days": 7}
MARK = {"copy_of": '{"guid":0,"raw":false}'}
ROOT = dataset(RECEIVER.root, guid=77, properties={"larder:receives": Property("yes", "local")}, **MARK)
COPY = dataset(f"{RECEIVER.root}/photos", guid=78, copy_of='{"guid":5,"raw":false}')
ANSWER = {"host_key": "ssh-ed25519 x", "user": "larder-receive", "root": RECEIVER.root, "port": 22, "proof": "f" * 64}


def box(*receivers: Receiver, folder: bool = True) -> None:
    found = [dataset("tank", guid=1), dataset("tank/backups", guid=2, **MARK), *([ROOT, COPY] if folder else [])]
    rows.put(pools=[rows.pool_of("tank", 1000, disk(1), disk(2))], datasets=found, disks=[], accounts=[], shares=[])
    rows.put_receivers(*receivers)


class Agent:
    """Stands in for the agent: notes what it is asked and answers as told."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.error: Exception | None = None

    def __call__(self, request: dict[str, Any], **_options: object) -> dict[str, Any]:
        decode_request(json.dumps(request).encode())  # it takes nothing else
        self.asked.append(request)
        if self.error:
            raise self.error
        made = {"code": CODE, "minutes": 10}
        return {"facts": {"make-pairing-code": made, "accept-pairing": ANSWER}.get(request["verb"], {})}


@pytest.fixture
def agent(admin: Any, monkeypatch: pytest.MonkeyPatch) -> Agent:
    cache.clear()
    made = Agent()
    monkeypatch.setattr(agent_client, "send_request", made)
    return made


def reviewed(response: Any, model: type[Operation]) -> Any:
    assert response.status_code == 200, Page(response).text
    found = decode_operation(response.context["operation_json"])
    assert isinstance(found, model)
    return found


def offer() -> dict[str, str]:
    made = codes.make_offer(codes.key_of(CODE), PUBLIC, "cellar")
    return {name: getattr(made, name) for name in made.__struct_fields__}


def say(client: Any, body: object) -> Any:
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    return client.post("/backups/pair/", text, content_type="application/json")


# --- pages of the box that receives ---------------------------------------------------------------------------------
def test_nobody_paired_yet_says_what_it_is_good_for(web):
    box()
    page = Page(web.get(LIST))
    assert "No other Larder sends copies here" in page.text
    assert "Received copies" in Page(web.get("/backups/")).text


@pytest.mark.parametrize(
    ("receiver", "folder", "word"),
    [
        (RECEIVER, True, "not paired yet"),
        (replace(RECEIVER, code_until=timezone.now() + timedelta(days=900)), True, "waiting for the code"),
        (replace(RECEIVER, code_until=datetime(2026, 1, 1, tzinfo=UTC)), True, "not paired yet"),
        (replace(PAIRED, days=0), True, "paired"),
        (PAIRED, True, "not connected lately"),
        (PAIRED, False, "folder missing"),
    ],
)
def test_each_pairing_is_listed_with_its_state(web, receiver, folder, word):
    box(receiver, folder=folder)
    assert word in Page(web.get(LIST)).text
    page = Page(web.get(PAGE)).text
    assert word in page
    assert ("Show a" in page) is not bool(receiver.public_key)
    assert ("Cancel the code" in page) is (word == "waiting for the code")


def test_copies_are_listed_with_a_way_back(web):
    box(PAIRED)
    page = Page(web.get(PAGE))
    assert COPY.name in page.text and "Restore" in page.text and "destroy none" in page.text
    assert f"/backups/copies/{COPY.guid}/restore/" in web.get(PAGE).content.decode()


def test_folder_for_copies_is_no_folder_without_a_backup_and_no_lost_copy(web):
    box(PAIRED)
    text = Page(web.get("/backups/")).text
    assert RECEIVER.root not in text and "has no backup" not in text


def test_unknown_pairing_has_no_page(web, agent):
    box()
    for path in ("", "remove/"):
        assert web.get(f"{PAGE}{path}").status_code == 404
    for path in ("code/", "withdraw/"):
        assert web.post(f"{PAGE}{path}").status_code == 404
    assert agent.asked == []


def test_form_leads_to_a_review_with_the_password(web):
    box()
    response = web.post(f"{LIST}new/", {"pool": "tank", "name": "attic2", "limit": "2 TB", **KEPT})
    made = reviewed(response, ReceiveCopies)
    assert (made.root, made.limit) == ("tank/backups/attic2", 2 * 10**12)
    assert 'name="password"' in response.content.decode() and "cannot destroy copies" in Page(response).text
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "../x"},
        {"name": "a b"},
        {"name": "-x"},
        {"name": ""},
        {"pool": "other"},
        {"limit": "much"},
        {"name": "attic"},
    ],
)
def test_what_cannot_be_received_into_is_refused_with_its_field(web, wrong):
    box(RECEIVER)
    response = web.post(f"{LIST}new/", {"pool": "tank", "name": "attic2", "limit": "", **KEPT, **wrong})
    assert response.status_code == 400 and set(wrong) <= set(response.context["form"].errors)


def test_without_a_pool_the_form_says_so(web):
    rows.put(pools=[], datasets=[], disks=[], accounts=[], shares=[])
    assert "Create a pool first" in Page(web.get(f"{LIST}new/")).text


def test_code_is_shown_once_and_stored_nowhere(web, agent):
    box(RECEIVER)
    response = web.post(f"{PAGE}code/")
    text = response.content.decode()
    assert all(group in text for group in CODE.split("-")) and "testserver" in text
    assert "no-store" in response["Cache-Control"] and 'hx-history="false"' in text
    assert agent.asked == [{"verb": "make-pairing-code", "receiver": RECEIVER.id}]
    assert not Job.objects.exists()
    assert CODE[:5] not in str(Session.objects.values_list("session_data", flat=True))
    assert CODE[:5] not in web.get(PAGE).content.decode()


@pytest.mark.parametrize(
    "error",
    [Refused(Reason("pairing-done", "It was paired already.")), Failed("This box has no ssh server", "Install one.")],
)
def test_code_that_cannot_be_made_says_why(web, agent, error):
    box(RECEIVER)
    agent.error = error
    response = web.post(f"{PAGE}code/")
    assert response.status_code == 409
    assert "paired already" in Page(response).text or "no ssh server" in Page(response).text


def test_code_is_cancelled(web, agent):
    box(RECEIVER)
    assert web.post(f"{PAGE}withdraw/").status_code == 302
    assert agent.asked == [{"verb": "withdraw-pairing-code", "receiver": RECEIVER.id}]


def test_removing_says_what_stays_and_needs_no_password(web):
    box(PAIRED)
    response = web.get(f"{PAGE}remove/")
    assert "The copies in tank/backups/attic stay" in Page(response).text
    assert 'name="password"' not in response.content.decode()


def test_pages_read_no_more_rows_with_more_pairings(web):
    box(PAIRED)
    for path in (LIST, PAGE):
        web.get(path)
        few = len(queries(web, path))
        rows.put_receivers(
            PAIRED, *(replace(PAIRED, id=f"{number:08x}", root=f"tank/backups/{number}") for number in range(9))
        )
        assert len(queries(web, path)) == few
        rows.put_receivers(PAIRED)


# --- pages of the box that sends ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("attic.lan", ("attic.lan", 443)),
        (" https://attic.lan/ ", ("attic.lan", 443)),
        ("192.168.1.20:8443", ("192.168.1.20", 8443)),
        ("[fd00::2]", ("fd00::2", 443)),
    ],
)
def test_address_is_taken_as_people_type_it(web, typed, place):
    box()
    response = web.post("/backups/computers/pair/", {"address": typed})
    made = reviewed(response, PairBox)
    assert (made.host, made.port) == place
    text = response.content.decode()
    assert 'name="password"' in text and 'name="secret"' in text


@pytest.mark.parametrize("typed", ["", "-oProxyCommand=id", "a b", "attic.lan:99999", "fe80::1%eth0", "https://[x"])
def test_what_is_no_address_is_refused(web, typed):
    box()
    response = web.post("/backups/computers/pair/", {"address": typed})
    assert response.status_code == 400 and "address" in response.context["form"].errors


def test_code_is_looked_at_before_a_job_is_made(web, agent):
    box()
    review = web.post("/backups/computers/pair/", {"address": "attic.lan"})
    given = {
        "operation": review.context["operation_json"],
        "digest": review.context["digest"],
        "job": review.context["job"],
        "back": "/",
        "password": "x",
    }
    response = web.post("/jobs/confirm/", {**given, "secret": "7KQ2"})
    assert "four groups of five" in Page(response).text
    assert not Job.objects.exists()


def test_page_of_a_paired_box_asks_for_nothing_by_hand(web):
    box()
    rows.put_remotes(replace(REMOTE, paired=True))
    page = Page(web.get(f"/backups/computers/{REMOTE.id}/")).text
    assert "another Larder, paired by a code" in page
    assert "authorized_keys" not in page and "useradd" not in page
    review = Page(web.get(f"/backups/computers/{REMOTE.id}/remove/")).text
    assert "under Backups, Received copies" in review


# --- what another Larder asks ---------------------------------------------------------------------------------------
def test_offer_is_answered_without_a_session_and_a_token(anonymous, strict, agent):
    box(RECEIVER)
    for client in (anonymous, strict):
        made = offer()
        response = say(client, made)
        assert response.status_code == 200 and response.json() == ANSWER
        assert agent.asked[-1] == {"verb": "accept-pairing", "offer": made}
        assert not response.cookies


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete", "head", "options"])
def test_other_methods_are_refused_and_ask_nobody(anonymous, agent, method):
    assert getattr(anonymous, method)("/backups/pair/").status_code == 405
    assert agent.asked == []


@pytest.mark.parametrize(
    ("code", "status"), [("pairing-not-open", 404), ("pairing-code-wrong", 403), ("pairing-done", 403)]
)
def test_refusals_have_a_status_each(anonymous, agent, code, status):
    agent.error = Refused(Reason(code, "No."))
    assert say(anonymous, offer()).status_code == status


def test_failure_says_nothing_of_the_box(anonymous, agent):
    agent.error = Failed("/var/lib/larder-receive could not be written", "disk full")
    response = say(anonymous, offer())
    assert response.status_code == 503 and b"larder-receive" not in response.content


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        b"\xff\xfe",
        "[" * 3000,
        {**offer(), "more": "x"},
        {**offer(), "name": "a\nb"},
        {**offer(), "proof": "x"},
        {**offer(), "public_key": "ssh-rsa AAAA"},
        {**offer(), "nonce": 7},
        {**offer(), "name": "x" * 5000},
    ],
)
def test_what_is_no_offer_asks_nobody(anonymous, agent, body):
    response = say(anonymous, body)
    assert response.status_code == 403 and "Nothing was changed" in response.json()["error"]
    assert agent.asked == []


def test_tries_are_limited_for_the_whole_box(anonymous, agent):
    agent.error = Refused(Reason("pairing-not-open", "No."))
    statuses = [
        anonymous.post(
            "/backups/pair/",
            json.dumps(offer()),
            content_type="application/json",
            headers={"X-Real-IP": f"192.168.1.{number}"},
        ).status_code
        for number in range(32)
    ]
    assert statuses == [404] * 30 + [429] * 2
    assert len(agent.asked) == 30
