"""The base of what is done to a whole pool, by its GUID."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance import names
from appliance.errors import Reason
from appliance.facts import vdev_state
from appliance.facts.box import Facts, Pool
from appliance.facts.pool_reasons import missing_pool, stopped_pool
from appliance.message import Message
from appliance.operation import Operation
from appliance.pools.import_reasons import pool_guid


class PoolOperation(Operation):
    """Base of what is done to a whole pool that is in use here: named for people, told apart by its guid."""

    pool: str
    guid: int

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)
        pool_guid(self.guid)

    @property
    def subject(self) -> str:
        return self.pool

    def locks(self) -> tuple[str, ...]:
        return (self.pool, str(self.guid))

    def find_pool(self, facts: Facts) -> Pool | None:
        """The very pool that was meant."""
        pool = facts.pool_of(self.guid)
        return pool if pool and pool.name == self.pool else None

    def check(self, facts: Facts) -> Iterator[Reason]:
        pool = self.find_pool(facts)
        if pool is None:
            yield missing_pool(self.pool)
        elif pool.state == "SUSPENDED":
            yield stopped_pool(self.pool)

    def identity(self) -> dict[str, object]:
        return {"operation": msgspec.to_builtins(self)}


def pool_trouble(pool: Pool) -> str:
    """Why the disks of a pool cannot be changed now; empty where they can."""
    if pool.state == "SUSPENDED":
        return Message("{pool} has stopped because its disks do not answer. Reconnect them first.", pool=pool.name)
    if pool.rebuilding:
        return Message("{pool} is rebuilding. Wait until the rebuild has ended.", pool=pool.name)
    busy = next((work for work in pool.work if work.kind in {"expand", "remove"} and work.under_way), None)
    if busy:
        doing = Message("is being expanded") if busy.kind == "expand" else Message("is giving up a disk")
        return Message("{pool} {doing}. Wait until that has ended.", pool=pool.name, doing=doing)
    if any(device.state not in vdev_state.WORKING for device in pool.devices() if device.role == "normal"):
        return Message("A disk does not work. Replace it first.")
    return ""
