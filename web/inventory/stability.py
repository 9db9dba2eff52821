"""When each pool last showed a sign of trouble: in what was read of it, or in an event.
The rule is ``verdict.is_settled``."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Max, Q

from appliance.facts.box import Pool
from appliance.pools import health
from web.inventory import store
from web.inventory.fact_row import OddRow
from web.inventory.models import Event, PoolRow, Source

OF_TROUBLE = Q(kind__startswith="ereport.fs.zfs.") | Q(
    kind__in=("resource.fs.zfs.removed", "resource.fs.zfs.statechange")
)


def replace_pools(found: Iterable[Pool], now: datetime) -> bool:
    """Make the rows say what was found; whether anything changed, also whether a pool has come to rest meanwhile."""
    pools, before = list(found), {row.key: row for row in PoolRow.objects.all()}
    rested = unsettled_pools(before.values(), last_read()) - unsettled_pools(before.values(), now)

    def troubled(pool: Pool) -> datetime | None:
        old = before.get(str(pool.guid))
        return now if health.shows_trouble(pool, known_fact(old)) else old.troubled if old else None

    return store.replace(PoolRow, pools, lambda pool: str(pool.guid), troubled=troubled) or bool(rested)


def known_fact(row: PoolRow | None) -> Pool | None:
    """What was read of a pool before; None also where it cannot be decoded, so that the new reading replaces it."""
    try:
        return row.fact if row else None
    except OddRow:
        return None


def last_read() -> datetime | None:
    return Source.objects.filter(name="pools").values_list("checked", flat=True).first()


def unsettled_pools(rows: Iterable[PoolRow], read: datetime | None) -> set[str]:
    """Keys of the pools of which nothing calm can be said by what was read at that time. One query."""
    events = Event.objects.filter(OF_TROUBLE, source="zed").order_by()
    last = dict(events.values_list("subject").annotate(Max("received")))
    return {row.key for row in rows if not health.is_settled(read, row.troubled, last.get(row.name))}
