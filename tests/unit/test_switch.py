"""Switching NFS or AFP on and off for one folder."""

from __future__ import annotations

import json
from typing import Any

import pytest

from appliance import command
from appliance.errors import Failed, Refused
from appliance.facts import Facts
from appliance.operation import as_json, checked_plan
from appliance.operations import decode_operation
from appliance.shares import agreed
from appliance.shares.again import ServeAgain
from appliance.shares.serving import SERVING
from appliance.shares.setting import Afp, Nfs
from appliance.shares.switch import SwitchShare
from appliance.zfs import status
from tests.unit.made import ANNA, box, dataset
from tests.unit.test_pools import Working

LAN = Nfs(hosts=("192.168.1.0/24",))
ON = SwitchShare(dataset="tank/photos", protocol="nfs", nfs=LAN)
OFF = SwitchShare(dataset="tank/photos", protocol="nfs")
AFP = SwitchShare(dataset="tank/photos", protocol="afp", afp=Afp(name="photos", write=("anna",)))


def facts(**changes: Any) -> Facts:
    return box(datasets=(dataset("tank"), dataset(**changes)), accounts=(ANNA,))


def carrying(setting: object) -> dict[str, str]:
    return {"share": json.dumps(setting), "share_source": "local"}


def test_what_the_other_protocols_say_is_kept():
    changed = json.loads(AFP.text(dataset(**carrying({"smb": {"name": "fotos"}, "nfs": {"hosts": ["10.0.0.0/8"]}}))))
    assert changed["smb"]["name"] == "fotos"
    assert changed["nfs"]["hosts"] == ["10.0.0.0/8"]
    assert changed["afp"]["name"] == "photos"


def test_off_takes_only_its_own_part_away():
    changed = json.loads(OFF.text(dataset(**carrying({"smb": {"name": "fotos"}, "nfs": {"hosts": ["10.0.0.0/8"]}}))))
    assert changed["nfs"] is None
    assert changed["smb"]["name"] == "fotos"


def test_a_setting_that_cannot_be_read_is_not_written_over():
    with pytest.raises(Refused, match="cannot read"):
        checked_plan(ON, facts(**carrying({"smb": True, "name": "photos", "users": ["anna"]})))


@pytest.mark.parametrize(
    ("operation", "changes", "words"),
    [
        (ON, {"mounted": False}, "not mounted"),
        (ON, {"key_status": "unavailable"}, "locked"),
        (ON, {"mountpoint": "/etc"}, "cannot be served"),
        (SwitchShare(dataset="tank/gone", protocol="nfs", nfs=LAN), {}, "no longer there"),
        (SwitchShare(dataset="tank/photos", protocol="afp", afp=Afp(name="photos")), {}, "at least one account"),
        (SwitchShare(dataset="tank/photos", protocol="afp", afp=Afp(name="photos", read=("berta",))), {}, "no account berta"),
    ],
)  # fmt: skip
def test_what_cannot_be_shared_is_refused_with_what_to_do(operation, changes, words):
    with pytest.raises(Refused, match=words):
        checked_plan(operation, facts(**changes))


def test_a_name_that_another_folder_has_is_refused():
    other = dataset("tank/music", **carrying({"afp": {"name": "PHOTOS", "write": ["anna"]}}))
    with pytest.raises(Refused, match="used for tank/music"):
        checked_plan(AFP, box(datasets=(dataset(), other), accounts=(ANNA,)))


def test_what_is_dangerous_is_said_before():
    bold = SwitchShare(dataset="tank/photos", protocol="nfs", nfs=Nfs(hosts=("8.8.8.0/24",), root=True, sync=False))
    assert len(checked_plan(bold, facts()).warnings) == 3
    assert checked_plan(ON, facts()).warnings == ()


@pytest.mark.parametrize("hosts", [[], ["*"], ["a\n*"], ["0.0.0.0/0"], ["x(rw)"]])
def test_the_agent_takes_no_client_outside_the_grammar(hosts):
    asked = {"kind": "SwitchShare", "dataset": "tank/photos", "protocol": "nfs", "nfs": {"hosts": hosts}}
    with pytest.raises(Refused):
        decode_operation(json.dumps(asked))


def test_the_agent_reads_what_the_page_wrote():
    assert decode_operation(as_json(AFP)) == AFP
    with pytest.raises(Refused):
        SwitchShare(dataset="tank/photos", protocol="afp", nfs=LAN)


class Daemon:
    """Stands in for a protocol: says that it serves these places."""

    def __init__(self, *places: str) -> None:
        self.places, self.log = places, list[str]()
        self.owned = self

    def take_up(self) -> None:
        self.log.append("take up")

    def served(self) -> set[tuple[str, str]]:
        return {(place, place) for place in self.places}

    def roll_back(self) -> None:
        self.log.append("roll back")

    def close(self, gone: set[tuple[str, str]]) -> None:
        self.log += [f"close {path}" for _name, path in gone]


@pytest.fixture
def daemon(monkeypatch):
    def put(*places: str) -> Daemon:
        made = Daemon(*places)
        monkeypatch.setitem(SERVING, "nfs", made)
        monkeypatch.setattr(status, "read_datasets", lambda: facts().datasets)
        monkeypatch.setattr(command, "run", lambda argv, **_more: made.log.append(" ".join(argv)))
        return made

    return put


def test_it_is_on_when_the_daemon_says_so(daemon):
    found = daemon("/tank/photos")
    ON.serve(Working())
    assert found.log == ["take up"]


def test_a_daemon_that_does_not_serve_it_gets_the_file_of_before_and_so_does_the_folder(daemon):
    found = daemon()
    with pytest.raises(Failed, match="does not serve"):
        ON.serve(Working())
    assert found.log == ["take up", "zfs inherit larder:share tank/photos", "roll back", "take up"]
    with pytest.raises(Failed):
        ON.serve(Working(), "what was there")
    assert "zfs set larder:share=what was there tank/photos" in found.log


def test_a_removed_share_is_really_closed(daemon):
    found = daemon()
    OFF.serve(Working())
    assert found.log == ["take up", "close /tank/photos"]


def test_agreement_ends_with_the_last_protocol(monkeypatch, folders):
    said: list[bool] = []
    monkeypatch.setattr(agreed, "say", lambda _guid, *, share: said.append(share))
    monkeypatch.setattr(ServeAgain, "agreed_facts", staticmethod(facts))

    class Quiet:
        owned = type("Owned", (), {"write": staticmethod(lambda _text: None)})
        render = staticmethod(lambda _facts: "")

    monkeypatch.setitem(SERVING, "nfs", Quiet())
    for operation, carried in ((ON, {}), (OFF, {"smb": {"name": "x"}, "nfs": {"hosts": ["10.0.0.0/8"]}}), (OFF, {"nfs": {"hosts": ["10.0.0.0/8"]}})):  # fmt: skip
        monkeypatch.setattr(status, "read_datasets", lambda carried=carried: facts(**carrying(carried)).datasets)
        operation.write_config(Working())
    assert said == [True, True, False]
