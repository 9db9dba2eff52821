"""Figures of the bench: what was measured, in which unit, and whether that is within what the design promises."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One figure; ``within_budget`` is None where the design sets no bound."""

    name: str
    value: float
    unit: str
    budget: float | None = None
    within_budget: bool | None = None


def result(name: str, value: float, unit: str, budget: float | None = None) -> Result:
    return Result(name, round(value, 3), unit, budget, None if budget is None else value <= budget)


def seconds(act: Callable[[], object], times: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """The median of some runs after a first one. What waits for nothing is measured by the processor's time."""
    act()
    taken = []
    for _ in range(times):
        start = clock()
        act()
        taken.append(clock() - start)
    return sorted(taken)[len(taken) // 2]
