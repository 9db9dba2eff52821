"""What ``smartctl --json`` says of a drive, in the little that the inventory keeps. Odd answers are facts, not faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Below and above these a sensor talks nonsense (field notes of other products: negative, 0, 255).
COLDEST, HOTTEST = 1, 120  # °C


def temperature(answer: object) -> int | None:
    """Degrees Celsius now, or None where the drive does not tell or tells nonsense."""
    current = section(answer, "temperature").get("current")
    return current if isinstance(current, int) and COLDEST <= current <= HOTTEST else None


def asleep(answer: object) -> bool:
    """Whether smartctl left the drive alone because it sleeps (``-n standby``: exit bit 1 and a message)."""
    control = section(answer, "smartctl")
    messages = control.get("messages") or ()
    said = " ".join(str(message.get("string", "")) for message in messages if isinstance(message, dict))
    return bool(int(control.get("exit_status") or 0) & 2) and any(word in said.upper() for word in ("STANDBY", "SLEEP"))


# What drives that failed had in common (field notes B): each of these above 0 deserves a look.
WORRYING = {5: "sectors were moved away because they went bad", 187: "errors could not be corrected", 197: "sectors cannot be read", 198: "sectors could not be read in a self-test"}  # fmt: skip


@dataclass(frozen=True)
class Health:
    """What a drive says of itself: ``passed`` is None where it does not tell, ``worries`` are in plain words."""

    passed: bool | None = None
    worries: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        if self.passed is False:
            return "It says itself that it is failing."
        if self.worries:
            return f"It says that it works, but {'; '.join(self.worries)}."
        return "It says that it works." if self.passed else "It does not tell how it is."


def health(answer: object) -> Health:
    """The verdict of the drive and what stands behind it, from the JSON of smartctl."""
    passed = section(answer, "smart_status").get("passed")
    table = section(answer, "ata_smart_attributes").get("table")
    worries = []
    for row in table if isinstance(table, list) else ():
        raw = section(row, "raw").get("value")
        if isinstance(row, dict) and row.get("id") in WORRYING and isinstance(raw, int) and 0 < raw < 2**32:
            worries.append(f"{raw} {WORRYING[row['id']]}")
    nvme = section(answer, "nvme_smart_health_information_log")
    if isinstance(nvme.get("media_errors"), int) and nvme["media_errors"] > 0:
        worries.append(f"{nvme['media_errors']} errors of its memory were counted")
    return Health(passed if isinstance(passed, bool) else None, tuple(worries[:4]))


def section(answer: object, name: str) -> dict[str, Any]:
    found = answer.get(name) if isinstance(answer, dict) else None
    return found if isinstance(found, dict) else {}
