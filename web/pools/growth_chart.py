"""Five years of a pool as SVG lines: how full it is if nothing is done, and after each way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
from django.utils.translation import gettext

from appliance.pools.fullness import NOTICE
from appliance.pools.growth_forecast import FIVE_YEARS, Forecast, Pace, forecast_way
from appliance.pools.growth_way import GrowthFacts, Way

WIDTH, HEIGHT = 600, 160
BOX = f"0 0 {WIDTH} {HEIGHT}"
MARK = HEIGHT - HEIGHT * NOTICE / 100  # where 80 % is
NOW = 1  # the style of the line without a change; each way has the next


class Styled(Protocol):
    """A way with the number of its line."""

    @property
    def way(self) -> Way: ...

    @property
    def style(self) -> int: ...


class Line(msgspec.Struct, frozen=True):
    """``points``: an SVG polyline from today to five years ahead, from empty at the bottom to full at the top."""

    name: str
    points: str
    style: int


def draw_chart(facts: GrowthFacts, offers: Sequence[Styled], pace: Pace) -> list[Line]:
    """The line of the pool as it is, then one for each way."""
    lines = [Line(gettext("As it is"), draw_line(forecast_way(facts.used, facts.total, pace)), NOW)]
    for offer in offers:
        way = offer.way
        forecast = forecast_way(facts.used, way.total, pace, freed=way.freed, share=way.share)
        lines.append(Line(way.title, draw_line(forecast), offer.style))
    return lines


def draw_line(forecast: Forecast) -> str:
    """Straight until the pool is full or five years are over, then level."""
    end = forecast.days_until(100)
    days = [0, FIVE_YEARS] if end in {None, 0} else [0, end or 0, FIVE_YEARS]
    points = [(day * WIDTH / FIVE_YEARS, HEIGHT - HEIGHT * forecast.share_after(day)) for day in dict.fromkeys(days)]
    return " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
