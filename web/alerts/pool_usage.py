"""How full each pool is, by its top dataset, and a forecast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from appliance.alerts.fault import Space, days_until
from appliance.facts.box import Pool
from appliance.pools import fullness
from web.alerts.models import PoolDay
from web.inventory import store
from web.inventory.fact_row import LookUp, look_up_strictly

WEEKS = timedelta(days=42)


def usage_of_pools(pools: Iterable[Pool], now: datetime, look_up: LookUp = look_up_strictly) -> Iterator[Space]:
    """One for each pool whose size is known. Two queries."""
    pools = list(pools)
    roots = store.top_datasets((pool.name for pool in pools), look_up)
    history: dict[str, list[tuple[datetime, int]]] = {}
    days = PoolDay.objects.filter(day__gt=(now - WEEKS).date(), day__lte=now.date())
    for row in days.filter(guid__in=[str(pool.guid) for pool in pools]):
        history.setdefault(row.guid, []).append((datetime.combine(row.day, datetime.min.time(), now.tzinfo), row.used))
    for pool in pools:
        if (root := roots.get(pool.name)) and root.used + root.available:
            yield space_of(pool, root.used, root.available, history.get(str(pool.guid), []))


def space_of(pool: Pool, used: int, available: int, days: list[tuple[datetime, int]]) -> Space:
    """How full one pool is, with a forecast by its last weeks: moments and the bytes that were used."""
    total = used + available
    to_notice, to_warning = (days_until(days, total, mark) for mark in (fullness.NOTICE, fullness.WARNING))
    return Space(pool.guid, pool.name, fullness.percent_used(used, total), available, to_warning, to_notice)
