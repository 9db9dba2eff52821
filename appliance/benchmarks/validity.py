"""Reasons why a run does not count. A run that only looks fast is marked invalid and never wins. Pure.

Compares the I/O of the disks (``/sys/class/block/*/stat``) with what the program says it read or wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance.benchmarks.case import Case
from appliance.benchmarks.parse_results import Figures
from appliance.benchmarks.workloads import KINDS
from appliance.formatting import binary_text, list_with_and, number_text
from appliance.message import Message, message_template

TIMES_MEMORY = 2  # data has to be at least this many times the maximum of the ARC
TOLERANCE = 0.7  # least share of the expected I/O, because compression is never exact
TRUSTED = 64 * 2**20  # bytes; below this, metadata is too large a part of the I/O to compare
STILL_FILLING = 0.1  # share of the reads; if more goes to a cache device, it is not warm
HOT = 60  # degrees Celsius
READ_FROM_MEMORY = message_template("{size} were read, but only {part} of it from the disks. Memory did the rest.")
WRITTEN_TO_MEMORY = message_template("{size} were written, but only {part} of it to the disks. Memory did the rest.")


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
        yield Message(
            "A pool that compresses does not write zeros at all. Choose other data, or switch compression off."
        )
    if kind.reads and case.makes_folder and not case.aside and case.size < TIMES_MEMORY * around.memory:
        yield Message(
            "{size} fit into memory, which may keep up to {memory}. It takes at least {least}, or memory "
            "limited meanwhile.",
            size=binary_text(case.size),
            memory=binary_text(around.memory),
            least=binary_text(TIMES_MEMORY * around.memory),
        )
    stored = 0.0 if case.zeros else 1 - (case.compressible / 100 if case.compression != "off" else 0.0)
    stored = 1.0 if case.zeros and case.compression == "off" else stored
    if case.sample:
        stored = around.kept / around.deduped
        if case.dedup and around.sample < case.size:
            yield Message(
                "The sample holds only {sample} and was repeated until it was {size}, so dedup looks better "
                "than it would on your files. Choose a larger folder, or less data.",
                sample=binary_text(around.sample),
                size=binary_text(case.size),
            )
    for template, logical, physical in (
        (READ_FROM_MEMORY, figures.read, around.read),
        (WRITTEN_TO_MEMORY, figures.written, around.written),
    ):
        if case.workload != "resilver" and logical >= TRUSTED and physical < TOLERANCE * stored * logical:
            yield Message(template, size=binary_text(logical), part=binary_text(physical))
    if around.lost:
        yield Message("While it ran, {devices} stopped answering.", devices=list_with_and(around.lost))


def find_disturbances(around: Circumstances) -> Iterator[str]:
    """Reasons to repeat a run, although its figures may be right."""
    yield from around.busy
    if around.throttled:
        yield Message("The processor slowed itself down because it was too warm.")


def is_cache_warm(around: Circumstances) -> bool:
    """Whether a cache device is filled: almost nothing of what is read is still written to it."""
    return around.filling <= STILL_FILLING * around.read


def run_remarks(case: Case, around: Circumstances) -> Iterator[str]:
    if case.zeros and case.workload == "dd-write":
        yield Message("dd wrote zeros.")
    if around.beside:
        yield Message("Another benchmark ran at the same time.")
    if case.cache and not is_cache_warm(around):
        yield Message(
            "{size} went to the cache device meanwhile: it was not warm yet, and would help more later.",
            size=binary_text(around.filling),
        )
    if around.hottest >= HOT:
        yield Message("A disk was at {degrees} °C.", degrees=around.hottest)
    if case.sample and around.sample < case.size:
        yield Message(
            "{sample} of the sample were repeated until it was {size}.",
            sample=binary_text(around.sample),
            size=binary_text(case.size),
        )
    if case.sample and case.compression != "off":
        yield Message("Compression left {percent} % of the sample.", percent=f"{around.kept * 100:.0f}")
    if case.sample and case.dedup:
        yield Message(
            "Each block of the sample occurred {count} times (dedup).", count=number_text(f"{around.deduped:.2f}")
        )
