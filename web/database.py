"""Telling a database that cannot be used from one row that it does not take."""

from __future__ import annotations

from django.db import DatabaseError, OperationalError


def is_unusable(problem: Exception) -> bool:
    """Whether the database is full, read-only, locked or damaged, so that whatever is tried next fails as well.

    SQLite's "malformed" has no class of its own.
    """
    return isinstance(problem, OperationalError) or type(problem) is DatabaseError
