"""Charts of results as numbers for SVG: bars, heat maps, trends and the live graph."""

from __future__ import annotations

import msgspec
from django.utils.translation import gettext

from appliance.benchmarks.conclusions import GIGABIT
from appliance.benchmarks.results import Block, CaseFigures

WIDTH, HEIGHT = 200, 16
SHADES = 5


class Bar(msgspec.Struct, frozen=True):
    """A bar in units of the drawing; ``gigabit`` is the position of a gigabit network's speed, 0 if not drawn."""

    length: float
    least: float
    most: float
    gigabit: float = 0.0
    width = WIDTH
    height = HEIGHT


def draw_bar(row: CaseFigures, block: Block) -> Bar | None:
    """The bar of a row. All bars of a block share one scale. None if no run counts."""
    if not row.summary or not block.most:
        return None
    scale = WIDTH / block.most
    found = row.summary
    line = GIGABIT * scale if block.workload in {"seq-read", "seq-write"} and block.most > GIGABIT else 0.0
    return Bar(
        round(found.median * scale, 1), round(found.least * scale, 1), round(found.most * scale, 1), round(line, 1)
    )


LIVE_WIDTH, LIVE_HEIGHT = 600, 80


class LiveGraph(msgspec.Struct, frozen=True):
    """I/O of the disks of the running case: two lines in units of the drawing, and the top of the scale."""

    read: str
    written: str
    top: int
    width = LIVE_WIDTH
    height = LIVE_HEIGHT


def draw_live_graph(speeds: list[list[int]]) -> LiveGraph | None:
    """The graph of pairs of bytes a second, the newest last and at the right. None with fewer than two."""
    top = max((max(pair) for pair in speeds), default=0)
    if len(speeds) < 2 or not top:
        return None
    read, written = (polyline_points([pair[at] for pair in speeds], top, LIVE_WIDTH, LIVE_HEIGHT) for at in (0, 1))
    return LiveGraph(read, written, top)


def polyline_points(values: list[float] | list[int], top: float, width: int, height: int) -> str:
    """Points of a line through the values from left to right; ``top`` is the upper edge, 0 the lower one."""
    step = width / max(len(values) - 1, 1)
    return " ".join(f"{at * step:.1f},{height - value * (height - 2) / top - 1:.1f}" for at, value in enumerate(values))


class FigureTrend(msgspec.Struct, frozen=True):
    """One case over repeated sweeps, the oldest first; ``style`` is the number of its line style."""

    name: str
    values: tuple[str, ...]
    line: str
    style: int


def draw_trends(rows: list[list[CaseFigures | None]], most: float) -> list[FigureTrend]:
    """A line for each list of rows of the same case. Rows that do not count are skipped."""
    found = []
    for number, one in enumerate(rows):
        there = [(at, row) for at, row in enumerate(one) if row and row.summary]
        step = WIDE / max(len(one) - 1, 1)
        line = " ".join(
            f"{at * step:.1f},{TALL - row.summary.median * (TALL - 2) / most - 1:.1f}"
            for at, row in there
            if row.summary
        )
        name = next(row.name for row in one if row)
        found.append(FigureTrend(name, tuple(row.value if row else "" for row in one), line, number % STYLES + 1))
    return found


WIDE, TALL, STYLES = 600, 160, 6


class HeatCell(msgspec.Struct, frozen=True):
    """A cell of a heat map: its value as text, and its shade from 1 to SHADES; 0 if no run counts."""

    text: str
    shade: int = 0


class HeatMap(msgspec.Struct, frozen=True):
    """A heat map of two settings: the first one down, the second across."""

    down: str
    across: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, tuple[HeatCell, ...]], ...]


def draw_heat_map(block: Block) -> HeatMap | None:
    """The heat map of a block, or None unless exactly two settings differ, each with at least two values."""
    if len(block.columns) != 2:
        return None
    firsts, seconds = (list(dict.fromkeys(row.settings[at] for row in block.rows)) for at in (0, 1))
    if len(firsts) < 2 or len(seconds) < 2:
        return None
    found = {row.settings: row for row in block.rows}
    medians = [row.summary.median for row in block.rows if row.summary]
    if not medians:
        return None

    def cell(one: str, other: str) -> HeatCell:
        row = found.get((one, other))
        if row is None or row.summary is None:
            return HeatCell(gettext("does not count") if row and row.measured.state in {"done", "failed"} else "")
        span = max(medians) - min(medians)
        part = (row.summary.median - min(medians)) / span if span else 1.0
        return HeatCell(row.value, 1 + round((part if block.kind.more_is_better else 1 - part) * (SHADES - 1)))

    lines = tuple((one, tuple(cell(one, other) for other in seconds)) for one in firsts)
    return HeatMap(block.columns[0], block.columns[1], tuple(seconds), lines)
