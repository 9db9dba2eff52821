"""Pages of snapshot lists. Every filter has an index, and pages go by key: the last page is as quick as the first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
from django.db.models import Model, Q, QuerySet
from django.http import QueryDict

from web.inventory.dataset_models import SnapshotRow
from web.translation import lazy_text

M = TypeVar("M", bound=Model)
PAGE = 20  # a page out of thousands takes at most twice as long as one out of ten
KINDS = {
    "": lazy_text("All"),
    "policy": lazy_text("Automatic"),
    "hand": lazy_text("Not automatic"),
    "held": lazy_text("Protected"),
}
ORDERS = {"": lazy_text("Newest first"), "size": lazy_text("Largest first"), "name": lazy_text("By name")}


class Asked(msgspec.Struct, frozen=True):
    """The requested filter, order and position, from the address. Unknown values mean the default."""

    dataset_key: str = ""
    kind: str = ""
    order: str = ""
    begins: str = ""
    after: str = ""

    @classmethod
    def from_query(cls, query: QueryDict, dataset_key: str = "") -> Asked:
        kind, order, begins = query.get("kind", ""), query.get("order", ""), query.get("begins", "")[:100]
        return cls(
            dataset_key,
            kind if kind in KINDS else "",
            "name" if begins else order if order in ORDERS else "",
            begins,
            query.get("after", "")[:400],
        )

    @property
    def query(self) -> str:
        """The query of the address, without the position in the list."""
        wanted = {"kind": self.kind, "order": self.order, "begins": self.begins}
        return urlencode({name: value for name, value in wanted.items() if value})

    @property
    def is_filtered(self) -> bool:
        return bool(self.kind or self.begins)


class SnapshotPage(msgspec.Struct, frozen=True):
    rows: list[SnapshotRow]
    next: str  # where the next page begins; empty on the last


def rows_for(asked: Asked) -> QuerySet[SnapshotRow]:
    rows = SnapshotRow.objects.all()
    if asked.dataset_key:
        rows = rows.filter(dataset_key=asked.dataset_key)
    if asked.kind == "policy":
        rows = rows.exclude(run="")
    elif asked.kind == "hand":
        rows = rows.filter(run="")
    elif asked.kind == "held":
        rows = rows.filter(holds__gt=0)
    if asked.begins:
        # A range uses the index; LIKE does not.
        rows = rows.filter(short__gte=asked.begins, short__lt=asked.begins + "\U0010ffff")
    return rows


def snapshot_page(asked: Asked) -> SnapshotPage:
    """The requested page. One query, whatever its position."""
    column, down = {"": ("created", True), "size": ("used", True), "name": ("short", False)}[asked.order]
    rows = rows_after(rows_for(asked), asked.after, column, down=down)
    sign = "-" if down else ""
    found = list(rows.order_by(f"{sign}{column}", f"{sign}id")[: PAGE + 1])
    last = found[PAGE - 1] if len(found) > PAGE else None
    return SnapshotPage(found[:PAGE], page_token(last, column) if last else "")


def rows_after(rows: QuerySet[SnapshotRow], after: str, column: str, *, down: bool) -> QuerySet[SnapshotRow]:
    """The rows after the last row of the previous page, in the order of a column."""
    if start := parse_token(after, column):
        value, key = start
        way = "lt" if down else "gt"
        rows = rows.filter(
            Q(**{f"{column}__{way}e": value}), Q(**{f"{column}__{way}": value}) | Q(**{f"id__{way}": key})
        )
    return rows


def page_by_number(rows: QuerySet[M], after: str, size: int, number: str, text: str) -> tuple[list[M], str]:
    """A page of rows by one column, largest first, then by another column.

    Returns it with the token of its last row, which is empty if no rows follow.
    """
    value, _dot, rest = after.partition(".")
    if value.isdecimal() and len(value) < 19:
        rows = rows.filter(Q(**{f"{number}__lt": int(value)}) | Q(**{number: int(value), f"{text}__gt": rest}))
    found = list(rows.order_by(f"-{number}", text)[: size + 1])
    page = found[:size]
    return page, f"{getattr(page[-1], number)}.{getattr(page[-1], text)}" if len(found) > size else ""


def page_token(row: SnapshotRow, column: str) -> str:
    value = getattr(row, column)
    text = str(int(value.timestamp() * 1_000_000)) if isinstance(value, datetime) else str(value)
    return f"{row.pk}.{text}"


def parse_token(after: str, column: str) -> tuple[Any, int] | None:
    """The last row of the previous page, from a token; None for the first page and for invalid tokens."""
    key, _dot, text = after.partition(".")
    try:
        number = int(key)
        if column == "created":
            return datetime.fromtimestamp(int(text) / 1_000_000, UTC), number
        return (int(text) if column == "used" else text), number
    except (ValueError, OverflowError, OSError):
        return None
