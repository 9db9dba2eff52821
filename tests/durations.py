"""Which tests with a machine are in every run, how long each lasts, and how a run is shared out.

``python -m tests.durations`` adds what the last run measured (``build/durations.json``) to ``tests/durations.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

DURATIONS = Path(__file__).with_name("durations.json")  # seconds of each test with a machine: one at a time, two cores
MEASURED = Path("build/durations.json")
EVERY_RUN = Path(__file__).with_name("every_run.txt")
WITH_A_MACHINE = ("tests/system/", "tests/browser/")
UNKNOWN = 60.0  # seconds that a test is taken to last which was never measured
LONGEST = 120.0  # seconds that a test of every run may last, where machines are as quick as when DURATIONS was measured


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


def too_long(measured: Mapping[str, float], known: Mapping[str, float], listed: tuple[str, ...]) -> list[str]:
    """Tests of every run that lasted longer than one may, said with their seconds.

    A slow computer is no fault of a test: the limit grows as much as all other tests together took longer than they did
    when they were measured.
    """
    both = measured.keys() & known.keys()
    found = []
    for test, took in measured.items():
        others = both - {test}
        if not others or not is_listed(test, listed):
            continue
        slower = sum(measured[other] for other in others) / max(1.0, sum(known[other] for other in others))
        if took > (limit := LONGEST * max(1.0, slower)):
            found.append(f"{test} took {took:.0f} s; one may take {limit:.0f} s")
    return found


if __name__ == "__main__":
    together = known_durations() | json.loads(MEASURED.read_text())
    DURATIONS.write_text(json.dumps(dict(sorted(together.items())), indent=1) + "\n")
