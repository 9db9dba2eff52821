"""Rows of results drawn as bars: how long the median is, and where the runs lie. Numbers for an SVG."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.sweeps.meaning import GIGABIT
from appliance.sweeps.table import Block, Row

WIDTH, HEIGHT = 200, 16
SHADES = 5


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


@dataclass(frozen=True)
class Cell:
    """One place of a heat map: its value in words, and how good it is, from 1 to SHADES; 0 where nothing counts."""

    text: str
    shade: int = 0


@dataclass(frozen=True)
class Heat:
    """Two settings against each other: the first downwards, the second across."""

    down: str
    across: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Cell, ...]], ...]


def heat(block: Block) -> Heat | None:
    """None unless exactly two settings differ, each in at least two ways: anything else is told by the bars."""
    if len(block.columns) != 2:
        return None
    firsts, seconds = (list(dict.fromkeys(row.settings[at] for row in block.rows)) for at in (0, 1))
    if len(firsts) < 2 or len(seconds) < 2:
        return None
    found = {row.settings: row for row in block.rows}
    medians = [row.summary.median for row in block.rows if row.summary]
    if not medians:
        return None

    def cell(one: str, other: str) -> Cell:
        row = found.get((one, other))
        if row is None or row.summary is None:
            return Cell("")
        span = max(medians) - min(medians)
        part = (row.summary.median - min(medians)) / span if span else 1.0
        return Cell(row.value, 1 + round((part if block.kind.more_is_better else 1 - part) * (SHADES - 1)))

    lines = tuple((one, tuple(cell(one, other) for other in seconds)) for one in firsts)
    return Heat(block.columns[0], block.columns[1], tuple(seconds), lines)
