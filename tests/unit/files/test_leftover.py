"""Scratch folders among the files of users: only what Larder itself has left there is removed.
Real files throughout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.errors import Failed
from appliance.files import leftover
from appliance.imports import rsync
from appliance.snapshots.browse.restore import RestoreFromSnapshot

NAME = b".larder-scratch"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield handle
    os.close(handle)


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """What an earlier run has left, with links that lead elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/kept").write_text("kept")
    made = tmp_path / NAME.decode()
    made.mkdir(mode=0o700)
    (made / "deep/deeper").mkdir(parents=True)
    (made / "deep/deeper/file").write_text("x")
    (made / "file").write_text("x")
    (made / "link").symlink_to(tmp_path / "elsewhere")
    (made / "deep/link").symlink_to(tmp_path / "elsewhere")
    return made


@pytest.mark.parametrize("mode", [0o700, 0o2700])
def test_own_leftover_is_removed_and_its_links_are_not_followed(folder, left, tmp_path, mode):
    left.chmod(mode)  # the set-gid bit is inherited
    leftover.remove_leftover(NAME, folder)
    assert not left.exists()
    assert (tmp_path / "elsewhere/kept").read_text() == "kept"
    leftover.remove_leftover(NAME, folder)  # nothing is there


def stays(folder: int, left: Path) -> bool:
    with pytest.raises(Failed, match=rf"{NAME.decode()} exists already, and it is not certain that Larder made it"):
        leftover.remove_leftover(NAME, folder)
    return (left / "deep/deeper/file").exists()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o2770, 0o701])
def test_folder_that_others_may_enter_stays(folder, left, mode):
    left.chmod(mode)
    assert stays(folder, left)


def test_every_scratch_folder_is_known_by_its_name(tmp_path):
    made = tmp_path / "made"
    made.mkdir(mode=0o700)
    restore = RestoreFromSnapshot(snapshot="tank/photos@one", guid=1, path="trip")
    for name in (rsync.SCRATCH, restore.temporary_name.decode()):
        assert leftover.is_scratch(name, made.stat())
    for name in (f"{rsync.REPLACED}2026-11-28", rsync.PARTIAL, ".larder-restoring-trip", "larder-importing"):
        assert not leftover.is_scratch(name, made.stat())


def test_folder_of_a_user_stays(folder, left, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
    assert stays(folder, left)


def test_folder_of_another_dataset_stays(left):
    elsewhere = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)  # another file system
    handle = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
    assert not leftover.is_own(handle, elsewhere)
    os.close(handle)
    os.close(elsewhere)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_file_or_link_of_that_name_stays(folder, tmp_path, kind):
    theirs, target = tmp_path / NAME.decode(), tmp_path / "target"
    target.mkdir(mode=0o700)
    theirs.write_text("theirs") if kind == "file" else theirs.symlink_to(target)
    with pytest.raises(Failed, match="Rename or remove it"):
        leftover.remove_leftover(NAME, folder)
    assert os.path.lexists(theirs)
    assert target.is_dir()


def test_scratch_folder_is_entered_by_nobody_else_and_removed_afterwards(folder, left, tmp_path):
    with leftover.scratch_folder(NAME, folder) as handle:
        assert list(left.iterdir()) == []
        assert left.stat().st_mode & 0o777 == 0o700
        os.mkdir("below", dir_fd=handle)
    assert not left.exists()


def test_scratch_folder_is_removed_after_a_failure(folder, tmp_path):
    with pytest.raises(ZeroDivisionError), leftover.scratch_folder(NAME, folder):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_folder_that_a_user_put_there_meanwhile_stays_and_hides_no_error(folder, tmp_path):
    name = tmp_path / NAME.decode()
    with pytest.raises(ZeroDivisionError), leftover.scratch_folder(NAME, folder):
        name.rename(tmp_path / "moved")
        name.mkdir(mode=0o755)
        (name / "theirs").write_text("theirs")
        raise ZeroDivisionError
    assert (name / "theirs").exists()
