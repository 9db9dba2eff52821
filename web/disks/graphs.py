"""Graphs of a disk's values over a year: those that its verdict uses, and every other figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import msgspec

from web.alerts.models import DiskDay
from web.disks.smart_history import FIGURE
from web.translation import lazy_text

NAMES = {
    "temperature": lazy_text("Temperature, °C"),
    "latency": lazy_text("Time for a request, ms"),
    "pending": lazy_text("Sectors that cannot be read (197)"),
    "uncorrectable": lazy_text("Sectors that could not be read in a test (198)"),
    "reallocated": lazy_text("Sectors replaced by spare ones (5)"),
    "reported": lazy_text("Errors that could not be corrected (187)"),
    "timeouts": lazy_text("Commands not answered in time (188)"),
    "crc": lazy_text("Transfers damaged on the way (199)"),
    "media_errors": lazy_text("Memory errors"),
    "spare": lazy_text("Spare memory left, %"),
    "used": lazy_text("Of its promised life used, %"),
    "grown_defects": lazy_text("Sectors that went bad since it was made"),
    "uncorrected": lazy_text("Errors that could not be corrected"),
}
WIDTH, HEIGHT = 320, 72
BOX = f"0 0 {WIDTH} {HEIGHT}"


class Graph(msgspec.Struct, frozen=True):
    """One value over time. ``points``: an SVG polyline of each day's maximum, in a box of WIDTH by HEIGHT."""

    name: str
    title: str
    now: int
    least: int
    most: int
    points: str
    first: date
    accepted: int | None = None


class Figure(msgspec.Struct, frozen=True):
    """Another current figure. ``rating`` and ``limit`` are the maker's: at the limit the disk has failed."""

    name: str
    text: str
    rating: int | None
    limit: int | None
    graph: Graph | None


def draw_graphs(days: Sequence[DiskDay], accepted: Mapping[str, int]) -> list[Graph]:
    found = (draw_graph(days, name, title, accepted.get(name)) for name, title in NAMES.items())
    return [one for one in found if one]


def describe_figures(days: Sequence[DiskDay], now: Sequence[Sequence[Any]]) -> list[Figure]:
    """The figures of a row, each stored as ``[name, number, text, rating, limit]``."""
    return [
        Figure(name, text, rating, limit, draw_graph(days, FIGURE + name, name))
        for name, _number, text, rating, limit in now
    ]


def draw_graph(days: Sequence[DiskDay], name: str, title: str, accepted: int | None = None) -> Graph | None:
    """The graph of one value; None where it was never reported."""
    told = [(row.day, row.values[name]) for row in days if name in row.values]
    if not told:
        return None
    least, most = min(value[0] for _day, value in told), max(value[1] for _day, value in told)
    points = draw_line([day for day, _value in told], [value[1] for _day, value in told], least, most)
    return Graph(name, title, told[-1][1][2], least, most, points, told[0][0], accepted)


def draw_line(days: list[date], values: list[int], least: int, most: int) -> str:
    """The points from left to right, spaced by days; a single day is a level line."""
    long, high = max((days[-1] - days[0]).days, 1), max(most - least, 1)
    points = [
        ((day - days[0]).days * WIDTH / long, HEIGHT - 4 - (value - least) * (HEIGHT - 8) / high)
        for day, value in zip(days, values, strict=True)
    ]
    if len(points) == 1:
        points.append((WIDTH, points[0][1]))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
