"""The mean latency of each disk from the kernel's counters. No disk is accessed, so none wakes.

``/proc/diskstats`` (Documentation/admin-guide/iostats.rst): after major, minor and name come reads
completed, merged, sectors, milliseconds; the same four for writes. The difference of two samples gives the
time of the requests between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median

import msgspec

from appliance.formatting import number_text
from appliance.message import Message

DISKSTATS = Path("/proc/diskstats")
ENOUGH = 50  # requests between two samples; fewer say nothing
SLOW_FROM = 20.0  # ms: healthy rotating disks take up to this long
TIMES_SLOWER = 5.0


class DiskCounters(msgspec.Struct, frozen=True):
    requests: int
    milliseconds: int


def read_counters(text: str | None = None) -> dict[str, DiskCounters]:
    """Read the counters by kernel name. Other lines are skipped."""
    found = {}
    for line in (DISKSTATS.read_text() if text is None else text).splitlines():
        words = line.split()
        if len(words) >= 11 and all(word.isdigit() for word in words[3:11]):
            numbers = [int(word) for word in words[3:11]]
            found[words[2]] = DiskCounters(numbers[0] + numbers[4], numbers[3] + numbers[7])
    return found


def mean_latencies(before: Mapping[str, DiskCounters], now: Mapping[str, DiskCounters]) -> dict[str, float]:
    """Mean milliseconds per request between two samples, for disks with enough requests whose
    counters did not restart."""
    found = {}
    for name, counters in now.items():
        last = before.get(name)
        if (
            last
            and (requests := counters.requests - last.requests) >= ENOUGH
            and counters.milliseconds >= last.milliseconds
        ):
            found[name] = (counters.milliseconds - last.milliseconds) / requests
    return found


def outlier_text(own: float | None, others: list[float]) -> str:
    """How much slower a disk is than the others of its vdev, as a sentence; empty where it
    is not or nothing is known."""
    if own is None or not others:
        return ""
    usual = median(others)
    if own < SLOW_FROM or own < usual * TIMES_SLOWER:
        return ""
    return Message(
        "It takes {own} ms per request, the other disks of its group {usual} ms.",
        own=f"{own:.0f}",
        usual=number_text(f"{usual:.1f}"),
    )
