"""Small files are put in place whole, with the mode that was asked for, and nothing stays beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from appliance.system import atomic_file


def test_new_content_takes_the_place_of_the_old_with_its_mode(tmp_path):
    path = tmp_path / "kept"
    atomic_file.write_atomically(path, b"first")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"first", 0o600)
    atomic_file.write_atomically(path, b"second", mode=0o644)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"second", 0o644)
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_content_stays_where_the_new_cannot_be_written(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    atomic_file.write_atomically(path, b"first")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        atomic_file.write_atomically(path, b"second")
    assert path.read_bytes() == b"first"


def test_what_a_crash_or_somebody_left_beside_it_is_neither_followed_nor_in_the_way(tmp_path):
    path, elsewhere = tmp_path / "kept", tmp_path / "elsewhere"
    Path(tmp_path / ".kept.new").symlink_to(elsewhere)
    atomic_file.write_atomically(path, b"first")
    assert path.read_bytes() == b"first"
    assert not elsewhere.exists()
