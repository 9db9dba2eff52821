"""Write the data that a case needs before its first run: the file to read, or what a rebuild copies."""

from __future__ import annotations

import os

import msgspec

from appliance import command
from appliance.benchmarks import estimate, sample_data, scratch, workload_command
from appliance.benchmarks.progress import HOURS, progress_reporter
from appliance.benchmarks.target import BenchmarkTarget
from appliance.formatting import binary_text
from appliance.layout.geometry import MIB
from appliance.message import Message
from appliance.operation import Work


class Prefill(msgspec.Struct):
    """What the prefill found out for the runs after it: ``unique_bytes`` of a sample before it repeats."""

    unique_bytes: int = 0


def prepare_sample(target: BenchmarkTarget, work: Work, prefilled: Prefill) -> None:
    """Read files of the chosen folder as the sample. Raises Refused, Failed, Cancelled."""
    prefilled.unique_bytes = sample_data.write_sample(target, work)


def write_test_data(target: BenchmarkTarget, work: Work) -> None:
    """Write the file or volume that the runs read or change. Raises Failed, Cancelled."""
    if target.case.volblocksize:
        scratch.wait_for_volume(target.case, target.token)
    words = workload_command.prefill_command(target.case, target.place)
    look = progress_reporter(target, work, Message("Writing the data"), estimate.run_seconds(target.case))
    command.run(words, timeout=HOURS, meanwhile=look)


def fill_pool(target: BenchmarkTarget, work: Work) -> None:
    """Fill the pool to the percentage of the case. Raises Failed, Cancelled."""
    room = os.statvfs(target.folder)
    size = room.f_bavail * room.f_frsize * target.case.fill // 100 // MIB * MIB
    doing = Message("Writing {size}", size=binary_text(size))
    look = progress_reporter(target, work, doing, size / estimate.GUESSED_RATE)
    command.run(workload_command.fill_command(target.folder, size, target.case.gentle), timeout=HOURS, meanwhile=look)
