"""The reasons against work on a pool that packages of every kind give: it is not here, or it does not answer."""

from __future__ import annotations

from appliance.errors import Reason


def missing_pool(pool: str) -> Reason:
    """Against changing a pool that is no longer imported."""
    return Reason("pool-missing", "The pool {pool} is not in use here any more.", pool=pool)


def stopped_pool(pool: str) -> Reason:
    """Against asking anything of a pool that is suspended."""
    return Reason(
        "pool-stopped",
        "{pool} has stopped because its disks do not answer. Reconnect them, then start the pool again on its page.",
        pool=pool,
    )
