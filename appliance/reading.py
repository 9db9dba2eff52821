"""Read the facts of this box, all that an operation may look at."""

from __future__ import annotations

from collections.abc import Iterable

from appliance.disks import inventory
from appliance.errors import Failed
from appliance.facts import Dataset, Facts, Pool
from appliance.shares import accounts
from appliance.zfs import status


def read_facts() -> Facts:
    """Everything, now. Raises Failed where a tool does not answer; a missing ZFS module is a fact, not an error."""
    if not status.loaded():
        return Facts(disks=inventory.read(()), accounts=accounts.read(), zfs="missing")
    pools = status.read_pools()
    return Facts(pools, datasets(pools), inventory.read(pools), accounts.read())


def datasets(pools: Iterable[Pool]) -> tuple[Dataset, ...]:
    """The datasets. A pool that has stopped may keep them from being listed; it has to be possible to start it again."""
    try:
        return status.read_datasets()
    except Failed:
        if any(pool.state == "SUSPENDED" for pool in pools):
            return ()
        raise
