"""Test whether Larder's databases can be used, without writing to disk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import connections

from appliance.alerts.fault import Fault
from appliance.errors import explain_error
from appliance.message import Message

NAMES = {"default": Message("settings"), "inventory": Message("inventory")}
LOOKS_EVERY = timedelta(minutes=1)  # how often the alert rules look, so how long the end of a fault may be unknown
_unusable: list[datetime] = []  # when a database was first and last seen to be unusable


def database_error(alias: str) -> str:
    """Why a database cannot be used, in SQLite's own words; empty where it can."""
    connection = connections[alias]
    if connection.in_atomic_block:
        return ""
    try:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            try:
                cursor.execute("PRAGMA user_version")
                # In memory alone: with a write-ahead log nothing reaches the disk before the commit that never comes.
                cursor.execute(f"PRAGMA user_version = {int(cursor.fetchone()[0])}")
            finally:
                cursor.execute("ROLLBACK")
    except Exception as problem:
        connection.close()
        return str(problem) or explain_error(problem)
    return ""


def database_faults() -> Iterator[Fault]:
    """A fault for each database that cannot be used."""
    for alias, name in NAMES.items():
        if why := database_error(alias):
            yield database_fault(name, why)


def database_fault(name: str, why: str) -> Fault:
    return Fault(
        "records.failing",
        name,
        Message("Larder cannot use its database of {name}.", name=name),
        Message("SQLite says: {why}", why=why),
    )


def seen_unusable(now: datetime) -> None:
    """Note that a database cannot be used now."""
    goes_on = _unusable and now - _unusable[1] < 2 * LOOKS_EVERY
    _unusable[:] = [_unusable[0] if goes_on else now, now]


def was_unusable(began: datetime, ended: datetime) -> bool:
    """Whether a database could perhaps not be used at some time in between: from the look before the last fault was
    seen to the look after it."""
    if not _unusable:
        return False
    first, last = _unusable
    return began <= last + LOOKS_EVERY and ended >= first - LOOKS_EVERY
