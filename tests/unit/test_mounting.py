from __future__ import annotations

import json
from typing import Any

import pytest

from appliance import places
from appliance.zfs import mounting
from appliance.zfs.mounting import Carried
from tests.unit.test_pools import Working

PLAIN = {
    "type": "filesystem", "mountpoint": "/tank", "canmount": "on", "mounted": "no", "keystatus": "-", "sharenfs": "off",
    "sharesmb": "off", "setuid": "off", "devices": "off",
}  # fmt: skip


def carried(name: str = "tank", *own: str, **values: str) -> Carried:
    """Made up: a dataset as it came, with what is set on itself."""
    merged = {**PLAIN, "mountpoint": f"/{name}", **values}
    return Carried(name, merged["type"], merged, frozenset(own or values))


@pytest.mark.parametrize("place", ["/tank", "/tank/photos", "/tank/a b"])
def test_below_its_own_folder_a_pool_may_be_mounted(place):
    assert mounting.inside(place, "/tank")


@pytest.mark.parametrize(
    "place",
    ["/", "/etc", "/tankard", "/tank/../etc", "/tank/./x", "/tank//x", "/tank/\n", "/tank/\u202e", "tank", "", "none", "legacy", "/tank/a\\b", "/usr/tank", "/tank/$(id)"],
)  # fmt: skip
def test_anywhere_else_it_may_not(place):
    assert not mounting.inside(place, "/tank")


def test_a_plain_pool_needs_nothing():
    assert list(mounting.tamed([carried(), carried("tank/photos")], "tank")) == []


def test_a_folder_that_wants_to_be_etc_is_no_longer_mounted_by_itself():
    commands = list(mounting.tamed([carried(), carried("tank/x", mountpoint="/etc")], "tank"))
    assert commands == [["zfs", "set", "-u", "canmount=noauto", "tank/x"]]


@pytest.mark.parametrize(
    ("key", "value"),
    [("sharenfs", "on"), ("sharenfs", "rw=*"), ("sharesmb", "on"), ("setuid", "on"), ("devices", "on")],
)
def test_what_lends_rights_or_shares_itself_is_switched_off_at_the_top_and_where_it_is_set(key, value):
    found = [
        carried("tank", **{key: value}),
        carried("tank/own", key, **{key: value}),
        carried("tank/heir", "x", **{key: value}),
    ]
    assert list(mounting.tamed(found, "tank")) == [
        ["zfs", "set", "-u", f"{key}=off", "tank"],
        ["zfs", "set", "-u", f"{key}=off", "tank/own"],
    ]


def test_a_volume_is_left_as_it_is():
    assert (
        list(mounting.tamed([carried("tank/v", type="volume", mountpoint="-", sharenfs="-", setuid="-")], "tank")) == []
    )


@pytest.mark.parametrize("name", ["tank/-x\n", "tank/a;b", "tank/\u202e", "tank/../x"])
def test_a_dataset_whose_name_no_command_should_see_is_left_out(name):
    hostile = carried(name, mountpoint="/etc", sharenfs="on")
    assert list(mounting.tamed([hostile], "tank")) == []
    assert list(mounting.moved([hostile], "tank", former="tank", everything=True)) == []


def test_under_a_new_name_its_own_folder_follows():
    found = [carried("attic", mountpoint="/tank"), carried("attic/photos", "x", mountpoint="/tank/photos")]
    assert list(mounting.moved(found, "attic", former="tank", everything=False)) == [
        ["zfs", "set", "-u", "mountpoint=/attic", "attic"]
    ]


def test_folders_elsewhere_are_brought_below_it_only_when_asked_for():
    found = [
        carried("tank", mountpoint="/srv"),
        carried("tank/etc", mountpoint="/etc"),
        carried("tank/in", mountpoint="/tank/in"),
    ]
    assert list(mounting.moved(found, "tank", former="tank", everything=False)) == []
    assert list(mounting.moved(found, "tank", former="tank", everything=True)) == [
        ["zfs", "set", "-u", "mountpoint=/tank", "tank"],
        ["zfs", "inherit", "mountpoint", "tank/etc"],
    ]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Pools are mounted below a folder of this test's own."""
    top = tmp_path.resolve()
    monkeypatch.setattr(places, "POOLS", top)
    return top / "tank"


def test_it_mounts_from_the_top_down_and_only_what_belongs_there(home, commands):
    found = [
        carried("tank/a/b", mountpoint=f"{home}/a/b"),
        carried("tank", mountpoint=f"{home}"),
        carried("tank/etc", mountpoint="/etc"),
        carried("tank/vault", mountpoint=f"{home}/vault", keystatus="unavailable"),
        carried("tank/off", mountpoint=f"{home}/off", canmount="off"),
        carried("tank/there", mountpoint=f"{home}/there", mounted="yes"),
        carried("tank/a", mountpoint=f"{home}/a"),
    ]
    work = Working()
    mounting.mount_all(found, "tank", read_only=False, work=work)
    assert commands.ran == [["zfs", "mount", name] for name in ("tank", "tank/a", "tank/a/b")]
    assert any("tank/etc wants to be at /etc" in note for note in work.notes)
    assert any("tank/vault is encrypted" in note for note in work.notes)


def test_a_symbolic_link_in_the_way_is_not_followed(home, commands, tmp_path):
    """The parent's own files come into view when it is mounted; one of them may be a link to /etc."""
    outside = tmp_path / "outside"
    outside.mkdir()

    def mounting_shows_a_link(argv: list[str]) -> None:
        if argv == ["zfs", "mount", "tank"]:
            home.mkdir()
            (home / "a").symlink_to(outside)

    commands.on_run = mounting_shows_a_link
    found = [
        carried("tank", mountpoint=f"{home}"),
        carried("tank/a", mountpoint=f"{home}/a"),
        carried("tank/a/b", mountpoint=f"{home}/a/b"),
    ]
    work = Working()
    mounting.mount_all(found, "tank", read_only=False, work=work)
    assert [argv for argv in commands.ran if argv[1] == "mount"] == [["zfs", "mount", "tank"]]
    assert ["zfs", "set", "canmount=noauto", "tank/a"] in commands.ran
    assert sum("symbolic link" in note for note in work.notes) == 2


def test_read_only_it_lends_no_rights_and_changes_nothing(home, commands):
    mounting.mount_all([carried("tank", mountpoint=f"{home}")], "tank", read_only=True, work=Working())
    assert commands.ran == [["zfs", "mount", "-o", "nosuid,nodev", "tank"]]


def test_what_it_carries_is_read_with_what_is_its_own(commands):
    def prop(value: str, source: str) -> dict[str, Any]:
        return {"value": value, "source": {"type": source, "data": "-"}}

    listing = {
        "datasets": {
            "tank": {
                "properties": {
                    "type": prop("filesystem", "NONE"),
                    "mountpoint": prop("/etc", "RECEIVED"),
                    "canmount": prop("on", "DEFAULT"),
                    "sharenfs": prop("on", "INHERITED"),
                }
            }
        }
    }
    commands.answers["zfs"] = json.dumps(listing)
    (found,) = mounting.carried("tank")
    assert found.mounts_itself
    assert found.own == {"mountpoint"}
    assert mounting.elsewhere([found], "tank") == [found]
