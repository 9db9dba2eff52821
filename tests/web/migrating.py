"""Databases as an earlier version of Larder left them, brought to a later one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connections
from django.db.migrations.executor import MigrationExecutor

Migrate = Callable[[tuple[str, str]], Any]


@contextmanager
def former_database(folder: Path, alias: str = "default") -> Iterator[Migrate]:
    """A function that brings a database of its own to a migration, and returns the models of that time."""
    usual = connections[alias]
    own = type(usual)({**usual.settings_dict, "NAME": str(folder / "former.sqlite3")}, alias)

    def to(target: tuple[str, str]) -> Any:
        return MigrationExecutor(own).migrate([target]).apps

    connections[alias] = own
    try:
        yield to
        own.close()
    finally:
        connections[alias] = usual
