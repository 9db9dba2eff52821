"""The standby timer of a hard disk, which it forgets when it loses power.

The timer is that of the ATA command IDLE (ACS-3, table "Standby timer periods"), set by smartctl. A drive cannot
report its timer, so Larder stores what it sent.
"""

from __future__ import annotations

from pathlib import Path

from appliance.disks import power_mode, smart_answer
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.message import Message

MINUTES = (0, 10, 20, 30, 60, 120)  # 0: never
MARGIN = 60  # seconds that a drive may be late
BOOT = Path("/proc/sys/kernel/random/boot_id")
BLOCK = Path("/sys/block")
TOLD, ASLEEP = "told", "asleep"


def timer_value(minutes: int) -> int:
    """The value of the timer: up to 240 in steps of five seconds, from 241 in steps of half an hour. Raises Refused."""
    if minutes not in MINUTES:
        raise Refused(
            Reason("standby-time-unknown", "Choose 10, 20 or 30 minutes, one or two hours, or never.", field="sleep")
        )
    return minutes * 60 // 5 if minutes <= 20 else 240 + minutes // 30


def set_timer(path: str, minutes: int) -> str:
    """Set a disk's timer. Returns ``told``, ``asleep`` where it was left alone, else why the disk refused it.

    The command would wake a sleeping disk, so it is not sent to one. Bits 1 to 4 of smartctl's exit status say that the
    drive refused the command (smartctl(8)).
    """
    options = ["-s", f"standby,{timer_value(minutes) or 'off'}", "--", path]
    try:
        result = power_mode.query_if_awake(path, options, timeout=30)
    except Failed as problem:
        return explain_error(problem)
    answer = smart_answer.parse_json(result.stdout)
    if smart_answer.is_asleep(answer):
        return ASLEEP
    if result.status & 7:
        return smart_answer.smartctl_messages(answer) or Message(
            "It did not take the command. Its case or controller may not pass it on."
        )
    return TOLD


def is_rotating(path: str) -> bool:
    """Whether the kernel calls a disk rotational. Some solid-state disks always claim to sleep."""
    try:
        return (BLOCK / Path(path).resolve().name / "queue/rotational").read_text().strip() != "0"
    except OSError:
        return True


def power_token(name: str) -> str:
    """A text that changes whenever a disk may have lost power: at each start of the box and each time it is plugged in.

    ``diskseq`` is the kernel's own number of a disk's appearance (Documentation/ABI/stable/sysfs-block).
    """
    found = [BOOT, BLOCK / name / "diskseq"]
    return " ".join(file.read_text().strip() for file in found if file.exists())


def should_leave_alone(minutes: int | None, *, idle: bool, since: float) -> bool:
    """Whether not to query a disk now, so that it can fall asleep.

    Many drives restart their timer with every query. ``idle``: nothing was read or written since the last query;
    ``since``: seconds since then.
    """
    return bool(minutes) and idle and since < (minutes or 0) * 60 + MARGIN
