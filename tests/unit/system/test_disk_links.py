"""Which disk a device of a pool is, whatever name the pool knows it by."""

from __future__ import annotations

import copy

import pytest

from appliance.disks import inventory
from appliance.facts.box import Facts, Pool
from appliance.pools.vdevs import online_offline
from appliance.system import disk_links
from appliance.system.disk_links import DiskLinks, whole_disk
from appliance.zfs import status, vdev_tree
from tests.unit.made import recorded
from tests.unit.pools import shapes

FIRST = "/dev/disk/by-id/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001"
GONE = "/dev/disk/by-id/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000009"


def links() -> DiskLinks:
    """Made up from the recorded serials, as udev links these disks and their partitions;
    the third disk is not there."""
    found: dict[str, str] = {}
    for row in recorded("lsblk-2.41.5.json")["blockdevices"]:
        if row["model"] and row["name"] != "sdc":
            name = f"ata-{row['model'].replace(' ', '_')}_{row['serial']}"
            for link in (name, f"wwn-0x50014ee{row['name']}"):
                found |= {link: row["name"], f"{link}-part1": f"{row['name']}1"}
    return DiskLinks(found, {"pci-0000:00:06.0-ata-1.0-part1": "sda1", "0b1c-01": "sdb1"})


def renamed(**changes: dict[str, str]) -> Pool:
    """Derived from the recorded raidz2: other values for the devices of these kernel names."""
    raw = copy.deepcopy(recorded("zpool-status-raidz2-2.3.9.json"))
    (group,) = raw["pools"]["tank"]["vdevs"]["tank"]["vdevs"].values()
    for name, device in zip(("sda", "sdb", "sdc", "sdd"), group["vdevs"].values(), strict=True):
        device.update(changes.get(name, {}))
    return next(status.parse_pools(raw, links()))


@pytest.mark.parametrize(
    "path",
    [
        f"{FIRST}-part1",
        "/dev/disk/by-id/wwn-0x50014eesda-part1",
        "/dev/sda1",
        "/dev/sda",
        "/dev/disk/by-path/pci-0000:00:06.0-ata-1.0-part1",
    ],
)
def test_a_device_that_zfs_uses_is_the_disk_that_its_path_leads_to(path):
    device = next(renamed(sda={"path": path, "devid": ""}).devices())
    assert device.disk == FIRST
    assert vdev_tree.link_of(device) == FIRST.rpartition("/")[2]


@pytest.mark.parametrize("state", ["UNAVAIL", "FAULTED", "OFFLINE", "REMOVED"])
def test_a_lost_device_is_not_the_disk_that_has_its_kernel_name_or_port_now(state):
    for path in ("/dev/sda1", "/dev/disk/by-path/pci-0000:00:06.0-ata-1.0-part1"):
        pool = renamed(sda={"path": path, "devid": "", "state": state})
        assert next(pool.devices()).disk == ""
        assert not online_offline.is_surely_gone(next(pool.devices()), Facts(pools=(pool,)))


def test_a_lost_device_is_the_disk_that_zfs_stored_beside_its_path():
    other = f"{FIRST.rpartition('/')[2]}-part1"
    lost = renamed(sdb={"path": "/dev/sdc1", "devid": other, "state": "OFFLINE"})
    assert list(lost.devices())[1].disk == FIRST


@pytest.mark.parametrize("path", ["/dev/sda1", "/dev/disk/by-id/wwn-0x50014ee0-part1"])
def test_a_disk_that_is_not_in_the_box_keeps_the_name_that_zfs_stored(path):
    pool = renamed(sda={"path": path, "devid": f"{GONE.rpartition('/')[2]}-part1", "state": "UNAVAIL"})
    device = next(pool.devices())
    assert device.disk == GONE
    assert online_offline.is_surely_gone(device, Facts(pools=(pool,)))
    assert vdev_tree.vdev_label(device, Facts()) == "WDC WD20EARS-00MVWB0 (serial WD-WCAZA0000009)"


def test_a_missing_disk_that_is_stored_only_by_a_wwn_is_not_called_gone():
    pool = renamed(sda={"path": "/dev/sda1", "devid": "wwn-0x50014ee0-part1", "state": "UNAVAIL"})
    assert not online_offline.is_surely_gone(next(pool.devices()), Facts(pools=(pool,)))


def test_files_and_groups_are_no_disks():
    pool = renamed(sda={"path": "/srv/images/sda1"})
    assert next(pool.devices()).disk == ""
    assert pool.vdevs[0].disk == ""


def test_a_disk_of_a_pool_that_knows_it_by_its_partition_is_no_free_disk():
    pool = renamed(sdb={"path": "/dev/disk/by-partuuid/0b1c-01", "devid": ""})
    known = links()
    disks = {
        disk.name: disk
        for disk in inventory.disks_from(recorded("lsblk-2.41.5.json"), known.links, [pool], {}, known.others)
    }
    assert [(use.kind, use.text) for use in disks["sdb"].uses] == [("pool", "is part of the pool tank")]


@pytest.mark.parametrize(
    ("name", "disk"),
    [
        ("sdc1", "sdc"),
        ("sdaa12", "sdaa"),
        ("vdb1", "vdb"),
        ("nvme0n1p9", "nvme0n1"),
        ("mmcblk0p1", "mmcblk0"),
        ("sdc", "sdc"),
        ("nvme0n1", "nvme0n1"),
        ("dm-3", "dm-3"),
        ("md127", "md127"),
    ],
)
def test_the_disk_of_a_partition_is_read_from_its_kernel_name(name, disk):
    assert whole_disk(name) == disk


def test_links_are_read_from_every_folder_and_a_missing_one_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "sda1").touch()
    for folder, link in (("by-path", "pci-1-part1"), ("by-partuuid", "0b1c-01")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / link).symlink_to(tmp_path / "sda1")
    monkeypatch.setattr(
        disk_links, "OTHER_FOLDERS", tuple(tmp_path / name for name in ("by-path", "by-partuuid", "no"))
    )
    assert disk_links.read_other_links() == {"pci-1-part1": "sda1", "0b1c-01": "sda1"}


def test_a_stored_pool_of_an_earlier_version_is_matched_by_its_paths():
    assert vdev_tree.disk_of(shapes.leaf(1), shapes.facts(shapes.single())) is not None
