"""Parse the answer of ``smartctl --json`` into one value for ATA, NVMe and SCSI drives. Odd answers raise nothing.

Units and shapes follow smartctl(8) 7.4. A value that a drive does not report is None or absent, never 0: a missing
counter must neither raise an alert nor clear one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from appliance.disks.smart_answer import (
    COMMAND_FAILED,
    clean_text,
    exit_status,
    get_rows,
    get_section,
    is_asleep,
    parse_count,
    parse_degrees,
    smartctl_messages,
    text_lines,
)
from appliance.disks.smart_values import Reading, SelfTest, SmartFigure
from appliance.message import Message, message_template

COOLEST_LIMIT = 40  # °C: no drive's own limit is below
LARGEST_COUNT = 2**32  # more than any counter of bad sectors: a packed or nonsensical value (firmware says 2^64 − 1)
BYTE = 256

# ATA attributes that are counted, by their number. Names and numbers: smartmontools' drivedb.h.
ATA_COUNTS = {5: "reallocated", 187: "reported", 188: "timeouts", 197: "pending", 198: "uncorrectable", 199: "crc"}
MOST_FIGURES = 60
SWITCHED_OFF = Message("SMART is switched off in this disk.")
SILENT = message_template("It has not answered since {day} at {time}.")
UNANSWERED = SILENT.partition(" {")[0]
NOT_UNDERSTOOD = Message("What it answered could not be understood.")
SEAGATE_WORDS = ("seagate", "st")
# Larder's name of each, and the first impossible value: all but the last are one byte in the log.
NVME_COUNTS = {
    "critical_warning": ("critical_warning", BYTE),
    "available_spare": ("spare", BYTE),
    "available_spare_threshold": ("spare_limit", BYTE),
    "percentage_used": ("used", BYTE),
    "media_errors": ("media_errors", LARGEST_COUNT),
}
log = logging.getLogger(__name__)


def read_temperature(answer: object) -> int | None:
    """The current temperature in °C; None where the drive reports none or nonsense."""
    return parse_degrees(get_section(answer, "temperature").get("current"))


def read_smart(answer: object) -> Reading:
    """Parse a drive's answer of any shape. Raises nothing: one odd disk must not leave the others unjudged."""
    try:
        return build_reading(answer)
    except Exception:
        log.exception("an answer of smartctl could not be understood")
        return Reading(message=NOT_UNDERSTOOD)


def build_reading(answer: object) -> Reading:
    if is_asleep(answer):
        return Reading(asleep=True)
    passed = get_section(answer, "smart_status").get("passed")
    alarm = scsi_alarm(answer) if passed is False else ""
    passed = passed if isinstance(passed, bool) and not alarm else None
    counts = ata_counts(answer) | nvme_counts(answer) | scsi_counts(answer)
    counted = bool(counts.keys() - {"spare_limit"})
    # Where a command failed, smartctl says PASSED for want of anything else (ataprintmain.cpp,
    # "based on an Attribute check").
    sure = not (passed and exit_status(answer) & COMMAND_FAILED)
    # Cases for USB say OK in SCSI's words for any disk that is in them. A disk of that kind itself counts something.
    hollow = passed is True and (not sure or get_section(answer, "device").get("protocol") == "SCSI")
    reading = Reading(
        answered=counted or (passed is not None and not hollow) or alarm in WARNING_ALARMS,
        passed=None if hollow and not counted else passed,
        alarm=alarm if alarm in WARNING_ALARMS else "",
        sure=sure,
        temperature=read_temperature(answer),
        limit=parse_degrees(get_section(answer, "temperature").get("op_limit_max"), COOLEST_LIMIT),
        trip=trip_temperature(answer),
        counts=counts,
        failing=failing_attributes(answer),
        sound=tuple(
            attribute_name(row) for row in ata_attributes(answer) if row.get("when_failed") in ("", "past", "-")
        ),
        tests=self_tests(answer),
        able=True in selftest_abilities(answer),
        unable=set(selftest_abilities(answer)) == {False},
        logged=has_selftest_log(answer),
        ata=get_section(answer, "device").get("protocol") == "ATA",
        testing=is_testing(answer),
        test_left=test_left(answer),
        hours=parse_count(get_section(answer, "power_on_time").get("hours"), LARGEST_COUNT),
        errors=parse_count(get_section(get_section(answer, "ata_smart_error_log"), "summary").get("count")),
        figures=(*ata_figures(answer), *nvme_figures(answer), *scsi_figures(answer))[:MOST_FIGURES],
        message=smartctl_messages(answer),
    )
    if get_section(answer, "smart_support").get("enabled") is not False:
        return reading
    # A SCSI drive counts and tests itself all the same; only its own warnings are off, so that OK means nothing.
    if not reading.ata and (counted or reading.tests or reading.testing):
        return replace(reading, passed=None if passed else reading.passed)
    return Reading(temperature=reading.temperature, message=SWITCHED_OFF)


# --- ATA ------------------------------------------------------------------------------------------------------
def ata_attributes(answer: object) -> list[dict[str, Any]]:
    return get_rows(get_section(answer, "ata_smart_attributes").get("table"))


def ata_counts(answer: object) -> dict[str, int]:
    found = {}
    for row in ata_attributes(answer):
        name, raw = ATA_COUNTS.get(parse_count(row.get("id")) or 0), parse_count(get_section(row, "raw").get("value"))
        if name and raw is not None and (value := unpack_count(name, raw, answer)) is not None:
            found[name] = value
    return found


def unpack_count(name: str, raw: int, answer: object) -> int | None:
    """The count in a raw value of 48 bits; None where it cannot be one.

    Seagate packs three counters of 16 bits into 188: all timeouts, those over 5 s and those over 7.5 s (Seagate's SMART
    attribute specification; 4295032853 = 21, 1, 1 in a drive that works). Others keep a second number above 32 bits.
    """
    if name == "timeouts" and (raw >= 2**16 or is_seagate(answer)):
        return raw & 0xFFFF
    if raw >= LARGEST_COUNT:
        low = raw & 0xFFFF
        return low if name in {"reallocated", "reported"} else None
    return raw


def ata_figures(answer: object) -> Iterator[SmartFigure]:
    """Its other attributes. smartctl's text begins with the number that the raw value holds
    (``35 (Min/Max 28/39)``)."""
    for row in ata_attributes(answer):
        raw, number = get_section(row, "raw"), parse_count(row.get("id"))
        text = clean_text(raw.get("string", ""), 60)
        first = re.match(r"[0-9]+", text)
        value = parse_count(int(first[0]) if first else raw.get("value"))
        if number is not None and number not in ATA_COUNTS and value is not None:
            name = clean_text(row.get("name", ""), 40).replace("_", " ")
            yield SmartFigure(
                f"{name} ({number})",
                value,
                text or str(value),
                parse_count(row.get("value")),
                parse_count(row.get("thresh")),
            )


def is_seagate(answer: object) -> bool:
    found = answer if isinstance(answer, dict) else {}
    return any(str(found.get(key, "")).lower().startswith(SEAGATE_WORDS) for key in ("model_family", "model_name"))


def failing_attributes(answer: object) -> tuple[str, ...]:
    """Attributes that are below their threshold now."""
    names = [attribute_name(row) for row in ata_attributes(answer) if row.get("when_failed") == "now"]
    return tuple(names[:8])


def attribute_name(row: dict[str, Any]) -> str:
    return clean_text(row.get("name", ""), 60).replace("_", " ")


KINDS = {1: "short", 2: "long", 0x81: "short", 0x82: "long"}
RUNNING = 15  # ATA's and SCSI's result of a test that has not ended


def self_tests(answer: object) -> tuple[SelfTest, ...]:
    """The log of self-tests, the newest first, without a running one."""
    log = get_section(answer, "ata_smart_self_test_log")
    table = get_rows((get_section(log, "extended") or get_section(log, "standard")).get("table"))
    found = []
    for row in table[:20]:
        status = get_section(row, "status")
        value = parse_count(status.get("value"))
        if value is not None and value >> 4 == RUNNING:
            continue
        kind = KINDS.get(parse_count(get_section(row, "type").get("value")) or 0, "other")
        found.append(
            SelfTest(
                kind,
                ata_result(status),
                clean_text(status.get("string", ""), 80),
                test_hours(row.get("lifetime_hours")),
            )
        )
    return tuple(found) or nvme_tests(answer) or scsi_tests(answer)


def ata_result(status: dict[str, Any]) -> bool | None:
    """Whether a test passed, by the upper four bits of ATA's status: 0 passed, 1 and 2 stopped, 3
    to 8 failed (ACS-3, table 65).

    smartctl leaves ``passed`` out also for 3, a fatal or unknown error (ataPrintSmartSelfTestEntry).
    """
    value, told = parse_count(status.get("value")), status.get("passed")
    if value is None:
        return told if isinstance(told, bool) else None
    return True if value >> 4 == 0 else False if 3 <= value >> 4 <= 8 else None


def test_hours(found: object) -> int | None:
    """The drive's hours of use in its log of self-tests."""
    return parse_count(found, LARGEST_COUNT)


# Two things that smartctl tells of SCSI drives only in its text (scsiPrintSelfTest, 7.4).
NEVER_TESTED = "No Self-tests have been logged"
LEFT_OF_TEST = re.compile(r"Self-test execution status:\s+([0-9]{1,3})% of test remaining")


def has_selftest_log(answer: object) -> bool:
    """Whether the log of self-tests was reported, empty or not."""
    sections = ("ata_smart_self_test_log", "nvme_self_test_log", "scsi_self_test_0")
    return any(get_section(answer, name) for name in sections) or NEVER_TESTED in text_lines(answer)


def selftest_abilities(answer: object) -> list[bool]:
    """What the drive reports about supporting self-tests; a SCSI drive shows it by having a log of them."""
    told = (
        get_section(get_section(answer, "ata_smart_data"), "capabilities").get("self_tests_supported"),
        get_section(answer, "nvme_optional_admin_commands").get("self_test"),  # since smartctl 7.5
        bool(get_section(answer, "nvme_self_test_log"))
        or None,  # 7.4 prints it only where the drive supports self-tests
        bool(get_section(answer, "scsi_self_test_0")) or NEVER_TESTED in text_lines(answer) or None,
    )
    return [one for one in told if isinstance(one, bool)]


def is_testing(answer: object) -> bool:
    """Whether a self-test runs. A SCSI drive has its newest one without hours then."""
    newest = get_section(answer, "scsi_self_test_0")
    ended = parse_count(get_section(newest, "power_on_time").get("hours"))
    scsi = parse_count(get_section(newest, "result").get("value")) == RUNNING and not ended
    nvme = parse_count(
        get_section(get_section(answer, "nvme_self_test_log"), "current_self_test_operation").get("value")
    )
    return scsi or bool(nvme) or test_left(answer) is not None


def test_left(answer: object) -> int | None:
    status = get_section(get_section(get_section(answer, "ata_smart_data"), "self_test"), "status")
    value, left = parse_count(status.get("value")), parse_count(status.get("remaining_percent"), 101)
    if value is not None and value >> 4 == RUNNING:
        return left if left is not None else (value & 15) * 10
    log = get_section(answer, "nvme_self_test_log")
    done = parse_count(log.get("current_self_test_completion_percent"))
    running = get_section(log, "current_self_test_operation").get("value")
    if running and done is not None and done <= 100:
        return 100 - done
    told = next(filter(None, map(LEFT_OF_TEST.match, text_lines(answer))), None)
    return parse_count(int(told[1]), 101) if told else None


# --- NVMe -----------------------------------------------------------------------------------------------------
def nvme_counts(answer: object) -> dict[str, int]:
    log = get_section(answer, "nvme_smart_health_information_log")
    told = {name: parse_count(log.get(key), below) for key, (name, below) in NVME_COUNTS.items()}
    return {name: value for name, value in told.items() if value is not None}


def nvme_figures(answer: object) -> Iterator[SmartFigure]:
    """The other counters and each temperature sensor."""
    for name, value in get_section(answer, "nvme_smart_health_information_log").items():
        title = clean_text(name, 40).replace("_", " ").capitalize()
        if name == "temperature_sensors" and isinstance(value, list):
            for at, found in enumerate(value[:8], start=1):
                if (warmth := parse_degrees(found)) is not None:
                    yield SmartFigure(f"Sensor {at}, °C", warmth, str(warmth))
        elif name not in NVME_COUNTS and (number := parse_count(value)) is not None:
            yield SmartFigure(title, number, str(number))


def nvme_tests(answer: object) -> tuple[SelfTest, ...]:
    """NVMe base specification, log page 06h: result 0 passed, 5 to 7 failed, the others were stopped."""
    found = []
    for row in get_rows(get_section(answer, "nvme_self_test_log").get("table"))[:20]:
        result, code = get_section(row, "self_test_result"), get_section(row, "self_test_code")
        value = parse_count(result.get("value"))
        passed = True if value == 0 else False if value in {5, 6, 7} else None
        kind = KINDS.get(parse_count(code.get("value")) or 0, "other")
        found.append(
            SelfTest(kind, passed, clean_text(result.get("string", ""), 80), test_hours(row.get("power_on_hours")))
        )
    return tuple(found)


# --- SCSI -----------------------------------------------------------------------------------------------------
def scsi_counts(answer: object) -> dict[str, int]:
    found = {}
    told = answer.get("scsi_grown_defect_list") if isinstance(answer, dict) else None
    if (grown := parse_count(told, LARGEST_COUNT)) is not None:
        found["grown_defects"] = grown
    log = get_section(answer, "scsi_error_counter_log")
    parts = [
        parse_count(get_section(log, part).get("total_uncorrected_errors"), LARGEST_COUNT)
        for part in ("read", "write", "verify")
    ]
    total = sum(value or 0 for value in parts)
    # A part without counts says nothing about the others. Not every drive has one for verifying.
    if total or None not in parts[:2]:
        found["uncorrected"] = min(total, LARGEST_COUNT - 1)
    return found


def scsi_figures(answer: object) -> Iterator[SmartFigure]:
    """Corrected errors: SCSI disks count many of them, and none is a loss."""
    log = get_section(answer, "scsi_error_counter_log")
    for part in ("read", "write", "verify"):
        if (number := parse_count(get_section(log, part).get("total_errors_corrected"))) is not None:
            yield SmartFigure(f"Errors corrected ({part})", number, str(number))


# The additional sense code and qualifiers of exceptions that are no failure of the drive (SPC-5;
# scsiGetIEString of smartctl).
SCSI_ALARMS = {
    **dict.fromkeys([(0x0B, 0x01), *((0x0B, limit) for limit in range(0x0A, 0x0E))], "heat"),
    **dict.fromkeys([(0x0B, limit) for limit in range(0x0E, 0x12)], "humidity"),
    (0x0B, 0x02): "enclosure",
    (0x5D, 0xFF): "trial",  # somebody tests whether such exceptions arrive
}
WARNING_ALARMS = ("heat", "humidity", "enclosure")


def scsi_alarm(answer: object) -> str:
    """What a SCSI drive reports, where that is no failure of its own; else empty. smartctl
    calls each of them not passed."""
    told = get_section(get_section(answer, "smart_status"), "scsi")
    code, qualifier = (parse_count(told.get(name), BYTE) for name in ("asc", "ascq"))
    return "" if code is None or qualifier is None else SCSI_ALARMS.get((code, qualifier), "")


SCSI_KINDS = {1: "short", 5: "short", 2: "long", 6: "long"}  # in the background, or with the disk taken up by it


def scsi_tests(answer: object) -> tuple[SelfTest, ...]:
    """SPC-4, self-test results log: 0 passed, 1 and 2 stopped, 3 to 7 failed, 15 running. smartctl numbers the keys."""
    found = []
    for number in range(20):
        row = get_section(answer, f"scsi_self_test_{number}")
        value = parse_count(get_section(row, "result").get("value"))
        if value is not None and value != RUNNING:
            passed = True if value == 0 else False if 3 <= value <= 7 else None
            kind = SCSI_KINDS.get(parse_count(get_section(row, "code").get("value")) or 0, "other")
            text = clean_text(get_section(row, "result").get("string", ""), 80)
            found.append(SelfTest(kind, passed, text, test_hours(get_section(row, "power_on_time").get("hours"))))
    return tuple(found)


def trip_temperature(answer: object) -> int | None:
    """The temperature in °C at which the drive is damaged or switches itself off."""
    own = get_section(answer, "temperature")
    told = (parse_degrees(own.get(name), COOLEST_LIMIT) for name in ("limit_max", "drive_trip"))
    return next((value for value in told if value is not None), None)
