"""The promise of a policy, compared with an oracle: a list of the states of a folder over time.

For each of the newest slots that a policy keeps, and in which it could run, some remaining snapshot has a state that
was current at some time in that slot, whether or not unchanged folders are skipped.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.snapshot_names import GRAINS
from appliance.snapshots.policy import Policy, Taken, decide_run
from appliance.snapshots.retention import expired_snapshots

UTC_ZONE = ZoneInfo("UTC")
ZONES = [
    ZoneInfo(name) for name in ("Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "America/Havana", "UTC")
]
LONGEST_DOUBT = timedelta(hours=3)  # after a wrong clock: two hours of tolerance and the slot in which they end


def slot_of(grain: str, at: datetime, zone: ZoneInfo) -> object:
    """The slot of a moment, computed independently of the code."""
    local = at.astimezone(zone)
    return {
        "frequent": (at.date(), at.hour, at.minute // 15),
        "hourly": (at.date(), at.hour),
        "daily": local.date(),
        "weekly": local.isocalendar()[:2],
        "monthly": (local.year, local.month),
    }[grain]


@dataclass
class Folder:
    """A folder, its snapshots and the policy's clock. ``states`` counts up: each change makes a new one."""

    policy: Policy
    zone: ZoneInfo
    state: int = 0
    txg: int = 0
    taken: list[Taken] = field(default_factory=list)
    by_hand: set[int] = field(default_factory=set)
    holds: dict[int, int] = field(default_factory=dict)  # the state in each snapshot, by guid
    seen: datetime | None = None
    latest: int | None = None
    # The oracle's records: the states current in each slot of each grain, when the policy first ran in each slot, and
    # the slots in which it knew the folder's state at that moment.
    current: dict[tuple[str, object], set[int]] = field(default_factory=lambda: defaultdict(set))
    ran: dict[str, dict[object, datetime]] = field(default_factory=lambda: {grain: {} for grain in GRAINS})
    knew: set[tuple[str, object]] = field(default_factory=set)

    def add(self, *, own: Taken | None) -> None:
        self.txg += 1
        self.holds[self.txg] = self.state
        if own:
            self.taken.append(replace(own, guid=self.txg, txg=self.txg))
        else:
            self.by_hand.add(self.txg)

    def look(self, clock: datetime) -> None:
        """Read the newest snapshot, and whether anything was written since."""
        newest = max([*self.by_hand, *(one.guid for one in self.taken)], default=None)
        self.seen = clock
        self.latest = newest if newest and self.holds[newest] == self.state else None

    def pass_by(self, clock: datetime) -> None:
        for grain in GRAINS:
            self.current[grain, slot_of(grain, clock, self.zone)].add(self.state)

    def run(self, clock: datetime, *, fresh: bool = True) -> None:
        """Run the worker once; if not ``fresh``, with what was read some time ago."""
        fresh = fresh or self.seen is None
        if fresh:
            self.look(clock)
        hours = hours_of(self.policy)
        if hours is None or clock.astimezone(self.zone).hour in hours or clocks_change(clock, self.zone):
            for grain in self.policy.grains:
                slot = slot_of(grain, clock, self.zone)
                self.ran[grain].setdefault(slot, clock)
                if fresh and (hours is None or clock.astimezone(self.zone).hour in hours):
                    self.knew.add((grain, slot))
        assert self.seen
        found = decide_run(self.policy, self.taken, clock, self.zone, latest=self.latest, seen=min(self.seen, clock))
        if found.latest and found.grains:
            given_to = replace(found.latest, grains=tuple({*found.latest.grains, *found.grains}), until=found.at)
            self.taken = [given_to if one.guid == found.latest.guid else one for one in self.taken]
        elif found.grains:
            self.add(own=Taken(0, 0, clock, found.grains))
            self.look(clock)
        for gone in expired_snapshots(self.policy, self.taken, others=len(self.by_hand)):
            self.taken.remove(gone)

    def missing(self, *, since: datetime | None = None) -> list[tuple[str, object]]:
        """The promised slots of which no state is left."""
        there = {self.holds[one.guid] for one in self.taken}
        lost = []
        for grain in self.policy.grains:
            slots = sorted(self.ran[grain].items(), key=lambda one: one[1])[-self.policy.kept_count(grain) :]
            for slot, first in slots:
                promised = (grain, slot) in self.knew and (since is None or first > since)
                if promised and not there & self.current[grain, slot]:
                    lost.append((grain, slot))
        return lost


def clocks_change(at: datetime, zone: ZoneInfo) -> bool:
    return at.astimezone(zone).utcoffset() != (at - timedelta(hours=2)).astimezone(zone).utcoffset()


def hours_of(policy: Policy) -> set[int] | None:
    """The hours of the day in which the policy may run; None for all."""
    if policy.first == policy.last:
        return None
    return {(policy.first + more) % 24 for more in range((policy.last - policy.first) % 24)}


@dataclass(frozen=True)
class Stretch:
    """A period in which a folder is worked on, or is not, or the box is off."""

    kind: str  # work, quiet, off
    steps: int


counts = st.integers(min_value=0, max_value=9)
rules = st.builds(
    Policy,
    frequent=counts,
    hourly=counts,
    daily=counts,
    weekly=counts,
    monthly=counts,
    first=st.integers(0, 23),
    last=st.integers(0, 23),
    skip_unchanged=st.booleans(),
)
stretches = st.lists(
    st.builds(Stretch, st.sampled_from(("work", "quiet", "off")), st.integers(1, 120)), min_size=1, max_size=6
)
starts = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 1), timezones=st.just(UTC))
paces = st.sampled_from([timedelta(minutes=11), timedelta(minutes=47), timedelta(hours=5), timedelta(hours=17)])


def live(folder: Folder, clock: datetime, stretch: Stretch, pace: timedelta, rough: random.Random) -> datetime:
    """Simulate a period. Returns the clock after it."""
    for _step in range(stretch.steps):
        folder.pass_by(clock)
        if stretch.kind == "work" and rough.random() < 0.6:
            folder.state += 1
            folder.pass_by(clock)
        if stretch.kind != "off":
            if rough.random() < 0.03:
                folder.add(own=None)
            folder.run(clock, fresh=rough.random() < 0.7)
        clock += pace * rough.uniform(0.5, 1.5)
    return clock


@settings(max_examples=60, deadline=None)
@given(rules, stretches, starts, paces, st.sampled_from(ZONES), st.integers(0, 2**32))
def test_every_kept_slot_has_state_that_was_current_in_it(policy, row, start, pace, zone, seed):
    rough = random.Random(seed)
    folder, clock = Folder(policy, zone), start
    for stretch in row:
        clock = live(folder, clock, stretch, pace, rough)
        assert folder.missing() == []


@settings(max_examples=30, deadline=None)
@given(
    rules,
    stretches,
    starts,
    paces,
    st.sampled_from(ZONES),
    st.integers(0, 2**32),
    st.lists(st.timedeltas(timedelta(days=-400), timedelta(days=400)), min_size=1, max_size=3),
)
def test_promise_is_kept_again_after_wrong_clock(policy, row, start, pace, zone, seed, wrong):
    rough = random.Random(seed)
    folder, clock = Folder(policy, zone), start
    for by in wrong:
        clock = live(folder, clock, row[0], pace, rough)
        live(folder, clock + by, Stretch("work", 20), pace, rough)
    # Slots that the wrong clock visited have snapshots whose dates are not the real ones.
    visited = {(grain, slot) for grain, slots in folder.ran.items() for slot in slots}
    folder.ran = {grain: {} for grain in GRAINS}
    since = clock + LONGEST_DOUBT
    for stretch in row:
        clock = live(folder, clock, stretch, pace, rough)
    assert [one for one in folder.missing(since=since) if one not in visited] == []


USUAL = Policy(hourly=24, daily=14, weekly=8, monthly=6, skip_unchanged=True)
WEEKS = Policy(hourly=24, weekly=8, skip_unchanged=True)
MONTHS = Policy(hourly=24, monthly=6, skip_unchanged=True)


@pytest.mark.parametrize("policy", [USUAL, WEEKS, MONTHS, Policy(monthly=6, skip_unchanged=True)])
@pytest.mark.parametrize("skip", [True, False])
def test_state_before_quiet_month_outlives_busy_month(policy, skip):
    """Work on the weekdays of January, nothing in February; on 1 March the folder is emptied and work goes on."""
    policy = msgspec.structs.replace(policy, skip_unchanged=skip)
    folder, clock = Folder(policy, UTC_ZONE), datetime(2027, 1, 1, tzinfo=UTC)
    last = datetime(2027, 1, 29, 18, tzinfo=UTC)  # a Friday
    while clock < datetime(2027, 3, 6, 12, tzinfo=UTC):
        busy = clock.weekday() < 5 and 8 <= clock.hour <= 18 and (clock <= last or clock.month == 3)
        folder.state += busy
        if clock == last:
            whole = folder.state
        folder.run(clock)
        clock += timedelta(hours=1)
    there = {folder.holds[one.guid] for one in folder.taken}
    if policy.hourly:
        assert whole in there
    assert any(state <= whole for state in there)  # a monthly policy keeps the first of the month


def test_skip_unchanged_takes_no_snapshot_while_nothing_changes():
    folder, clock = Folder(USUAL, UTC_ZONE), datetime(2027, 1, 1, tzinfo=UTC)
    for hour in range(24 * 60):
        folder.run(clock + timedelta(hours=hour))
    assert len(folder.taken) == folder.txg == 1
    assert set(folder.taken[0].grains) == {"hourly", "daily", "weekly", "monthly"}
