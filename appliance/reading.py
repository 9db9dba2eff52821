"""Read the facts of this box, all that an operation may look at."""

from __future__ import annotations

from appliance.disks import inventory
from appliance.facts import Facts
from appliance.shares import accounts, smb
from appliance.zfs import status


def read_facts() -> Facts:
    """Everything, now. Raises Failed where a tool does not answer; a missing ZFS module is a fact, not an error."""
    if not status.loaded():
        return Facts(disks=inventory.read(()), accounts=accounts.read(), zfs="missing", shares=smb.configured())
    pools = status.read_pools()
    return Facts(pools, status.read_datasets(), inventory.read(pools), accounts.read(), shares=smb.configured())
