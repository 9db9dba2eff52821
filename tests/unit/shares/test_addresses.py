"""The words to type on the other computer."""

from __future__ import annotations

import shlex

import pytest

from appliance.shares import addresses as share_addresses
from appliance.shares.settings import Afp, Nfs, ShareSetting, Smb

ALL = ShareSetting(smb=Smb(name="My photos"), nfs=Nfs(hosts=("10.0.0.0/8",)), afp=Afp(name="My photos"))


def addresses(protocol: str, setting: ShareSetting = ALL, path: str = "/tank/my photos") -> dict[str, str]:
    return {
        way.computer: way.address
        for way in share_addresses.share_addresses(setting, protocol, host="attic.local", path=path)
    }


def test_windows_wants_backslashes_and_the_others_a_url():
    found = addresses("smb")
    assert found["Windows"] == "\\\\attic.local\\My photos"
    assert found["Mac"] == found["iPhone and iPad"] == "smb://attic.local/My%20photos"
    assert {"Android", "Linux, on the desktop", "Linux, in a terminal"} <= set(found)


def test_the_mount_lines_of_nfs_are_whole_and_survive_a_space():
    found = addresses("nfs")
    words = shlex.split(found["Linux (NFS 4)"])
    assert words[words.index("vers=4.2") + 1 :] == ["attic.local:/tank/my photos", "/mnt/my photos"]
    assert "vers=3" in found["Linux (NFS 3)"]
    assert "resvport" in found["Mac, in a terminal"]
    assert found["Mac, in the Finder"] == "nfs://attic.local/tank/my%20photos"


def test_the_line_of_fstab_writes_a_space_in_octal():
    assert (
        share_addresses.fstab_line("attic.local", "/tank/my photos")
        == "attic.local:/tank/my\\040photos /mnt/my\\040photos nfs4 defaults,_netdev,nofail 0 0"
    )


def test_afp_has_one_address():
    assert list(addresses("afp").values()) == ["afp://attic.local/My%20photos"]


@pytest.mark.parametrize("protocol", ["smb", "nfs", "afp"])
def test_what_is_not_shared_has_no_address(protocol):
    assert addresses(protocol, ShareSetting()) == {}


@pytest.mark.parametrize("path", ["/tank/$(id)", "/tank/a;b", "/tank/a'b", "/tank/`id`"])
def test_no_path_of_foreign_disks_becomes_a_command(path):
    for line in (way for name, way in addresses("nfs", path=path).items() if name.startswith(("Linux", "Mac, in a t"))):
        assert f"attic.local:{path}" in shlex.split(line)


@pytest.mark.parametrize("protocol", ["smb", "nfs", "afp"])
def test_each_way_has_the_same_address_with_the_number_of_the_box(protocol):
    ways = share_addresses.share_addresses(ALL, protocol, host="attic.local", path="/tank/a", number="192.168.1.5")
    assert ways
    for way in ways:
        assert way.by_number == way.address.replace("attic.local", "192.168.1.5") != way.address
    assert addresses(protocol, path="/tank/a") == {way.computer: way.address for way in ways}


@pytest.mark.parametrize("protocol", ["smb", "nfs", "afp"])
def test_addresses_that_stand_for_several_computers_are_no_commands(protocol):
    ways = share_addresses.share_addresses(ALL, protocol, host="attic.local", path="/tank/a")
    assert any(way.short for way in ways)
    assert all(way.is_address for way in ways if way.short)
