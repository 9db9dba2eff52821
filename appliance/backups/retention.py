"""Which copies stay at the destination. Pure functions.

Of each hour, day, week and month the newest copy is kept, as many as the task says. Copies are ordered by
transaction group, so a clock that jumped destroys nothing that the count would keep. The newest copy always stays:
the next run continues from it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta, tzinfo

from appliance import snapshot_names
from appliance.facts.datasets import Snapshot
from appliance.facts.kept_copies import GRAINS, Keep
from appliance.snapshots.policy import slot_number

TOLERANCE = timedelta(minutes=10)  # by which the clocks of two boxes may differ


def expired_copies(copies: Sequence[Snapshot], keep: Keep, zone: tzinfo) -> list[Snapshot]:
    """The copies to destroy, oldest first. Only snapshots with the name of a backup; never held or cloned ones."""
    own = backups_of(copies)
    kept = kept_guids([(one.guid, one.created) for one in own], keep, zone)
    kept.update(one.guid for one in own[-1:])
    return [one for one in own if one.guid not in kept and not one.holds and not one.clones]


def expired_received(
    copies: Sequence[Snapshot], keep: Keep, now: datetime, zone: tzinfo, needed: Collection[int] = ()
) -> list[Snapshot]:
    """The same of one dataset that another box sends to, whose word counts for nothing but its own snapshots.

    That box says when a snapshot was made; only the order of arrival is known here. So none counts as made earlier than
    one that arrived before it, or later than now: otherwise a few snapshots with made-up dates would push out all
    others. Of two that contradict each other either may be the wrong one, so the count is made twice, once believing
    the later and once the earlier, and what either keeps stays. One that is dated after now, or after one that arrived
    later, stays too. ``copies``: all snapshots of the dataset, the newest of which stays whatever its name is, as do
    those with the guids ``needed``.
    """
    own = backups_of(copies)
    later, earlier = believe_later(own, now), believe_earlier(own, now)
    newest = max(copies, key=lambda one: one.txg, default=None)
    stays = {*needed, *(one.guid for one in own[-1:]), *([newest.guid] if newest else [])}
    for believed in (later, earlier):
        stays.update(kept_guids(date_in_order(believed, now), keep, zone))
    return [one for one in later if one.guid not in stays and not one.holds and not one.clones]


def believe_later(own: Sequence[Snapshot], now: datetime) -> list[Snapshot]:
    """Without those dated after now or after one that arrived later."""
    least, found = now, []
    for one in reversed(own):
        if one.created - least <= TOLERANCE:
            least = min(least, one.created)
            found.append(one)
    return found[::-1]


def believe_earlier(own: Sequence[Snapshot], now: datetime) -> list[Snapshot]:
    """Without those dated after now or before one that arrived earlier."""
    latest, found = None, []
    for one in own:
        if one.created - now <= TOLERANCE and (latest is None or latest - one.created <= TOLERANCE):
            latest = max(latest or one.created, one.created)
            found.append(one)
    return found


def date_in_order(believed: Sequence[Snapshot], now: datetime) -> list[tuple[int, datetime]]:
    """Guid and moment of each, none before the one that arrived before it, none after now."""
    latest, found = None, []
    for one in believed:
        latest = min(max(latest or one.created, one.created), now)
        found.append((one.guid, latest))
    return found


def backups_of(copies: Sequence[Snapshot]) -> list[Snapshot]:
    """Those with the name of a backup, in the order in which they arrived."""
    return sorted((one for one in copies if is_backup(one.short)), key=lambda one: one.txg)


def kept_guids(dated: Sequence[tuple[int, datetime]], keep: Keep, zone: tzinfo) -> set[int]:
    """The newest of each hour, day, week and month, as many as are kept. ``dated``: guid and moment, in order."""
    kept: set[int] = set()
    for grain in GRAINS:
        seen: set[int] = set()
        for guid, moment in reversed(dated):
            if len(seen) == keep.count(grain):
                break
            slot = slot_number(grain, moment, zone)
            if slot not in seen:
                seen.add(slot)
                kept.add(guid)
    return kept


def is_backup(short: str) -> bool:
    """Whether a snapshot has the name that backups give."""
    return snapshot_names.is_for(snapshot_names.BACKUP, short)
