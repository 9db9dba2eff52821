"""Connected clients of shares: read when a page asks, and again after a connection was closed."""

from __future__ import annotations

import msgspec

from appliance import agent_client
from appliance.shares.connections import Connection
from web.inventory import store
from web.inventory.models import ConnectionRow, Source
from web.inventory.source_names import CONNECTIONS
from workers.celery import app
from workers.collectors import update_source
from workers.throttle import Coalescer


def store_connections() -> bool:
    answer = agent_client.send_request({"verb": "read-connections"}, silence=120).get("facts", [])
    # The first reading is news also without clients: the page that waits for it has to change.
    first = not Source.objects.filter(name=CONNECTIONS, checked__isnull=False).exists()
    return store.replace(ConnectionRow, msgspec.convert(answer, list[Connection]), lambda one: one.key) or first


def update_connections() -> None:
    update_source(CONNECTIONS, store_connections)


reading = Coalescer(update_connections)


@app.task(name="workers.read_connections")
def collect_connections() -> None:
    """Run a reading that begins after this call; simultaneous callers share one."""
    reading.request_run()
