"""Rows that many tests begin with: their own code writes them once, what it wrote is copied for the others."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from django.db import connections
from django.utils import timezone

FRESH = timedelta(seconds=5)  # rows say when they were written: older ones are written anew


class Copied:
    """``write`` only adds rows to both databases. A call runs it if that was five seconds ago, else inserts its rows.

    A row that is there already is an error, as it is for ``write``.
    """

    def __init__(self, write: Callable[[], object]) -> None:
        self.write = write
        self.rows: list[tuple[str, str, list[tuple]]] = []
        self.written = datetime.min.replace(tzinfo=timezone.get_default_timezone())

    def __call__(self) -> None:
        if abs(timezone.now() - self.written) < FRESH:
            for database, insert, rows in self.rows:
                raw(database).executemany(insert, rows)
            return
        before = {(database, table): set(rows) for database, table, rows in tables()}
        self.written = timezone.now()
        self.write()
        self.rows = [
            (database, f"INSERT INTO {table} VALUES ({', '.join('?' * len(added[0]))})", added)
            for database, table, rows in tables()
            if (added := [row for row in rows if row not in before[database, table]])
        ]


def raw(database: str) -> sqlite3.Connection:
    connections[database].ensure_connection()
    return connections[database].connection


def tables() -> Iterator[tuple[str, str, list[tuple]]]:
    """Every table of both databases with its rows."""
    for database in connections:
        for table in connections[database].introspection.table_names():
            yield database, table, raw(database).execute(f"SELECT * FROM {table}").fetchall()
