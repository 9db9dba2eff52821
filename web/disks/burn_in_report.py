"""A burn-in as its page, the print, and the choice of disks for a pool show it: the graph of
speeds, changes, and words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext
from msgspec.structs import replace

from appliance.burn_in.regions import Region, RegionResult, span_text
from appliance.burn_in.verdict import COUNTED, WRONG, find_slow
from appliance.formatting import capitalize_opening, rate_text
from web.disks.models import BurnIn
from web.inventory.bays import Bay
from web.translation import lazy_text, text_of

WIDTH, HEIGHT = 600, 160
HEADLINES = {
    "clean": lazy_text("No fault was found."),
    "watch": lazy_text("Something needs a look before you rely on it."),
    "failed": lazy_text("Do not use this disk. Return it if it is under warranty."),
}
STATES = {"clean": "healthy", "watch": "attention", "failed": "failed"}
SEVERITY = {"clean": 0, "watch": 1, "failed": 2}
WORDS = {"clean": lazy_text("clean"), "watch": lazy_text("watch"), "failed": lazy_text("failed")}
STAGES = {
    "short": lazy_text("Short self-test"),
    "long": lazy_text("Long self-test"),
    "write": lazy_text("Writing and reading back"),
    "last": lazy_text("Comparing the disk’s figures"),
}


class Mark(msgspec.Struct, frozen=True):
    """A region on the drawing that failed or is slow: its place from the left, and how wide it is."""

    at: float
    width: float
    failed: bool


class SpeedGraph(msgspec.Struct, frozen=True):
    """Speeds over the length of the disk: two lines, marks of bad regions, and the top of the scale as text."""

    written: str
    read: str
    marks: tuple[Mark, ...]
    top: str
    middle: str
    width = WIDTH
    height = HEIGHT


class BadRegion(msgspec.Struct, frozen=True):
    """A line of the table of regions that failed or are slow."""

    number: int
    span: str
    text: str


def draw_speeds(regions: Sequence[Region], results: Sequence[RegionResult]) -> SpeedGraph | None:
    """The graph of the regions so far; None with fewer than two. The ends are too small for a speed."""
    good = [one for one in sorted(results, key=number_of) if not one.problem and not regions[one.number].is_edge]
    if len(good) < 2:
        return None
    size, top = regions[-1].end, max(max(one.written, one.read) for one in good) or 1
    slow = {one.region.number for one in find_slow(regions, results)}

    def line(speeds: Sequence[int]) -> str:
        places = [(regions[one.number].start + regions[one.number].end) / 2 for one in good]
        return " ".join(
            f"{place * WIDTH / size:.1f},{HEIGHT - speed * (HEIGHT - 4) / top - 2:.1f}"
            for place, speed in zip(places, speeds, strict=True)
        )

    marks = tuple(
        Mark(
            round(regions[one.number].start * WIDTH / size, 1),
            max(round(regions[one.number].size * WIDTH / size, 1), 2),
            bool(one.problem),
        )
        for one in results
        if one.problem or one.number in slow
    )
    written, read = [one.written for one in good], [one.read for one in good]
    return SpeedGraph(
        line(written), line(read), marks, text_of(rate_text(top)), text_of(rate_text(round(median(written + read))))
    )


def number_of(result: RegionResult) -> int:
    return result.number


def list_bad(regions: Sequence[Region], results: Sequence[RegionResult]) -> list[BadRegion]:
    """The regions that failed or are slow, in the order of the disk."""
    found = {one.region.number: one.what for one in find_slow(regions, results)}
    found |= {
        one.number: gettext("{wrong} at byte {at}").format(wrong=text_of(WRONG[one.problem]), at=one.at)
        for one in results
        if one.problem
    }
    return [BadRegion(number + 1, text_of(span_text(regions[number])), found[number]) for number in sorted(found)]


def list_changes(row: BurnIn) -> list[tuple[str, str, str]]:
    """What the drive counted before and after: name, before, after. Only what it tells."""
    before, after = row.before.get("counts", {}), row.reading.get("counts", {})
    return [
        (capitalize_opening(what), str(before.get(name, gettext("not reported"))), str(after[name]))
        for name, what in COUNTED.items()
        if name in after
    ]


def describe_clean(row: BurnIn) -> list[str]:
    """What was tested of a disk without findings, a sentence each: only what really gave a result."""
    passed = sum(bool(test.get("passed")) for test in row.tests.values())
    before, after = row.before.get("counts", {}), row.reading.get("counts", {})
    return [
        gettext("Every sector was written and came back unchanged.")
        if row.writes
        else gettext("It was not written to."),
        gettext("The self-tests gave no result.")
        if not passed
        else gettext("The self-tests passed.")
        if passed == len(row.tests)
        else gettext("One self-test passed, the other gave no result."),
        gettext("The disk counts no new faults.")
        if any(name in before and name in after for name in COUNTED)
        else gettext("The disk reports no figures that could be compared."),
    ]


def draw_temperatures(points: Sequence[Sequence[int]]) -> str:
    """The curve as points of a line in a box of WIDTH by HEIGHT / 2; empty with fewer than two."""
    if len(points) < 2:
        return ""
    high, degrees = HEIGHT / 2, [warm for _minute, warm in points]
    span, least = max(points[-1][0] - points[0][0], 1), min(degrees)
    scale = (high - 8) / max(max(degrees) - least, 1)
    return " ".join(
        f"{(minute - points[0][0]) * WIDTH / span:.1f},{high - 4 - (warm - least) * scale:.1f}"
        for minute, warm in points
    )


def deciding(rows: Sequence[BurnIn]) -> BurnIn | None:
    """The burn-in whose verdict counts, of those of one disk from the oldest on: the newest with a verdict.
    Self-tests alone replace no test that wrote to every sector, unless they found worse. None without any verdict."""
    newest = {row.writes: row for row in rows if row.verdict}
    wrote, tests = newest.get(True), newest.get(False)
    if wrote and tests and (tests.created < wrote.created or SEVERITY[tests.verdict] <= SEVERITY[wrote.verdict]):
        return wrote
    return tests or wrote


def tested_text(rows: Sequence[BurnIn]) -> str:
    """Whether a disk was tested here, in a sentence or two, from its burn-ins from the oldest on."""
    if not rows:
        return gettext("Never tested here.")
    newest, row = rows[-1], deciding(rows)
    if row is None and newest.open:
        return gettext("Its burn-in has not ended.")
    ended = {
        "clean": gettext("clean"),
        "watch": gettext("with something to look at"),
        "failed": gettext("and it failed"),
    }
    shown = row or newest
    said = (
        gettext("Tested {day} without writing to it, {verdict}.")
        if row and not row.writes
        else gettext("Tested {day}, {verdict}.")
    ).format(
        day=date_format(timezone.localtime(shown.finished or shown.created), "j F Y"),
        verdict=ended.get(shown.verdict, gettext("but stopped before the end")),
    )
    return f"{said} {gettext('Another burn-in has not ended.')}" if newest.open else said


def with_burn_ins(bays: Iterable[Bay]) -> list[Bay]:
    """The bays with what is known of their disks' burn-ins, in one query."""
    bays = list(bays)
    known: dict[str, list[BurnIn]] = {serial_of(bay): [] for bay in bays}
    for row in BurnIn.objects.filter(serial__in=known).order_by("created"):
        known[row.serial].append(row)
    return [with_verdict(bay, known[serial_of(bay)]) for bay in bays]


def with_verdict(bay: Bay, rows: Sequence[BurnIn]) -> Bay:
    row = deciding(rows)
    return replace(bay, tested=tested_text(rows), test_failed=row is not None and row.verdict == "failed")


def serial_of(bay: Bay) -> str:
    """What burn-ins are kept by: the serial number, or the stable name where the drive tells none."""
    return bay.disk.serial or bay.key
