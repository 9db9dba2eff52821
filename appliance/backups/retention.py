"""Which copies stay at the destination. Pure functions.

Of each hour, day, week and month the newest copy is kept, as many as the task says. Copies are ordered by transaction group, so a
clock that jumped destroys nothing that the count would keep. The newest copy always stays: the next run continues from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from appliance import snapshot_names
from appliance.backups.tasks import GRAINS, Keep
from appliance.facts.datasets import Snapshot
from appliance.snapshots.policy import slot_number


def expired_copies(copies: Sequence[Snapshot], keep: Keep, zone: tzinfo) -> list[Snapshot]:
    """The copies to destroy, oldest first. Only snapshots with the name of a backup; never held or cloned ones."""
    own = sorted((one for one in copies if is_backup(one.short)), key=lambda one: one.txg, reverse=True)
    kept = {one.guid for one in own[:1]}
    for grain in GRAINS:
        seen: set[int] = set()
        for one in own:
            if len(seen) == keep.count(grain):
                break
            slot = slot_number(grain, one.created, zone)
            if slot not in seen:
                seen.add(slot)
                kept.add(one.guid)
    return [one for one in reversed(own) if one.guid not in kept and not one.holds and not one.clones]


def is_backup(short: str) -> bool:
    """Whether a snapshot has the name that backups give."""
    return snapshot_names.is_for(snapshot_names.BACKUP, short)
