"""What time it is as far as Larder can believe the clock: a box without a battery begins each start at some wrong date.

The clock is believed while it goes on from where it was. A start at which it is earlier than before, or later by
more than a month, is in doubt: time then goes on from where it was, by how long the box has been running, so that
slots of days, weeks and months follow one another and none comes twice. A clock that the network set, or that
somebody sets, is believed again. One that was ahead is also believed when the next start agrees with it, or after
some days; one that went back never is, because a box that begins each start at the same date would live through
the same month again and again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from msgspec.structs import replace

from appliance import command
from appliance.errors import Failed

BOOT = Path("/proc/sys/kernel/random/boot_id")
LONGEST_OFF = timedelta(days=31)  # that a start may be after the last look
STEP = 60.0  # seconds by which the clock and the time since the start may drift apart between two looks
PATIENCE = 3 * 86400.0  # seconds of running after which a date that is far ahead is believed


class Clock(msgspec.Struct, frozen=True):
    """How the clock was at a look; ``shift`` is what has to be added to it, nothing while it is believed."""

    boot: str
    running: float  # seconds since the box was started
    wall: datetime
    shift: timedelta = timedelta()
    since: float = 0.0  # ``running`` when the doubt began

    @property
    def believed(self) -> datetime:
        return self.wall + self.shift


def judge_clock(
    last: Clock | None,
    newest: datetime | None,
    *,
    boot: str,
    running: float,
    wall: datetime,
    is_synced: Callable[[], bool | None],
) -> Clock:
    """How the clock is now, by how it was at the last look, or where there was none by the newest snapshot's date."""
    right = Clock(boot, running, wall)
    believed = last.believed if last else newest
    if believed is None or (last and last.boot == boot and not last.shift):
        return right
    if last and last.boot == boot:
        stepped = abs((wall - last.wall).total_seconds() - (running - last.running)) > STEP
        waited = last.shift < timedelta() and running - last.since > PATIENCE
        found = right if stepped or waited else replace(last, running=running, wall=wall)
    else:
        on_its_way = believed <= wall <= believed + LONGEST_OFF
        # Without a record there is only the newest snapshot, which may be as old as the policy was not at work.
        agrees = wall > believed and (last is None or last.wall <= wall <= last.wall + LONGEST_OFF)
        found = right if on_its_way or agrees else Clock(boot, running, wall, believed - wall, running)
    return right if found.shift and is_synced() else found


def boot_id() -> str:
    try:
        return BOOT.read_text().strip()
    except OSError:
        return ""


def seconds_since_boot() -> float:
    """Seconds since the box was started, those asleep counted."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def is_synced() -> bool | None:
    """Whether the network has set the clock, by any time service; None where systemd does not say."""
    try:
        said = command.run(["timedatectl", "show", "--property=NTPSynchronized", "--value"], timeout=10).stdout
    except Failed:
        return None
    return said.strip() == "yes"
