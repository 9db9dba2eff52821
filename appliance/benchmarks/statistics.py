"""Medians, spreads and changes of repeated runs. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

NOTABLE = 3.0  # per cent between the medians: less would not be noticed
# What a comparison of two cases comes to: clear, or why not. One run alone has no spread to hold against another's.
Difference = Literal["clear", "single", "overlap", "near"]


@dataclass(frozen=True)
class Summary:
    """Of the runs that count: the middle one, and the least and the most."""

    median: float
    least: float
    most: float
    count: int

    @property
    def spread(self) -> float:
        """How far apart the runs lie, in per cent of the median."""
        return (self.most - self.least) / self.median * 100 if self.median else 0.0

    def apart_from(self, other: Summary) -> bool:
        """Whether their runs do not overlap: only then is a difference more than chance with so few runs."""
        return find_difference(self, other) in {"clear", "near"}


def find_difference(now: Summary, before: Summary) -> Difference:
    """Whether one case is better or worse than another: only where all runs lie apart and the medians differ notably.

    Every sentence, every mark in a table and every comparison goes by this.
    """
    if min(now.count, before.count) < 2:
        return "single"
    if now.least <= before.most and before.least <= now.most:
        return "overlap"
    percent = percent_change(now.median, before.median)
    return "clear" if percent is not None and abs(percent) >= NOTABLE else "near"


def summarize_values(values: Iterable[float]) -> Summary | None:
    """None where no run counts."""
    found = sorted(values)
    return Summary(statistics.median(found), found[0], found[-1], len(found)) if found else None


def percent_change(now: float, before: float) -> float | None:
    """In per cent of ``before``; None where that is nothing."""
    return (now - before) / before * 100 if before else None


def change_text(percent: float | None) -> str:
    """``+7.6 %``, ``−30 %``: three figures, and a true minus sign."""
    if percent is None:
        return ""
    places = 1 if abs(percent) < 99.95 else 0
    text = f"{abs(percent):.{places}f}"
    return f"{'−' if percent < 0 and float(text) else '+' if float(text) else '±'}{text} %"


def find_outlier(values: dict[str, float], *, share: float = 0.8) -> str:
    """The one whose value lies below ``share`` of the others' median; empty where there is none or they are fewer than 3."""
    if len(values) < 3:
        return ""
    slowest = min(values, key=lambda name: values[name])
    others = statistics.median(value for name, value in values.items() if name != slowest)
    return slowest if values[slowest] < share * others else ""
