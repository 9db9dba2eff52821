"""Medians, spreads and changes of repeated runs. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Literal

import msgspec

NOTABLE = 3.0  # per cent between the medians; nobody notices less
# Result of comparing two cases: clear, or why not. A single run has no spread to compare.
Difference = Literal["clear", "single", "overlap", "near"]


class Summary(msgspec.Struct, frozen=True):
    """Median, minimum and maximum of the runs that count."""

    median: float
    least: float
    most: float
    count: int

    @property
    def spread(self) -> float:
        """Range of the runs in per cent of the median."""
        return (self.most - self.least) / self.median * 100 if self.median else 0.0


def find_difference(now: Summary, before: Summary) -> Difference:
    """Whether two cases differ clearly: their runs do not overlap and their medians differ notably.

    All conclusions, marks in tables and comparisons use this rule.
    """
    if min(now.count, before.count) < 2:
        return "single"
    if now.least <= before.most and before.least <= now.most:
        return "overlap"
    percent = percent_change(now.median, before.median)
    return "clear" if percent is not None and abs(percent) >= NOTABLE else "near"


def summarize_values(values: Iterable[float]) -> Summary | None:
    """Summary of the values; None if there are none."""
    found = sorted(values)
    return Summary(statistics.median(found), found[0], found[-1], len(found)) if found else None


def percent_change(now: float, before: float) -> float | None:
    """Change in per cent of ``before``; None if that is 0."""
    return (now - before) / before * 100 if before else None


def change_text(percent: float | None) -> str:
    """The change as text, ``+7.6 %`` or ``−30 %``: three digits, and a true minus sign."""
    if percent is None:
        return ""
    places = 1 if abs(percent) < 99.95 else 0
    text = f"{abs(percent):.{places}f}"
    return f"{'−' if percent < 0 and float(text) else '+' if float(text) else '±'}{text} %"


def find_outlier(values: dict[str, float], *, share: float = 0.8) -> str:
    """The name whose value is below ``share`` of the others' median; empty if none is, or with fewer than 3 values."""
    if len(values) < 3:
        return ""
    slowest = min(values, key=lambda name: values[name])
    others = statistics.median(value for name, value in values.items() if name != slowest)
    return slowest if values[slowest] < share * others else ""
