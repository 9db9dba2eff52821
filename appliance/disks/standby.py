"""When a hard disk goes to sleep by itself: its own timer, which it forgets when it loses power.

The timer is that of the ATA command IDLE (ACS-3, table "Standby timer periods"), set by smartctl. A drive has no way of
telling what its timer stands at, so what it was told is kept by whoever told it.
"""

from __future__ import annotations

from pathlib import Path

from appliance.disks import query, smart
from appliance.errors import Failed, Reason, Refused, explain

MINUTES = (0, 10, 20, 30, 60, 120)  # 0: never
MARGIN = 60  # seconds that a drive may be late
BOOT = Path("/proc/sys/kernel/random/boot_id")
BLOCK = Path("/sys/block")
TOLD, ASLEEP = "told", "asleep"


def timer_value(minutes: int) -> int:
    """The timer's value: up to 240 in steps of five seconds, from 241 on in steps of half an hour. Raises Refused."""
    if minutes not in MINUTES:
        raise Refused(
            Reason("standby-time-unknown", "Choose 10, 20 or 30 minutes, one or two hours, or never.", field="sleep")
        )
    return minutes * 60 // 5 if minutes <= 20 else 240 + minutes // 30


def set_timer(path: str, minutes: int) -> str:
    """Set a disk's timer: ``told``, ``asleep`` where it sleeps and was left alone, else why it did not take it.

    The command wakes a sleeping disk, so one is not sent to it. smartctl's exit status is a bit mask; 1 to 4 say that
    the drive did not take the command (smartctl(8)).
    """
    argv = ["smartctl", "--json", "-n", "standby", "-s", f"standby,{timer_value(minutes) or 'off'}", "--", path]
    try:
        result = query.query_disk(path, argv, timeout=30)
    except Failed as problem:
        return explain(problem)
    answer = smart.parse_json(result.stdout)
    if smart.is_asleep(answer):
        return ASLEEP
    if result.status & 7:
        return (
            smart.smartctl_messages(answer) or "It did not take the command. Its case or controller may not pass it on."
        )
    return TOLD


def is_rotating(path: str) -> bool:
    """Whether the kernel takes a disk for one that turns. Some without moving parts say that they sleep, all the time."""
    try:
        return (BLOCK / Path(path).resolve().name / "queue/rotational").read_text().strip() != "0"
    except OSError:
        return True


def power_token(name: str) -> str:
    """Changes whenever a disk may have lost power: with each start of the box, and each time that it was plugged in.

    ``diskseq`` is the kernel's own number of a disk's appearance (Documentation/ABI/stable/sysfs-block).
    """
    found = [BOOT, BLOCK / name / "diskseq"]
    return " ".join(file.read_text().strip() for file in found if file.exists())


def should_leave_alone(minutes: int | None, *, idle: bool, since: float) -> bool:
    """Whether a disk should not be asked how it is now, so that it can fall asleep.

    Many drives begin their timer anew with every question. ``idle``: nothing was read or written since it was last
    asked; ``since``: seconds from then to now.
    """
    return bool(minutes) and idle and since < (minutes or 0) * 60 + MARGIN
