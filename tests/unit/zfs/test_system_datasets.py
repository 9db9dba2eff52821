"""Datasets that are part of this box's own system, where root lies on ZFS: nothing of theirs is
shown, shared or changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import names
from appliance.datasets.destroy import DestroyDataset
from appliance.datasets.mount import UnmountDataset
from appliance.datasets.permissions import SetAccess
from appliance.datasets.rename import RenameDataset
from appliance.datasets.rollback import RollBack
from appliance.errors import Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import DatasetDetail, Snapshot
from appliance.pools.export_destroy import DestroyPool
from appliance.shares.set_share import SetShare
from appliance.shares.settings import Nfs
from appliance.shares.troubleshoot.fixes import OpenTopFolder
from appliance.snapshots.browse import listing
from appliance.snapshots.browse.restore import RestoreFromSnapshot
from appliance.snapshots.hold_clone import CloneSnapshot
from appliance.system import paths
from appliance.zfs import status, system_datasets
from tests.reasons import codes
from tests.unit.made import box, dataset

ROOT = dataset("rpool/ROOT/debian", mountpoint="/")
FILMS = dataset("rpool/films", mountpoint="/rpool/films")
PLACES = ["/opt", "/opt/larder", "/home", "/home/admin", "/var/lib", "/usr/local", "/boot", "/etc", "/root"]


@pytest.mark.parametrize("place", [*PLACES, "/", "/lost+found", "//etc", "/../etc", "/./etc"])
def test_folder_of_the_system_cannot_be_served(place):
    assert names.is_system_folder(place)
    with pytest.raises(Refused):
        names.served_path(place)


@pytest.mark.parametrize("place", ["/tank", "/srv/larder/tank", "/mnt/tank", "/media/disk", "/srv", "/etcetera"])
def test_folder_where_pools_may_be_mounted_is_not_of_the_system(place):
    assert not names.is_system_folder(place)
    assert names.served_path(place) == place


def test_folder_that_was_set_for_pools_is_theirs_wherever_it_lies(monkeypatch):
    monkeypatch.setattr(paths, "POOLS", Path("/home/pools"))
    assert not names.is_system_folder("/home/pools/tank")
    assert names.is_system_folder("/home/pools/../admin")
    assert names.is_system_folder("/home/admin")


def of(one: Any) -> dict[str, Any]:
    """Every operation that shows, shares or changes what a dataset holds."""
    snapshot: dict[str, Any] = {"snapshot": f"{one.name}@s", "guid": 7}
    this: dict[str, Any] = {"dataset": one.name, "guid": one.guid}
    return {
        "share": SetShare(dataset=one.name, protocol="nfs", nfs=Nfs(hosts=("192.168.1.0/24",), root=True)),
        "access": SetAccess(dataset=one.name),
        "let in": OpenTopFolder(dataset=one.name),
        "restore": RestoreFromSnapshot(**snapshot, path="a"),
        "roll back": RollBack(**snapshot, way_back=False),
        "clone": CloneSnapshot(**snapshot, name="copy"),
        "destroy": DestroyDataset(**this),
        "rename": RenameDataset(**this, parent="rpool/films", name="x"),
        "unmount": UnmountDataset(**this),
    }


EVERY = list(of(FILMS))


def facts(one: Any) -> Facts:
    return replace(
        box(datasets=(ROOT, one, FILMS)),
        pools=(Pool("rpool", 1, "ONLINE"),),
        snapshots=(Snapshot(f"{one.name}@s", 7, 1, one.created),),
        dataset_details=(DatasetDetail(one.name, one.guid),),
    )


def refused(operation: Any, found: Facts) -> bool:
    try:
        return bool(list(operation.check(found)))
    except Refused:
        return True


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_done_to_a_dataset_that_is_a_folder_of_the_system(kind, place):
    one = dataset("rpool/own", mountpoint=place)
    assert refused(of(one)[kind], facts(one))


@pytest.mark.parametrize("kind", EVERY)
def test_the_same_is_allowed_on_a_folder_of_people_in_the_same_pool(kind):
    one = dataset("rpool/own", mountpoint="/rpool/own")
    assert not refused(of(one)[kind], facts(one)), list(of(one)[kind].check(facts(one)))


@pytest.mark.parametrize("place", ["/", *PLACES])
def test_snapshots_of_the_system_are_not_shown(monkeypatch, place):
    one = dataset("rpool/own", mountpoint=place)
    monkeypatch.setattr(status, "read_datasets", lambda: (one, FILMS))
    with pytest.raises(Refused, match="system's own folders"):
        listing.dataset_now("rpool/own")
    assert listing.dataset_now("rpool/films") == FILMS


def test_other_boot_environment_of_the_box_is_of_the_system():
    other = dataset("rpool/ROOT/old", mountpoint="/", mounted=False)
    legacy = dataset("rpool/ROOT/older", mountpoint="legacy", mounted=False)
    assert system_datasets.is_of_system(other, (ROOT, other))
    assert system_datasets.is_of_system(legacy, (ROOT, legacy))


def test_backup_of_another_system_is_not_of_this_one():
    """Received with its mountpoints, never mounted here: it can be looked into and destroyed."""
    backup = dataset("tank/backup/laptop", mountpoint="/home", mounted=False)
    assert not system_datasets.is_of_system(backup, (ROOT, dataset("tank"), backup))
    legacy = dataset("tank/backup/root", mountpoint="legacy", mounted=False)
    assert not system_datasets.is_of_system(legacy, (ROOT, dataset("tank"), legacy))


def test_what_something_else_than_zfs_has_mounted_is_left_alone():
    assert system_datasets.is_of_system(dataset("rpool/x", mountpoint="legacy"), ())


def test_destroying_what_lies_around_a_part_of_the_system_is_refused():
    around = dataset("rpool/sys", mountpoint="none", mounted=False)
    known = replace(facts(around), datasets=(ROOT, around, dataset("rpool/sys/var", mountpoint="/var")))
    (reason,) = DestroyDataset(dataset="rpool/sys", guid=around.guid).check(known)
    assert reason.code == "system-dataset"
    assert reason.message.arguments == {"dataset": "rpool/sys/var"}


def test_pool_that_the_system_lies_on_is_not_destroyed():
    known = replace(facts(FILMS), pools=(Pool("rpool", 1, "ONLINE"), Pool("tank", 2, "ONLINE")))
    assert codes(DestroyPool(pool="rpool", guid=1).check(known)) == ["pool-of-system"]
    assert list(DestroyPool(pool="tank", guid=2).check(known)) == []
