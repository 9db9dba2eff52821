"""The bounds that the design promises for memory, idling and pages, each once, and the figures that they judge.

Nothing is measured here. The bounds of snapshots and backups stand beside their ratios
(``snapshots.py``, ``backups.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.benchmarks.figures import Result, result

MIB = 2**20
MEMORY = 130  # MiB of web, worker and Redis, PSS
MEMORY_UNSEEN = 80  # MiB of the same, when nobody has looked for ten minutes
PROCESSOR_IDLE = 1  # per cent of a core
WRITTEN_IDLE = 20  # MB a day, to the system disk
# How many times as long a page may take:
WHILE_READING = 2  # while the worker reads, as at rest
WITH_MUCH = 2  # with 10 pools and 1,000 folders, as with 1 and 10
WITH_SNAPSHOTS = 2  # with 100,000 snapshots, as with 10
Used = Mapping[str, Mapping[str, int]]  # by unit: "pss" and "written" in bytes, "cpu" in microseconds


def in_mib(used: Used) -> float:
    """The memory of all units."""
    return sum(found["pss"] for found in used.values()) / MIB


def memory(which: str, used: Used) -> list[Result]:
    """What Larder takes on a box that somebody uses."""
    return [
        *(result(f"memory of {unit} on {which}, PSS", found["pss"] / MIB, "MiB") for unit, found in used.items()),
        result(f"memory on {which}: web + worker + Redis, PSS", in_mib(used), "MiB", MEMORY),
    ]


def unseen(used: Used) -> Result:
    """What is left of it when nobody looks."""
    return result("the same ten minutes after the last page", in_mib(used), "MiB", MEMORY_UNSEEN)


def idle(which: str, before: Used, after: Used, passed: float, factor: float) -> list[Result]:
    """What the units did in ``passed`` seconds; ``factor``: how much longer the processor takes under emulation."""
    cpu = sum(after[unit]["cpu"] - before[unit]["cpu"] for unit in before) / 1e6 / passed * 100
    written = sum(max(after[unit]["written"] - before[unit]["written"], 0) for unit in before) / passed * 86400 / 1e6
    scaled = cpu / max(factor, 1)
    return [
        result(f"processor idle, {which}, as measured here", cpu, "% of a core"),
        result("emulation factor at that time (same loop inside and outside)", factor, "times"),
        result(f"processor idle, {which}, scaled by the emulation factor", scaled, "% of a core", PROCESSOR_IDLE),
        result(f"written to the system disk when idle, {which}", written, "MB a day", WRITTEN_IDLE),
    ]


def while_reading(count: int, reading: Mapping[str, float], at_rest: Mapping[str, float]) -> list[Result]:
    """Seconds of some pages while the worker reads new snapshots, against the same pages at rest."""
    return [
        result(
            f"page {path} while the worker reads {count} snapshots, against the same at rest",
            taken / at_rest[path],
            "times",
            WHILE_READING,
        )
        for path, taken in reading.items()
    ]


def with_much(page: str, little: tuple[int, float], much: tuple[int, float]) -> list[Result]:
    """The queries and seconds of a page on a box with much in it, against one with little."""
    (few, fast), (many, slow) = little, much
    return [
        result(f"queries of {page}: 10 pools and 1,000 folders more than 1 and 10", many - few, "queries", 0),
        result(f"queries of {page}", many, "queries"),
        result(f"time of {page}: 10 pools and 1,000 folders against 1 and 10", slow / fast, "times", WITH_MUCH),
    ]


def with_snapshots(words: str, few: float, many: float) -> Result:
    """The seconds of a page of snapshots with 100,000 of them, against 10."""
    return result(f"time of the snapshots {words}: 100,000 against 10", many / few, "times", WITH_SNAPSHOTS)
