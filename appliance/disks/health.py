"""How a disk is, judged by its own answer: healthy, watch, failing, unknown or asleep, with reasons in plain words.

What counts and why: field notes B (76.7 % of the drives that failed showed 5, 187, 188, 197 or 198 before, 4.2 % of
healthy ones do). A value that its owner has accepted stays quiet until it grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from appliance.disks.smart import SWITCHED_OFF, UNANSWERED, Reading, SelfTest

State = Literal["healthy", "watch", "failing", "unknown", "asleep"]
WORST_FIRST: tuple[State, ...] = ("failing", "watch", "unknown", "healthy", "asleep")
WARM_HARD_DISK, WARM_SOLID_STATE = 55, 75  # °C, where the drive does not tell its own limit
COOLED = 5  # °C below its limit before a warm disk counts as cool again
MANY_UNREADABLE = 50  # sectors: a disk that lost so many seldom lasts


@dataclass(frozen=True)
class Reason:
    """One thing behind a verdict. ``count`` names the value it is about, empty where it is none."""

    state: State
    text: str
    count: str = ""
    value: int = 0


@dataclass(frozen=True)
class Verdict:
    state: State
    reasons: tuple[Reason, ...] = ()

    @property
    def text(self) -> str:
        """The reasons in sentences."""
        return " ".join(reason.text for reason in self.reasons) or WORDS[self.state]


WORDS: dict[State, str] = {
    "healthy": "It says that it works, and nothing it counts is a worry.",
    "watch": "It works, but something deserves a look.",
    "failing": "It is failing.",
    "unknown": "It does not tell how it is.",
    "asleep": "It sleeps, and is not woken to be asked.",
}
# What each count says: one, many, from how many it is worth a look, and from how many the disk is failing (0: never).
COUNTS: dict[str, tuple[str, str, int, int]] = {
    "pending": ("sector cannot be read", "sectors cannot be read", 1, MANY_UNREADABLE),
    "uncorrectable": ("sector could not be read in a test", "sectors could not be read in a test", 1, MANY_UNREADABLE),
    "reallocated": ("sector went bad and was replaced by a spare one", "sectors went bad and were replaced by spare ones", 1, 0),
    "reported": ("error could not be corrected", "errors could not be corrected", 1, 0),
    "media_errors": ("error of its memory was counted", "errors of its memory were counted", 1, 0),
    "grown_defects": ("sector went bad since it was made", "sectors went bad since it was made", 1, 0),
    "uncorrected": ("error could not be corrected", "errors could not be corrected", 1, 0),
    "timeouts": ("command was not answered in time", "commands were not answered in time", 100, 0),
    "crc": ("transfer was damaged on the way, mostly by a cable", "transfers were damaged on the way, mostly by a cable", 10, 0),
}  # fmt: skip
# Seldom the disk's fault and never set back: only what comes after the first look counts.
SINCE_FIRST_SEEN = ("crc", "timeouts")
# NVMe base specification, figure "SMART / Health Information", critical warning.
WARNINGS: tuple[tuple[int, State, str], ...] = (
    (1, "failing", "Its spare memory is used up."),
    (2, "watch", "It is warmer or colder than it should be."),
    (4, "failing", "It says that it has become unreliable because of errors of its memory."),
    (8, "failing", "It takes no more writes; what is on it can only be read."),
    (16, "failing", "Its protection against a power cut has failed."),
    (32, "failing", "Its persistent memory region has become unreliable."),
)


def judge(reading: Reading, accepted: Mapping[str, int], *, rotational: bool = True, warm: bool = False) -> Verdict:
    """The verdict on a disk. ``accepted``: values that stay quiet until they grow; ``warm``: it was too warm before."""
    if reading.asleep:
        return Verdict("asleep")
    if not reading.answered and reading.temperature is None:
        return Verdict("unknown", (Reason("unknown", no_answer(reading)),))
    found = [
        *of_itself(reading),
        *of_tests(reading),
        *of_counts(reading, accepted),
        *of_heat(reading, rotational, warm),
    ]
    if not found:
        return Verdict("healthy") if reading.answered else Verdict("unknown", (Reason("unknown", no_answer(reading)),))
    found.sort(key=lambda reason: WORST_FIRST.index(reason.state))
    return Verdict(found[0].state, tuple(found))


def no_answer(reading: Reading) -> str:
    """Why nothing is known of it: not a fault of the disk by itself."""
    if "USB bridge" in reading.message or "Unknown USB" in reading.message:
        return "Its USB case does not pass on what the disk says of itself."
    if reading.message.startswith(UNANSWERED):
        return reading.message
    if reading.message == SWITCHED_OFF:
        return "Its watch over itself (SMART) is switched off. On the box, “sudo smartctl -s on” with the disk’s name switches it on."
    return "It does not tell how it is. Disks behind some USB cases and RAID cards do not."


def of_itself(reading: Reading) -> Iterator[Reason]:
    warning = reading.counts.get("critical_warning", 0)
    told = [Reason(state, text, f"warning{bit}", bit) for bit, state, text in WARNINGS if warning & bit]
    yield from told
    if reading.passed is False and not told:
        yield Reason("failing", "It says itself that it is failing.")
    for name in reading.failing:
        yield Reason("failing", f"Its value “{name}” is worse than its maker allows.")


def of_tests(reading: Reading) -> Iterator[Reason]:
    """The newest result counts; a short test that passed does not undo a long one that failed."""
    newest: dict[str, SelfTest] = {}
    for test in reading.tests:
        if test.passed is not None:
            newest.setdefault(test.kind, test)
            if test.kind == "long":
                break  # it looked at everything, so what is older says nothing any more
    for test in newest.values():
        if test.passed is False:
            yield Reason("failing", f"Its {test.kind if test.kind != 'other' else 'own'} self-test failed: {test.text.lower() or 'no reason told'}.", "self_test")  # fmt: skip


def of_counts(reading: Reading, accepted: Mapping[str, int]) -> Iterator[Reason]:
    for name, (one, many, watch, failing) in COUNTS.items():
        value = reading.counts.get(name, 0)
        known = accepted.get(name, 0)
        new = value - known if name in SINCE_FIRST_SEEN else value
        if value <= known or new < watch:
            continue
        state: State = "failing" if failing and value >= failing else "watch"
        yield Reason(state, f"{value} {one if value == 1 else many}.", name, value)
    spare, least = reading.counts.get("spare"), reading.counts.get("spare_limit", 0)
    if spare is not None and 0 < least <= 100 and spare < least:
        yield Reason("failing", f"Only {spare} % of its spare memory are left.", "spare", 100 - min(spare, 100))
    used = reading.counts.get("used", 0)
    if 100 <= used < 255 and used > accepted.get("used", 0):
        yield Reason("watch", f"It has been written {used} % as much as its maker promised.", "used", used)


def of_heat(reading: Reading, rotational: bool, warm: bool) -> Iterator[Reason]:
    limit = reading.limit or (WARM_HARD_DISK if rotational else WARM_SOLID_STATE)
    now = reading.temperature
    if now is not None and now >= limit - (COOLED if warm else 0):
        yield Reason("watch", f"It is {now} °C warm; {limit} °C is its limit.", "temperature")
