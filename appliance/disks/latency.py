"""How long each disk takes for a request, from the kernel's own counters: no disk is asked and none wakes.

``/proc/diskstats`` (Documentation/admin-guide/iostats.rst): after major, minor and name come reads completed, merged,
sectors, milliseconds; the same four for writes. The time between two looks belongs to the requests between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

DISKSTATS = Path("/proc/diskstats")
ENOUGH = 50  # requests between two looks; fewer say nothing
SLOW_FROM = 20.0  # ms: what turns takes up to this long when nothing is wrong
TIMES_SLOWER = 5.0


@dataclass(frozen=True)
class Counters:
    requests: int
    milliseconds: int


def read_counters(text: str | None = None) -> dict[str, Counters]:
    """Counters by kernel name. Lines of another shape are left out."""
    found = {}
    for line in (DISKSTATS.read_text() if text is None else text).splitlines():
        words = line.split()
        if len(words) >= 11 and all(word.isdigit() for word in words[3:11]):
            numbers = [int(word) for word in words[3:11]]
            found[words[2]] = Counters(numbers[0] + numbers[4], numbers[3] + numbers[7])
    return found


def mean_latencies(before: Mapping[str, Counters], now: Mapping[str, Counters]) -> dict[str, float]:
    """Mean milliseconds of a request since then, for disks that had enough of them and whose counters went on."""
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
    """In words how much slower a disk is than those beside it in its group; empty where it is not, or none can be told."""
    if own is None or not others:
        return ""
    usual = median(others)
    if own < SLOW_FROM or own < usual * TIMES_SLOWER:
        return ""
    return f"It takes {own:.0f} ms for a request where the disks beside it take {usual:.1f} ms."
