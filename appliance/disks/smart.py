"""What ``smartctl --json`` says of a drive, in the little that the inventory keeps. Odd answers are facts, not faults."""

from __future__ import annotations

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


def section(answer: object, name: str) -> dict[str, Any]:
    found = answer.get(name) if isinstance(answer, dict) else None
    return found if isinstance(found, dict) else {}
