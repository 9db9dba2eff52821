"""Read the facts of this box, all that an operation may look at."""

from __future__ import annotations

from collections.abc import Iterable

from appliance.backups.pairing.receivers import read_known
from appliance.backups.remote import settings
from appliance.disks import inventory
from appliance.errors import Failed
from appliance.facts.box import Facts, Pool, PoolProperties
from appliance.facts.datasets import Dataset
from appliance.imports.settings import read_imports
from appliance.pools import properties
from appliance.shares import publish
from appliance.system import accounts
from appliance.zfs import status


def pool_properties() -> tuple[PoolProperties, ...]:
    """What is set on the pools; nothing where that cannot be read, which must not keep
    other changes from being made."""
    try:
        return properties.read_properties()
    except Failed:
        return ()


def read_facts() -> Facts:
    """Everything, now. Raises Failed where a tool does not answer; a missing ZFS module is a fact, not an error."""
    if not status.is_module_loaded():
        return Facts(
            disks=inventory.read_disks(()),
            accounts=accounts.read_accounts(),
            groups=accounts.read_groups(),
            zfs="missing",
            shares=publish.configured_shares(),
            smb_policy=publish.smb_policy(),
            remotes=settings.read_remotes(),
            receivers=read_known(),
            imports=read_imports(),
        )
    pools = status.read_pools()
    return Facts(
        pools,
        datasets(pools),
        inventory.read_disks(pools),
        accounts.read_accounts(),
        groups=accounts.read_groups(),
        shares=publish.configured_shares(),
        smb_policy=publish.smb_policy(),
        properties=pool_properties(),
        remotes=settings.read_remotes(),
        receivers=read_known(),
        imports=read_imports(),
    )


def datasets(pools: Iterable[Pool]) -> tuple[Dataset, ...]:
    """The datasets. A pool that has stopped may keep them from being listed; it has to be
    possible to start it again."""
    try:
        return status.read_datasets()
    except Failed:
        if any(pool.state == "SUSPENDED" for pool in pools):
            return ()
        raise
