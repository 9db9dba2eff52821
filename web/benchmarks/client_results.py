"""A result from another computer beside what pool and protocol do in the box itself."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from django.db.models import prefetch_related_objects
from django.utils import timezone
from django.utils.translation import gettext
from msgspec.structs import fields

from appliance.benchmarks.bottleneck import Bottleneck, judge
from appliance.benchmarks.case import Case
from appliance.benchmarks.client_report import ClientFigures, LoopbackFigures
from appliance.benchmarks.layout_results import lacks_read_ahead
from appliance.benchmarks.results import span_text, value_text
from appliance.benchmarks.workloads import Unit
from web.benchmarks.client_models import ClientRunRow
from web.benchmarks.models import CaseRow
from web.translation import lazy_text, text_of

RECENT, SHORTLY = timedelta(days=60), timedelta(days=1)  # before and after the end of a run
MOST_CASES = 60
# Settings of a benchmark that have to be the usual ones, so that it shows what a share can do.
OF_SHARE = {
    "recordsize",
    "compression",
    "dedup",
    "sync",
    "volblocksize",
    "writers",
    "compressible",
    "zeros",
    "gentle",
    "sample",
}
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


def has_share_settings(case: Case) -> bool:
    """Whether a case was measured with the settings of an ordinary share, so that its result applies to one."""
    return not lacks_read_ahead(case) and all(
        getattr(case, field.name) == field.default for field in fields(Case) if field.name in OF_SHARE
    )


def find_loopback(row: ClientRunRow) -> LoopbackFigures:
    """The figures of the run's pool and protocol that benchmarks in the box have measured nearest to its end.

    A later benchmark must not change what a stored result says, so only those before it and shortly after it count.
    """
    end = row.finished or timezone.now()
    around = CaseRow.objects.filter(
        workload__in=("seq-write", "seq-read"),
        pool=row.pool,
        state=CaseRow.State.DONE,
        finished__gt=end - RECENT,
        finished__lt=end + SHORTLY,
    )
    known = ((one.case, one) for one in around)
    usual = [
        (case, one)
        for case, one in known
        if case.where == "dataset" and case.protocol in {"", row.protocol} and has_share_settings(case)
    ]
    nearest = sorted(usual, key=lambda pair: abs((pair[1].finished or end) - end))[:MOST_CASES]
    prefetch_related_objects([one for _case, one in nearest], "results")
    found: dict[str, float] = {}
    for case, one in nearest:
        if summary := one.measured.summary:
            name = f"{'protocol' if case.protocol else 'pool'}_{case.workload.removeprefix('seq-')}"
            found.setdefault(name, summary.median)
    return LoopbackFigures(**found)


def is_final(row: ClientRunRow) -> bool:
    """Whether the run ended so long ago that a benchmark in the box, made now, would not count for it."""
    return row.finished is not None and timezone.now() >= row.finished + SHORTLY


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
