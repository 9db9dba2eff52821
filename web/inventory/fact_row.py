"""The base of rows that hold a fact, some with the messages in it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, TypeVar

import msgspec
from django.db import models

from appliance.errors import Reason, Refused
from appliance.message import as_said

log = logging.getLogger(__name__)

# What runs one look-up, by its name: as it is, or guarded (``guard.Parts.get``), and then None if it fails.
LookUp = Callable[[str, Callable[[], Any]], Any]


def look_up_strictly(_name: str, work: Callable[[], Any]) -> Any:
    """Run the look-up as it is; raises what it raises."""
    return work()


def look_up_or_none(name: str, work: Callable[[], Any]) -> Any:
    """Run the look-up, or log that it failed. For what names such rows elsewhere: the alert
    rules look at all of them."""
    try:
        return work()
    except ValueError as problem:  # what msgspec and json raise
        log.warning("%s cannot be decoded: %s", name, problem.__cause__ or problem)
        return None


def strict_about(*names: str) -> LookUp:
    """A look-up that leaves out what cannot be decoded, except of these and what is below
    them: a plan would lack it."""
    tops = tuple(f"{name}/" for name in names)

    def look_up(name: str, work: Callable[[], Any]) -> Any:
        return (look_up_strictly if f"{name}/".startswith(tops) else look_up_or_none)(name, work)

    return look_up


class OddRows:
    """A look-up that leaves out what cannot be decoded, and keeps the names of that."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, name: str, work: Callable[[], Any]) -> Any:
        found = look_up_or_none(name, work)
        if found is None and name not in self.names:
            self.names.append(name)
        return found


class OddRow(Refused, ValueError):
    """What is stored of something cannot be decoded, as after an update: nothing is planned for
    that until it is read again."""

    def __init__(self, name: str) -> None:
        super().__init__(
            Reason(
                "row-odd",
                "What Larder stored of {name} cannot be read. It is read again within a minute. If this "
                "stays, restart the box.",
                name=name,
            )
        )


class Row(models.Model):
    """A fact under its identity. ``kind`` is the struct that ``facts`` decodes to; ``columns`` are those that are made
    from the fact whenever it is stored, for queries: the text of ``facts`` is searched for what people type alone."""

    key = models.CharField(max_length=300, primary_key=True)
    name = models.CharField(max_length=300, db_index=True)
    facts = models.TextField()
    kind: ClassVar[type]
    columns: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    @property
    def label(self) -> str:
        """What its errors are noted under."""
        return self.name

    @property
    def fact(self) -> Any:
        """The frozen value itself. Raises OddRow."""
        try:
            return self.decode()
        except ValueError as problem:  # what msgspec and json raise
            raise OddRow(self.label or self.key) from problem

    def decode(self) -> Any:
        return msgspec.json.decode(self.facts, type=self.kind)


class RowWithSaidFacts(Row):
    """A fact with sentences in it; ``said_of_facts`` is what they were made from, as
    ``said`` of ``RowWithMessages``."""

    said_of_facts = models.JSONField(default=dict)

    class Meta:
        abstract = True

    def decode(self) -> Any:
        if not self.said_of_facts:
            return super().decode()
        return msgspec.convert(as_said(json.loads(self.facts), self.said_of_facts), self.kind)


AnyRow = TypeVar("AnyRow", bound=Row)


def facts_of(rows: Iterable[Row], look_up: LookUp = look_up_strictly) -> Iterator[Any]:
    """The facts of rows. One that cannot be decoded is left out if ``look_up`` returns None for it."""
    for row in rows:
        fact = look_up(row.label, partial(getattr, row, "fact"))
        if fact is not None:
            yield fact


def readable_facts(rows: Iterable[Row]) -> list[Any]:
    """The facts of rows, for a page that only shows them: one that cannot be decoded is left out."""
    return list(facts_of(rows, look_up_or_none))


def first_fact(rows: Iterable[Row]) -> Any:
    """The first of these facts, for a page that does without; None where there is none that can be decoded."""
    return next(facts_of(rows, look_up_or_none), None)


def readable_rows(rows: Iterable[AnyRow]) -> list[tuple[AnyRow, Any]]:
    """Rows with their facts, likewise."""
    decoded = [(row, look_up_or_none(row.label, partial(getattr, row, "fact"))) for row in rows]
    return [(row, fact) for row, fact in decoded if fact is not None]
