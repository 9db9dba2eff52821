"""Keys of unlocked datasets: lock, change, store, delete."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from appliance.datasets.encryption import key_store
from appliance.datasets.encryption.keys import ChangeKey, DeleteStoredKey, LockDataset, StoreKey
from appliance.errors import Failed
from appliance.facts import user_properties
from appliance.facts.datasets import Property
from appliance.operation import Operation, checked_plan
from tests.reasons import codes
from tests.unit.made import box, dataset
from tests.unit.pools.test_create import CANARY, Working


@pytest.fixture(autouse=True)
def own_folder(folders, monkeypatch):
    monkeypatch.setattr(key_store, "FOLDER", folders / "keys")
    monkeypatch.setattr(key_store, "MACHINE", folders / "machine-id")
    (folders / "machine-id").write_text("0123\n")


def vault(**changes: Any) -> Any:
    common = {
        "encryption": "aes-256-gcm",
        "key_status": "available",
        "key_format": "passphrase",
        "encryption_root": "tank/vault",
    }
    return dataset("tank/vault", **common | changes)


def facts(**changes: Any) -> Any:
    inner = replace(vault(**changes), name="tank/vault/in", guid=9, mountpoint="/tank/vault/in")
    return box(datasets=(dataset("tank"), vault(**changes), inner))


def of(kind: type, **fields: Any) -> Any:
    return kind(dataset="tank/vault", guid=vault().guid, **fields)


def run(operation: Operation, found: Any) -> None:
    for step in checked_plan(operation, found).steps:
        step.run(Working())


def marked() -> dict[str, Property]:
    return {user_properties.UNLOCK: Property(key_store.box_mark(), "local")}


def test_lock_unmounts_and_unloads_key(commands):
    run(of(LockDataset), facts())
    assert commands.ran == [["zfs", "unmount", "--", "tank/vault"], ["zfs", "unload-key", "--", "tank/vault"]]
    assert of(LockDataset).probe("unload", facts(key_status="unavailable"))
    assert not of(LockDataset).probe("unload", facts())
    assert codes(of(LockDataset).check(facts(key_status="unavailable"))) == ["dataset-locked-already"]


@pytest.mark.parametrize(("to", "kind"), [("passphrase", "passphrase"), ("key file", "hex")])
def test_change_key_passes_key_by_stdin(commands, to, kind):
    work, secret = Working(), CANARY if to == "passphrase" else "ab" * 32
    work.secret = lambda: secret  # type: ignore[method-assign]
    plan = checked_plan(of(ChangeKey, to=to), facts())
    plan.steps[0].run(work)
    assert commands.ran == [
        ["zfs", "change-key", "-o", f"keyformat={kind}", "-o", "keylocation=prompt", "--", "tank/vault"]
    ]
    assert commands.given == [f"{secret}\n"]
    assert not of(ChangeKey, to=to).probe("change", facts())


def test_store_key_tries_key_first_and_only_root_can_read_it(commands):
    run(of(StoreKey), facts())
    path = key_store.key_path(vault().guid)
    assert path.read_text() == CANARY
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o077) == (0o600, 0)
    assert commands.ran[0] == ["zfs", "load-key", "-n", "-L", "prompt", "--", "tank/vault"]
    assert CANARY not in repr(commands.ran)
    assert of(StoreKey).probe("mark", facts(properties=marked()))


def test_store_key_refuses_wrong_key(commands):
    from appliance import command

    def wrong(argv: list[str]) -> None:
        raise command.CommandFailed(command.Result(tuple(argv), 255, "", "Incorrect key provided", 0))

    commands.on_run = wrong
    with pytest.raises(Failed, match="nothing was kept"):
        run(of(StoreKey), facts())
    assert not key_store.has_key(vault().guid)


def test_change_key_deletes_stored_key(commands):
    key_store.store_key(vault().guid, "old words")
    run(of(ChangeKey, to="passphrase"), facts(properties=marked()))
    assert not key_store.has_key(vault().guid)
    assert commands.ran[1] == ["zfs", "inherit", "--", "larder:unlock", "tank/vault"]


def test_delete_key_removes_file_and_mark(commands):
    key_store.store_key(vault().guid, "words of old")
    run(of(DeleteStoredKey), facts(properties=marked()))
    assert not key_store.has_key(vault().guid)
    assert of(DeleteStoredKey).probe("forget", facts())
    assert codes(of(DeleteStoredKey).check(facts())) == ["key-not-stored"]


def test_mark_of_another_box_does_not_count(folders):
    theirs = marked()
    (folders / "machine-id").write_text("4567\n")
    assert not key_store.is_marked(vault(properties=theirs))
    assert not key_store.is_marked(
        vault(properties={user_properties.UNLOCK: Property(key_store.box_mark(), "inherited", "tank")})
    )
