"""Read a pool's history through the agent when a page asks: only root can."""

from __future__ import annotations

from django.db import transaction

from appliance import agent_client
from appliance.pools import history
from web.inventory import store
from web.inventory.models import HistoryLine, PoolRow
from workers.celery import app
from workers.collectors import update_source


@app.task(name="workers.read_history")
def collect_history(pool_key: str) -> None:
    """Store the pool's latest history."""
    row = PoolRow.objects.filter(key=pool_key).first()
    if row is None:
        HistoryLine.objects.filter(pool_key=pool_key).delete()
        return

    def read() -> bool:
        answer = agent_client.send_request({"verb": "read-history", "pool": row.name}, silence=180)
        found = list(history.parse_entries((answer.get("facts") or {}).get("lines") or ()))
        known = list(HistoryLine.objects.filter(pool_key=pool_key).order_by("number").values_list("at", "kind", "text"))
        if known == [(entry.at, entry.kind, entry.text) for entry in found]:
            return False
        with transaction.atomic(using="inventory"):
            HistoryLine.objects.filter(pool_key=pool_key).delete()
            HistoryLine.objects.bulk_create(
                [
                    HistoryLine(pool_key=pool_key, number=number, at=one.at, kind=one.kind, text=one.text, by=one.by)
                    for number, one in enumerate(found)
                ],
                batch_size=500,
            )
        return True

    update_source(store.history_source(pool_key), read)
