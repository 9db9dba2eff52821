"""Snapshot policies: what a folder wants, when a snapshot is due, and which ones are no longer kept. Pure functions.

A policy stands in the ZFS property ``larder:policy`` of a dataset, and those below it inherit it. Quarters of an hour and
hours are counted in UTC, days, weeks and months by the box's calendar: a day that lasts 23 or 25 hours is one day. What is
kept is counted, not aged, and in the order of transaction groups: a box that was off, or whose clock was wrong, loses nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice

import msgspec

from appliance import names, schedules
from appliance.dataset import Dataset
from appliance.errors import Refused
from appliance.zfs.naming import GRAINS

MOST_KEPT = 500
OWN = frozenset({"local", "received"})  # the sources of a policy that stands on the dataset itself
# A snapshot dated later than this from now was taken while the clock was wrong: it says nothing about what is due.
AHEAD = timedelta(hours=2)
WORDS = {
    "frequent": "every 15 minutes",
    "hourly": "every hour",
    "daily": "every day",
    "weekly": "every week",
    "monthly": "every month",
}


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of each grain are kept (0: none is taken), between which hours of the box, and for whom."""

    frequent: int = 0
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    first: int = 0  # hours of the box's clock; the same twice means at any time
    last: int = 0
    skip_unchanged: bool = False
    below: bool = True

    def __post_init__(self) -> None:
        for grain in GRAINS:
            if not 0 <= self.keep(grain) <= MOST_KEPT:
                raise names.refuse(f"Keep between 0 and {MOST_KEPT}.", grain)
        for hour, field in ((self.first, "first"), (self.last, "last")):
            if not 0 <= hour <= 23:
                raise names.refuse("Choose an hour between 0 and 23.", field)

    def keep(self, grain: str) -> int:
        return int(getattr(self, grain))

    @property
    def grains(self) -> tuple[str, ...]:
        return tuple(grain for grain in GRAINS if self.keep(grain))

    @property
    def sentence(self) -> str:
        """``24 hourly, 14 daily``; the page's short form."""
        return ", ".join(f"{self.keep(grain)} {grain}" for grain in self.grains) or "none"

    @property
    def sentence_in_full(self) -> str:
        """All of it on one line, to tell two policies apart."""
        return msgspec.json.encode(self).decode()

    def open_at(self, hour: int) -> bool:
        return schedules.within(hour, self.first, self.last)


USUAL = Policy(hourly=24, daily=14, weekly=8, monthly=6, skip_unchanged=True)


@dataclass(frozen=True)
class Taken:
    """A snapshot that a policy of this box made, by what was recorded of it."""

    guid: int
    txg: int
    created: datetime
    grains: tuple[str, ...]


def parse(text: str) -> Policy | None:
    """The policy of a property's text; None for anything that is none: it may come from a foreign pool."""
    try:
        return msgspec.json.decode(text, type=Policy)
    except (msgspec.MsgspecError, RecursionError, Refused):
        return None


def of(dataset: Dataset) -> Policy | None:
    """The policy that is in force for a dataset. One that was received with the data waits until somebody sets it here."""
    found = parse(dataset.policy) if dataset.policy_source in {"local", "inherited"} else None
    if found and dataset.policy_source == "inherited" and not found.below:
        return None
    return found


def offered(dataset: Dataset) -> Policy | None:
    """The policy that came along with the data, on it or above it, and waits until somebody sets it here."""
    return parse(dataset.policy) if dataset.policy_source in {"received", "waiting"} else None


def followers(dataset: Dataset, datasets: Iterable[Dataset]) -> list[Dataset]:
    """The datasets below that inherit what is set on this one: nothing of their own on them, nor in between."""
    below = [one for one in datasets if one.name.startswith(f"{dataset.name}/")]
    own = tuple(f"{one.name}/" for one in below if one.policy_source in OWN)
    return [one for one in below if not f"{one.name}/".startswith(own)]


def above(parent: Dataset | None) -> Policy | None:
    """What a folder follows that lies in this one and has no policy of its own."""
    found = of(parent) if parent else None
    return found if found and found.below else None


def on_moving(dataset: Dataset, parent: Dataset | None) -> Iterator[str]:
    """What moving a dataset into another folder changes about its snapshots, in words; nothing where nothing does."""
    now, then = of(dataset), above(parent)
    if dataset.policy_source in OWN or now == then:
        return
    if then is None:
        yield "No snapshots are taken of it by themselves there. Those that it has stay."
    else:
        yield f"It follows the snapshot policy of its new place: {then.sentence} are kept. What was taken by itself and is more than that is destroyed."


def slot(grain: str, at: datetime, zone: tzinfo) -> int:
    """The number of the quarter, hour, day, week (from Monday) or month in which a moment lies."""
    if grain == "frequent":
        return int(at.timestamp()) // 900
    if grain == "hourly":
        return int(at.timestamp()) // 3600
    day = at.astimezone(zone).date()
    if grain == "daily":
        return day.toordinal()
    return (day.toordinal() - 1) // 7 if grain == "weekly" else day.year * 12 + day.month


def behind(
    policy: Policy, taken: Iterable[Taken], now: datetime, zone: tzinfo, *, unchanged: bool = False
) -> tuple[str, ...]:
    """The grains whose last snapshot is of an earlier slot than now, whatever the hour: what is due once the policy may run."""
    if unchanged and policy.skip_unchanged:
        return ()
    known = [one for one in taken if one.created <= now + AHEAD]
    found = []
    for grain in policy.grains:
        latest = max((one.created for one in known if grain in one.grains), default=None)
        if latest is None or slot(grain, now, zone) > slot(grain, latest, zone):
            found.append(grain)
    return tuple(found)


def due(
    policy: Policy, taken: Iterable[Taken], now: datetime, zone: tzinfo, *, unchanged: bool = False
) -> tuple[str, ...]:
    """The grains for which a snapshot is due now. However many slots were missed, one snapshot catches up."""
    return behind(policy, taken, now, zone, unchanged=unchanged) if policy.open_at(now.astimezone(zone).hour) else ()


def opens(policy: Policy, since: datetime, zone: tzinfo) -> datetime:
    """The first moment from then on at which the policy may run."""
    local = since.astimezone(zone)
    if policy.open_at(local.hour):
        return since
    day = local.date() + timedelta(days=1 if local.hour >= policy.first else 0)
    return schedules.at_hour(day, policy.first, zone)


def expired(policy: Policy | None, taken: Sequence[Taken], *, others: int) -> tuple[Taken, ...]:
    """Those that the policy no longer keeps, oldest first; ``others`` counts the dataset's snapshots that it did not make.

    Of each grain the newest are kept, as many as the policy says. A dataset is never left with none. Without a policy
    nothing expires: it was taken away, not set to keep none.
    """
    if policy is None:
        return ()
    row = sorted(taken, key=lambda one: one.txg)
    kept: set[int] = set()
    for grain in policy.grains:
        kept |= {one.guid for one in [one for one in row if grain in one.grains][-policy.keep(grain) :]}
    if not kept and not others and row:
        kept.add(row[-1].guid)
    return tuple(one for one in row if one.guid not in kept)


def picture(policy: Policy, now: datetime, zone: tzinfo) -> list[tuple[datetime, tuple[str, ...]]]:
    """What will be there once the policy has run undisturbed for long: moment and grains, newest first."""
    found: dict[datetime, list[str]] = defaultdict(list)
    for grain in policy.grains:
        firsts = by_the_clock if grain in {"frequent", "hourly"} else by_the_calendar
        for at in islice(firsts(policy, grain, now, zone), policy.keep(grain)):
            found[at.astimezone(UTC)].append(grain)
    return [(at, tuple(found[at])) for at in sorted(found, reverse=True)]


def by_the_clock(policy: Policy, grain: str, now: datetime, zone: tzinfo) -> Iterator[datetime]:
    """The first moment of each slot in which the policy may run, the newest first."""
    at = datetime.fromtimestamp(int(now.timestamp()) // 900 * 900, UTC)
    first = None
    while True:
        if policy.open_at(at.astimezone(zone).hour):
            if first and slot(grain, first, zone) != slot(grain, at, zone):
                yield first
            first = at
        at -= timedelta(minutes=15)


def by_the_calendar(policy: Policy, grain: str, now: datetime, zone: tzinfo) -> Iterator[datetime]:
    """The same for days, weeks and months."""
    day = now.astimezone(zone).date()
    while True:
        if grain == "weekly":
            day -= timedelta(days=day.weekday())
        elif grain == "monthly":
            day = day.replace(day=1)
        at = schedules.at_hour(day, 0 if policy.open_at(0) else policy.first, zone)
        if at <= now:
            yield at
        day -= timedelta(days=1)
