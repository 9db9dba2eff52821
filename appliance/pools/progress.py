"""Progress of a pool's long work (scrub, resilver, expansion, …): its name and phrase, its
speed and the time left. Pure.

The clock of readings is one that never goes back or jumps (``time.monotonic``): the box's calendar may do both.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from appliance.facts.box import LongWork, Pool
from appliance.formatting import duration_text, time_left
from appliance.message import Message, message_template

WINDOW = 300.0  # seconds that the speed is taken over: long enough to be calm, short enough to follow
SPACING = 5.0  # readings closer than that replace the last one
LONGEST_GAP = 900.0  # nobody looked for so long: what went before says nothing of now
SHORTEST = 30.0  # seconds to watch before any promise
SURE = 120.0  # from here on, a speed that still changes is the speed
STEADY = 3.0  # before that, its halves may differ by this factor
STANDING = 120.0  # seconds without any move that are worth telling
LONGEST_LEFT = 60 * 86400  # what would take longer is not going at all
TITLES = {
    "scrub": message_template("Scrubbing {pool}"),
    "resilver": message_template("Rebuilding {pool}"),
    "expand": message_template("Growing {pool} by a disk"),
    "remove": message_template("Emptying a device of {pool}"),
    "trim": message_template("Trimming {pool}"),
    "initialize": message_template("Writing through the free space of {pool}"),
}
# Where ZFS keeps no beginning of what has ended, the end tells one run from the next.
KNOWN_BY_THEIR_END = {"trim", "initialize"}


class RateSample(msgspec.Struct, frozen=True):
    """One reading: when, how many bytes were done, and how many a scan had found by then."""

    at: float
    done: int
    looked: int = 0


class WorkRate(msgspec.Struct, frozen=True):
    """The readings of one stretch of uninterrupted work, oldest first."""

    samples: tuple[RateSample, ...] = ()

    def add_sample(self, sample: RateSample, *, running: bool) -> WorkRate:
        """With one more reading. A pause, a step back or a long gap begins anew: the old speed is no longer true."""
        if not running:
            return WorkRate()
        if not self.samples:
            return WorkRate((sample,))
        last = self.samples[-1]
        back = sample.at < last.at or sample.done < last.done or sample.looked < last.looked
        if back or sample.at - last.at > LONGEST_GAP:
            return WorkRate((sample,))
        kept = self.samples
        if len(kept) > 1 and last.at - kept[-2].at < SPACING:
            kept = kept[:-1]
        inside = [one for one in kept if sample.at - one.at <= WINDOW]
        # One from before the window keeps rare readings (once a minute) from being too few.
        before = kept[: len(kept) - len(inside)][-1:]
        return WorkRate((*before, *inside, sample))

    @property
    def rate(self) -> float:
        """Bytes a second over the window; 0 while that cannot be told."""
        if len(self.samples) < 3:
            return 0.0
        first, last = self.samples[0], self.samples[-1]
        span = last.at - first.at
        if span < SHORTEST or last.done <= first.done or self.stalled_seconds >= STANDING:
            return 0.0
        if span < SURE:
            middle = min(self.samples, key=lambda one: abs(one.at - (first.at + span / 2)))
            if middle in {first, last}:
                return 0.0
            before = (middle.done - first.done) / max(middle.at - first.at, 0.1)
            after = (last.done - middle.done) / max(last.at - middle.at, 0.1)
            if min(before, after) * STEADY < max(before, after):
                return 0.0
        return (last.done - first.done) / span

    @property
    def stalled_seconds(self) -> int:
        """Seconds for which nothing has moved; a scan that still looks around moves."""
        if not self.samples:
            return 0
        last = self.samples[-1]
        since = last.at
        for one in reversed(self.samples):
            if (one.done, one.looked) != (last.done, last.looked):
                break
            since = one.at
        return int(last.at - since)

    def seconds_left(self, done: int, total: int) -> int | None:
        """Seconds until it is done; None while that cannot be told."""
        rate = self.rate
        if not rate or total <= done:
            return None
        seconds = (total - done) / rate
        return int(seconds) if seconds < LONGEST_LEFT else None


def work_title(kind: str, pool: str) -> str:
    return Message(TITLES.get(kind, message_template("Working on {pool}")), pool=pool)


def work_key(pool: Pool, work: LongWork) -> str:
    """What work it is, through reboots: the pool, the kind, and when it began as ZFS keeps it on the disks."""
    if work.kind in KNOWN_BY_THEIR_END:
        return f"{pool.guid}-{work.kind}"
    # Two mirrors can be rebuilt at the same time, each on its own (``zpool replace -s``).
    of_group = f"-{work.subject}" if work.kind == "resilver" and work.subject else ""
    return f"{pool.guid}-{work.kind}-{unix_time(work.started)}{of_group}"


def unix_time(at: datetime | None) -> int:
    return int(at.timestamp()) if at else 0


def describe_progress(work: LongWork, *, left: int | None, standing: int) -> str:
    """What to say beside the percent: the time left where it can be told, else why not."""
    if work.state == "paused":
        return Message("paused")
    if work.state == "waiting":
        return Message("waiting until every disk of the group is back and rebuilt")
    if standing >= STANDING:
        return Message("no progress for {duration}", duration=duration_text(standing))
    if left is None:
        return Message("estimating the time left")
    return time_left(left)
