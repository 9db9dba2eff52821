"""A drawing of what a schedule keeps: a timeline for each grain, with a logarithmic scale of age."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

import msgspec
from django.utils.formats import date_format
from django.utils.translation import gettext

from appliance.snapshot_names import GRAINS
from web.translation import lazy_text

WIDTH = 320  # in units of the drawing: pixels if there is room
EDGE = 4
LANE = 30
HOURS = (
    (lazy_text("1 day"), 24),
    (lazy_text("1 week"), 168),
    (lazy_text("1 month"), 730),
    (lazy_text("1 year"), 8766),
    (lazy_text("10 years"), 87660),
)
MARGIN = 20  # that labels of the scale need on either side


class Lane(msgspec.Struct, frozen=True):
    """The line of one grain: its label, and the positions of its snapshots."""

    words: str
    y: int
    marks: tuple[float, ...]


class Drawing(msgspec.Struct, frozen=True):
    lanes: tuple[Lane, ...]
    ages: tuple[tuple[str, float], ...]  # labels of the scale and their positions
    height: int
    words: str

    width = WIDTH
    right = WIDTH - EDGE


def draw_timeline(kept: Sequence[tuple[datetime, Sequence[str]]], now: datetime) -> Drawing | None:
    """Draw moments with their grains, given newest first; None if there are none."""
    if not kept:
        return None
    oldest = max((now - kept[-1][0]).total_seconds() / 3600, 1.0)

    def x(hours: float) -> float:
        return round(WIDTH - EDGE - math.log1p(max(hours, 0.0)) / math.log1p(oldest) * (WIDTH - 2 * EDGE), 1)

    moments = {grain: [at for at, grains in kept if grain in grains] for grain in GRAINS}
    lanes = tuple(
        Lane(
            f"{len(moments[grain])} {grain}",
            number * LANE,
            tuple(x((now - at).total_seconds() / 3600) for at in moments[grain]),
        )
        for number, grain in enumerate([grain for grain in GRAINS if moments[grain]])
    )
    ages = tuple((words, x(hours)) for words, hours in HOURS if hours <= oldest and x(hours) >= MARGIN)
    counts = ", ".join(lane.words for lane in lanes)
    return Drawing(
        lanes,
        ages,
        len(lanes) * LANE + 16,
        gettext("{counts}, the oldest of {day}").format(counts=counts, day=date_format(kept[-1][0], "d F Y")),
    )
