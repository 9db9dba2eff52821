"""What a drive says of its health, as values."""

from __future__ import annotations

import msgspec


class SelfTest(msgspec.Struct, frozen=True):
    """A self-test of the drive's log. ``passed`` is None where it was stopped and says nothing about the drive."""

    kind: str  # short, long, other
    passed: bool | None
    text: str = ""
    hours: int | None = None  # the drive's age when it was done


class SmartFigure(msgspec.Struct, frozen=True):
    """A figure that no verdict uses. ``rating`` and ``limit`` are ATA's normalised value and threshold."""

    name: str
    number: int
    text: str
    rating: int | None = None
    limit: int | None = None


class Reading(msgspec.Struct, frozen=True):
    """A drive's answer. ``counts`` holds only reported values: reallocated, pending, media_errors, spare, …"""

    answered: bool = False
    asleep: bool = False
    passed: bool | None = None
    alarm: str = ""  # one of WARNING_ALARMS: what a SCSI drive reports that is no failure of its own
    sure: bool = True  # whether "passed" came without a command that failed
    temperature: int | None = None
    limit: int | None = None  # °C, up to where the drive says that it works
    trip: int | None = None  # °C, where it is damaged or switches itself off
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    failing: tuple[str, ...] = ()  # names of attributes below their own threshold now
    sound: tuple[str, ...] = ()  # names of the others
    tests: tuple[SelfTest, ...] = ()  # the newest first
    able: bool = False  # whether it says that it can test itself
    unable: bool = False  # whether it says that it cannot
    logged: bool = False  # whether it told its log of self-tests, empty or not
    ata: bool = False  # whether it takes ATA commands, by itself or through its USB case
    testing: bool = False  # whether a self-test runs
    test_left: int | None = None  # per cent of it that are left; None also where the drive does not report it
    hours: int | None = None
    errors: int | None = None  # entries that the drive's error log has counted
    figures: tuple[SmartFigure, ...] = ()
    message: str = ""  # why it did not answer, in smartctl's words
