from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.datasets import presets
from appliance.datasets.create import CreateDataset
from appliance.datasets.encryption import key_store
from appliance.datasets.encryption.unlock import UnlockAll, UnlockDataset
from appliance.errors import Failed, Refused
from appliance.facts.datasets import Dataset, Property
from appliance.facts.sharing import Share
from appliance.formatting import size_text
from appliance.operation import checked_plan
from appliance.shares import approved, publish
from appliance.zfs import status
from tests.reasons import codes, expect_refusal
from tests.unit.conftest import HANDLE
from tests.unit.made import box, dataset, recorded, shared
from tests.unit.pools.test_create import CANARY, Working

TANK = dataset("tank")


def create(**changes: Any) -> CreateDataset:
    return CreateDataset(**{"parent": "tank", "name": "photos", **changes})


def refusals(operation, *datasets) -> list[str]:
    return codes(operation.check(box(datasets=datasets)))


def test_create_makes_folder_for_users_below_parent(commands, mounts):
    plan = checked_plan(create(preset="media"), box(datasets=(TANK,)))
    for step in plan.steps:
        step.run(Working())
    assert commands.ran == [
        [
            "zfs",
            "create",
            "-o",
            "canmount=noauto",
            "-o",
            "recordsize=1M",
            "-o",
            "compression=lz4",
            "-o",
            "atime=off",
            "-o",
            "sync=standard",
            "-o",
            "larder:preset=media",
            "--",
            "tank/photos",
        ],
        ["mount", "tank/photos", "new"],
        ["zfs", "set", "-u", "canmount=on", "tank/photos"],
        ["chgrp", "larder-people", "--", f"/proc/self/fd/{HANDLE}/."],
        ["zpool", "sync", "--", "tank"],
        ["chmod", "2770", "--", f"/proc/self/fd/{HANDLE}/."],
        ["zpool", "sync", "--", "tank"],  # or a power cut takes the mode back, and the job says that it is done
    ]


SHARED = shared("tank")
BELOW = shared("tank/films", share_source="inherited", share_from="tank")


def test_folder_created_below_a_shared_one_is_served_at_once(commands, mounts, monkeypatch):
    again: list[object] = []
    monkeypatch.setattr(publish, "republish_quietly", again.append)
    work = Working()
    plan = checked_plan(create(), box(datasets=(SHARED,)))
    for step in plan.steps:
        assert again == []
        step.run(work)
    assert again == [work]
    assert "shares" in create().locks()


def test_folder_created_below_one_that_inherits_a_share_is_served_and_elsewhere_not():
    def steps(parent: Dataset) -> list[str]:
        return [step.name for step in create(parent=parent.name).plan(box(datasets=(SHARED, BELOW, parent))).steps]

    assert steps(BELOW)[-1] == "serve"
    only_disk = dataset("tank/plain", share='{"iscsi":{"name":"vm"}}', share_source="local")  # is not inherited
    for other in (only_disk, dataset("tank/plain", share="{", share_source="local"), dataset("tank/plain")):
        assert steps(other)[-1] == "mode"


def test_create_killed_while_serving_is_done_only_if_its_share_is_there(monkeypatch):
    made = replace(BELOW, name="tank/photos", guid=7, mountpoint="/tank/photos")
    monkeypatch.setattr(approved, "read_approved", lambda: frozenset({SHARED.guid}))
    there = Share("smb", "tank-photos", "/tank/photos")
    assert not create().probe("serve", box(datasets=(SHARED, made)))
    assert create().probe("serve", box(datasets=(SHARED, made), shares=(there,)))
    assert "shares may not be on" in create().recovery_hint("serve", box(datasets=(SHARED, made)))


def test_create_derives_mountpoint_from_parent():
    plan = create().plan(box(datasets=(dataset("tank", mountpoint="/srv/My Files/"),)))
    assert plan.steps[3].command_text == "chmod 2770 -- '/srv/My Files/photos'"


@pytest.mark.parametrize(
    ("parents", "code"),
    [
        ((), "folder-missing"),
        ((dataset("tank", kind="volume"),), "folder-missing"),
        ((dataset("tank", key_status="unavailable"),), "dataset-locked"),
        ((dataset("tank", readonly=True),), "dataset-read-only"),
        ((dataset("tank", available=2**19),), "dataset-full"),
        ((dataset("tank", mountpoint="legacy"),), "parent-without-mountpoint"),
        ((dataset("tank", mountpoint="none"),), "parent-without-mountpoint"),
        ((dataset("tank", mountpoint=""),), "parent-without-mountpoint"),
        ((dataset("tank", mountpoint="/"),), "parent-without-mountpoint"),
        ((TANK, dataset("tank/photos")), "dataset-exists"),
        ((TANK, dataset("tank/Photos")), "dataset-exists"),
    ],
)
def test_create_refuses_an_unsuitable_parent_or_a_taken_name(parents, code):
    assert refusals(create(), *parents) == [code]


@pytest.mark.parametrize("name", ["", "a/b", "../etc", "-o", "a\n", "a\0", ".hidden", "a@b"])
def test_create_refuses_invalid_name(name):
    with pytest.raises(Refused):
        create(name=name)


@pytest.mark.parametrize("parent", ["", "-r", "/tank", "tank/../etc", "tank\n", "tank@x"])
def test_create_refuses_invalid_parent_name(parent):
    with pytest.raises(Refused):
        create(parent=parent)


def test_create_refuses_full_name_too_long_for_snapshots():
    with expect_refusal("dataset-name-too-long"):
        create(parent="tank/" + "x" * 180, name="y" * 30)


def test_digest_changes_with_parent_guid():
    plan = create().plan(box(datasets=(TANK,)))
    assert create().plan(box(datasets=(dataset("tank", used=5),))).digest() == plan.digest()
    assert create().plan(box(datasets=(dataset("tank", guid=5),))).digest() != plan.digest()


def test_create_probes_each_step_separately(tmp_path, monkeypatch):
    mine = os.getgid()
    place = tmp_path / "photos"
    place.mkdir(mode=0o755)
    facts = box(datasets=(TANK, dataset("tank/photos", mountpoint=str(place))))

    def happened() -> list[bool]:
        return [create().probe(step, facts) for step in ("create", "group", "mode")]

    assert create().probe("mount", facts)
    assert not create().probe("mount", box(datasets=(TANK, dataset("tank/photos", mounted=False))))

    monkeypatch.setattr("grp.getgrnam", lambda _name: SimpleNamespace(gr_gid=mine + 1))
    assert happened() == [True, False, False]
    monkeypatch.setattr("grp.getgrnam", lambda _name: SimpleNamespace(gr_gid=mine))
    assert happened() == [True, True, False]
    place.chmod(0o2770)
    assert happened() == [True, True, True]


def test_create_probes_fail_for_missing_folder():
    assert not any(create().probe(step, box(datasets=(TANK,))) for step in ("create", "group", "mode"))


def test_create_probe_fails_for_unmounted_folder(tmp_path):
    facts = box(datasets=(TANK, dataset("tank/photos", mountpoint=str(tmp_path / "nowhere"))))
    assert [create().probe(step, facts) for step in ("create", "group", "mode")] == [True, False, False]


def test_create_hint_says_whether_folder_exists():
    assert "is not there" in create().recovery_hint("create", box(datasets=(TANK,)))
    assert "is there" in create().recovery_hint("mode", box(datasets=(TANK, dataset("tank/photos"))))


def secret_box(key: str = "unavailable", **changes: Any) -> Any:
    common = {
        "encryption": "aes-256-gcm",
        "key_status": key,
        "encryption_root": "tank/vault",
        "mounted": False,
        **changes,
    }
    return box(
        datasets=(
            TANK,
            dataset("tank/vault", **common),
            dataset("tank/vault/deep", **common),
            dataset("tank/vault/off", **common | {"canmount": "off"}),
        )
    )


UNLOCK = UnlockDataset(dataset="tank/vault")


def test_unlock_loads_key_from_stdin_then_mounts_and_serves(commands, mounts, monkeypatch):
    again: list[object] = []
    monkeypatch.setattr(publish, "republish_quietly", again.append)
    work = Working()
    for step in checked_plan(UNLOCK, secret_box()).steps:
        step.run(work)
    assert again == [work]
    assert "shares" in UNLOCK.locks()
    assert commands.ran == [
        ["zfs", "load-key", "-L", "prompt", "--", "tank/vault"],
        ["mount", "tank/vault"],
        ["mount", "tank/vault/deep"],
    ]
    assert commands.given == [f"{CANARY}\n", None, None]


def test_unlock_refuses_unlocked_dataset_or_one_without_own_key():
    assert codes(UNLOCK.check(secret_box("available"))) == ["dataset-unlocked-already"]
    inner = UnlockDataset(dataset="tank/vault/deep")
    assert codes(inner.check(secret_box())) == ["dataset-without-key"]
    assert codes(UNLOCK.check(box())) == ["folder-missing"]


def test_unlock_probes_key_and_mounts_separately():
    assert [UNLOCK.probe(step, secret_box()) for step in ("key", "mount")] == [False, False]
    assert [UNLOCK.probe(step, secret_box("available")) for step in ("key", "mount")] == [True, False]
    assert [UNLOCK.probe(step, secret_box("available", mounted=True)) for step in ("key", "mount")] == [True, True]


def test_unlock_hint_says_whether_dataset_is_still_locked():
    assert "still locked" in UNLOCK.recovery_hint("key", secret_box())
    assert "key is loaded" in UNLOCK.recovery_hint("mount", secret_box("available"))


KEY = "0123456789abcdef" * 4


@pytest.mark.parametrize(("kind", "given"), [("hex", f"{KEY}\n"), ("raw", bytes.fromhex(KEY))])
def test_unlock_passes_key_file_in_format_of_dataset(commands, kind, given):
    work = Working()
    work.secret = lambda: KEY  # type: ignore[method-assign]
    plan = checked_plan(UNLOCK, secret_box(key_format=kind))
    assert plan.key_file
    plan.steps[0].run(work)
    assert commands.given == [given]
    assert KEY not in repr(commands.ran)


def test_unlock_refuses_passphrase_as_key_file(commands):
    with pytest.raises(Refused):
        checked_plan(UNLOCK, secret_box(key_format="hex")).steps[0].run(Working())
    assert commands.ran == []
    assert "Check the key file" in UNLOCK.recovery_hint("key", secret_box(key_format="hex"))


def test_unlock_by_passphrase_asks_for_no_file():
    assert not checked_plan(UNLOCK, secret_box(key_format="passphrase")).key_file


# --- presets, limits, a key of its own ------------------------------------------------------------------------
@pytest.mark.parametrize("preset", presets.PRESETS)
def test_every_preset_has_reasons_and_is_recorded(preset):
    plan = create(preset=preset).plan(box(datasets=(TANK,)))
    assert f"larder:preset={preset}" in plan.steps[0].command_text
    assert "recordsize=" in plan.steps[0].command_text
    assert plan.details["Why"].count(".") >= 4


def test_create_sets_limit():
    plan = create(limit=5 * 2**30).plan(box(datasets=(TANK,)))
    assert "quota=5368709120" in plan.steps[0].command_text
    assert size_text(5 * 2**30) in plan.summary


@pytest.mark.parametrize("limit", [-1, 1, 2**62])
def test_create_refuses_invalid_limit(limit):
    with pytest.raises(Refused):
        create(limit=limit)


@pytest.mark.parametrize(
    ("key", "secret", "kind"), [("passphrase", CANARY, "passphrase"), ("key file", "ab" * 32, "hex")]
)
def test_create_passes_own_key_by_stdin(commands, mounts, key, secret, kind):
    work = Working()
    work.secret = lambda: secret  # type: ignore[method-assign]
    operation = create(key=key)
    assert operation.wants_secret()
    plan = checked_plan(operation, box(datasets=(TANK,)))
    plan.steps[0].run(work)
    assert plan.key_file is (key == "key file")
    assert f"keyformat={kind}" in commands.ran[0]
    assert commands.given == [f"{secret}\n"]
    assert secret not in repr(commands.ran) + repr([step.command_text for step in plan.steps])


# --- what was read ------------------------------------------------------------------------------------------
def test_properties_are_read_with_their_sources():
    found = {one.name: one for one in status.parse_datasets(recorded("zfs-list-properties-2.3.9.json"))}
    films, old, copy = found["datasetsp/films"], found["datasetsp/films/old"], found["datasetsp/copy"]
    assert films.properties["recordsize"] == Property("1048576", "local")
    assert old.properties["recordsize"] == Property("1048576", "inherited", "datasetsp/films")
    assert films.properties["compression"].source == "default"
    assert films.properties["larder:preset"].value == "media"
    assert "volblocksize" not in films.properties
    assert copy.origin == "datasetsp/films/old@monday"
    assert (found["datasetsp/thick"].volsize, found["datasetsp/thick"].used_by_reservation > 0) == (20 * 2**20, True)
    assert found["datasetsp/thin"].used_by_reservation == 0
    assert films.used_by_data > 3 * 2**20


# --- everything after a start -------------------------------------------------------------------------------
def test_unlock_all_tries_every_locked_dataset_and_names_those_still_locked(commands, mounts, monkeypatch, folders):
    monkeypatch.setattr(key_store, "FOLDER", folders / "keys")
    monkeypatch.setattr(publish, "republish_quietly", lambda _work: None)
    common = {"encryption": "aes-256-gcm", "key_status": "unavailable", "key_format": "passphrase", "mounted": False}
    one = dataset("tank/one", encryption_root="tank/one", **common)
    two = dataset("tank/two", encryption_root="tank/two", **common | {"key_format": "hex"})
    operation = UnlockAll(datasets=("tank/one", "tank/two"))
    plan = checked_plan(operation, box(datasets=(TANK, one, two)))
    with pytest.raises(Failed, match="tank/two"):
        plan.steps[0].run(Working())
    assert [argv[-1] for argv in commands.ran] == ["tank/one", "tank/one"]
    key_store.store_key(two.guid, KEY)
    plan.steps[0].run(Working())
    assert f"{KEY}\n" in commands.given
    assert operation.locks() == ("tank", "shares")


def test_unlock_all_refuses_if_nothing_is_locked():
    assert codes(UnlockAll(datasets=()).check(box())) == ["nothing-locked"]
