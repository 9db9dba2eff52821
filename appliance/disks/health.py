"""The health of a disk by its SMART answer: healthy, watch, failing, unknown or asleep, with reasons in plain words.

76.7 % of the drives that failed had counted attribute 5, 187, 188, 197 or 198 before, and 4.2 % of healthy ones do
(Backblaze). An accepted value gives no reason until it grows. A verdict improves only by evidence: a reason stays until
the drive reports that very value again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import msgspec
from msgspec.structs import replace

from appliance.disks.smart import NOT_UNDERSTOOD, SWITCHED_OFF, UNANSWERED
from appliance.disks.smart_values import Reading, SelfTest
from appliance.message import Message, join_messages, message_template

State = Literal["healthy", "watch", "failing", "unknown", "asleep"]
WORST_FIRST: tuple[State, ...] = ("failing", "watch", "unknown", "healthy", "asleep")
WARM_HARD_DISK, WARM_SOLID_STATE = 55, 75  # °C, where the drive reports no limit of its own
COOLED = 5  # °C below its limit before a warm disk counts as cool again
NEAR_TRIP = 5  # °C below where a drive switches itself off
MANY_UNREADABLE = 50  # sectors: a disk that lost so many seldom lasts


class HealthReason(msgspec.Struct, frozen=True):
    """One reason for a verdict. ``count`` names its value.
    ``since``: when the drive stopped reporting that value, as text; empty while it reports it."""

    state: State
    text: str
    count: str = ""
    value: int = 0
    since: str = ""


class DiskHealth(msgspec.Struct, frozen=True):
    """``words`` replace the usual text of the state where there are no reasons."""

    state: State
    reasons: tuple[HealthReason, ...] = ()
    words: str = ""

    @property
    def text(self) -> str:
        """The reasons in sentences."""
        return join_messages([reason.text for reason in self.reasons]) or self.words or WORDS[self.state]


class Before(msgspec.Struct, frozen=True):
    """What was known before an answer. ``known``: whether the drive had reported its health;
    ``counted``: whether it had reported counts; ``now``: the time as text."""

    reasons: tuple[HealthReason, ...] = ()
    known: bool = False
    counted: bool = False
    now: str = ""

    @property
    def was_warm(self) -> bool:
        return any(reason.count == "temperature" for reason in self.reasons)

    def is_missed_by(self, reading: Reading) -> bool:
        """Whether an answer has nothing to judge by, or no counts where there were some before."""
        return not reading.answered or (self.counted and not reading.counts)


NOTHING = Before()


WORDS: dict[State, str] = {
    "healthy": Message("It reports no problem, and none of its counts is a concern."),
    "watch": Message("It works, but needs attention."),
    "failing": Message("It is failing."),
    "unknown": Message("It does not report its health."),
    "asleep": Message("It is sleeping and is not woken to be read."),
}
UNCOUNTED = Message("It reports no problem, but none of the counts that would warn before it fails.")
UNSAID = Message("None of its counts is a concern. It does not report an overall status.")
# Each count: its sentence for one and for more, from how many the disk needs attention, and from how
# many it is failing (0: never).
COUNTS: dict[str, tuple[str, str, int, int]] = {
    "pending": (
        message_template("{value} sector cannot be read."),
        message_template("{value} sectors cannot be read."),
        1,
        MANY_UNREADABLE,
    ),
    "uncorrectable": (
        message_template("{value} sector could not be read in a test."),
        message_template("{value} sectors could not be read in a test."),
        1,
        MANY_UNREADABLE,
    ),
    "reallocated": (
        message_template("{value} sector went bad and was replaced by a spare one."),
        message_template("{value} sectors went bad and were replaced by spare ones."),
        1,
        0,
    ),
    "reported": (
        message_template("{value} error could not be corrected."),
        message_template("{value} errors could not be corrected."),
        1,
        0,
    ),
    "media_errors": (
        message_template("{value} memory error was counted."),
        message_template("{value} memory errors were counted."),
        1,
        0,
    ),
    "grown_defects": (
        message_template("{value} sector went bad since it was made."),
        message_template("{value} sectors went bad since it was made."),
        1,
        0,
    ),
    "uncorrected": (
        message_template("{value} error could not be corrected."),
        message_template("{value} errors could not be corrected."),
        1,
        0,
    ),
    "timeouts": (
        message_template("{value} command was not answered in time."),
        message_template("{value} commands were not answered in time."),
        100,
        0,
    ),
    "crc": (
        message_template("{value} transfer was damaged on the way, mostly by a cable."),
        message_template("{value} transfers were damaged on the way, mostly by a cable."),
        10,
        0,
    ),
}
TEST_KINDS: dict[str, str] = {"short": Message("short"), "long": Message("long"), "other": Message("own")}
PART_FAILED, UNKNOWN_PART_FAILED = (
    Message("a part of it failed"),
    Message("a part of it failed, but the disk does not say which"),
)
FATAL = Message("it ended with a fatal or unknown error")
# What smartctl says of self-tests that failed, in small letters and without marks at the end.
FAILURES: dict[str, str] = {
    "completed: read failure": Message("completed: read failure"),
    "completed: electrical failure": Message("completed: electrical failure"),
    "completed: servo/seek failure": Message("completed: servo/seek failure"),
    "completed: unknown failure": Message("completed: unknown failure"),
    "completed: handling damage": Message("completed: handling damage"),
    "fatal or unknown error": FATAL,
    "fatal or unknown test error": FATAL,
    "completed: unknown failed segment": UNKNOWN_PART_FAILED,
    "completed: failed segments": PART_FAILED,
    "unknown error, incomplete": Message("an unknown error ended it early"),
    "completed, segment failed": UNKNOWN_PART_FAILED,
    "failed in first segment": Message("its first part failed"),
    "failed in second segment": Message("its second part failed"),
    "failed in segment": PART_FAILED,
}
MOST_USED = 255  # per cent: where NVMe's counter ends; firmware without the counter reports it too
ACCEPTABLE = {*COUNTS, "used"}  # values that can be accepted
# Seldom the disk's fault and never reset: only the growth since the disk was first seen counts.
SINCE_FIRST_SEEN = ("crc", "timeouts")
TOO_WARM = Message("It is warmer or colder than it should be.")
# What a SCSI drive reports that is no failure of its own (``smart.WARNING_ALARMS``).
ALARMS: dict[str, str] = {
    "heat": TOO_WARM,
    "humidity": Message("The air around it is too humid or too dry."),
    "enclosure": Message("It reports a fault of its enclosure."),
}
# NVMe base specification, figure "SMART / Health Information", critical warning.
WARNINGS: tuple[tuple[int, State, str], ...] = (
    (1, "failing", Message("Its spare memory is used up.")),
    (2, "watch", TOO_WARM),
    (4, "failing", Message("It reports that it has become unreliable because of memory errors.")),
    (8, "failing", Message("It accepts no more writes and can only be read.")),
    (16, "failing", Message("Its protection against a power cut has failed.")),
    (32, "failing", Message("Its persistent memory region has become unreliable.")),
)


def judge_health(
    reading: Reading,
    accepted: Mapping[str, int],
    *,
    rotational: bool = True,
    warm: bool = False,
    before: Before = NOTHING,
) -> DiskHealth:
    """Judge a disk. ``accepted``: values that give no reason until they grow; ``warm``: it was too warm before."""
    if reading.asleep:
        return DiskHealth("asleep")
    found = [
        *own_verdict_reasons(reading),
        *selftest_reasons(reading),
        *count_reasons(reading, accepted),
        *heat_reasons(reading, rotational, warm or before.was_warm),
    ]
    found += kept_reasons(reading, before, accepted, {reason.count for reason in found})
    if not found and before.is_missed_by(reading):
        return DiskHealth("unknown", (silence_reason(reading, before),))
    if not found:
        return DiskHealth(
            "healthy", (), "" if reading.counts and reading.passed else UNSAID if reading.counts else UNCOUNTED
        )
    found.sort(key=lambda reason: WORST_FIRST.index(reason.state))
    return DiskHealth(found[0].state, tuple(found))


def silence_reason(reading: Reading, before: Before) -> HealthReason:
    """The reason of an unknown verdict: since when the disk is silent, and why."""
    known = next((reason for reason in before.reasons if reason.count == "silence"), None)
    if known or not before.known:
        return known or HealthReason("unknown", no_answer_text(reading))
    what = Message("none of the counts by which it is judged") if reading.answered else Message("nothing of its health")
    return HealthReason(
        "unknown",
        Message("It has reported {what} since {now}.", what=what, now=before.now),
        "silence",
        since=before.now,
    )


def kept_reasons(
    reading: Reading, before: Before, accepted: Mapping[str, int], found: Collection[str]
) -> Iterator[HealthReason]:
    """Earlier reasons whose values the drive no longer reports; silence does not end them."""
    for reason in before.reasons:
        quiet = reason.count in ACCEPTABLE and reason.value <= accepted.get(reason.count, 0)
        if reason.state in {"failing", "watch"} and not (quiet or reason.count in found or is_about(reading, reason)):
            text = (
                reason.text
                if reason.since
                else Message(
                    "{reason_text} It has not reported this again since {now}.", reason_text=reason.text, now=before.now
                )
            )
            yield replace(reason, text=text, since=reason.since or before.now)


def is_about(reading: Reading, reason: HealthReason) -> bool:
    """Whether an answer reports the value that a reason is about."""
    what, _space, which = reason.count.partition(" ")
    if what == "attribute":
        return which in reading.sound
    if what == "self_test":
        return any(test.passed and test.kind in {which, "long"} for test in reading.tests)
    if what == "temperature":
        return reading.temperature is not None
    if what.startswith("warning"):
        return "critical_warning" in reading.counts
    if what == "spare":
        return {"spare", "spare_limit"} <= reading.counts.keys()
    if what == "used":
        return reading.counts.get("used", MOST_USED) < MOST_USED
    return what in reading.counts if what in COUNTS else reading.passed is True and reading.sure


def no_answer_text(reading: Reading) -> str:
    """Why a disk reports nothing; that alone is no fault of the disk."""
    if "USB bridge" in reading.message or "Unknown USB" in reading.message:
        return Message("Its USB case does not pass on the disk's health data.")
    if reading.message.startswith((UNANSWERED, NOT_UNDERSTOOD)):
        return reading.message
    if reading.message == SWITCHED_OFF:
        return Message("Its self-monitoring (SMART) is off. Turn it on with “sudo smartctl -s on” and the disk’s name.")
    return Message("It does not report its health. Disks behind some USB cases and RAID cards cannot.")


def own_verdict_reasons(reading: Reading) -> Iterator[HealthReason]:
    warning = reading.counts.get("critical_warning", 0)
    told = [HealthReason(state, text, f"warning{bit}", bit) for bit, state, text in WARNINGS if warning & bit]
    yield from told
    if reading.passed is False and not told:
        yield HealthReason("failing", Message("It reports that it is failing."), "passed")
    if reading.alarm:
        yield HealthReason("watch", ALARMS[reading.alarm], f"alarm {reading.alarm}")
    for name in reading.failing:
        yield HealthReason(
            "failing", Message("Its value “{name}” is below the limit of its maker.", name=name), f"attribute {name}"
        )


def selftest_reasons(reading: Reading) -> Iterator[HealthReason]:
    """Reasons by the newest self-tests; a short test that passed does not undo a long one that failed."""
    newest: dict[str, SelfTest] = {}
    for test in reading.tests:
        if test.passed is not None:
            newest.setdefault(test.kind, test)
            if test.kind == "long":
                break  # it read the whole disk, so older results no longer matter
    for test in newest.values():
        if test.passed is False:
            yield HealthReason(
                "failing",
                Message(
                    "Its {kind} self-test failed: {test_text}.",
                    kind=TEST_KINDS.get(test.kind, test.kind),
                    test_text=failure_text(test.text),
                ),
                f"self_test {test.kind}",
            )


def failure_text(text: str) -> str:
    """Why a self-test failed, within a sentence."""
    text = text.lower().rstrip(" ?->")
    return FAILURES.get(text, text) or Message("no reason given")


def count_reasons(reading: Reading, accepted: Mapping[str, int]) -> Iterator[HealthReason]:
    for name, (one, many, watch, failing) in COUNTS.items():
        value = reading.counts.get(name, 0)
        known = accepted.get(name, 0)
        new = value - known if name in SINCE_FIRST_SEEN else value
        if value <= known or new < watch:
            continue
        state: State = "failing" if failing and value >= failing else "watch"
        yield HealthReason(state, Message(one if value == 1 else many, value=value), name, value)
    spare, least = reading.counts.get("spare"), reading.counts.get("spare_limit", 0)
    if spare is not None and 0 < least <= 100 and spare < least:
        yield HealthReason(
            "failing",
            Message("Only {spare} % of its spare memory is left.", spare=spare),
            "spare",
            100 - min(spare, 100),
        )
    used = reading.counts.get("used", 0)
    if 100 <= used < MOST_USED and used > accepted.get("used", 0):
        yield HealthReason(
            "watch", Message("It has used up {used} % of the writes that its maker promised.", used=used), "used", used
        )


def usual_limit(rotational: bool) -> int:
    """The °C from which on a disk is too warm whose drive reports no limit."""
    return WARM_HARD_DISK if rotational else WARM_SOLID_STATE


def heat_reasons(reading: Reading, rotational: bool, warm: bool) -> Iterator[HealthReason]:
    limit = reading.limit or reading.trip or usual_limit(rotational)
    # A drive may run at its working limit, but the alert must come before it is damaged or switches itself off.
    mark = min(limit, reading.trip - NEAR_TRIP) if reading.trip else limit
    now = reading.temperature
    if now is not None and now >= mark - (COOLED if warm else 0):
        yield HealthReason(
            "watch", Message("It is at {now} °C; its limit is {limit} °C.", now=now, limit=limit), "temperature"
        )
