"""Whether a snapshot has expired, as far as the agent can tell by itself, so that it need not trust a request to prune.

The agent knows the folder's policy, each snapshot's mark and name, and when ZFS made it. Which other grains a snapshot
got later is recorded only in the settings database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo

from appliance import snapshot_names
from appliance.facts.datasets import Dataset, Snapshot
from appliance.snapshots import policy as snapshot_policy
from appliance.snapshots.policy import Policy

YOUNGEST = timedelta(minutes=15)  # the shortest time for which any policy keeps a snapshot


def may_go(snapshot: Snapshot, policy: Policy | None, known: Sequence[Snapshot], now: datetime, zone: tzinfo) -> bool:
    """Whether a policy took the snapshot and newer ones of the folder fill as many slots as the policy keeps.

    Slots are counted by the time at which ZFS made a snapshot, so many snapshots made at once fill only one slot.
    """
    name = snapshot_names.PATTERN.fullmatch(snapshot.short)
    if policy is None or not snapshot.run or name is None or name["grain"] not in snapshot_names.GRAINS:
        return False
    grain = name["grain"]
    own = snapshot_policy.slot_number(grain, snapshot.created, zone)
    newer = [
        other.created
        for other in known
        if other.run and other.txg > snapshot.txg and other.created <= now + snapshot_policy.AHEAD
    ]
    filled = {snapshot_policy.slot_number(grain, created, zone) for created in newer} - {own}
    return snapshot.created <= now - YOUNGEST and len(filled) >= policy.kept_count(grain)


def keeps_less(now: Policy | None, then: Policy | None) -> bool:
    """Whether policy ``then`` may destroy what policy ``now`` keeps. No policy keeps everything."""
    if then is None:
        return False
    return now is None or any(then.kept_count(grain) < now.kept_count(grain) for grain in snapshot_names.GRAINS)


def may_lose(datasets: Iterable[Dataset], now: Policy | None, then: Policy | None) -> bool:
    """Whether changing the policy of these folders may destroy snapshots that they have."""
    return keeps_less(now, then) and any(dataset.snapshots_changed or dataset.used_by_snapshots for dataset in datasets)
