"""What the agent itself can see of a snapshot policy, so that it need not believe who asks for snapshots to be destroyed.

It knows the folder's policy, the mark and the name of each snapshot, and when ZFS made it. Which further grains a snapshot
was given later stands in the settings database alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo

from appliance.facts.datasets import Dataset, Snapshot
from appliance.snapshots import names
from appliance.snapshots import policy as snapshot_policy
from appliance.snapshots.policy import Policy

YOUNGEST = timedelta(minutes=15)  # the shortest time for which any policy keeps a snapshot


def may_go(one: Snapshot, policy: Policy | None, known: Sequence[Snapshot], now: datetime, zone: tzinfo) -> bool:
    """Whether a snapshot was made by a policy, and newer ones of that folder fill as many slots as its policy keeps.

    Slots are counted by the time at which ZFS made a snapshot, so many made at once fill one slot.
    """
    named = names.PATTERN.fullmatch(one.short)
    if policy is None or not one.run or named is None or named["grain"] not in names.GRAINS:
        return False
    grain = named["grain"]
    own = snapshot_policy.slot(grain, one.created, zone)
    newer = [
        other.created
        for other in known
        if other.run and other.txg > one.txg and other.created <= now + snapshot_policy.AHEAD
    ]
    filled = {snapshot_policy.slot(grain, created, zone) for created in newer} - {own}
    return one.created <= now - YOUNGEST and len(filled) >= policy.keep(grain)


def keeps_less(now: Policy | None, then: Policy | None) -> bool:
    """Whether what stays by the one policy may go by the other. Without a policy everything stays."""
    if then is None:
        return False
    return now is None or any(then.keep(grain) < now.keep(grain) for grain in names.GRAINS)


def loses(datasets: Iterable[Dataset], now: Policy | None, then: Policy | None) -> bool:
    """Whether another policy may destroy something that these folders have."""
    return keeps_less(now, then) and any(one.snapshots_changed or one.used_by_snapshots for one in datasets)
