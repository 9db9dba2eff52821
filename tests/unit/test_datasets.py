from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.errors import Refused
from appliance.operation import checked_plan
from appliance.zfs.datasets import CreateDataset, UnlockDataset
from tests.unit.made import box, dataset
from tests.unit.test_pools import CANARY, Working

TANK = dataset("tank")


def create(**changes: Any) -> CreateDataset:
    return CreateDataset(**{"parent": "tank", "name": "photos", **changes})


def reasons(operation, *datasets) -> str:
    return " ".join(f"[{reason.field}] {reason.text}" for reason in operation.check(box(datasets=datasets)))


def test_it_makes_a_folder_for_people_below_its_parent(commands):
    plan = checked_plan(create(preset="media"), box(datasets=(TANK,)))
    for step in plan.steps:
        step.act(Working())
    assert commands.ran == [
        ["zfs", "create", "-o", "recordsize=1M", "--", "tank/photos"],
        ["chgrp", "--", "larder-people", "/tank/photos"],
        ["chmod", "2770", "--", "/tank/photos"],
    ]


def test_the_folders_place_follows_the_parents():
    plan = create().plan(box(datasets=(dataset("tank", mountpoint="/srv/My Files/"),)))
    assert plan.steps[2].shown == "chmod 2770 -- '/srv/My Files/photos'"


@pytest.mark.parametrize(
    ("parents", "said"),
    [
        ((), "no longer there"),
        ((dataset("tank", kind="volume"),), "no longer there"),
        ((dataset("tank", key_status="unavailable"),), "locked"),
        ((dataset("tank", readonly=True),), "only be read"),
        ((dataset("tank", available=2**19),), "tank is full. Delete"),
        ((dataset("tank", mountpoint="legacy"),), "no place of its own"),
        ((dataset("tank", mountpoint="none"),), "no place of its own"),
        ((dataset("tank", mountpoint=""),), "no place of its own"),
        ((dataset("tank", mountpoint="/"),), "no place of its own"),
        ((TANK, dataset("tank/photos")), "already a folder tank/photos"),
        ((TANK, dataset("tank/Photos")), "already a folder tank/Photos"),
    ],
)
def test_it_refuses_a_folder_that_could_not_be_made_there(parents, said):
    assert said in reasons(create(), *parents)


@pytest.mark.parametrize("name", ["", "a/b", "../etc", "-o", "a\n", "a\0", ".hidden", "a@b"])
def test_it_refuses_a_folder_by_a_name_that_is_none(name):
    with pytest.raises(Refused):
        create(name=name)


@pytest.mark.parametrize("parent", ["", "-r", "/tank", "tank/../etc", "tank\n", "tank@x"])
def test_it_refuses_a_parent_that_is_no_dataset(parent):
    with pytest.raises(Refused):
        create(parent=parent)


def test_it_refuses_a_full_name_too_long_for_its_snapshots():
    with pytest.raises(Refused, match="too long"):
        create(parent="tank/" + "x" * 180, name="y" * 30)


def test_the_digest_holds_for_the_same_parent_only():
    plan = create().plan(box(datasets=(TANK,)))
    assert create().plan(box(datasets=(dataset("tank", used=5),))).digest() == plan.digest()
    assert create().plan(box(datasets=(dataset("tank", guid=5),))).digest() != plan.digest()


def test_each_probe_looks_at_its_own_step(tmp_path, monkeypatch):
    mine = os.getgid()
    place = tmp_path / "photos"
    place.mkdir(mode=0o755)
    facts = box(datasets=(TANK, dataset("tank/photos", mountpoint=str(place))))

    def happened() -> list[bool]:
        return [create().happened(step, facts) for step in ("create", "group", "mode")]

    monkeypatch.setattr("grp.getgrnam", lambda _name: SimpleNamespace(gr_gid=mine + 1))
    assert happened() == [True, False, False]
    monkeypatch.setattr("grp.getgrnam", lambda _name: SimpleNamespace(gr_gid=mine))
    assert happened() == [True, True, False]
    place.chmod(0o2770)
    assert happened() == [True, True, True]


def test_no_probe_sees_a_folder_that_is_not_there():
    assert not any(create().happened(step, box(datasets=(TANK,))) for step in ("create", "group", "mode"))


def test_a_folder_that_is_not_mounted_is_not_taken_for_finished(tmp_path):
    facts = box(datasets=(TANK, dataset("tank/photos", mountpoint=str(tmp_path / "nowhere"))))
    assert [create().happened(step, facts) for step in ("create", "group", "mode")] == [True, False, False]


def test_the_way_on_says_whether_the_folder_is_there():
    assert "is not there" in create().way_on("create", box(datasets=(TANK,)))
    assert "is there" in create().way_on("mode", box(datasets=(TANK, dataset("tank/photos"))))


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


def test_it_loads_the_key_from_standard_input_and_mounts_what_it_unlocks(commands):
    for step in checked_plan(UNLOCK, secret_box()).steps:
        step.act(Working())
    assert commands.ran == [
        ["zfs", "load-key", "-L", "prompt", "--", "tank/vault"],
        ["zfs", "mount", "--", "tank/vault"],
        ["zfs", "mount", "--", "tank/vault/deep"],
    ]
    assert commands.given == [f"{CANARY}\n", None, None]


def test_it_refuses_to_unlock_what_is_not_locked_or_has_no_passphrase_of_its_own():
    assert "unlocked already" in " ".join(reason.text for reason in UNLOCK.check(secret_box("available")))
    inner = UnlockDataset(dataset="tank/vault/deep")
    assert "no key of its own" in " ".join(reason.text for reason in inner.check(secret_box()))
    assert "no longer there" in " ".join(reason.text for reason in UNLOCK.check(box()))


def test_its_probes_tell_the_key_from_the_mounts():
    assert [UNLOCK.happened(step, secret_box()) for step in ("key", "mount")] == [False, False]
    assert [UNLOCK.happened(step, secret_box("available")) for step in ("key", "mount")] == [True, False]
    assert [UNLOCK.happened(step, secret_box("available", mounted=True)) for step in ("key", "mount")] == [True, True]


def test_the_way_on_says_whether_it_is_still_locked():
    assert "still locked" in UNLOCK.way_on("key", secret_box())
    assert "key is loaded" in UNLOCK.way_on("mount", secret_box("available"))


KEY = "0123456789abcdef" * 4


@pytest.mark.parametrize(("kind", "given"), [("hex", f"{KEY}\n"), ("raw", bytes.fromhex(KEY))])
def test_a_key_file_is_given_in_the_form_that_the_dataset_wants(commands, kind, given):
    work = Working()
    work.secret = lambda: KEY  # type: ignore[method-assign]
    plan = checked_plan(UNLOCK, secret_box(key_format=kind))
    assert plan.key_file
    plan.steps[0].act(work)
    assert commands.given == [given]
    assert KEY not in repr(commands.ran)


def test_a_passphrase_is_no_key(commands):
    with pytest.raises(Refused):
        checked_plan(UNLOCK, secret_box(key_format="hex")).steps[0].act(Working())
    assert commands.ran == []
    assert "Check the key file" in UNLOCK.way_on("key", secret_box(key_format="hex"))


def test_unlocking_by_passphrase_asks_for_no_file():
    assert not checked_plan(UNLOCK, secret_box(key_format="passphrase")).key_file
