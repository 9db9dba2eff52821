"""How much is kept of what only ever grows."""

from __future__ import annotations

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
