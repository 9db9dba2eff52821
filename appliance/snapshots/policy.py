"""Snapshot policies: what a folder wants, when a snapshot is due, and which ones are no longer kept. Pure functions.

A policy stands in the ZFS property ``larder:policy`` of a dataset, and those below it inherit it. Quarters of an hour and
hours are counted in UTC, days, weeks and months by the box's calendar: a day that lasts 23 or 25 hours is one day. What is
kept is counted, not aged, and in the order of transaction groups: a box that was off, or whose clock was wrong, loses nothing.

With ``skip_unchanged`` no snapshot is taken of a dataset that is as its latest snapshot: that one gets the grains that are
due, so it is kept for them too. Otherwise the last state before a quiet time would be held by the shortest-lived grain alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice

import msgspec

from appliance import names, schedule
from appliance.errors import Refused
from appliance.facts.datasets import Dataset
from appliance.snapshots.names import GRAINS
from appliance.strict_struct import StrictStruct

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


class Policy(StrictStruct):
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
        return schedule.within(hour, self.first, self.last)


USUAL = Policy(hourly=24, daily=14, weekly=8, monthly=6, skip_unchanged=True)


@dataclass(frozen=True)
class Taken:
    """A snapshot that a policy of this box made, by what was recorded of it.

    ``until``: the last moment at which it got grains since the dataset was still as it is; it stands for that slot too.
    """

    guid: int
    txg: int
    created: datetime
    grains: tuple[str, ...]
    until: datetime | None = None

    @property
    def moments(self) -> tuple[datetime, ...]:
        return (self.created, self.until) if self.until else (self.created,)


@dataclass(frozen=True)
class Wanted:
    """The grains that are due, and the snapshot that gets them as of ``at``; where it is None, one has to be taken."""

    grains: tuple[str, ...]
    at: datetime
    latest: Taken | None = None


def parse(text: str) -> Policy | None:
    """The policy of a property's text; None for anything that is none: it may come from a foreign pool."""
    try:
        return msgspec.json.decode(text, type=Policy)
    except (msgspec.MsgspecError, RecursionError, Refused):
        return None


def policy_of(dataset: Dataset) -> Policy | None:
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
    found = policy_of(parent) if parent else None
    return found if found and found.below else None


def on_moving(dataset: Dataset, parent: Dataset | None) -> Iterator[str]:
    """What moving a dataset into another folder changes about its snapshots, in words; nothing where nothing does."""
    now, then = policy_of(dataset), above(parent)
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


def behind(policy: Policy, taken: Iterable[Taken], now: datetime, zone: tzinfo) -> tuple[str, ...]:
    """The grains whose last snapshot is of an earlier slot than now, whatever the hour: what is due once the policy may run."""
    known = [(at, one.grains) for one in taken for at in one.moments if at <= now + AHEAD]
    found = []
    for grain in policy.grains:
        latest = max((at for at, grains in known if grain in grains), default=None)
        if latest is None or slot(grain, now, zone) > slot(grain, latest, zone):
            found.append(grain)
    return tuple(found)


def due(policy: Policy, taken: Iterable[Taken], now: datetime, zone: tzinfo) -> tuple[str, ...]:
    """The grains for which a snapshot is due now. However many slots were missed, one snapshot catches up."""
    return behind(policy, taken, now, zone) if is_open(policy, now, zone) else ()


def standing(policy: Policy, taken: Iterable[Taken], latest: int | None, seen: datetime) -> Taken | None:
    """The policy's own snapshot that the dataset was still as when it was ``seen``; None where a new one has to be taken.

    ``latest`` is the guid of the newest of all its snapshots, None where something was written since. One that is dated
    later than that look was taken after it, or by another clock: what was seen says nothing about it.
    """
    if latest is None or not policy.skip_unchanged:
        return None
    return next((one for one in taken if one.guid == latest and one.created <= seen), None)


def wanted(
    policy: Policy, taken: Sequence[Taken], now: datetime, zone: tzinfo, *, latest: int | None = None, seen: datetime
) -> Wanted:
    """What is to be done now: take a snapshot for these grains, or let the one that still stands serve for them."""
    if found := standing(policy, taken, latest, seen):
        # As of the look: what was written since, perhaps in the next slot, is for the next look.
        return Wanted(due(policy, taken, seen, zone), seen, found)
    return Wanted(due(policy, taken, now, zone), now)


def is_open(policy: Policy, at: datetime, zone: tzinfo) -> bool:
    """Whether the policy may run at a moment. Hours that the clocks leave out are made up for in the hour after them."""
    local, before = at.astimezone(zone), (at - timedelta(hours=1)).astimezone(zone)
    hours = {local.hour}
    if (local.utcoffset() or timedelta()) > (before.utcoffset() or timedelta()):
        left_out = (before.hour + 1) % 24
        while left_out != local.hour:
            hours.add(left_out)
            left_out = (left_out + 1) % 24
    return any(policy.open_at(hour) for hour in hours)


def opens(policy: Policy, since: datetime, zone: tzinfo) -> datetime:
    """The first moment from then on at which the policy may run."""
    local = since.astimezone(zone)
    if is_open(policy, since, zone):
        return since
    day = local.date() + timedelta(days=1 if local.hour >= policy.first else 0)
    return schedule.at_hour(day, policy.first, zone)


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
    """What will be there once the policy has run undisturbed for long: moment and grains, newest first.

    Where nothing changed between two of these moments, one snapshot stands for both.
    """
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
        if is_open(policy, at, zone):
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
        at = schedule.at_hour(day, 0 if policy.open_at(0) else policy.first, zone)
        if at <= now:
            yield at
        day -= timedelta(days=1)
