"""Whether a database can be used is seen without writing to it; the databases are real files here."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from workers import database_health


class Connection:
    """As much of Django's as is used, over SQLite itself."""

    in_atomic_block = False

    def __init__(self, path: Path, mode: str) -> None:
        self.base = sqlite3.connect(f"file:{path}?mode={mode}", uri=True, isolation_level=None, timeout=0.01)

    def cursor(self) -> Any:
        return closing(self.base.cursor())

    def close(self) -> None:
        self.base.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    base = sqlite3.connect(tmp_path / "settings.sqlite3")
    base.execute("pragma journal_mode = wal")  # as web/settings.py has it
    base.execute("create table alerts (kind text)")
    base.commit()
    base.close()
    return tmp_path / "settings.sqlite3"


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch, path: Path) -> Callable[..., str]:
    def open_as(mode: str = "rw") -> str:
        monkeypatch.setattr(database_health, "connections", {"default": Connection(path, mode)})
        return database_health.database_error("default")

    return open_as


def test_database_that_can_be_used_is_no_fault_and_nothing_is_written(use, path):
    before = path.read_bytes()
    assert use() == ""
    assert path.read_bytes() == before


def test_database_that_takes_no_writes_is_seen(use):
    assert "readonly" in use("ro")


def test_damaged_database_is_seen(use, path):
    path.write_bytes(b"no database at all" * 500)
    assert "not a database" in use()


def test_database_that_somebody_else_holds_is_seen(use, path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin exclusive")
    assert "locked" in use()
    other.close()
