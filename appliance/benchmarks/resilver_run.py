"""Measuring how long a pool takes to rebuild a disk: one is taken away, emptied and given back."""

from __future__ import annotations

import time

from appliance import command
from appliance.benchmarks import environment, scratch
from appliance.benchmarks.parse_results import Figures
from appliance.benchmarks.progress import HOURS, telling
from appliance.benchmarks.target import Ground
from appliance.operation import Work
from appliance.pools.vdevs import retry


def commands_for(ground: Ground) -> list[list[str]]:
    """Take the last disk away, and give it back once it is empty."""
    device = scratch.device(ground.case, ground.case.disks[-1])
    return [["zpool", "offline", "--", ground.name, device], ["zpool", "replace", "-f", "--", ground.name, device]]


def rebuilt(ground: Ground, work: Work, doing: str) -> Figures:
    """How long it took and what was written to the disk meanwhile. Raises Failed, Cancelled."""
    offline, replace = commands_for(ground)
    command.run(offline, timeout=scratch.LONG)
    scratch.empty(f"{ground.case.disks[-1]}-part1")
    began, device = time.monotonic(), ground.case.disks[-1:]
    then = environment.moved(device)
    retry.run_with_udev_retry(replace, timeout=scratch.LONG)
    # ``replace`` as well: the place of the old device goes a moment after the last block is written.
    wait = ["zpool", "wait", "-t", "resilver,replace", "--", ground.name]
    command.run(wait, timeout=HOURS, meanwhile=telling(ground, work, doing, 60))
    seconds = time.monotonic() - began
    written = environment.between(then, environment.moved(device)).written
    return Figures(seconds=seconds, rate=written / max(seconds, 0.001), written=written, tool="zpool wait")
