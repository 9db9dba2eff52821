"""What is announced to the network, and how it is read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from appliance import command
from appliance.errors import Failed, Refused
from appliance.facts.datasets import Dataset
from appliance.shares import discovery
from tests.reasons import expect_refusal
from tests.unit.made import dataset, recorded_text

GIB = 2**30


def shared(name: str = "tank/photos", **protocols: object) -> Dataset:
    """Made up: a dataset that is shared like that."""
    changes: dict[str, Any] = {key: protocols.pop(key) for key in ("mounted", "mountpoint", "guid") if key in protocols}
    return dataset(name, share=json.dumps(protocols), share_source="local", **changes)


def announced(*datasets: Dataset, file: str = discovery.BOX) -> dict[str, list[str]]:
    """Kind to text records of one file."""
    root = ElementTree.fromstring(discovery.render_files(datasets)[file])
    return {
        one.findtext("type", ""): [text.text or "" for text in one.iter("txt-record")] for one in root.iter("service")
    }


SMB = {"name": "photos", "write": ["anna"]}


def offering(protocol: str, name: str) -> Dataset:
    """Made up: a folder for Time Machine over one protocol."""
    setting = {protocol: {"name": name, "time_machine": GIB}}
    return dataset(share=json.dumps(setting), share_source="local")


def test_a_box_that_shares_nothing_announces_its_page_only():
    assert set(announced(dataset())) == {"_http._tcp", "_https._tcp"}


def test_each_protocol_is_announced_when_something_is_shared_by_it():
    assert "_smb._tcp" in announced(shared(smb=SMB))
    assert "_afpovertcp._tcp" in announced(shared(afp=SMB))
    assert "_smb._tcp" not in announced(shared(afp=SMB))


def test_time_machine_is_told_how_to_reach_its_folder():
    both = shared(
        "tank/backups", smb={"name": "backups", "time_machine": 500 * GIB}, afp={"name": "backups", "time_machine": GIB}
    )
    first, disk = announced(both)["_adisk._tcp"]
    assert first == "sys=waMa=0,adVF=0x100"
    assert disk.startswith("dk0=adVN=backups,adVF=0xa3,adVU=")


@pytest.mark.parametrize(("protocol", "how"), [("smb", "0x82"), ("afp", "0xa1")])
def test_time_machine_over_one_protocol_says_which(protocol, how):
    (_, disk) = announced(offering(protocol, "backups"))["_adisk._tcp"]
    assert f"adVF={how}," in disk


def test_a_backup_is_known_again_on_another_box_by_its_dataset():
    def record(**changes: Any) -> str:
        return announced(shared("tank/b", smb={"name": "b", "time_machine": GIB}, **changes))["_adisk._tcp"][1]

    assert record(guid=7) == record(guid=7)
    assert record(guid=7) != record(guid=8)


def test_a_folder_that_is_not_time_machines_is_not_among_its_disks():
    assert "_adisk._tcp" not in announced(shared(smb=SMB, afp=SMB))


def test_two_folders_of_one_name_do_not_become_one_record():
    text = announced(
        shared("tank/a", smb={"name": "backups", "time_machine": GIB}),
        shared("tank/b", afp={"name": "backups", "time_machine": GIB}),
    )["_adisk._tcp"]
    assert len(text) == 2
    assert "adVF=0x82," in text[1]


def test_every_export_has_a_file_of_its_own():
    one, two = (
        shared("tank/a & b", nfs={"hosts": ["10.0.0.0/8"]}, mountpoint="/tank/a b"),
        shared("tank/c", nfs={"hosts": ["10.0.0.0/8"]}),
    )
    files = [name for name in discovery.render_files([one, two]) if name.startswith(discovery.OF_EXPORT)]
    assert len(files) == 2
    assert announced(one, two, file=f"{discovery.OF_EXPORT}{one.guid}.service") == {"_nfs._tcp": ["path=/tank/a b"]}


@pytest.mark.parametrize("protocols", [{"smb": SMB}, {"afp": SMB}, {"nfs": {"hosts": ["10.0.0.0/8"]}}])
def test_a_locked_folder_is_not_announced(protocols):
    assert discovery.render_files([shared(mounted=False, **protocols)]) == discovery.render_files([])


class Systemd:
    def __init__(self, state: str) -> None:
        self.state = state
        self.ran: list[list[str]] = []

    def run(self, argv: list[str], **_more: Any) -> command.Result:
        self.ran.append(list(argv))
        return command.Result(tuple(argv), 0, self.state, "", 0.0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(discovery, "FOLDER", tmp_path)
    return tmp_path


def test_announcing_writes_what_changed_and_drops_what_is_gone(folder, monkeypatch):
    monkeypatch.setattr(command, "run", Systemd("disabled").run)
    export = shared(nfs={"hosts": ["10.0.0.0/8"]})
    (folder / "own.service").write_text("<service-group/>")
    discovery.announce_shares([export])
    assert sorted(one.name for one in folder.glob("*.service")) == sorted(
        [*discovery.render_files([export]), "own.service"]
    )
    before = (folder / discovery.BOX).stat().st_mtime_ns
    discovery.announce_shares([])
    assert sorted(one.name for one in folder.glob("*.service")) == [discovery.BOX, "own.service"]
    assert (folder / discovery.BOX).stat().st_mtime_ns == before


def test_an_announcement_is_xml_from_its_first_line(folder, monkeypatch):
    monkeypatch.setattr(command, "run", Systemd("disabled").run)
    discovery.announce_shares([shared(smb=SMB)])
    assert (folder / discovery.BOX).read_text().startswith("<!-- Written by Larder.")
    ElementTree.fromstring((folder / discovery.BOX).read_text())


def test_an_announcement_changed_by_hand_is_not_written_over(folder, monkeypatch):
    monkeypatch.setattr(command, "run", Systemd("disabled").run)
    discovery.announce_shares([])
    file = folder / discovery.BOX
    file.write_text(file.read_text().replace("443", "8443"))
    with expect_refusal("file-changed-by-hand"):
        discovery.announce_shares([shared(smb=SMB)])
    assert "8443" in file.read_text()


@pytest.mark.parametrize(
    ("datasets", "state", "verb"),
    [
        ([shared(smb=SMB)], "disabled", "enable"),
        ([], "enabled", "disable"),
        ([shared(smb=SMB)], "enabled", ""),
        ([], "masked", ""),
    ],
)
def test_windows_finds_the_box_while_something_is_shared_over_smb(folder, monkeypatch, datasets, state, verb):
    system = Systemd(state)
    monkeypatch.setattr(command, "run", system.run)
    discovery.announce_shares(datasets)
    assert [argv[1] for argv in system.ran if argv[1] != "is-enabled"] == ([verb] if verb else [])


@pytest.mark.parametrize(
    "text", ["", "<a>", "<service-group/>", "<service-group><service><type>_ssh._tcp</type></service></service-group>"]
)
def test_the_check_refuses_what_larder_would_not_announce(tmp_path, text):
    file = tmp_path / "larder.service"
    file.write_text(text)
    with pytest.raises(Failed):
        discovery.check_announcement(file)


def test_what_avahi_hears_is_read_back():
    found = discovery.parse_browsed(recorded_text("avahi-browse-0.8.txt"))
    disk = next(one for one in found if one.kind == "_adisk._tcp")
    assert (disk.name, disk.host, disk.port) == ("larder", "larder.local", 9)
    assert set(disk.texts) == {
        "sys=waMa=0,adVF=0x100",
        "dk0=adVN=my backups,adVF=0xa3,adVU=6F0D8A43-9A0C-4B57-8D4E-5A6F1F5F2F10",
    }
    export = next(one for one in found if one.kind == "_nfs._tcp")
    assert (export.name, export.texts) == ("larder tank/photos", ("path=/tank/my photos",))
    assert len(found) == 3


def test_only_what_this_box_says_counts(monkeypatch):
    text = recorded_text("avahi-browse-0.8.txt") + "=;eth0;IPv4;attic;_nfs._tcp;local;attic.local;10.0.2.9;2049;\n"
    monkeypatch.setattr(
        command,
        "run",
        lambda argv, **_more: command.Result(tuple(argv), 0, "larder\n" if argv[0] == "hostname" else text, "", 0),
    )
    assert {found.host for found in discovery.browse_own_services("_nfs._tcp")} == {"larder.local"}
    with pytest.raises(Refused):
        discovery.browse_own_services("-x")
