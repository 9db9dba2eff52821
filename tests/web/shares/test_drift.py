"""The page of what was changed by hand, and how its rows come to be."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from appliance import agent_client
from appliance.errors import Failed
from appliance.shares import discovery, nfs, publish, smb
from appliance.shares.drift import detect
from appliance.shares.drift.resolve import AdoptDrift, OverwriteDrift
from appliance.shares.owned_file import OwnedFile
from appliance.shares.set_share import SetShare
from appliance.shares.settings import Smb
from tests.unit.made import ANNA, dataset, shared
from tests.web import rows
from tests.web.reading import text_of
from web.inventory.models import EditRow, Source
from web.jobs.models import Job
from workers import collect_drift, collectors

SEEN = "ab" * 32
COPY = "/etc/samba/larder.conf.by-hand-0123456789ab"
EDIT = detect.Edit(
    "smb",
    "/etc/samba/larder.conf",
    SEEN,
    ("--- as Larder would write it", "+++ as it is", "@@ -1 +1 @@", "-[photos]", "+[pictures]<script>"),
    changes=(SetShare.of("tank/photos", "smb", Smb(name="pictures", write=("anna",))),),
    copies=(COPY,),
)


def keep(*found: detect.Edit) -> None:
    EditRow.objects.all().delete()
    for one in found:
        EditRow.objects.create(key=one.key, name=one.path, facts=msgspec.json.encode(one).decode())


@pytest.fixture
def box_with_edit(calm) -> None:
    rows.put(pools=[], datasets=[dataset("tank"), shared()], accounts=["anna"], disks=[], shares=[])
    keep(EDIT)


def test_a_difference_is_shown_escaped_and_by_signs(web, box_with_edit):
    page = web.get("/shares/by-hand/")
    assert '<span class="diff-removed">-[photos]</span>' in page.content.decode()
    assert "+[pictures]&lt;script&gt;" in page.content.decode()
    for words in ("/etc/samba/larder.conf", "Share tank/photos over SMB", "It stays as it is until you decide", COPY):
        assert words in text_of(page)


def test_adopting_leads_to_a_review_of_just_these_settings(web, box_with_edit):
    page = web.get("/shares/by-hand/smb/adopt/")
    assert page.status_code == 200, text_of(page)
    sent = {name: page.context[name] for name in ("digest", "job", "back")} | {
        "operation": page.context["operation_json"]
    }
    assert "larder:share=" in text_of(page)
    assert web.post("/jobs/confirm/", sent)["Location"] == f"/jobs/{sent['job']}/"
    made = json.loads(Job.objects.get().operation)
    assert made["kind"] == "adopt-drift"
    assert made["seen"] == SEEN
    assert made["changes"][0]["smb"]["name"] == "pictures"


def test_the_agent_plans_what_the_person_saw(web, box_with_edit):
    """What comes back from JSON has lists where the form had tuples; the digest is the same."""
    from appliance.agent.registry import decode_operation
    from appliance.operation import as_json, checked_plan
    from web.inventory import store

    for operation in (AdoptDrift(file="smb", seen=SEEN, changes=EDIT.changes), OverwriteDrift(file="smb", seen=SEEN)):
        again = decode_operation(as_json(operation))
        assert checked_plan(again, store.facts()).digest() == checked_plan(operation, store.facts()).digest()


def test_overwriting_names_the_copy_and_warns(web, box_with_edit):
    text = text_of(web.get("/shares/by-hand/smb/overwrite/"))
    assert f"/etc/samba/larder.conf.by-hand-{SEEN[:12]}" in text
    assert "is closed" in text


def test_what_cannot_be_adopted_says_why_and_offers_no_button(web, box_with_edit):
    keep(
        replace(
            EDIT, changes=(), against=("“max connections = 3” of photos is nothing that Larder can keep as a setting.",)
        )
    )
    page = web.get("/shares/by-hand/")
    assert "max connections = 3" in text_of(page)
    assert "/adopt/" not in page.content.decode()
    refused = web.get("/shares/by-hand/smb/adopt/")
    assert refused.status_code == 409
    assert "max connections = 3" in text_of(refused)


def test_a_change_that_is_no_longer_possible_is_refused_on_its_review(web, box_with_edit):
    rows.put(datasets=[dataset("tank")])
    refused = web.get("/shares/by-hand/smb/adopt/")
    assert refused.status_code == 409
    assert "no longer there" in text_of(refused)


@pytest.mark.parametrize(("url", "status"), [("smb/throw/", 404), ("nfs/adopt/", 404), ("..%2Fx/adopt/", 404)])
def test_nothing_else_is_decided(web, box_with_edit, url, status):
    assert web.get(f"/shares/by-hand/{url}").status_code == status


def test_where_nothing_was_changed_the_page_says_so(web, calm):
    rows.put(pools=[], datasets=[], accounts=[], disks=[], shares=[])
    assert "No manual changes" in text_of(web.get("/shares/by-hand/"))


def test_the_page_costs_the_same_with_many_edits(web, calm):
    rows.put(pools=[], datasets=[], accounts=[], disks=[], shares=[])
    counts = []
    web.get("/shares/by-hand/")
    for many in (1, 30):
        keep(*(replace(EDIT, key=f"larder-nfs-{at}.service") for at in range(many)))
        with CaptureQueriesContext(connections["inventory"]) as seen:
            web.get("/shares/by-hand/")
        counts.append(len(seen.captured_queries))
    assert counts[0] == counts[1]


@pytest.fixture
def samba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Samba's file in a folder of the test's own, edited by hand, and an agent that tells of it."""
    path = tmp_path / "larder.conf"
    for one in (smb.SERVING, nfs.SERVING):
        own = OwnedFile(tmp_path / f"larder.{one.name}", lambda _path: None)
        monkeypatch.setitem(publish.SERVING, one.name, replace(one, owned=own))
    monkeypatch.setitem(publish.SERVING, "smb", replace(smb.SERVING, owned=OwnedFile(path, lambda _path: None)))
    monkeypatch.delitem(publish.SERVING, "afp")
    monkeypatch.setattr(discovery, "FOLDER", tmp_path / "services")
    monkeypatch.setattr(collect_drift, "_asked", [float("-inf")])
    facts = rows.store.facts()
    facts = replace(facts, datasets=(shared(),), accounts=(ANNA,))
    asked: list[object] = []

    def last(request: dict[str, object], **_more: object) -> dict[str, object]:
        asked.append(request)
        return {"facts": msgspec.to_builtins(detect.detect_drift(facts))}

    monkeypatch.setattr(agent_client, "send_request", last)
    monkeypatch.setattr(collect_drift, "asked_in_test", asked, raising=False)
    publish.SERVING["smb"].owned.write(smb.render_config(facts))
    return path


def read() -> list[detect.Edit]:
    collectors.update_source("edits", collect_drift.store_drift)
    return [row.fact for row in EditRow.objects.all()]


def test_an_odd_row_is_read_again(calm, samba):
    samba.write_text(samba.read_text() + "# by hand\n")
    (edit,) = read()
    EditRow.objects.update(facts="{}")
    assert read() == [edit]


def test_without_an_edit_the_agent_is_not_asked(calm, samba):
    assert read() == []
    assert collect_drift.asked_in_test == []  # type: ignore[attr-defined]


def test_an_edit_is_read_once_and_again_when_it_changes_or_is_gone(calm, samba):
    good = samba.read_text()
    samba.write_text(good + "# mine\n")
    (found,) = read()
    assert found.adoptable
    read()
    assert len(collect_drift.asked_in_test) == 1  # type: ignore[attr-defined]
    samba.write_text(good + "# mine too\n")
    assert "+# mine too" in read()[0].diff
    assert "was changed by hand" in Source.objects.get(name="by-hand").error
    samba.write_text(good)
    assert read() == []
    assert Source.objects.get(name="by-hand").error == ""


def test_every_page_says_that_something_was_changed_by_hand(web, calm, samba):
    samba.write_text(samba.read_text() + "# mine\n")
    read()
    page = web.get("/folders/")
    assert f"{samba} was changed by hand." in text_of(page)
    assert 'href="/shares/by-hand/"' in page.content.decode()


def test_copies_are_listed_without_asking(web, calm, samba):
    samba.with_name("larder.conf.by-hand-0123456789ab").write_text("mine")
    (found,) = read()
    assert not found.seen
    assert "by-hand-0123456789ab" in text_of(web.get("/shares/by-hand/"))
    assert collect_drift.asked_in_test == []  # type: ignore[attr-defined]


def test_an_agent_that_does_not_answer_is_a_fault_that_is_told(calm, samba, monkeypatch):
    def fail(*_args: object, **_more: object) -> None:
        raise Failed("Larder's agent does not answer")

    samba.write_text(samba.read_text() + "# mine\n")
    monkeypatch.setattr(agent_client, "send_request", fail)
    read()
    assert "does not answer" in Source.objects.get(name="edits").error
    assert "was changed by hand" in Source.objects.get(name="by-hand").error
