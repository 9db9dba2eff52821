"""How long rows are kept in the tables that only ever grow, and which of them may go.
The writer of a table deletes them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

JOBS_OF_SCHEDULES, JOBS_OF_USERS = timedelta(days=14), timedelta(days=366)
CLEARED_ALERTS = timedelta(days=366)
SCHEDULED_RUNS = timedelta(days=30)  # of snapshot schedules
JOBS_ANYWAY, ALERTS_ANYWAY = 200, 500  # that stay however old they look: the clock may be years ahead
# Counted, without regard to their age:
EVENTS = 500
NOTES_OF_ALERT = 100
REPORTS_OF_POOL = 100
DAYS_OF_DISK = 3 * 366
AT_ONCE = 200


def choose_past(rows: QuerySet[Any], kept: int, at_once: int = AT_ONCE) -> QuerySet[Any]:
    """Of rows in their order those past the first ``kept``, to be deleted; at most so many, so that no write is long.

    By their keys: a slice cannot be deleted.
    """
    keys = list(rows.values_list("pk", flat=True)[kept : kept + at_once])
    found: QuerySet[Any] = rows.model._default_manager.filter(pk__in=keys)
    return found


def choose_older(
    rows: QuerySet[Any], column: str, *, than: datetime, kept: int, at_once: int = AT_ONCE
) -> QuerySet[Any]:
    """The oldest rows by a column of times, to be deleted: those before ``than``, never the newest ``kept``."""
    newest = rows.order_by(f"-{column}").values_list(column, flat=True)
    edge = next(iter(newest[kept : kept + 1]), None)
    if edge is None:
        return rows.none()
    found = rows.filter(**{f"{column}__lt": than, f"{column}__lte": edge}).order_by(column)
    keys = list(found.values_list("pk", flat=True)[:at_once])
    oldest: QuerySet[Any] = rows.model._default_manager.filter(pk__in=keys)
    return oldest
