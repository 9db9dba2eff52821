"""The verdict of a burn-in: what changed in the drive's own figures, which regions failed, and which are slow. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from appliance.burn_in.regions import Region, RegionResult, span_text
from appliance.formatting import rate_text

State = Literal["clean", "watch", "failed"]
NEIGHBOURS = 10  # regions on either side: a disk with platters becomes slower towards its end, but not within these
FEWEST = 5  # regions without which a median says nothing
SLOW = 2.0  # times the median of its neighbours
LEAST_LOST = 10.0  # seconds over that median; less may be other work of the box
WARM_HARD_DISK, WARM_SOLID_STATE = 55, 75  # °C, where the drive reports no limit of its own
# Counts that no sound drive raises while it is new: the name, and what a higher value means.
BAD = {
    "reallocated": "sectors replaced by spare ones",
    "pending": "sectors that cannot be read",
    "uncorrectable": "sectors that could not be read in a test",
    "reported": "errors that could not be corrected",
    "media_errors": "errors of its memory",
    "grown_defects": "sectors that went bad since it was made",
    "uncorrected": "errors that could not be corrected",
}
# Counts that more often blame the cable, the bay or the power than the disk.
DOUBTFUL = {"crc": "transfers damaged on the way", "timeouts": "commands not answered in time"}
WRONG = {
    "write": "could not be written",
    "read": "could not be read back",
    "changed": "came back with other data than was written",
}


@dataclass(frozen=True)
class DriveFigures:
    """What the drive said of itself at one moment. ``passed`` is its own overall status, None where it says nothing."""

    counts: Mapping[str, int] = field(default_factory=dict)
    passed: bool | None = None


@dataclass(frozen=True)
class Finding:
    state: State
    text: str


@dataclass(frozen=True)
class SlowRegion:
    """A region that took ``times`` as long as its neighbours, ``lost`` seconds more than them, in the slower direction."""

    region: Region
    times: float
    lost: float
    rate: int
    reading: bool

    @property
    def text(self) -> str:
        return f"{place_text(self.region)} is slow: {self.what}."

    @property
    def what(self) -> str:
        """``reading at 30 MB/s took 6.3 times as long as beside it, 1060 s more``."""
        way = "reading" if self.reading else "writing"
        return (
            f"{way} at {rate_text(self.rate)} took {self.times:.1f} times as long as beside it, {self.lost:.0f} s more"
        )


@dataclass(frozen=True)
class Verdict:
    """``failed``: do not use it; ``watch``: something to look at; ``clean``: nothing was found."""

    state: State
    findings: tuple[Finding, ...] = ()


def place_text(region: Region) -> str:
    """``Region 5 (160 GB to 200 GB)``, counted from 1 as pages do."""
    return f"Region {region.number + 1} ({span_text(region)})"


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
        *(Finding("watch", slow.text) for slow in find_slow(regions, results)),
    ]
    if not results and not any(test.get("passed") for test in tests.values()):
        findings.append(
            Finding("watch", "It was not written to and finished no self-test, so nothing of it was tested.")
        )
    if hottest >= warm:
        findings.append(Finding("watch", f"It became {hottest} °C warm. Give it more air before you rely on it."))
    states = {finding.state for finding in findings}
    state: State = "failed" if "failed" in states else "watch" if states else "clean"
    return Verdict(state, tuple(sorted(findings, key=lambda finding: finding.state != "failed")))


def failed_regions(regions: Sequence[Region], results: Sequence[RegionResult]) -> Iterator[Finding]:
    for result in results:
        if result.problem:
            where = place_text(regions[result.number])
            yield Finding("failed", f"{where} {WRONG[result.problem]}; the first bad place is at byte {result.at}.")


def failed_tests(tests: Mapping[str, Mapping[str, object]]) -> Iterator[Finding]:
    for kind, test in tests.items():
        if test.get("passed") is False:
            yield Finding("failed", f"Its {kind} self-test failed: {test.get('text') or 'it gives no reason'}.")
        elif test.get("passed") is None and test.get("able", True):
            yield Finding("watch", f"Its {kind} self-test has no result: {test.get('text') or 'it did not finish'}.")


def changed_figures(before: DriveFigures, after: DriveFigures) -> Iterator[Finding]:
    """What the drive counts more of than before, and what it counts at all that no new drive has."""
    if after.passed is False:
        yield Finding("failed", "The drive itself reports that it is failing.")
    for name, what in {**BAD, **DOUBTFUL}.items():
        now, then = after.counts.get(name), before.counts.get(name)
        if now is None:
            continue
        if then is not None and now > then:
            hint = " Look at its cable and its bay." if name in DOUBTFUL else ""
            state: State = "watch" if name in DOUBTFUL else "failed"
            yield Finding(state, f"It counts {now} {what}, {now - then} more than before.{hint}")
        elif now and name in BAD:
            yield Finding("watch", f"It counts {now} {what}, as many as before the burn-in.")


def find_slow(regions: Sequence[Region], results: Sequence[RegionResult]) -> list[SlowRegion]:
    """The regions that took at least ``SLOW`` times as long as the median of those around them, and ``LEAST_LOST`` seconds more."""
    good = sorted((one for one in results if not one.problem and not regions[one.number].is_edge), key=lambda one: one.number)  # fmt: skip
    if len(good) < FEWEST:
        return []
    found = []
    for at, one in enumerate(good):
        around = good[max(at - NEIGHBOURS, 0) : at + NEIGHBOURS + 1]
        size = regions[one.number].size
        usual = {
            reading: median((near.read if reading else near.written) for near in around) for reading in (False, True)
        }
        reading = usual[True] / max(one.read, 1) > usual[False] / max(one.written, 1)
        rate = max(one.read if reading else one.written, 1)
        times, lost = usual[reading] / rate, size / rate - size / max(usual[reading], 1)
        if times >= SLOW and lost >= LEAST_LOST:
            found.append(SlowRegion(regions[one.number], times, lost, rate, reading))
    return found
