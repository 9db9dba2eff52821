"""Reasons why a run does not count. A run that only looks fast is marked invalid and never wins. Pure.

Compares the I/O of the disks (``/sys/class/block/*/stat``) with what the program says it read or wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance.benchmarks.case import Case
from appliance.benchmarks.parse_results import Figures
from appliance.benchmarks.workloads import KINDS
from appliance.formatting import binary_text

TIMES_MEMORY = 2  # data has to be at least this many times the maximum of the ARC
TOLERANCE = 0.7  # least share of the expected I/O, because compression is never exact
TRUSTED = 64 * 2**20  # bytes; below this, metadata is too large a part of the I/O to compare
STILL_FILLING = 0.1  # share of the reads; if more goes to a cache device, it is not warm
HOT = 60  # degrees Celsius


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a run: bytes that its disks read and wrote, and other load. ``memory`` is the ARC maximum."""

    read: int = 0
    written: int = 0
    memory: int = 0
    busy: tuple[str, ...] = ()  # other work of the box, in sentences
    beside: bool = False  # whether another benchmark ran at the same time
    filling: int = 0  # bytes that went to the cache device
    hottest: int = 0  # degrees Celsius of the warmest disk afterwards, 0 if unknown
    throttled: int = 0  # how often the processor throttled itself during the run
    lost: tuple[str, ...] = ()  # devices of the pool that were no longer ONLINE
    sample: int = 0  # bytes of the sample before it repeats, 0 for generated data
    kept: float = 1.0  # share of the sample that was left after compression
    deduped: float = 1.0  # average number of references to each block
    per_disk: dict[str, float] = {}  # average seconds of a request, by link


def invalid_reasons(case: Case, figures: Figures, around: Circumstances) -> Iterator[str]:
    """Reasons why this run does not count; empty if it does."""
    kind = KINDS[case.workload]
    if case.zeros and case.compression != "off":
        yield "Zeros on a pool that compresses are not written at all. Choose data that holds something, or switch compression off."
    if kind.reads and case.makes_folder and not case.aside and case.size < TIMES_MEMORY * around.memory:
        yield f"{binary_text(case.size)} fit into memory, which may keep up to {binary_text(around.memory)}. It takes at least {binary_text(TIMES_MEMORY * around.memory)}, or memory limited meanwhile."
    stored = 0.0 if case.zeros else 1 - (case.compressible / 100 if case.compression != "off" else 0.0)
    stored = 1.0 if case.zeros and case.compression == "off" else stored
    if case.sample:
        stored = around.kept / around.deduped
        if case.dedup and around.sample < case.size:
            yield f"The sample holds only {binary_text(around.sample)} and was repeated until it was {binary_text(case.size)}: dedup finds what is not so in your files. Choose a larger folder, or less data."
    for way, logical, physical in (("read", figures.read, around.read), ("written", figures.written, around.written)):
        if case.workload != "resilver" and logical >= TRUSTED and physical < TOLERANCE * stored * logical:
            yield f"{binary_text(logical)} were {way}, but only {binary_text(physical)} of it {'from' if way == 'read' else 'to'} the disks. Memory did the rest."
    if around.lost:
        yield f"While it ran, {' and '.join(around.lost)} stopped answering."


def find_disturbances(around: Circumstances) -> Iterator[str]:
    """Reasons to repeat a run, although its figures may be right."""
    yield from around.busy
    if around.throttled:
        yield "The processor slowed itself down because it was too warm."


def is_cache_warm(around: Circumstances) -> bool:
    """Whether a cache device is filled: almost nothing of what is read is still written to it."""
    return around.filling <= STILL_FILLING * around.read


def run_remarks(case: Case, around: Circumstances) -> Iterator[str]:
    if case.zeros and case.workload == "dd-write":
        yield "dd wrote zeros."
    if around.beside:
        yield "Another benchmark ran at the same time."
    if case.cache and not is_cache_warm(around):
        yield f"{binary_text(around.filling)} went to the cache device meanwhile: it was not warm yet, and would help more later."
    if around.hottest >= HOT:
        yield f"A disk was at {around.hottest} °C."
    if case.sample and around.sample < case.size:
        yield f"{binary_text(around.sample)} of the sample were repeated until it was {binary_text(case.size)}."
    if case.sample and case.compression != "off":
        yield f"Compression left {around.kept * 100:.0f} % of the sample."
    if case.sample and case.dedup:
        yield f"Dedup met each block {around.deduped:.2f} times."
