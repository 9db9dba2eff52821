"""Choose the old rows of a table that only ever grows; each caller says how many or how long it keeps."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

AT_ONCE = 200


def past(rows: QuerySet[Any], kept: int, at_once: int = AT_ONCE) -> QuerySet[Any]:
    """Of rows in their order those past the first ``kept``, to be deleted; at most so many, so that no write is long.

    By their keys: a slice cannot be deleted.
    """
    keys = list(rows.values_list("pk", flat=True)[kept : kept + at_once])
    found: QuerySet[Any] = rows.model._default_manager.filter(pk__in=keys)
    return found


def older(rows: QuerySet[Any], column: str, *, than: datetime, kept: int, at_once: int = AT_ONCE) -> QuerySet[Any]:
    """The oldest rows by a column of times, to be deleted: those before ``than``, never the newest ``kept``."""
    newest = rows.order_by(f"-{column}").values_list(column, flat=True)
    edge = next(iter(newest[kept : kept + 1]), None)
    if edge is None:
        return rows.none()
    found = rows.filter(**{f"{column}__lt": than, f"{column}__lte": edge}).order_by(column)
    keys = list(found.values_list("pk", flat=True)[:at_once])
    oldest: QuerySet[Any] = rows.model._default_manager.filter(pk__in=keys)
    return oldest
