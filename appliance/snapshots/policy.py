"""Snapshot policies (pages call them schedules): when a snapshot is due and how many are kept. Pure
functions. Which ones go is decided in ``retention.py``.

A policy is stored in the ZFS property ``larder:policy`` of a dataset and inherited by the datasets below. Quarters of
an hour and hours are counted in UTC; days, weeks and months by the box's calendar, so a day of 23 or 25 hours is one
day. Retention counts snapshots in the order of their transaction groups instead of comparing ages, so that a box that
was off, or whose clock was wrong, loses nothing.

With ``skip_unchanged`` no snapshot is taken of a dataset that has not changed since its latest snapshot. That snapshot
gets the due grains instead, so it is kept for them too. Otherwise the last state before a quiet time would be kept only
as long as the shortest-lived grain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice

import msgspec

from appliance import schedule
from appliance.errors import Reason, Refused
from appliance.facts.datasets import Dataset
from appliance.message import Message, join_messages, message_template
from appliance.snapshot_names import GRAINS
from appliance.strict_struct import StrictStruct

MOST_KEPT = 500
OWN = frozenset({"local", "received"})  # property sources of a policy that is set on the dataset itself
# A snapshot dated further ahead than this was taken while the clock was wrong: it is ignored when deciding what is due.
AHEAD = timedelta(hours=2)
WORDS: dict[str, str] = {
    "frequent": Message("every 15 minutes"),
    "hourly": Message("every hour"),
    "daily": Message("every day"),
    "weekly": Message("every week"),
    "monthly": Message("every month"),
}
COUNTED = {
    "frequent": message_template("{count} frequent"),
    "hourly": message_template("{count} hourly"),
    "daily": message_template("{count} daily"),
    "weekly": message_template("{count} weekly"),
    "monthly": message_template("{count} monthly"),
}


class Policy(StrictStruct):
    """How many snapshots of each grain are kept (0: none is taken), between which hours, and whether below too."""

    frequent: int = 0
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    first: int = 0  # hours of the box's clock; equal hours mean at any time
    last: int = 0
    skip_unchanged: bool = False
    below: bool = True

    def __post_init__(self) -> None:
        for grain in GRAINS:
            if not 0 <= self.kept_count(grain) <= MOST_KEPT:
                raise Refused(
                    Reason("kept-count-out-of-range", "Enter a number from 0 to {most}.", field=grain, most=MOST_KEPT)
                )
        for hour, field in ((self.first, "first"), (self.last, "last")):
            if not 0 <= hour <= 23:
                raise Refused(Reason("hour-out-of-range", "Choose an hour between 0 and 23.", field=field))

    def kept_count(self, grain: str) -> int:
        return int(getattr(self, grain))

    @property
    def grains(self) -> tuple[str, ...]:
        return tuple(grain for grain in GRAINS if self.kept_count(grain))

    @property
    def sentence(self) -> str:
        """The short form for pages: ``24 hourly, 14 daily``."""
        counts = [Message(COUNTED[grain], count=self.kept_count(grain)) for grain in self.grains]
        return join_messages(counts, ", ") or Message("none")

    @property
    def fingerprint(self) -> str:
        """The whole policy on one line, to compare two policies."""
        return msgspec.json.encode(self).decode()

    def is_open_at(self, hour: int) -> bool:
        return schedule.is_hour_within(hour, self.first, self.last)


USUAL = Policy(hourly=24, daily=14, weekly=8, monthly=6, skip_unchanged=True)


class Taken(msgspec.Struct, frozen=True):
    """A snapshot that a policy of this box took, as recorded.

    ``until``: when it last got grains because the dataset was still unchanged; it serves the slot of that moment too.
    """

    guid: int
    txg: int
    created: datetime
    grains: tuple[str, ...]
    until: datetime | None = None

    @property
    def moments(self) -> tuple[datetime, ...]:
        return (self.created, self.until) if self.until else (self.created,)


class Wanted(msgspec.Struct, frozen=True):
    """The grains that are due as of ``at``, and the snapshot that gets them; if ``latest`` is None, take a new one."""

    grains: tuple[str, ...]
    at: datetime
    latest: Taken | None = None


def parse_policy(text: str) -> Policy | None:
    """The policy in a property's text; None if it is invalid, since it may come from a foreign pool."""
    try:
        return msgspec.json.decode(text, type=Policy)
    except (msgspec.MsgspecError, RecursionError, Refused):
        return None


def policy_of(dataset: Dataset) -> Policy | None:
    """The policy that applies to a dataset. One that was received with the data applies only once it is set here.

    None applies to a copy that a backup made: a snapshot taken there would keep the next run from continuing.
    """
    if dataset.copy_of:
        return None
    policy = parse_policy(dataset.policy) if dataset.policy_source in {"local", "inherited"} else None
    if policy and dataset.policy_source == "inherited" and not policy.below:
        return None
    return policy


def offered_policy(dataset: Dataset) -> Policy | None:
    """The policy that was received with the data, here or above, and does not apply until it is set here."""
    return parse_policy(dataset.policy) if dataset.policy_source in {"received", "waiting"} else None


def inheriting_datasets(dataset: Dataset, datasets: Iterable[Dataset]) -> list[Dataset]:
    """The datasets below that inherit this one's policy: neither they nor a dataset in between has its own."""
    below = [other for other in datasets if other.name.startswith(f"{dataset.name}/")]
    own = tuple(f"{other.name}/" for other in below if other.policy_source in OWN)
    return [other for other in below if not f"{other.name}/".startswith(own)]


def parent_policy(parent: Dataset | None) -> Policy | None:
    """The policy that a folder in ``parent`` follows if it has none of its own."""
    policy = policy_of(parent) if parent else None
    return policy if policy and policy.below else None


def describe_move(dataset: Dataset, parent: Dataset | None) -> Iterator[str]:
    """What moving a dataset into another folder changes about its automatic snapshots, in words; empty if nothing."""
    now, then = policy_of(dataset), parent_policy(parent)
    if dataset.policy_source in OWN or now == then:
        return
    if then is None:
        yield Message("No automatic snapshots are taken of it there. Those that it has stay.")
    else:
        yield (
            Message(
                "It follows the snapshot schedule of its new place, which keeps {sentence}. Automatic "
                "snapshots beyond that are destroyed.",
                sentence=then.sentence,
            )
        )


def slot_number(grain: str, at: datetime, zone: tzinfo) -> int:
    """The number of the quarter of an hour, hour, day, week (from Monday) or month that contains a moment."""
    if grain == "frequent":
        return int(at.timestamp()) // 900
    if grain == "hourly":
        return int(at.timestamp()) // 3600
    day = at.astimezone(zone).date()
    if grain == "daily":
        return day.toordinal()
    return (day.toordinal() - 1) // 7 if grain == "weekly" else day.year * 12 + day.month


def overdue_grains(policy: Policy, taken: Iterable[Taken], now: datetime, zone: tzinfo) -> tuple[str, ...]:
    """The grains whose last snapshot is from an earlier slot than now, even outside the policy's hours."""
    known = [(at, snapshot.grains) for snapshot in taken for at in snapshot.moments if at <= now + AHEAD]
    found = []
    for grain in policy.grains:
        latest = max((at for at, grains in known if grain in grains), default=None)
        if latest is None or slot_number(grain, now, zone) > slot_number(grain, latest, zone):
            found.append(grain)
    return tuple(found)


def due_grains(policy: Policy, taken: Iterable[Taken], now: datetime, zone: tzinfo) -> tuple[str, ...]:
    """The grains for which a snapshot is due now. One snapshot makes up for any number of missed slots."""
    return overdue_grains(policy, taken, now, zone) if is_open(policy, now, zone) else ()


def unchanged_snapshot(policy: Policy, taken: Iterable[Taken], latest: int | None, seen: datetime) -> Taken | None:
    """The policy's own snapshot that still matched the dataset when that was read; None if a new one has to be taken.

    ``latest`` is the guid of the newest of all its snapshots, None if something was written since; ``seen`` is when
    that was read. A snapshot dated later was taken after that, or by another clock, so it cannot be compared.
    """
    if latest is None or not policy.skip_unchanged:
        return None
    return next((snapshot for snapshot in taken if snapshot.guid == latest and snapshot.created <= seen), None)


def decide_run(
    policy: Policy, taken: Sequence[Taken], now: datetime, zone: tzinfo, *, latest: int | None = None, seen: datetime
) -> Wanted:
    """Decide what to do now: take a snapshot for the due grains, or give them to the one that is still current."""
    if snapshot := unchanged_snapshot(policy, taken, latest, seen):
        # As of ``seen``: what was written after it, perhaps in the next slot, is decided at the next look.
        return Wanted(due_grains(policy, taken, seen, zone), seen, snapshot)
    return Wanted(due_grains(policy, taken, now, zone), now)


def is_open(policy: Policy, at: datetime, zone: tzinfo) -> bool:
    """Whether the policy may run at a moment. The hour after a clock change makes up for the hours that it skips."""
    local, before = at.astimezone(zone), (at - timedelta(hours=1)).astimezone(zone)
    hours = {local.hour}
    if (local.utcoffset() or timedelta()) > (before.utcoffset() or timedelta()):
        left_out = (before.hour + 1) % 24
        while left_out != local.hour:
            hours.add(left_out)
            left_out = (left_out + 1) % 24
    return any(policy.is_open_at(hour) for hour in hours)


def next_opening(policy: Policy, since: datetime, zone: tzinfo) -> datetime:
    """The first moment at or after ``since`` at which the policy may run."""
    local = since.astimezone(zone)
    if is_open(policy, since, zone):
        return since
    day = local.date() + timedelta(days=1 if local.hour >= policy.first else 0)
    return schedule.at_hour(day, policy.first, zone)


def project_snapshots(policy: Policy, now: datetime, zone: tzinfo) -> list[tuple[datetime, tuple[str, ...]]]:
    """The snapshots that exist once the policy has run undisturbed for long: moment and grains, newest first.

    If nothing changes between two of these moments, one snapshot serves both.
    """
    found: dict[datetime, list[str]] = defaultdict(list)
    for grain in policy.grains:
        firsts = clock_slots if grain in {"frequent", "hourly"} else calendar_slots
        for at in islice(firsts(policy, grain, now, zone), policy.kept_count(grain)):
            found[at.astimezone(UTC)].append(grain)
    return [(at, tuple(found[at])) for at in sorted(found, reverse=True)]


def clock_slots(policy: Policy, grain: str, now: datetime, zone: tzinfo) -> Iterator[datetime]:
    """The first moment of each quarter of an hour or hour in which the policy may run, newest first."""
    at = datetime.fromtimestamp(int(now.timestamp()) // 900 * 900, UTC)
    first = None
    while True:
        if is_open(policy, at, zone):
            if first and slot_number(grain, first, zone) != slot_number(grain, at, zone):
                yield first
            first = at
        at -= timedelta(minutes=15)


def calendar_slots(policy: Policy, grain: str, now: datetime, zone: tzinfo) -> Iterator[datetime]:
    """The first moment of each day, week or month in which the policy may run, newest first."""
    day = now.astimezone(zone).date()
    while True:
        if grain == "weekly":
            day -= timedelta(days=day.weekday())
        elif grain == "monthly":
            day = day.replace(day=1)
        at = schedule.at_hour(day, 0 if policy.is_open_at(0) else policy.first, zone)
        if at <= now:
            yield at
        day -= timedelta(days=1)
