"""How full each pool was over a year, as a line, and when it will be full."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from appliance.facts.box import Pool
from web.alerts.models import PoolDay
from web.alerts.pool_usage import usage_of_pools

YEAR, EVERY = 366, 6  # days
WIDTH, HEIGHT = 320, 40
MOST_POINTS = YEAR // EVERY + 1


@dataclass(frozen=True)
class Trend:
    """``points``: an SVG polyline in a box of WIDTH by HEIGHT, from empty at the bottom to full at the top; empty where
    less than two weeks are known. ``forecast``: when it will be full, empty where it does not grow."""

    points: str = ""
    since: date | None = None
    percent_then: int = 0
    forecast: str = ""
    width: int = WIDTH
    height: int = HEIGHT


def pool_trends(pools: Iterable[Pool], now: datetime) -> dict[str, Trend]:
    """By the pool's guid. Three queries."""
    pools = list(pools)
    wanted = [now.date() - timedelta(days=back) for back in range(0, YEAR, EVERY)]
    keys = [str(pool.guid) for pool in pools]
    history: dict[str, list[tuple[date, float]]] = {key: [] for key in keys}
    for row in PoolDay.objects.filter(guid__in=keys, day__in=wanted):
        history[row.guid].append((row.day, row.used / row.total if row.total else 0.0))
    forecasts = {str(space.guid): space.forecast_text for space in usage_of_pools(pools, now)}
    return {key: draw_trend(days, forecasts.get(key, "")) for key, days in history.items()}


def draw_trend(days: list[tuple[date, float]], forecast: str) -> Trend:
    """The line of one pool; ``days`` in their order, each with the share that was used."""
    if len(days) < 3:
        return Trend(forecast=forecast)
    first = days[0][0]
    long = (days[-1][0] - first).days
    points = [((day - first).days * WIDTH / long, HEIGHT - min(used, 1.0) * HEIGHT) for day, used in days]
    text = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
    return Trend(text, first, int(days[0][1] * 100), forecast)
