"""The data rate of a benchmark's disks while it runs, for the graph on its page.

The worker reads the kernel's counters itself; they need no root.
"""

from __future__ import annotations

import time
from collections import deque

from appliance.benchmarks import environment, scratch
from appliance.benchmarks.run_case import RunBenchmarkCase
from web.inventory import store

KEPT = 120  # readings: the last two minutes


class Meter:
    """Measures one job. ``paths`` are the devices whose counters are read."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self.last = environment.read_io(paths)
        self.at = time.monotonic()
        self.found: deque[list[int]] = deque(maxlen=KEPT)

    def measure_speeds(self) -> list[list[int]]:
        """Add a sample; returns bytes per second read and written between the samples, the oldest first."""
        now, at = environment.read_io(self.paths), time.monotonic()
        seconds = at - self.at
        if seconds > 0:
            moved = environment.io_between(self.last, now)
            self.found.append([round(moved.read / seconds), round(moved.written / seconds)])
            self.last, self.at = now, at
        return list(self.found)


def meter_of(operation: object) -> Meter | None:
    """The meter of a case on disks; None for every other job."""
    if not isinstance(operation, RunBenchmarkCase) or operation.case.where == "network":
        return None
    case = operation.case
    if case.where != "dataset":
        return Meter(list(case.all_disks))
    pools = store.facts_of_pools().pools
    return Meter(scratch.device_paths(next((pool for pool in pools if pool.guid == case.guid), None)))
