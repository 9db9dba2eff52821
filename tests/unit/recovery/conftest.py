from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from appliance.datasets.encryption import key_store
from appliance.shares.iscsi import chap
from appliance.zfs import private_mount


@pytest.fixture
def pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of what is mounted privately: one below it for each pool's records."""
    home = tmp_path / "pools"

    @contextmanager
    def root_of(dataset: str, _flags: int = 0) -> Iterator[int]:
        (home / dataset).mkdir(parents=True, exist_ok=True)
        handle = os.open(home / dataset, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield handle
        finally:
            os.close(handle)

    monkeypatch.setattr(private_mount, "root_of", root_of)
    return home


@pytest.fixture(autouse=True)
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored keys and secrets of the test alone."""
    monkeypatch.setattr(key_store, "FOLDER", tmp_path / "keys")
    monkeypatch.setattr(chap, "FOLDER", tmp_path / "chap")
