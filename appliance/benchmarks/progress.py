"""Progress of a running benchmark program: percentage, speed of its disks, and reasons to stop it."""

from __future__ import annotations

import time
from collections.abc import Callable

from appliance.benchmarks import environment
from appliance.benchmarks.target import BenchmarkTarget
from appliance.errors import Failed
from appliance.formatting import rate_text
from appliance.message import Message
from appliance.operation import Work
from appliance.zfs import kstat

HOURS = 6 * 3600  # seconds: the longest that one run may take


def progress_reporter(target: BenchmarkTarget, work: Work, doing: str, expected: float) -> Callable[[], None]:
    """A function to call every second while a program runs: it reports progress with the speed of the disks.

    ``expected`` is in seconds. The function raises Cancelled if the user asked to stop, and Failed if the pool stopped.
    """
    began, devices = time.monotonic(), target.device_paths()
    last = environment.read_io(devices)

    def look() -> None:
        nonlocal last
        work.stop_if_asked()
        if target.case.makes_folder and kstat.is_stopped(target.pool):
            raise Failed(Message("The pool has stopped while it was measured, because a disk of it does not answer"))
        now = environment.read_io(devices)
        done = environment.io_between(last, now)
        last = now
        seconds = time.monotonic() - began
        said = (
            doing
            if not devices
            else Message(
                "{doing}: {read} read, {written} written",
                doing=doing,
                read=rate_text(done.read),
                written=rate_text(done.written),
            )
        )
        work.progress(min(99, int(seconds * 100 / max(expected, 1))), said)

    return look
