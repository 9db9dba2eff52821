"""The pages of reaching a share: the words to type, and why it cannot be seen."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from msgspec.structs import replace

from appliance import agent_client
from appliance.errors import Failed
from appliance.facts.sharing import Share
from appliance.message import Message
from appliance.shares.settings import Protocol
from appliance.shares.troubleshoot import diagnosis
from tests.unit.made import dataset
from tests.web import rows
from tests.web.reading import Page, text_of
from web.inventory import source_names, store
from web.inventory.models import SeenRow
from web.jobs.models import Job
from workers import diagnose_share as reaching

PHOTOS = dataset(
    share=json.dumps({"smb": {"name": "photos", "write": ["anna"]}, "nfs": {"hosts": ["192.168.1.0/24"]}}),
    share_source="local",
)
HERE = f"/shares/{PHOTOS.guid}/nfs"


@pytest.fixture
def shared(calm) -> list[tuple[str, ...]]:
    rows.put(pools=[], datasets=[dataset("tank"), PHOTOS], accounts=["anna"], disks=[], shares=[])
    return calm


def seen(protocol: Protocol = "nfs", person: str = "", **changes: Any) -> None:
    """Made up: what the agent found at the last look."""
    good = {"unit": "active", "port": True, "served": True, "announced": True, "there": True, "mounted": True}
    found = diagnosis.Diagnosis(dataset=PHOTOS.name, protocol=protocol, person=person, **{**good, **changes})
    SeenRow.objects.create(
        key=SeenRow.key_of(str(PHOTOS.guid), protocol, person),
        name=PHOTOS.name,
        facts=msgspec.json.encode(found).decode(),
        checked=(now := timezone.now()),
        ended=now,
    )
    store.checked(source_names.SEEN, changed=True)


def test_every_kind_of_computer_has_an_address_to_copy(web, shared):
    text = text_of(web.get(f"/shares/{PHOTOS.guid}/smb/ways/"))
    for word in ("Windows", "Mac", "iPhone", "Android", "Linux", "smb://", "\\\\"):
        assert word in text
    assert 'data-copy="#way-1"' in web.get(f"/shares/{PHOTOS.guid}/smb/ways/").content.decode()


def test_number_of_the_box_stands_beside_its_name(web, shared):
    ways = f"/shares/{PHOTOS.guid}/smb/ways/"
    assert "If the name is not found" not in text_of(web.get(ways))
    ports = (replace(rows.ETH0, addresses=("192.168.1.5/24", "fd00::5/64")), replace(rows.ETH0, name="eth1"))
    rows.put_box(replace(rows.BOX, ports=ports[:1]))
    text = text_of(web.get(ways))
    assert "If the name is not found: \\\\192.168.1.5\\photos" in text
    assert "If the name is not found: smb://192.168.1.5/photos" in text
    assert "other address" not in text
    rows.put_box(replace(rows.BOX, ports=(ports[0], replace(ports[1], addresses=("10.0.0.5/8",)))))
    assert "another address too, for computers in that network: 10.0.0.5 " in text_of(web.get(ways))
    near = text_of(web.get(ways, HTTP_X_REAL_IP="10.1.2.3"))
    assert "If the name is not found: \\\\10.0.0.5\\photos" in near


PAGES = {
    "the folder": "/folders/{key}/",
    "how to reach it": "/shares/{key}/smb/ways/",
    "why it is not seen": "/shares/{key}/smb/why/",
    "the overview": "/",
    "the guide": "/guide/sharing/",
}


@pytest.mark.parametrize("page", PAGES)
def test_address_of_a_share_is_the_same_on_every_page(web, calm, settings, page):
    settings.BOX_NAME = "attic"
    box = rows.recorded_box()
    served = [Share("smb", "photos", "/tank/photos"), Share("nfs", "/tank/photos", "/tank/photos")]
    rows.put(pools=[box], datasets=[dataset("tank"), PHOTOS], accounts=["anna"], shares=served)
    rows.put_box()
    seen(protocol="smb")
    text = text_of(web.get(PAGES[page].format(key=PHOTOS.guid), HTTP_USER_AGENT="Windows NT 10.0"))
    assert "\\\\attic.local\\photos" in text
    assert re.findall(r"(?:\\\\|[a-z]+://|sudo mount .* )attic[^.]", text) == []
    if page not in {"the overview", "the guide"}:
        assert "\\\\192.168.1.5\\photos" in text


def test_folder_page_has_an_address_for_each_protocol_that_is_served(web, shared, settings):
    settings.BOX_NAME = "attic"
    rows.put(shares=[Share("nfs", "/tank/photos", "/tank/photos")])
    text = text_of(web.get(f"/folders/{PHOTOS.guid}/"))
    assert "Mac, media player nfs://attic.local/tank/photos" in text
    assert "smb://" not in text


def test_the_mount_lines_stand_ready(web, shared):
    text = text_of(web.get(f"{HERE}/ways/"))
    assert "vers=4.2" in text
    assert ":/tank/photos" in text


def test_a_protocol_that_is_off_has_no_address_and_says_what_to_do(web, shared):
    assert "Switch it on for this folder first" in text_of(web.get(f"/shares/{PHOTOS.guid}/afp/ways/"))


@pytest.mark.parametrize("address", ["ftp/ways/", "nfs/mend/burn/"])
def test_what_there_is_not_is_not_found(web, shared, address):
    assert web.get(f"/shares/{PHOTOS.guid}/{address}").status_code == 404


def test_nobody_has_looked_yet(web, shared):
    assert "Not checked yet" in text_of(web.get(f"{HERE}/why/"))


def test_looking_sends_the_worker_and_the_page_waits(web, shared):
    response = web.post(f"{HERE}/look/", {"person": "anna"})
    assert response["Location"] == f"{HERE}/why/?person=anna"
    assert ("workers.look_at_share", str(PHOTOS.guid), "nfs", "anna") in shared
    assert "Checking." in text_of(web.get(response["Location"]))


def test_a_person_whom_nobody_knows_is_not_handed_on(web, shared):
    web.post(f"{HERE}/look/", {"person": "--help"})
    assert ("workers.look_at_share", str(PHOTOS.guid), "nfs", "") in shared


def test_nothing_in_the_way_is_said(web, shared):
    seen()
    text = text_of(web.get(f"{HERE}/why/"))
    assert "No problem found on this box" in text


def test_what_is_in_the_way_has_its_button(web, shared):
    seen(unit="inactive", port=False, served=False)
    page = Page(web.get(f"{HERE}/why/"))
    assert "The NFS server does not run" in page.text
    form = page.form(f"{HERE}/mend/serve/")
    response = web.post(f"{HERE}/mend/serve/", form.data)
    job = Job.objects.get()
    assert response["Location"] == f"/jobs/{job.pk}/"
    assert (job.kind, job.subject) == ("republish-share", "tank/photos")


def test_changing_permissions_is_shown_before_it_is_done(web, shared):
    seen(person="anna", protocol="smb", account="ready", stopped_at="/tank")
    address = f"/shares/{PHOTOS.guid}/smb"
    assert "anna may not enter /tank" in text_of(web.get(f"{address}/why/?person=anna"))
    assert "chmod o+x -- /tank" in text_of(web.get(f"{address}/mend/let-in/"))
    assert not Job.objects.exists()


def test_the_page_costs_the_same_for_many_people_and_shares(web, shared):
    def queries() -> int:
        with (
            CaptureQueriesContext(connections["default"]) as one,
            CaptureQueriesContext(connections["inventory"]) as two,
        ):
            assert web.get(f"{HERE}/why/").status_code == 200
        return len(one) + len(two)

    seen()
    web.get(f"{HERE}/why/")
    few = queries()
    rows.put(
        accounts=[f"anna{number}" for number in range(60)],
        datasets=[dataset("tank"), PHOTOS, *(dataset(f"tank/{n}") for n in range(60))],
    )
    assert queries() == few


def test_the_worker_asks_the_agent_and_keeps_what_it_found(shared, monkeypatch):
    asked: list[dict[str, Any]] = []

    def last(request: dict[str, Any], **_more: Any) -> dict[str, Any]:
        asked.append(request)
        found = diagnosis.Diagnosis(dataset="tank/photos", protocol="nfs", unit="active", port=True, mounted=True)
        return {"facts": msgspec.to_builtins(found)}

    monkeypatch.setattr(agent_client, "send_request", last)
    reaching.collect_diagnosis(str(PHOTOS.guid), "nfs", "")
    assert asked == [{"verb": "look-at-share", "dataset": "tank/photos", "protocol": "nfs", "person": ""}]
    assert SeenRow.objects.get().fact.unit == "active"


def test_an_agent_out_of_reach_is_told_on_the_page(web, shared, monkeypatch):
    def last(_request: dict[str, Any], **_more: Any) -> dict[str, Any]:
        raise Failed("Larder's agent does not answer")

    monkeypatch.setattr(agent_client, "send_request", last)
    web.post(f"{HERE}/look/", {"person": ""})
    reaching.collect_diagnosis(str(PHOTOS.guid), "nfs", "")
    assert "The check failed" in text_of(web.get(f"{HERE}/why/"))


def answering(monkeypatch: pytest.MonkeyPatch, *silent: str) -> None:
    """An agent that looks at shares, but for these protocols does not answer."""

    def answer(request: dict[str, Any], **_more: Any) -> dict[str, Any]:
        if request["protocol"] in silent:
            raise Failed(Message("Larder's agent does not answer"))
        found = diagnosis.Diagnosis(
            dataset="tank/photos", protocol=request["protocol"], person=request["person"], unit="active", mounted=True
        )
        return {"facts": msgspec.to_builtins(found)}

    monkeypatch.setattr(agent_client, "send_request", answer)


def checked_on(web: Any, address: str) -> str:
    """The time at which a page says that it was last checked."""
    text = web.get(address).content.decode()
    found = re.findall(r'<p class="muted small">.*?datetime="([^"]*)"', text, re.DOTALL)
    return found[0] if found else ""


ANNA_PAGE = f"/shares/{PHOTOS.guid}/smb/why/?person=anna"


def test_each_question_has_the_time_of_its_own_last_check(web, shared, monkeypatch):
    answering(monkeypatch)
    times = [datetime(2026, 11, 20, 12, minute, tzinfo=UTC) for minute in (0, 7, 9)]
    for at, asked in zip(times, (("nfs", ""), ("smb", "anna"), ("smb", "")), strict=True):
        monkeypatch.setattr(timezone, "now", lambda at=at: at)
        reaching.collect_diagnosis(str(PHOTOS.guid), *asked)
    shown = [checked_on(web, one) for one in (f"{HERE}/why/", ANNA_PAGE, f"/shares/{PHOTOS.guid}/smb/why/")]
    assert [datetime.fromisoformat(one) for one in shown] == times


def test_question_that_fails_says_so_on_its_own_page_alone_and_keeps_what_was_found(web, shared, monkeypatch):
    seen()
    seen(protocol="smb", person="anna")
    before = checked_on(web, f"{HERE}/why/")
    answering(monkeypatch, "nfs")
    reaching.collect_diagnosis(str(PHOTOS.guid), "nfs", "")
    text = text_of(web.get(f"{HERE}/why/"))
    assert "The check failed. Larder's agent does not answer" in text
    assert "No problem found on this box" in text
    assert checked_on(web, f"{HERE}/why/") == before
    assert "The check failed" not in text_of(web.get(ANNA_PAGE))
    answering(monkeypatch)
    reaching.collect_diagnosis(str(PHOTOS.guid), "smb", "anna")
    assert "The check failed" in text_of(web.get(f"{HERE}/why/"))
    reaching.collect_diagnosis(str(PHOTOS.guid), "nfs", "")
    assert "The check failed" not in text_of(web.get(f"{HERE}/why/"))
    assert checked_on(web, f"{HERE}/why/") > before


def test_only_the_page_of_the_question_that_was_asked_waits(web, shared):
    seen(protocol="smb", person="anna")
    web.post(f"{HERE}/look/", {"person": ""})
    assert "Checking." in text_of(web.get(f"{HERE}/why/"))
    assert "Checking." not in text_of(web.get(ANNA_PAGE))
    web.post(f"/shares/{PHOTOS.guid}/smb/look/", {"person": "anna"})
    text = text_of(web.get(ANNA_PAGE))
    assert "Checking." in text
    assert "Last checked" in text


def test_error_of_a_question_is_shown_in_the_language_of_the_reader(web, shared, monkeypatch):
    answering(monkeypatch, "nfs")
    reaching.collect_diagnosis(str(PHOTOS.guid), "nfs", "")
    assert isinstance(SeenRow.objects.get().error, Message)  # plain text could not be put into another language
