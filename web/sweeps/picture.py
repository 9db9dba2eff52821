"""Rows of results drawn as bars: how long the median is, and where the runs lie. Numbers for an SVG."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.sweeps.meaning import GIGABIT
from appliance.sweeps.table import Block, Row

WIDTH, HEIGHT = 200, 16


@dataclass(frozen=True)
class Bar:
    """In the units of the drawing; ``gigabit`` is where a gigabit network ends, 0 where that is out of the picture."""

    length: float
    least: float
    most: float
    gigabit: float = 0.0
    width = WIDTH
    height = HEIGHT


def bar(row: Row, block: Block) -> Bar | None:
    """All bars of a block have one scale. None where nothing counts."""
    if not row.summary or not block.most:
        return None
    scale = WIDTH / block.most
    found = row.summary
    line = GIGABIT * scale if block.workload in {"seq-read", "seq-write"} and block.most > GIGABIT else 0.0
    return Bar(
        round(found.median * scale, 1), round(found.least * scale, 1), round(found.most * scale, 1), round(line, 1)
    )
