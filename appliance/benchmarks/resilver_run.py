"""Measure how long a resilver takes: take a disk offline, clear it and replace it with itself."""

from __future__ import annotations

import time

from appliance import command
from appliance.benchmarks import environment, scratch
from appliance.benchmarks.parse_results import Figures
from appliance.benchmarks.progress import HOURS, progress_reporter
from appliance.benchmarks.target import BenchmarkTarget
from appliance.operation import Work
from appliance.pools.vdevs import retry


def resilver_commands(target: BenchmarkTarget) -> list[list[str]]:
    """The two commands: take the last disk offline, and replace it once it is empty."""
    device = scratch.data_device(target.case, target.case.disks[-1])
    return [["zpool", "offline", "--", target.name, device], ["zpool", "replace", "-f", "--", target.name, device]]


def measure_resilver(target: BenchmarkTarget, work: Work, doing: str) -> Figures:
    """Resilver the last disk: seconds and bytes written to it. Raises Failed, Cancelled."""
    offline, replace = resilver_commands(target)
    command.run(offline, timeout=scratch.LONG)
    scratch.clear_device(f"{target.case.disks[-1]}-part1")
    began, device = time.monotonic(), target.case.disks[-1:]
    then = environment.read_io(device)
    retry.run_with_udev_retry(replace, timeout=scratch.LONG)
    # Wait for ``replace`` too: ZFS detaches the old device a moment after the last block is written.
    wait = ["zpool", "wait", "-t", "resilver,replace", "--", target.name]
    command.run(wait, timeout=HOURS, meanwhile=progress_reporter(target, work, doing, 60))
    seconds = time.monotonic() - began
    written = environment.io_between(then, environment.read_io(device)).written
    return Figures(seconds=seconds, rate=written / max(seconds, 0.001), written=written, tool="zpool wait")
