"""What the buttons of "Why can't I see it?" do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from appliance.agent.registry import decode_operation
from appliance.errors import Failed, Refused
from appliance.facts.box import Facts
from appliance.operation import checked_plan
from appliance.shares import discovery, publish
from appliance.shares.publish import SERVING
from appliance.shares.troubleshoot.fixes import OpenTopFolder, RepublishShare
from tests.reasons import expect_refusal
from tests.unit.made import box, dataset
from tests.unit.pools.test_create import Working

SHARE = {"share": json.dumps({"nfs": {"hosts": ["10.0.0.0/8"]}}), "share_source": "local"}
SERVE = RepublishShare(dataset="tank/photos", protocol="nfs")


def facts(**changes: Any) -> Facts:
    return box(datasets=(dataset("tank"), dataset(**{**SHARE, **changes})))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"share": ""}, "share-off"),
        ({"key_status": "unavailable"}, "dataset-locked"),
        ({"canmount": "off"}, "dataset-without-mountpoint"),
    ],
)
def test_what_cannot_be_served_is_refused_with_what_to_do(changes, code):
    with expect_refusal(code):
        checked_plan(SERVE, facts(**changes))


def test_a_folder_that_is_not_mounted_is_mounted_first():
    assert [step.name for step in checked_plan(SERVE, facts(mounted=False)).steps] == [
        "mount",
        "serve",
        "announce",
    ]
    assert [step.name for step in checked_plan(SERVE, facts()).steps] == ["serve", "announce"]


class Stub:
    """Stands in for a protocol: serves what it is told."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths

    def served(self) -> set[tuple[str, str]]:
        return {(path, path) for path in self.paths}


@pytest.mark.parametrize(("served", "said"), [(("/tank/photos",), ""), ((), "does not serve")])
def test_it_is_done_only_when_the_daemon_says_that_it_serves(monkeypatch, served, said):
    published: list[list[str]] = []
    monkeypatch.setitem(SERVING, "nfs", Stub(*served))
    monkeypatch.setattr(publish, "agreed_facts", facts)
    monkeypatch.setattr(publish, "publish_shares", lambda _facts, protocols, **_how: published.append(protocols))
    if said:
        with pytest.raises(Failed, match=said):
            SERVE.serve(Working())
    else:
        SERVE.serve(Working())
    assert published == [["nfs"]]


def test_what_nobody_agreed_to_is_not_served_by_the_button(monkeypatch):
    monkeypatch.setattr(publish, "agreed_facts", lambda: box(datasets=(dataset("tank"),)))
    with pytest.raises(Failed, match="agreed"):
        SERVE.serve(Working())


def test_what_is_announced_is_what_was_agreed_to(monkeypatch):
    said: list[list[str]] = []
    monkeypatch.setattr(publish, "agreed_facts", facts)
    monkeypatch.setattr(discovery, "announce_shares", lambda every: said.append([one.name for one in every]))
    SERVE.announce(Working())
    assert said == [["tank", "tank/photos"]]


def test_people_are_let_into_the_top_of_a_folder_and_through_those_above():
    plan = checked_plan(OpenTopFolder(dataset="tank/photos"), facts())
    assert [step.command_text for step in plan.steps] == [
        "chmod o+x -- /tank",
        "chgrp larder-people -- /tank/photos",
        "chmod g+rwxs -- /tank/photos",
    ]


@pytest.mark.parametrize("changes", [{"mounted": False}, {"readonly": True}, {"mountpoint": "/etc"}])
def test_nobody_is_let_in_where_that_cannot_be(changes):
    with pytest.raises(Refused):
        checked_plan(OpenTopFolder(dataset="tank/photos"), facts(**changes))


@pytest.mark.parametrize("name", ["-rf", "a\nb", "../x", ""])
@pytest.mark.parametrize("kind", ["republish-share", "open-top-folder"])
def test_the_agent_takes_no_name_outside_the_grammar(kind, name):
    more = {"protocol": "nfs"} if kind == "republish-share" else {}
    with pytest.raises(Refused):
        decode_operation(json.dumps({"kind": kind, "dataset": name, **more}))


def test_the_agent_takes_no_other_protocol():
    with pytest.raises(Refused):
        decode_operation(json.dumps({"kind": "republish-share", "dataset": "tank", "protocol": "ftp"}))
