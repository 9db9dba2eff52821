"""Which tests with a machine are in every run, how long each lasts, and how a run is shared out.

``python -m tests.durations`` adds what the last run measured (``build/durations.json``) to ``tests/durations.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

DURATIONS = Path(__file__).with_name("durations.json")  # seconds of each test with a machine: two at a time, two cores
MEASURED = Path("build/durations.json")
EVERY_RUN = Path(__file__).with_name("every_run.txt")
WITH_A_MACHINE = ("tests/system/", "tests/browser/")
UNKNOWN = 60.0  # seconds that a test is taken to last which was never measured
LONGEST = 120.0  # seconds that a test of every run may last, with what is prepared for it, as DURATIONS has it
# Those that last longer, and why. The first test of a file has what the file prepares for all of its tests.
LONG = {
    "tests/system/backups/test_over_ssh.py::test_every_folder_arrives_with_equal_guids_and_files": (
        "prepares a first copy of all folders over ssh for the file"
    ),
    "tests/system/backups/test_pool_to_pool.py::test_every_folder_is_copied_with_equal_guids_and_files": (
        "prepares two pools and a first copy for the file"
    ),
    "tests/system/benchmarks/test_client_run.py::test_folder_is_measured_from_outside[smb]": (
        "prepares a share over SMB and NFS and a forwarded network for the file"
    ),
    "tests/system/benchmarks/test_client_run.py::test_script_ends_where_this_computer_does_not_take_larger_frames": (
        "waits until nobody else is connected and the port has its link again"
    ),
    "tests/system/disks/test_burn_in.py::test_clean_disk_passes_and_is_empty_for_a_pool_afterwards": (
        "writes and reads a whole disk twice"
    ),
}


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def every_run() -> tuple[str, ...]:
    """What of the tests with a machine is in every run."""
    lines = (line.strip() for line in EVERY_RUN.read_text().splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def is_listed(nodeid: str, listed: tuple[str, ...]) -> bool:
    return any(nodeid == line or nodeid.startswith((f"{line}::", f"{line}[")) for line in listed)


def known_durations() -> dict[str, float]:
    known: dict[str, float] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    return known


def part_of(seconds: dict[str, float], part: int, parts: int) -> set[str]:
    """Which of these files are in a part (from 1) of so many that last about equally long."""
    shares: list[tuple[float, set[str]]] = [(0.0, set()) for _ in range(parts)]
    for file, took in sorted(seconds.items(), key=lambda item: (-item[1], item[0])):
        shortest = min(range(parts), key=lambda number: shares[number][0])
        shares[shortest] = (shares[shortest][0] + took, shares[shortest][1] | {file})
    return shares[part - 1][1]


def expected_seconds(tests: Iterable[str]) -> float:
    """The seconds that the tests with a machine among these are expected to take, one after the other."""
    known = known_durations()
    return sum(known.get(test, UNKNOWN) for test in tests if test.startswith(WITH_A_MACHINE))


def too_long(seconds: Mapping[str, float], listed: tuple[str, ...]) -> list[str]:
    """Tests of every run that lasted longer than one may, said with their seconds, but for those that have a reason."""
    return [
        f"{test} took {took:.0f} s; one may take {LONGEST:.0f}, or has its reason in tests/durations.py"
        for test, took in seconds.items()
        if took > LONGEST and is_listed(test, listed) and test not in LONG
    ]


def at_known_pace(measured: Mapping[str, float], known: Mapping[str, float]) -> dict[str, float]:
    """Measured seconds as the computer would have taken that measured the known ones: a run on a
    slower one tells the same."""
    both = [test for test in measured if known.get(test)]
    took = sum(measured[test] for test in both)
    pace = sum(known[test] for test in both) / took if took else 1.0
    return {test: round(seconds * pace, 1) for test, seconds in measured.items()}


if __name__ == "__main__":
    before = known_durations()
    together = before | at_known_pace(json.loads(MEASURED.read_text()), before)
    DURATIONS.write_text(json.dumps(dict(sorted(together.items())), indent=1) + "\n")
