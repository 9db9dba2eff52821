"""The page of who is connected."""

from __future__ import annotations

import json

import msgspec
import pytest
from django.db import connections as databases
from django.test.utils import CaptureQueriesContext

from appliance import agent_client
from appliance.shares.connections import Connection
from tests.web import rows
from tests.web.reading import text_of
from web.inventory import store
from web.inventory.models import ConnectionRow
from web.jobs.models import Job
from workers import collect_connections

ANNA = Connection("smb", "2003", "anna", "192.168.1.20", ("photos",), ("<b>a.raw",), 3, "encrypted")
IMAC = Connection("nfs", "7", "", "192.168.1.30 (imac)")


@pytest.fixture
def two(calm) -> list[tuple[str, ...]]:
    rows.put(pools=[], datasets=[], accounts=[], disks=[], shares=[])
    store.replace(ConnectionRow, [ANNA, IMAC], lambda one: one.key)
    store.checked("connections", changed=True)
    return calm


def test_everybody_is_shown_with_what_they_have_open(web, two):
    page = web.get("/shares/connected/")
    for words in ("anna", "over SMB, encrypted", "photos", "1 and 3 more", "192.168.1.30 (imac)", "no name"):
        assert words in text_of(page)
    assert "&lt;b&gt;a.raw" in page.content.decode()


def test_looking_has_it_read_again_once_in_a_while(web, two):
    web.get("/shares/connected/")
    web.get("/shares/connected/", HTTP_HX_REQUEST="true")
    assert [words for words in two if words[0] == "workers.read_connections"] == [("workers.read_connections",)]


def test_disconnecting_names_the_very_connection(web, two):
    web.post("/shares/connected/smb-2003/end/")
    made = json.loads(Job.objects.get().operation)
    assert made == {"kind": "end-connection", "protocol": "smb", "id": "2003", "who": "anna", "machine": "192.168.1.20"}
    assert web.post("/shares/connected/smb-1/end/").status_code == 404


def test_before_the_first_look_and_where_nobody_is(web, calm):
    rows.put(pools=[], datasets=[], accounts=[], disks=[], shares=[])
    assert "Reading." in text_of(web.get("/shares/connected/"))
    store.checked("connections", changed=True)
    assert "Nobody is connected" in text_of(web.get("/shares/connected/"))


def test_the_worker_keeps_what_the_agent_tells(calm, monkeypatch):
    monkeypatch.setattr(agent_client, "send_request", lambda *_a, **_m: {"facts": msgspec.to_builtins([ANNA])})
    collect_connections.update_connections()
    assert [row.fact for row in ConnectionRow.objects.all()] == [ANNA]


def test_the_page_costs_the_same_with_many(web, two):
    counts = []
    for many in (1, 100):
        found = [Connection("smb", str(at), "anna", "x") for at in range(many)]
        store.replace(ConnectionRow, found, lambda one: one.key)
        web.get("/shares/connected/")
        with CaptureQueriesContext(databases["inventory"]) as seen:
            web.get("/shares/connected/")
        counts.append(len(seen.captured_queries))
    assert counts[0] == counts[1]
