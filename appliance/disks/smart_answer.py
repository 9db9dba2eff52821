"""The shape of ``smartctl --json=o``: sections, text, counts, messages, exit status, and whether the disk sleeps.
Nothing here raises."""

from __future__ import annotations

import json
import re
from typing import Any

# Sensors also report nonsense such as negative values, 0 or 255.
COLDEST, HOTTEST = 1, 120  # °C
OPEN_FAILED, COMMAND_FAILED = 2, 4  # bits of smartctl's exit status
LARGEST_FIGURE = 2**63  # what a database column can hold
# smartctl's words of ATA and SCSI power modes (ataprint.cpp, scsiprint.cpp 7.4):
# STANDBY_Y, STANDBY BY TIMER, LOW POWER, …
SLEEP_MODE = re.compile(r"Device is in (STANDBY|SLEEP|LOW POWER)")


def parse_json(text: str) -> object:
    """Parse smartctl's JSON; None where it is invalid or incomplete."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def no_answer(words: str) -> object:
    """An answer in smartctl's shape for a disk that gave none."""
    return {"smartctl": {"messages": [{"string": words, "severity": "error"}]}}


def get_section(answer: object, name: str) -> dict[str, Any]:
    found = answer.get(name) if isinstance(answer, dict) else None
    return found if isinstance(found, dict) else {}


def get_rows(found: object) -> list[dict[str, Any]]:
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def parse_count(found: object, below: int = LARGEST_FIGURE) -> int | None:
    """A plausible count, else None: not a bool, not negative, below ``below``."""
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < below else None


def parse_degrees(found: object, least: int = COLDEST) -> int | None:
    """A plausible temperature in °C, else None."""
    value = parse_count(found)
    return value if value is not None and least <= value <= HOTTEST else None


def smartctl_messages(answer: object) -> str:
    """smartctl's own messages in one line."""
    texts = [str(message.get("string", "")) for message in get_rows(get_section(answer, "smartctl").get("messages"))]
    return clean_text(" ".join(texts), 300)


def text_lines(answer: object) -> list[str]:
    """What smartctl prints without ``--json``, by lines; its JSON lacks some of it for SCSI drives."""
    found = get_section(answer, "smartctl").get("output")
    return [line for line in found if isinstance(line, str)] if isinstance(found, list) else []


def clean_text(text: object, longest: int) -> str:
    """A drive's text without control characters, cut to ``longest``."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))[:longest].strip()


def exit_status(answer: object) -> int:
    return parse_count(get_section(answer, "smartctl").get("exit_status")) or 0


def is_asleep(answer: object) -> bool:
    """Whether smartctl left the drive alone because it sleeps (``-n standby``: exit bit 1 and a message)."""
    return bool(exit_status(answer) & OPEN_FAILED and SLEEP_MODE.search(smartctl_messages(answer)))


def is_mode_unsure(answer: object) -> bool:
    """Whether the drive counts as asleep only because it did not report its power mode: smartctl calls that SLEEP."""
    return is_asleep(answer) and "Device is in SLEEP mode" in smartctl_messages(answer)
