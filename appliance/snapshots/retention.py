"""Which automatic snapshots are no longer kept: the rule, and what the agent can tell of it by itself. Pure functions.

The agent need not trust a request to prune. It knows the folder's policy, each snapshot's mark and name, and when ZFS made
it. Which other grains a snapshot got later is recorded only in the settings database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo

from appliance import snapshot_names
from appliance.facts.datasets import Dataset, Snapshot
from appliance.snapshots import policy as snapshot_policy
from appliance.snapshots.policy import Policy, Taken

YOUNGEST = timedelta(minutes=15)  # the shortest time for which any policy keeps a snapshot


def expired_snapshots(policy: Policy | None, taken: Sequence[Taken], *, others: int) -> tuple[Taken, ...]:
    """The snapshots that the policy no longer keeps, oldest first.

    Of each grain the newest are kept, as many as the policy says. A dataset is never left with no snapshot at all:
    ``others`` counts those that the policy did not take. No policy means nothing expires; deleting a policy is not
    "keep 0".
    """
    if policy is None:
        return ()
    ordered = sorted(taken, key=lambda snapshot: snapshot.txg)
    kept: set[int] = set()
    for grain in policy.grains:
        own = [snapshot.guid for snapshot in ordered if grain in snapshot.grains]
        kept.update(own[-policy.kept_count(grain) :])
    if not kept and not others and ordered:
        kept.add(ordered[-1].guid)
    return tuple(snapshot for snapshot in ordered if snapshot.guid not in kept)


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
