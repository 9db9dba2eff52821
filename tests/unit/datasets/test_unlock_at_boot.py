"""At a start stored keys unlock their datasets, and one failure does not stop the others."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.datasets.encryption import key_store, unlock_at_boot
from appliance.zfs import status
from tests.unit.made import dataset

COMMON = {"encryption": "aes-256-gcm", "key_status": "unavailable", "key_format": "passphrase", "mounted": False}
ONE = dataset("tank/one", encryption_root="tank/one", **COMMON)
TWO = dataset("tank/two", encryption_root="tank/two", **COMMON)


@pytest.fixture(autouse=True)
def box(folders, monkeypatch):
    monkeypatch.setattr(key_store, "FOLDER", folders / "keys")
    monkeypatch.setattr(status, "is_module_loaded", lambda: True)
    monkeypatch.setattr(status, "read_datasets", lambda: (ONE, TWO))


def test_boot_unlocks_and_mounts_datasets_with_stored_keys(commands, mounts):
    key_store.store_key(TWO.guid, "four words for two")
    with pytest.raises(SystemExit) as ended:
        unlock_at_boot.main()
    assert ended.value.code == 0
    assert commands.ran == [["zfs", "load-key", "-L", "prompt", "--", "tank/two"], ["mount", "tank/two"]]
    assert commands.given[0] == "four words for two\n"


def test_boot_continues_after_failed_mount(commands, mounts):
    def fail(argv: list[str]) -> None:
        if argv == ["mount", "tank/one"]:
            raise command.CommandFailed(command.Result(tuple(argv), 1, "", "directory is not empty", 0))

    commands.on_run = fail
    key_store.store_key(ONE.guid, "four words for one")
    key_store.store_key(TWO.guid, "four words for two")
    with pytest.raises(SystemExit) as ended:
        unlock_at_boot.main()
    assert ended.value.code == 1
    assert ["mount", "tank/two"] in commands.ran


def test_boot_mounts_nothing_outside_folder_of_pool(commands, mounts, monkeypatch, caplog):
    """A backup of another computer, received raw, brings its own mountpoints."""
    outside = replace(TWO, mountpoint="/etc")
    monkeypatch.setattr(status, "read_datasets", lambda: (outside,))
    key_store.store_key(TWO.guid, "four words for two")
    caplog.set_level("INFO")
    with pytest.raises(SystemExit):
        unlock_at_boot.main()
    assert [argv[:2] for argv in commands.ran] == [["zfs", "load-key"]]
    assert "The mountpoint of tank/two is /etc" in caplog.text
