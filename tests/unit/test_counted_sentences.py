"""Sentences that count read right for none, one and several, and speak of volumes where there are no files."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from appliance.datasets.destroy import DestroyDataset
from appliance.datasets.encryption.keys import LockDataset
from appliance.datasets.encryption.unlock import UnlockAll, UnlockDataset
from appliance.datasets.mount import UnmountDataset
from appliance.datasets.rename import RenameDataset
from appliance.datasets.rollback import RollBack
from appliance.facts.box import Facts, Pool, PoolDetail, Vdev
from appliance.facts.datasets import Dataset, DatasetDetail
from appliance.formatting import more_folders, more_volumes
from appliance.operation import checked_plan
from appliance.pools import health, history
from appliance.pools.export_destroy import ExportPool
from appliance.pools.upgrade import UpgradePool
from appliance.shares import connections, disconnect
from appliance.shares.connections import Connection
from appliance.snapshots.destroy import DestroySnapshots, PruneSnapshots, staying_notes
from appliance.snapshots.take import RunSnapshotPolicies, TakeSnapshot
from tests.unit.made import JOB, dataset
from tests.unit.pools.test_create import Working
from tests.unit.zfs.test_list_snapshots import facts, snap

TANK = Pool("tank", 1, "ONLINE")


def box(*found: Dataset, **more: Any) -> Facts:
    return Facts(pools=(TANK,), datasets=(dataset("tank"), *found), **more)


def encrypted(name: str, **changes: Any) -> Dataset:
    values = {
        "encryption": "aes-256-gcm",
        "encryption_root": "tank/a",
        "key_format": "passphrase",
        "key_status": "available",
    }
    return dataset(name, **{**values, **changes})


def family(below: int, **changes: Any) -> list[Dataset]:
    return [encrypted(name, **changes) for name in ["tank/a", *(f"tank/a/{number}" for number in range(below))]]


def of(kind: Any, **fields: Any) -> Any:
    return kind(dataset="tank/a", guid=dataset("tank/a").guid, **fields)


BELOW = [(0, "tank/a"), (1, "tank/a and the folder below it"), (2, "tank/a and 2 folders below it")]


@pytest.mark.parametrize(("below", "named"), BELOW)
def test_lock_unlock_and_unmount_name_what_they_are_about(below, named):
    found = box(*family(below))
    assert checked_plan(of(LockDataset), found).summary.startswith(f"{named} cannot be read until")
    unmount = checked_plan(of(UnmountDataset), found).summary
    assert unmount.startswith(f"The files of {named} cannot be reached until tank/a is mounted")
    locked = box(*family(below, key_status="unavailable", mounted=False))
    assert checked_plan(UnlockDataset(dataset="tank/a"), locked).summary.startswith(f"{named} can be used until")


VOLUMES_BELOW = [
    (0, 1, "tank/a and the volume below it"),
    (0, 2, "tank/a and 2 volumes below it"),
    (1, 1, "tank/a and 1 folder and 1 volume below it"),
    (2, 3, "tank/a and 2 folders and 3 volumes below it"),
]


@pytest.mark.parametrize(("folders", "volumes", "named"), VOLUMES_BELOW)
def test_lock_and_unlock_name_volumes_too(folders, volumes, named):
    def found(**changes: Any) -> Facts:
        disks = [
            encrypted(f"tank/a/disk{n}", kind="volume", mountpoint="", **{**changes, "mounted": False})
            for n in range(volumes)
        ]
        return box(*family(folders, **changes), *disks)

    assert checked_plan(of(LockDataset), found()).summary.startswith(f"{named} cannot be read until")
    locked = found(key_status="unavailable", mounted=False)
    assert checked_plan(UnlockDataset(dataset="tank/a"), locked).summary.startswith(f"{named} can be used until")


@pytest.mark.parametrize("act", [LockDataset, UnlockDataset])
def test_a_volume_with_a_key_of_its_own_is_named_alone(act):
    locked = act is UnlockDataset
    one = encrypted(
        "tank/a", kind="volume", mounted=False, mountpoint="", **({"key_status": "unavailable"} if locked else {})
    )
    operation = UnlockDataset(dataset="tank/a") if locked else of(LockDataset)
    assert checked_plan(operation, box(one)).summary.startswith("tank/a can")


def test_the_folder_below_one_that_is_not_mounted_itself_is_named():
    top, below = family(1)
    found = box(replace(top, mounted=False, canmount="off"), below)
    assert checked_plan(of(LockDataset), found).summary.startswith("tank/a and the folder below it cannot")


def test_unlock_of_all_calls_volumes_volumes():
    kinds = ["volume", "filesystem", "volume"]
    roots = [
        dataset(
            f"tank/v{n}",
            kind=kind,
            encryption="aes-256-gcm",
            encryption_root=f"tank/v{n}",
            key_format="passphrase",
            key_status="unavailable",
            mounted=False,
        )
        for n, kind in enumerate(kinds)
    ]
    names = tuple(one.name for one in roots)
    assert (
        "on 1 folder and 2 volumes that are locked, and" in checked_plan(UnlockAll(datasets=names), box(*roots)).summary
    )


@pytest.mark.parametrize(("count", "named"), [(1, "on tank/v0, and"), (2, "on 2 locked folders, and")])
def test_unlock_of_all_names_the_only_one(count, named):
    roots = [
        dataset(
            f"tank/v{n}",
            encryption="aes-256-gcm",
            encryption_root=f"tank/v{n}",
            key_format="passphrase",
            key_status="unavailable",
            mounted=False,
        )
        for n in range(count)
    ]
    assert named in checked_plan(UnlockAll(datasets=tuple(one.name for one in roots)), box(*roots)).summary


@pytest.mark.parametrize(
    ("below", "said"), [(0, "with its snap"), (1, "with the one below it, its snap"), (2, "with 2 below it, its snap")]
)
def test_rename_counts_what_is_below(below, said):
    found = box(*(dataset(name) for name in ["tank/a", *(f"tank/a/{number}" for number in range(below))]))
    assert said in checked_plan(of(RenameDataset, parent="tank", name="b"), found).summary


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (1, "Protected from deletion: tank/a@0."),
        (2, "Protected from deletion: 2 of its snapshots, for example tank/a@0."),
    ],
)
def test_protected_snapshots_are_counted(held, said):
    one = dataset("tank/a")
    detail = DatasetDetail(one.name, one.guid, 5, held=tuple(f"tank/a@{n}" for n in range(held)))
    (reason,) = of(DestroyDataset).check(box(one, dataset_details=(detail,)))
    assert reason.code == "snapshots-protected"
    assert reason.text.startswith(said)


@pytest.mark.parametrize(("count", "said"), [(1, "1 more folder"), (2, "2 more folders")])
def test_rest_of_a_list_of_folders_is_counted(count, said):
    assert more_folders(count) == said


@pytest.mark.parametrize(("count", "said"), [(1, "1 more volume"), (2, "2 more volumes")])
def test_rest_of_a_list_of_volumes_is_counted(count, said):
    assert more_volumes(count) == said


@pytest.mark.parametrize(
    ("folders", "volumes", "said"),
    [
        (0, 0, "tank is no longer"),
        (2, 0, "tank and its 3 folders are no longer"),
        (0, 1, "tank and its 1 volume are no longer"),
        (0, 2, "tank and its 2 volumes are no longer"),
        (1, 1, "tank and its 2 folders and 1 volume are no longer"),
    ],
)
def test_export_counts_folders_and_volumes(folders, volumes, said):
    found = box(
        *(dataset(f"tank/{n}") for n in range(folders)),
        *(dataset(f"tank/v{n}", kind="volume") for n in range(volumes)),
    )
    assert checked_plan(ExportPool(pool="tank", guid=1), found).summary.startswith(said)


@pytest.mark.parametrize(("count", "said"), [(1, "1 connection was ended"), (2, "2 connections were ended")])
def test_connections_that_were_ended_are_counted(monkeypatch, count, said):
    found = [Connection("smb", str(n), "anna", "10.0.0.7") for n in range(count)]
    monkeypatch.setattr(connections, "read_connections", lambda _protocols: found)
    monkeypatch.setattr(disconnect, "end_connections", lambda _found: None)
    work = Working()
    disconnect.disconnect_user("anna", work)
    assert work.notes == [said]


@pytest.mark.parametrize(("count", "said"), [(1, "1 error on bay 1"), (2, "2 errors on bay 1")])
@pytest.mark.parametrize("settled", [True, False])
def test_errors_of_a_disk_are_counted(count, said, settled):
    worn = replace(TANK, vdevs=(Vdev("sda", "disk", 5, "ONLINE", read_errors=count),))
    assert said in health.of_pool(worn, label=lambda _device: "bay 1", settled=settled).meaning


@pytest.mark.parametrize(("count", "said"), [(1, "1 error could not"), (2, "2 errors could not")])
def test_errors_that_could_not_be_repaired_are_counted(count, said):
    assert health.of_pool(replace(TANK, errors=count), str).meaning.startswith(said)


@pytest.mark.parametrize(
    ("count", "said"), [(0, "No errors were left."), (1, "1 error was left."), (2, "2 errors were left.")]
)
def test_errors_that_a_scan_left_are_counted(count, said):
    assert history.noted_words("scan done", "The scrub ended.", f"errors={count}").endswith(said)


@pytest.mark.parametrize(("count", "said"), [(1, "gets 1 feature of"), (2, "gets 2 features of")])
def test_features_of_an_upgrade_are_counted(count, said):
    detail = PoolDetail(guid=1, features_off=tuple(f"feature{n}" for n in range(count)))
    assert said in checked_plan(UpgradePool(pool="tank", guid=1), box(details=(detail,))).summary


# --- snapshots ------------------------------------------------------------------------------------------------------
def volume(found: Facts) -> Facts:
    """The same with a volume in place of the folder."""
    made = dataset("tank/photos", kind="volume", mounted=False, mountpoint="")
    return replace(found, datasets=tuple(made if one.name == made.name else one for one in found.datasets))


def chosen(kind: Any, *numbers: int) -> Any:
    return kind.for_pairs((snap(number).name, snap(number).guid) for number in numbers)


def test_one_snapshot_that_a_schedule_no_longer_keeps_is_one():
    assert chosen(PruneSnapshots, 1).title == "Destroy 1 snapshot that the schedules of tank no longer keep"
    assert chosen(PruneSnapshots, 1, 2).title == "Destroy 2 snapshots that the schedules of tank no longer keep"


def test_steps_and_hints_of_destroying_count():
    one, two = chosen(DestroySnapshots, 1), chosen(DestroySnapshots, 1, 2)
    assert checked_plan(one, facts(snap(1))).steps[0].title == "Destroy the snapshot tank/photos@s1"
    assert two.recovery_hint("destroy", facts(snap(1), snap(2))) == "2 of them still exist. Destroy them again."
    assert two.recovery_hint("destroy", facts(snap(1))) == "1 of them still exists. Destroy it again."
    assert list(staying_notes(["x"] * 21))[-1] == "1 more stays, because it is protected or cloned."
    assert list(staying_notes(["x"] * 22))[-1] == "2 more stay, because they are protected or cloned."


def test_snapshots_that_are_due_are_counted():
    def summary(*names: str) -> str:
        targets: list[tuple[str, int, tuple[str, ...]]] = [(name, dataset(name).guid, ("daily",)) for name in names]
        return checked_plan(
            RunSnapshotPolicies.for_targets("tank", JOB, "2026.11.28-10.00.00", targets), facts()
        ).summary

    assert summary("tank/photos").startswith("Take the snapshot tank/photos@")
    assert summary("tank", "tank/photos").startswith("Take 2 snapshots in tank,")


OPERATIONS = {
    "take": TakeSnapshot(dataset="tank/photos", name="mine"),
    "destroy": chosen(DestroySnapshots, 1),
    "roll back": RollBack(snapshot=snap(1).name, guid=snap(1).guid),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_plans_for_a_volume_speak_neither_of_files_nor_of_folders(name):
    def words(found: Facts) -> str:
        plan = checked_plan(OPERATIONS[name], found)
        told = [plan.summary, plan.undo, *plan.warnings, *(f"{key}: {value}" for key, value in plan.details.items())]
        return " ".join(map(str, told)).lower()

    found = facts(snap(1), snap(2))
    assert "file" in words(found)
    assert "volume" not in words(found)
    assert "file" not in words(volume(found))
    assert "folder" not in words(volume(found))


def test_rollback_of_a_volume_that_failed_speaks_of_no_files():
    hints = [
        OPERATIONS["roll back"].recovery_hint("rollback", volume(facts(*map(snap, some)))) for some in ([1, 2], [1])
    ]
    assert not any("file" in hint for hint in hints)
