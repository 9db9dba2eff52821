"""The file systems of the box itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from appliance.system import paths, system_disk

# Recorded form (proc(5)): options of the mount before the dash, of the file system after it.
LINE = "36 35 {major}:{minor} / /var/lib/larder {mount} shared:1 - ext4 /dev/sda1 {options}\n"


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "STATE", tmp_path)
    monkeypatch.setattr(system_disk, "MOUNTS", tmp_path / "mountinfo")
    return tmp_path / "mountinfo"


def line(folder: Path, options: str, mount: str = "rw") -> str:
    device = folder.stat().st_dev
    return LINE.format(major=os.major(device), minor=os.minor(device), mount=mount, options=options)


def test_mount_of_a_folder_with_other_bytes_hides_no_file_system(mounts):
    mounts.write_bytes(b"31 30 0:99 / /tank/M\xfcsik rw - zfs tank/music rw\n36 35 0:98 / / rw - ext4 /dev/sda1 ro\n")
    assert system_disk.filesystem_options() == {os.makedev(0, 99): {"rw"}, os.makedev(0, 98): {"ro"}}


@pytest.mark.parametrize(
    ("mount", "options", "stopped"),
    [
        ("rw", "rw,errors=remount-ro", False),
        ("rw", "ro,errors=remount-ro", True),
        ("rw", "rw,emergency_ro", True),
        ("ro", "rw", False),  # only this service sees it so
    ],
)
def test_file_system_that_takes_no_writes_is_seen(mounts, tmp_path, mount, options, stopped):
    mounts.write_text(f"\n36\n{line(tmp_path, options, mount)}")
    own = system_disk.read_filesystems()[0]
    assert (own.place, own.read_only) == (str(tmp_path), stopped)


def test_each_file_system_is_named_once_and_percentages_are_those_of_df(mounts, tmp_path, monkeypatch):
    mounts.write_text("")
    size = os.statvfs_result((4096, 4096, 1000, 250, 200, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _place: size)
    monkeypatch.setattr(system_disk, "places_to_watch", lambda: (tmp_path, tmp_path, tmp_path / "gone"))
    (own,) = system_disk.read_filesystems()
    assert (own.percent, own.free) == (79, 200 * 4096)  # 750 of 950, rounded up


def test_larders_own_folder_that_cannot_be_asked_is_an_error(mounts, monkeypatch, tmp_path):
    mounts.write_text("")
    monkeypatch.setattr(paths, "STATE", tmp_path / "gone")
    with pytest.raises(OSError, match="gone"):
        system_disk.read_filesystems()
