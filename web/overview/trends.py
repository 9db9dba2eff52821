"""How full each pool was over a year, as a line, and when it will be full."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta

import msgspec
from django.db.models import Q

from web.alerts.models import PoolDay
from web.alerts.pool_usage import WEEKS, space_of
from web.inventory.pool_cards import PoolCard

YEAR, EVERY = 366, 6  # days
WIDTH, HEIGHT = 320, 40


class Trend(msgspec.Struct, frozen=True):
    """``points``: an SVG polyline in a box of WIDTH by HEIGHT, from empty at the bottom to full at the top; empty where
    less than two weeks are known. ``forecast``: when it will be full, empty where it does not grow."""

    points: str = ""
    since: date | None = None
    percent_then: int = 0
    forecast: str = ""
    width: int = WIDTH
    height: int = HEIGHT


def pool_trends(cards: Iterable[PoolCard], now: datetime) -> dict[str, Trend]:
    """By the pool's guid. One query."""
    cards = list(cards)
    today = now.date()
    wanted = Q(day__in=[today - timedelta(days=back) for back in range(0, YEAR, EVERY)]) | Q(day__gt=today - WEEKS)
    history: dict[str, list[PoolDay]] = {card.key: [] for card in cards}
    for row in PoolDay.objects.filter(wanted, day__lte=today, guid__in=history):
        history[row.guid].append(row)
    return {card.key: trend_of(card, history[card.key], now) for card in cards}


def trend_of(card: PoolCard, rows: list[PoolDay], now: datetime) -> Trend:
    """The line of every sixth day of a year, and a forecast by each day of the last weeks."""
    late = [one for one in rows if one.day > now.date() - WEEKS]
    moments = [(datetime.combine(one.day, datetime.min.time(), now.tzinfo), one.used) for one in late]
    forecast = space_of(card.pool, card.used, card.free, moments).forecast_text if card.total else ""
    days = [one for one in rows if not (now.date() - one.day).days % EVERY]
    return draw_trend([(one.day, one.used / one.total if one.total else 0.0) for one in days], forecast)


def draw_trend(days: list[tuple[date, float]], forecast: str) -> Trend:
    """The line of one pool; ``days`` in their order, each with the share that was used."""
    if len(days) < 3:
        return Trend(forecast=forecast)
    first = days[0][0]
    long = (days[-1][0] - first).days
    points = [((day - first).days * WIDTH / long, HEIGHT - min(used, 1.0) * HEIGHT) for day, used in days]
    text = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
    return Trend(text, first, int(days[0][1] * 100), forecast)
