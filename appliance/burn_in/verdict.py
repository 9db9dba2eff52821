"""The verdict of a burn-in: what changed in the drive's own figures, which regions failed, and which are slow. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from statistics import median
from typing import Literal

import msgspec

from appliance.burn_in.regions import Region, RegionResult, span_text
from appliance.disks.health import WARM_HARD_DISK, usual_limit
from appliance.formatting import number_text, rate_text
from appliance.message import Message, join_messages, message_template

State = Literal["clean", "watch", "failed"]
NEIGHBOURS = 10  # regions on either side: a disk with platters becomes slower towards its end, but not within these
FEWEST = 5  # regions without which a median says nothing
SLOW = 2.0  # times the median of its neighbours
# Times the median from which a disk is refused: it reads a place again and again before it has it, which a sound one
# does not, and no other work of the box is likely to have held up one region alone by as much.
FAR_TOO_SLOW = 4.0
LEAST_LOST = 10.0  # seconds over that median; less may be other work of the box
# Counts that no sound drive raises while it is new: the name, and what a higher value means.
BAD = {
    "reallocated": Message("sectors replaced by spare ones"),
    "pending": Message("sectors that cannot be read"),
    "uncorrectable": Message("sectors that could not be read in a test"),
    "reported": Message("errors that could not be corrected"),
    "media_errors": Message("memory errors"),
    "grown_defects": Message("sectors that went bad since it was made"),
    "uncorrected": Message("errors that could not be corrected"),
}
# Counts that more often blame the cable, the bay or the power than the disk.
DOUBTFUL = {
    "crc": Message("transfers damaged on the way"),
    "timeouts": Message("commands not answered in time"),
}
COUNTED = {**BAD, **DOUBTFUL}
WRONG = {
    "write": Message("could not be written"),
    "read": Message("could not be read back"),
    "changed": Message("came back with other data than was written"),
}

FAILED_TEST = {
    "short": message_template("Its short self-test failed: {text}."),
    "long": message_template("Its long self-test failed: {text}."),
}
NO_RESULT = {
    "short": message_template("Its short self-test has no result: {text}."),
    "long": message_template("Its long self-test has no result: {text}."),
}


class DriveFigures(msgspec.Struct, frozen=True):
    """What the drive said of itself at one moment. ``passed`` is its own overall status, None where it says nothing."""

    counts: Mapping[str, int] = msgspec.field(default_factory=dict)
    passed: bool | None = None


class Finding(msgspec.Struct, frozen=True):
    state: State
    text: str


class SlowRegion(msgspec.Struct, frozen=True):
    """A region that took ``times`` as long as its neighbours, ``lost`` seconds more than
    them, in the slower direction."""

    region: Region
    times: float
    lost: float
    rate: int
    reading: bool

    @property
    def state(self) -> State:
        return "failed" if self.times >= FAR_TOO_SLOW else "watch"

    @property
    def text(self) -> str:
        return Message("{place} is slow: {what}.", place=place_text(self.region), what=self.what)

    @property
    def what(self) -> str:
        """``reading at 30 MB/s took 6.3 times as long as beside it, 1060 s more``."""
        figures = {"rate": rate_text(self.rate), "times": number_text(f"{self.times:.1f}"), "lost": f"{self.lost:.0f}"}
        if self.reading:
            return Message(
                "reading at {rate} took {times} times as long as in the regions beside it, {lost} s more", **figures
            )
        return Message(
            "writing at {rate} took {times} times as long as in the regions beside it, {lost} s more", **figures
        )


class Verdict(msgspec.Struct, frozen=True):
    """``failed``: do not use it; ``watch``: something to look at; ``clean``: nothing was found."""

    state: State
    findings: tuple[Finding, ...] = ()


def place_text(region: Region) -> str:
    """``Region 5 (160 GB to 200 GB)``, counted from 1 as pages do."""
    return Message("Region {number} ({span})", number=region.number + 1, span=span_text(region))


def warm_limit(told: object, *, rotational: bool) -> int:
    """The °C from which on a disk is too warm: what the drive reports, or what is usual for its kind."""
    return told if isinstance(told, int) and told > 0 else usual_limit(rotational)


def judge_disk(
    before: DriveFigures,
    after: DriveFigures,
    tests: Mapping[str, Mapping[str, object]],
    regions: Sequence[Region],
    results: Sequence[RegionResult],
    *,
    hottest: int = 0,
    warm: int = WARM_HARD_DISK,
) -> Verdict:
    """The verdict with everything that speaks against the disk, the worst first.

    ``tests``: by kind (short, long) whether it passed, and the drive's words; ``hottest`` and ``warm`` in °C.
    """
    findings = [
        *failed_regions(regions, results),
        *failed_tests(tests),
        *changed_figures(before, after),
        *(Finding(slow.state, slow.text) for slow in find_slow(regions, results)),
    ]
    if not results and not any(test.get("passed") for test in tests.values()):
        findings.append(
            Finding("watch", Message("It was not written to and finished no self-test, so nothing of it was tested."))
        )
    if hottest >= warm:
        said = Message("It became {degrees} °C warm. Give it more air before you rely on it.", degrees=hottest)
        findings.append(Finding("watch", said))
    states = {finding.state for finding in findings}
    state: State = "failed" if "failed" in states else "watch" if states else "clean"
    return Verdict(state, tuple(sorted(findings, key=lambda finding: finding.state != "failed")))


def failed_regions(regions: Sequence[Region], results: Sequence[RegionResult]) -> Iterator[Finding]:
    for result in results:
        if result.problem:
            where = place_text(regions[result.number])
            said = Message(
                "{place} {wrong}; the first bad place is at byte {at}.",
                place=where,
                wrong=WRONG[result.problem],
                at=result.at,
            )
            yield Finding("failed", said)


def failed_tests(tests: Mapping[str, Mapping[str, object]]) -> Iterator[Finding]:
    for kind, test in tests.items():
        if test.get("passed") is False:
            said = test.get("text") or Message("it gives no reason")
            yield Finding("failed", Message(FAILED_TEST[kind], text=said))
        elif test.get("passed") is None and test.get("able", True):
            said = test.get("text") or Message("it did not finish")
            yield Finding("watch", Message(NO_RESULT[kind], text=said))


def changed_figures(before: DriveFigures, after: DriveFigures) -> Iterator[Finding]:
    """What the drive counts more of than before, and what it counts at all that no new drive has."""
    if after.passed is False:
        yield Finding("failed", Message("The disk itself reports that it is failing."))
    for name, what in COUNTED.items():
        now, then = after.counts.get(name), before.counts.get(name)
        if now is None:
            continue
        if then is not None and now > then:
            hint = Message("Look at its cable and its bay.") if name in DOUBTFUL else ""
            state: State = "watch" if name in DOUBTFUL else "failed"
            said = Message("It counts {count} {what}, {more} more than before.", count=now, what=what, more=now - then)
            yield Finding(state, join_messages([said, hint]))
        elif now and name in BAD:
            said = Message("It counts {count} {what}, as many as before the burn-in.", count=now, what=what)
            yield Finding("watch", said)


def find_slow(regions: Sequence[Region], results: Sequence[RegionResult]) -> list[SlowRegion]:
    """The regions that took at least ``SLOW`` times as long as the median of those around them, and
    ``LEAST_LOST`` seconds more.

    The limit of the speed may have changed on the way. A region is not slow because others had a higher one.
    """
    good = sorted(
        (one for one in results if not one.problem and not regions[one.number].is_edge), key=lambda one: one.number
    )
    if len(good) < FEWEST:
        return []
    found = []
    for at, one in enumerate(good):
        around = comparable_results(one, good[max(at - NEIGHBOURS, 0) : at + NEIGHBOURS + 1])
        size = regions[one.number].size
        usual = {
            reading: min(median((near.read if reading else near.written) for near in around), limit_of(one))
            for reading in (False, True)
        }
        reading = usual[True] / max(one.read, 1) > usual[False] / max(one.written, 1)
        rate = max(one.read if reading else one.written, 1)
        times, lost = usual[reading] / rate, size / rate - size / max(usual[reading], 1)
        if times >= SLOW and lost >= LEAST_LOST:
            found.append(SlowRegion(regions[one.number], times, lost, rate, reading))
    return found


def comparable_results(one: RegionResult, around: Sequence[RegionResult]) -> Sequence[RegionResult]:
    """Those whose limit was not lower, where they are enough for a median; else all, which may hide that it is slow."""
    free = [near for near in around if limit_of(near) >= limit_of(one)]
    return free if len(free) >= FEWEST else around


def limit_of(result: RegionResult) -> float:
    """Its limit in bytes a second; infinite without one."""
    return result.rate or inf
