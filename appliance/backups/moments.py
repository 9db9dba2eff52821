"""The moments as which a copy can come back with the folders below it, and the snapshot of
each folder that belongs to one.

A run of a backup copies only the folders in which something has changed, so hardly any moment is there in all of them,
and the top one may be the oldest. A moment is therefore one of the whole tree: each folder comes back as of its newest
copy up to then. Pure functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from appliance.strict_struct import StrictStruct

MOST = 200  # that can be chosen from


class Kept(NamedTuple):
    """A snapshot that is kept of a copy. ``txg``: its transaction group there;
    ``created``: in seconds since 1970, 0: not known."""

    dataset: str
    short: str
    guid: int
    txg: int
    created: int


class Moment(StrictStruct):
    """``short``: what the snapshots of one run are called, in all folders. ``created``: in seconds since 1970."""

    short: str
    created: int


def list_moments(kept: Collection[Kept], top: str) -> list[Moment]:
    """The newest moments as of which the tree of ``top`` can come back, the newest first.
    As of the first, the newest snapshot of every folder does."""
    dates, order = newest_of(kept), order_of(kept)
    first = min((order[one.short] for one in kept if one.dataset == top), default=len(order))
    newest_first = sorted(order, key=order.__getitem__, reverse=True)
    return [Moment(short=short, created=dates[short][0]) for short in newest_first if order[short] >= first][:MOST]


def choose_snapshots(kept: Collection[Kept], short: str, top: str) -> list[Kept]:
    """Of ``top`` and what lies below it the newest snapshot up to a moment, parents first; none of a dataset that has
    none, or whose parent has none. Empty where that moment is not there."""
    order = order_of(kept)
    upto = order.get(short, -1)
    newest: dict[str, Kept] = {}
    for one in kept:
        if order[one.short] <= upto and (one.dataset not in newest or newest[one.dataset].txg < one.txg):
            newest[one.dataset] = one
    found: dict[str, Kept] = {}
    for name in sorted(newest, key=lambda name: name.split("/")):
        if name == top or name.rpartition("/")[0] in found:
            found[name] = newest[name]
    return list(found.values())


def order_of(kept: Collection[Kept]) -> dict[str, int]:
    """The place of each run in their order, by the name of its snapshots: by date, unless the copies arrived in another
    order or a date is not known. Then a clock was wrong, and what counts is when its last snapshot arrived."""
    newest = newest_of(kept)
    by_date = {short: place for place, short in enumerate(sorted(newest, key=newest.__getitem__))}
    if all(created for created, _txg in newest.values()) and is_order_of_arrival(kept, by_date):
        return by_date
    return {short: place for place, short in enumerate(sorted(newest, key=lambda short: newest[short][::-1]))}


def newest_of(kept: Collection[Kept]) -> dict[str, tuple[int, int]]:
    """When each run made its last snapshot, and in which transaction group that arrived, by
    the name of its snapshots."""
    found: dict[str, tuple[int, int]] = {}
    for one in kept:
        created, txg = found.get(one.short, (0, 0))
        found[one.short] = (max(created, one.created), max(txg, one.txg))
    return found


def is_order_of_arrival(kept: Collection[Kept], order: Mapping[str, int]) -> bool:
    """Whether the snapshots of each dataset arrived in this order of their runs."""
    last: dict[str, int] = {}
    for one in sorted(kept, key=lambda one: one.txg):
        if order[one.short] < last.get(one.dataset, 0):
            return False
        last[one.dataset] = order[one.short]
    return True
