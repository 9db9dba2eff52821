"""Putting on the pool what has to be there before the first run: the file that is read, or what a rebuilding has to copy."""

from __future__ import annotations

import os
from dataclasses import dataclass

from appliance import command
from appliance.benchmarks import estimate, sample_data, scratch, workloads
from appliance.benchmarks.progress import HOURS, telling
from appliance.benchmarks.target import Ground
from appliance.formatting import size_text
from appliance.layout.geometry import MIB
from appliance.operation import Work


@dataclass
class Laid:
    """What the first step found out for the runs after it: ``different`` bytes of a sample, which nothing repeats."""

    different: int = 0


def sample(ground: Ground, work: Work, laid: Laid) -> None:
    """Have files of somebody's own be what is measured with. Raises Refused, Failed, Cancelled."""
    laid.different = sample_data.lay(ground, work)


def lay(ground: Ground, work: Work) -> None:
    """Write the file, or the volume, that is then read or changed. Raises Failed, Cancelled."""
    if ground.case.volblocksize:
        scratch.wait_for_volume(ground.case, ground.token)
    words = workloads.laying(ground.case, ground.place)
    look = telling(ground, work, "Writing the data", estimate.of_run(ground.case))
    command.run(words, timeout=HOURS, meanwhile=look)


def fill(ground: Ground, work: Work) -> None:
    """Fill the pool to the case's part of what it holds. Raises Failed, Cancelled."""
    room = os.statvfs(ground.folder)
    size = room.f_bavail * room.f_frsize * ground.case.fill // 100 // MIB * MIB
    look = telling(ground, work, f"Writing {size_text(size)}", size / estimate.GUESSED_RATE)
    command.run(workloads.filling(ground.folder, size, ground.case.gentle), timeout=HOURS, meanwhile=look)
