"""Read the facts of this box, all that an operation may look at."""

from __future__ import annotations

from appliance.disks import inventory
from appliance.errors import Failed
from appliance.facts import Facts, PoolProperties
from appliance.shares import accounts, smb
from appliance.zfs import properties, status


def pool_properties() -> tuple[PoolProperties, ...]:
    """What is set on the pools; nothing where that cannot be read, which must not keep other changes from being made."""
    try:
        return properties.read()
    except Failed:
        return ()


def read_facts() -> Facts:
    """Everything, now. Raises Failed where a tool does not answer; a missing ZFS module is a fact, not an error."""
    if not status.loaded():
        return Facts(disks=inventory.read(()), accounts=accounts.read(), zfs="missing", shares=smb.configured())
    pools = status.read_pools()
    return Facts(
        pools,
        status.read_datasets(),
        inventory.read(pools),
        accounts.read(),
        shares=smb.configured(),
        properties=pool_properties(),
    )
