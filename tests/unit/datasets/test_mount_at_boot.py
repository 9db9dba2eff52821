"""At a start Larder mounts datasets before ``zfs mount -a``, which would follow links."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.datasets import mount_at_boot
from appliance.errors import Failed
from appliance.zfs import mountpoints, status
from tests.unit.made import dataset

UNITS = Path(__file__).parents[3] / "deploy/systemd"
TANK = dataset("tank", mounted=False)
ALL = (
    TANK,
    dataset("tank/a/b", mounted=False),
    dataset("tank/a", mounted=False),
    dataset("tank/there"),
    dataset("tank/etc", mounted=False, mountpoint="/etc"),
    dataset("tank/vault", mounted=False, key_status="unavailable"),
    dataset("tank/off", mounted=False, canmount="noauto"),
    dataset("tank/z", mounted=False),
)


@pytest.fixture(autouse=True)
def box(monkeypatch):
    monkeypatch.setattr(status, "is_module_loaded", lambda: True)
    monkeypatch.setattr(status, "read_datasets", lambda: ALL)


def ended() -> object:
    with pytest.raises(SystemExit) as found:
        mount_at_boot.main()
    return found.value.code


def test_boot_mounts_datasets_of_pool_parents_first(mounts):
    assert ended() == 0
    assert mounts.ran == [["mount", "tank"], ["mount", "tank/a"], ["mount", "tank/z"], ["mount", "tank/a/b"]]


def test_boot_sets_noauto_where_link_blocks_mount(mounts):
    def blocked(argv: list[str]) -> None:
        if argv == ["mount", "tank/a"]:
            raise mountpoints.Blocked("A symbolic link is there")

    mounts.on_run = blocked
    assert ended() == 1
    assert ["zfs", "set", "-u", "canmount=noauto", "tank/a"] in mounts.ran
    assert ["mount", "tank/z"] in mounts.ran


def test_boot_leaves_other_failures_to_zfs_mount(mounts):
    def fail(argv: list[str]) -> None:
        if argv == ["mount", "tank/a"]:
            raise Failed("mount did not answer")

    mounts.on_run = fail
    assert ended() == 1
    assert not any(argv[:2] == ["zfs", "set"] for argv in mounts.ran)
    assert ["mount", "tank/z"] in mounts.ran


def test_root_units_import_nothing_from_working_directory():
    for unit in UNITS.glob("larder-*.service"):
        text = unit.read_text()
        if "User=larder" not in text and "python" in text:
            assert "python -I " in text, unit.name
