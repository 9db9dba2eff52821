"""Which automatic snapshots are no longer kept: the rule, and what the agent can tell of it by itself. Pure functions.

The agent need not trust a request to prune. It knows the folder's policy, each snapshot's mark and name, and when ZFS
made it. Which other grains a snapshot got later is recorded only in the settings database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import groupby

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


def prunable_guids(policy: Policy | None, known: Iterable[Snapshot], now: datetime, zone: tzinfo) -> frozenset[int]:
    """The snapshots that a policy took and for which newer ones of the folder fill as many slots as the policy keeps.

    ``known``: all snapshots of one folder. Slots are counted by the time at which ZFS made a snapshot, so many
    snapshots made at once fill only one slot.
    """
    if policy is None:
        return frozenset()
    filled: dict[str, set[int]] = {grain: set() for grain in snapshot_names.GRAINS}
    found = set()
    taken = sorted((one for one in known if one.run), key=lambda one: one.txg, reverse=True)
    for _txg, group in groupby(taken, key=lambda one: one.txg):
        together = list(group)
        for one in together:
            grain = snapshot_names.grain_of(one.short)
            if grain and one.created <= now - YOUNGEST:
                own = snapshot_policy.slot_number(grain, one.created, zone)
                if len(filled[grain]) - (own in filled[grain]) >= policy.kept_count(grain):
                    found.add(one.guid)
        for one in together:
            if one.created <= now + snapshot_policy.AHEAD:
                for grain, slots in filled.items():
                    slots.add(snapshot_policy.slot_number(grain, one.created, zone))
    return frozenset(found)


def keeps_less(now: Policy | None, then: Policy | None) -> bool:
    """Whether policy ``then`` may destroy what policy ``now`` keeps. No policy keeps everything."""
    if then is None:
        return False
    return now is None or any(then.kept_count(grain) < now.kept_count(grain) for grain in snapshot_names.GRAINS)


def may_lose(datasets: Iterable[Dataset], then: Policy | None) -> bool:
    """Whether any of these folders may lose snapshots that it has once it follows ``then``.
    A copy follows no policy."""
    return any(
        not one.copy_of
        and bool(one.snapshots_changed or one.used_by_snapshots)
        and keeps_less(snapshot_policy.policy_of(one), then)
        for one in datasets
    )
