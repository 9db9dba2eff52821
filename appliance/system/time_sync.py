"""Whether the clock is set from the network, by which server and how far off it was, as systemd's ``timedatectl`` says.

systemd-timesyncd is Debian's time service. Where chrony or ntpsec is in its place, only
whether the clock agrees is known.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from appliance import command
from appliance.errors import Failed
from appliance.formatting import number_text
from appliance.message import Message

LAST = Path("/run/systemd/timesync/synchronized")  # systemd-timesyncd.service(8): written whenever the clock was set
OFFSET = re.compile(r"^\s*Offset: ([+-]?)(.+)$", re.MULTILINE)
# systemd.time(7), as timespans are written: a month is a twelfth of a year, a year 365.25 days.
SPAN = re.compile(r"([\d.]+)(us|μs|µs|ms|s|min|h|d|w|month|y)\b")
SECONDS = {
    "us": 1e-6,
    "μs": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
    "month": 2629800.0,
    "y": 31557600.0,
}


class TimeSync(msgspec.Struct, frozen=True):
    """``on``: a time service runs; ``by_timesyncd``: it is systemd's, which ``servers`` and ``server`` are of.

    ``synced``: the kernel counts the clock as set. ``offset``: seconds by which it was off at the last answer, ahead of
    the server where negative. ``servers``: what is set; ``fallback``: whom it asks where none is.
    """

    on: bool = False
    synced: bool = False
    by_timesyncd: bool = False
    server: str = ""
    address: str = ""
    offset: float | None = None
    last: datetime | None = None
    servers: tuple[str, ...] = ()
    fallback: tuple[str, ...] = ()

    @property
    def set_elsewhere(self) -> bool:
        """Whether another time service than systemd's sets the clock."""
        return self.on and not self.by_timesyncd

    @property
    def off_by(self) -> str:
        """How far off the clock was, in words: ``less than a millisecond``, ``12 ms``, ``3.4 seconds``."""
        if self.offset is None:
            return ""
        size = abs(self.offset)
        if size < 1e-3:
            return Message("less than a millisecond")
        return f"{size * 1000:.0f} ms" if size < 1 else Message("{count} seconds", count=number_text(f"{size:.1f}"))


def read_time_sync() -> TimeSync | None:
    """How the clock is set now; None where systemd does not say."""
    try:
        of_clock = parse_properties(command.run(["timedatectl", "show"], timeout=20).stdout)
    except Failed:
        return None
    status = command.run(["timedatectl", "show-timesync"], timeout=20, accept=range(256))
    of_service = parse_properties(status.stdout) if not status.status else {}
    said = command.run(["timedatectl", "timesync-status"], timeout=20, accept=range(256)).stdout if of_service else ""
    return time_sync_of(of_clock, of_service, said, read_last())


def time_sync_of(of_clock: dict[str, str], of_service: dict[str, str], status: str, last: datetime | None) -> TimeSync:
    """The same, from the properties and the words of ``timedatectl``."""
    return TimeSync(
        on=of_clock.get("NTP") == "yes",
        synced=of_clock.get("NTPSynchronized") == "yes",
        by_timesyncd=bool(of_service),
        server=of_service.get("ServerName", ""),
        address=of_service.get("ServerAddress", ""),
        offset=parse_offset(status),
        last=last if of_service else None,
        servers=tuple(of_service.get("SystemNTPServers", "").split()),
        fallback=tuple(of_service.get("FallbackNTPServers", "").split()),
    )


def parse_properties(text: str) -> dict[str, str]:
    """The lines of ``timedatectl show``: ``NTP=yes``."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def parse_offset(text: str) -> float | None:
    """The line ``Offset: +1min 2.5s`` of ``timedatectl timesync-status`` in seconds.

    None before the first answer, and where a part of it is not understood.
    """
    found = OFFSET.search(text)
    if not found:
        return None
    if found[2].strip() == "0":
        return 0.0
    if SPAN.sub("", found[2]).strip():
        return None  # a part that is not understood may be the largest
    parts = SPAN.findall(found[2])
    total = sum(float(number) * SECONDS[unit] for number, unit in parts)
    return (-total if found[1] == "-" else total) if parts else None


def read_last(file: Path = LAST) -> datetime | None:
    """When the clock was last set from the network since the start of the box."""
    try:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except OSError:
        return None
