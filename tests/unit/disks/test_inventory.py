from __future__ import annotations

import copy
import json

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.disks import inventory
from appliance.errors import Failed
from appliance.system import disk_links
from tests.unit.made import recorded, recorded_pool

LSBLK = "lsblk-2.41.5.json"


def links() -> dict[str, str]:
    """Made up from the recorded serials: what udev links for these disks and the first partition of each."""
    found: dict[str, str] = {}
    for row in recorded(LSBLK)["blockdevices"]:
        if row["model"]:
            base = f"ata-{row['model'].replace(' ', '_')}_{row['serial']}"
            found |= {base: row["name"], f"{base}-part1": f"{row['name']}1", f"wwn-0x50014ee{row['name']}": row["name"]}
    return found


def found(listing=None, pools=None):
    pools = (recorded_pool(),) if pools is None else pools
    return {disk.name: disk for disk in inventory.disks_from(listing or recorded(LSBLK), links(), pools)}


def test_it_reads_recorded_disks_with_the_name_a_person_can_compare():
    disk = found()["sda"]
    assert disk.path == "/dev/disk/by-id/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001"
    assert (disk.serial, disk.size, disk.physical_sector, disk.rotational) == (
        "WD-WCAZA0000001",
        2000000000000,
        4096,
        True,
    )


def test_it_sees_which_disks_are_in_a_pool():
    disks = found()
    for name in ("sda", "sdb", "sdc", "sdd"):
        assert disks[name].blocked is not None
        assert (disks[name].blocked.kind, disks[name].blocked.pool) == ("pool", "tank")


def test_it_sees_which_disks_are_free():
    assert {name for name, disk in found().items() if disk.free} == {"sde", "sdf"}


def test_it_never_offers_the_disk_that_holds_the_system():
    disk = found()["vda"]
    assert disk.blocked is not None
    assert disk.blocked.kind == "system"


def test_members_of_a_pool_that_is_not_imported_hold_something_but_do_not_block():
    disk = found(pools=())["sda"]
    assert [(use.kind, use.pool, use.identity) for use in disk.uses] == [("exported", "tank", "1443772876214735903")]
    assert not disk.free
    assert disk.blocked is None


def test_of_a_destroyed_pool_no_more_is_claimed_than_that_it_is_not_in_use_here():
    """Recorded: lsblk tells no difference between a destroyed pool and one that another box will want back."""
    listing = recorded("lsblk-destroyed-2.41.5.json")
    for row in listing["blockdevices"]:
        row |= {"type": "disk", "size": 2 * 10**12, "children": [part | {"type": "part"} for part in row["children"]]}
    for disk in found(listing, pools=()).values():
        assert [(use.kind, use.text) for use in disk.uses] == [
            ("exported", "holds the pool imp, which is not in use here")
        ]
        assert disk.blocked is None


def test_a_disk_that_its_pool_has_lost_still_belongs_to_that_pool():
    disk = found(pools=(recorded_pool("zpool-status-pulled-2.3.9.json"),))["sdb"]
    assert disk.blocked is not None
    assert disk.blocked.pool == "tank"


@pytest.mark.parametrize("state", ["OFFLINE", "FAULTED"])
def test_what_was_stored_on_a_disk_that_its_pool_does_not_use_is_seen(state):
    """Derived: sdb was taken offline, and its partition has another signature now."""
    pool = recorded_pool()
    (group,) = pool.vdevs
    resting = replace(group.children[1], state=state)
    pool = replace(pool, vdevs=(replace(group, children=(group.children[0], resting, *group.children[2:])),))
    listing = recorded(LSBLK)
    assert [use.kind for use in found(listing, pools=(pool,))["sdb"].uses] == ["pool"]
    part = next(row for row in listing["blockdevices"] if row["name"] == "sdb")["children"][0]
    part |= {"fstype": "ntfs", "label": "photos", "uuid": "01D8"}
    assert [(use.kind, use.text) for use in found(listing, pools=(pool,))["sdb"].uses] == [
        ("pool", "is part of the pool tank"),
        ("old", "holds ntfs data called photos"),
    ]
    part |= {"fstype": "zfs_member", "label": "attic", "uuid": "8"}
    assert [use.kind for use in found(listing, pools=(pool,))["sdb"].uses] == ["pool", "exported"]


def test_a_disk_that_its_pool_has_replaced_is_free_to_be_erased():
    """Derived: the pulled pool with another disk in the place of the one that still carries its label."""
    pulled = recorded_pool("zpool-status-pulled-2.3.9.json")
    (group,) = pulled.vdevs
    new = replace(group.children[1], path="/dev/disk/by-id/ata-NEW_1-part1", state="ONLINE")
    complete = replace(pulled, vdevs=(replace(group, children=(group.children[0], new, *group.children[2:])),))
    disk = found(pools=(complete,))["sdb"]
    assert disk.blocked is None
    assert [use.text for use in disk.uses] == ["was part of the pool tank, which has no place for it any more"]
    unsure = replace(new, path="/dev/sdx1", state="REMOVED")
    vague = replace(pulled, vdevs=(replace(group, children=(group.children[0], unsure)),))
    assert found(pools=(vague,))["sdb"].blocked


def test_a_pool_of_the_same_name_but_another_guid_is_not_taken_for_it():
    other = replace(recorded_pool(), guid=7, vdevs=())
    assert [use.kind for use in found(pools=(other,))["sda"].uses] == ["exported"]


def row(**values):
    """Derived from the recorded empty disk sde."""
    base = next(row for row in recorded(LSBLK)["blockdevices"] if row["name"] == "sde")
    return {"blockdevices": [copy.deepcopy(base) | values]}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"fstype": "ext4", "mountpoints": ["/"]}, "system"),
        ({"fstype": "ext4", "mountpoints": ["/boot/efi"]}, "system"),
        ({"fstype": "ext4", "mountpoints": [None, "/srv"]}, "mounted"),
        ({"fstype": "swap", "mountpoints": ["[SWAP]"]}, "swap"),
        ({"fstype": "linux_raid_member"}, "raid"),
        ({"fstype": "LVM2_member"}, "raid"),
        ({"children": [{"name": "md0", "type": "raid1"}]}, "raid"),
        ({"children": [{"name": "sde1", "type": "part", "children": [{"name": "c", "type": "crypt"}]}]}, "raid"),
    ],
)
def test_a_disk_in_use_of_any_kind_is_blocked(values, kind):
    disk = found(row(**values), pools=())["sde"]
    assert disk.blocked is not None
    assert disk.blocked.kind == kind


def test_the_system_on_a_partition_of_a_partition_is_found():
    deep = {"name": "sde1", "type": "part", "children": [{"name": "vg-root", "type": "lvm", "mountpoints": ["/"]}]}
    disk = found(row(children=[deep]), pools=())["sde"]
    assert disk.blocked is not None
    assert disk.blocked.kind == "system"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"fstype": "ext4", "label": "photos"}, "holds ext4 data called photos"),
        ({"fstype": "ntfs"}, "holds ntfs data"),
        ({"pttype": "gpt"}, "has a partition table (gpt)"),
    ],
)
def test_old_data_is_told_of_and_does_not_block(values, text):
    disk = found(row(**values), pools=())["sde"]
    assert [(use.kind, use.text) for use in disk.uses] == [("old", text)]
    assert disk.blocked is None


@pytest.mark.parametrize(
    "values",
    [
        {"type": "loop"},
        {"type": "rom"},
        {"name": "zd0"},
        {"name": "zram0"},
        {"name": "loop0"},
        {"size": 2**20},
        {"size": None},
    ],
)
def test_what_is_no_disk_is_passed_over(values):
    assert found(row(**values), pools=()) == {}


def test_an_empty_listing_is_no_disks():
    assert found({"blockdevices": None}, pools=()) == {}


@pytest.mark.parametrize(
    ("names", "best"),
    [
        (["wwn-0x5", "ata-M_S"], "ata-M_S"),
        (["nvme-eui.00", "nvme-Samsung_S1"], "nvme-Samsung_S1"),
        (["nvme-Samsung_S1_1", "nvme-Samsung_S1"], "nvme-Samsung_S1"),
        (["wwn-0x5"], "wwn-0x5"),
        (["scsi-3500", "usb-Disk_1"], "scsi-3500"),
    ],
)
def test_it_prefers_the_name_that_says_model_and_serial(names, best):
    assert disk_links.stable_names(dict.fromkeys(names, "sda")) == {"sda": f"/dev/disk/by-id/{best}"}


def test_a_disk_without_a_stable_name_has_no_path():
    (disk,) = inventory.disks_from(row(), {}, ())
    assert disk.path == ""


def test_signatures_are_listed_from_the_innermost_out():
    assert found(pools=())["sda"].content == ("sda9", "sda1", "sda")


def test_what_is_on_a_disk_decides_its_identity_and_what_changes_daily_does_not():
    before = found(pools=())["sda"]
    assert before.identity == replace(before, name="sdz", removable=True, rotational=False).identity
    assert before.identity != replace(before, uses=()).identity
    assert before.identity != replace(before, serial="another").identity


def test_lsblk_that_prints_no_json_is_a_failure_with_words(commands):
    commands.answers["lsblk"] = "lsblk: failed"
    with pytest.raises(Failed, match="not JSON"):
        inventory.read_disks(())


def test_names_of_partitions_are_read_from_what_lsblk_says_with_the_columns_that_are_asked_for(monkeypatch):
    """Recorded: without ``NAME`` lsblk does not say what lies on what, and no partition was found on any disk."""

    def run(argv, **_more):
        columns = argv[argv.index("-o") + 1].split(",")
        name = f"lsblk-partlabel{'' if 'NAME' in columns else '-flat'}-2.41.5.json"
        return command.Result(tuple(argv), 0, json.dumps(recorded(name)), "", 0.0)

    monkeypatch.setattr(command, "run", run)
    labels = inventory.read_partition_labels("/dev/disk/by-id/scsi-x")
    assert labels == ["zfs-f463a032aba7581d", ""]
    assert inventory.is_table_of_zfs(labels)
