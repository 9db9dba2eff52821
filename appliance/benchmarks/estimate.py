"""Estimates of how long a sweep takes, corrected by its finished cases. Pure; all times in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from appliance.benchmarks.case import Case
from appliance.benchmarks.workloads import FILES, KINDS
from appliance.layout.geometry import MIB

GUESSED_RATE = 100 * MIB  # bytes a second of one disk
GUESSED_FILLING = 10 * MIB  # bytes a second that small reads fill a cache device with
AROUND = {"scratch": 20, "dataset": 8, "disk": 3, "network": 1}  # to make and clean up the scratch pool or folder
BETWEEN = 4  # between two jobs
SERVING = 6  # to restart server and client
DROPPING = 3  # to export and import the pool between runs
FILES_A_SECOND = 100


def run_seconds(case: Case, disk_size: int = 0) -> float:
    kind = KINDS[case.workload]
    if kind.timed:
        return case.seconds
    if case.workload == "small-files":
        return FILES * case.writers / FILES_A_SECOND
    if case.workload == "resilver":
        return disk_size * case.fill / 100 * 2 / GUESSED_RATE
    return case.size / GUESSED_RATE


def case_seconds(case: Case, disk_size: int = 0) -> float:
    """Seconds of one case. ``disk_size`` is the size of the smallest disk, which decides how long a rebuild takes."""
    runs = case.repeats + case.warmups
    prefill = case.size / GUESSED_RATE if KINDS[case.workload].needs_file else 0
    if case.sample:
        prefill *= 2  # a sample is read before it is written
    dropping = DROPPING + (SERVING if case.protocol else 0)
    if case.cache and case.warmups:
        prefill += case.size / GUESSED_FILLING
    return AROUND[case.where] + BETWEEN + prefill + runs * (run_seconds(case, disk_size) + dropping)


def total_seconds(cases: Iterable[Case], disk_size: int = 0) -> int:
    return round(sum(case_seconds(case, disk_size) for case in cases))


def remaining_seconds(cases: Sequence[Case], took: Mapping[int, float], disk_size: int = 0) -> int:
    """Seconds left. ``took`` has the seconds of each finished case by its number (from 0) and corrects the estimate."""
    guessed = [case_seconds(case, disk_size) for case in cases]
    done = sum(guessed[number] for number in took)
    factor = sum(took.values()) / done if done else 1.0
    return round(sum(seconds for number, seconds in enumerate(guessed) if number not in took) * factor)
