"""A result from another computer beside what pool and protocol do in the box itself."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from django.utils import timezone
from django.utils.translation import gettext

from appliance.benchmarks.bottleneck import Bottleneck, judge
from appliance.benchmarks.client_report import ClientFigures, LoopbackFigures
from appliance.benchmarks.results import span_text, value_text
from appliance.benchmarks.workloads import Unit
from web.benchmarks.client_models import ClientRunRow
from web.benchmarks.models import CaseRow
from web.translation import lazy_text, text_of

RECENT = timedelta(days=60)
MOST_CASES = 60
PARTS = (
    (lazy_text("In the pool itself"), "pool"),
    (lazy_text("Over the protocol, in the box"), "protocol"),
    (lazy_text("Network alone"), "network"),
    (lazy_text("Other computer by itself"), "client"),
)


class ResultLine(msgspec.Struct, frozen=True):
    """A line of the table: a part, what it does in each direction, and whether it is the limit of one."""

    name: str
    write: str
    read: str
    limits: bool = False


def find_loopback(row: ClientRunRow) -> LoopbackFigures:
    """The newest figures of the run's pool and protocol that benchmarks in the box have measured."""
    cases = CaseRow.objects.filter(
        state=CaseRow.State.DONE, finished__gt=timezone.now() - RECENT, spec__contains='"where":"dataset"'
    )
    found: dict[str, float] = {}
    for one in cases.order_by("-finished").prefetch_related("results")[:MOST_CASES]:
        case, summary = one.case, one.measured.summary
        if case.pool != row.pool or case.protocol not in {"", row.protocol} or not summary:
            continue
        if case.workload in {"seq-write", "seq-read"}:
            name = f"{'protocol' if case.protocol else 'pool'}_{case.workload.removeprefix('seq-')}"
            found.setdefault(name, summary.median)
    return LoopbackFigures(**found)


def verdicts_of(row: ClientRunRow) -> tuple[Bottleneck, ...]:
    figures = row.figures
    return judge(figures, find_loopback(row), cached=row.cached) if figures else ()


def result_lines(verdicts: tuple[Bottleneck, ...], figures: ClientFigures) -> list[ResultLine]:
    """The table of a result: each part alone, then what the other computer reached."""
    by_direction = {one.direction: one for one in verdicts}

    def ceiling(direction: str, part: str) -> str:
        verdict = by_direction.get(direction)  # type: ignore[call-overload]  # either is a Direction
        value = getattr(verdict.ceilings, part) if verdict else None
        return rate(value) if value else gettext("not measured")

    lines = [
        ResultLine(name, ceiling("write", part), ceiling("read", part), any(part in one.parts for one in verdicts))
        for name, part in PARTS
    ]
    return [*lines, ResultLine(gettext("Shared folder, from there"), spread(figures, "write"), spread(figures, "read"))]


def rate(value: float) -> str:
    return text_of(value_text(value, "B/s"))


def spread(figures: ClientFigures, name: str, unit: Unit = "B/s") -> str:
    """The median, and the range where there were several runs."""
    summary = figures.summary(name)
    if not summary:
        return gettext("not measured")
    text = text_of(value_text(summary.median, unit))
    return f"{text} ({text_of(span_text(summary.least, summary.most, unit))})" if summary.count > 1 else text
