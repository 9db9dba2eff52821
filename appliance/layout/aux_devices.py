"""What a log or cache device would bring and cost on this box, in plain words. Pure functions.

Sources: zpoolconcepts(7), "Intent Log" and "Cache Devices"; zfs(4), zfs_dirty_data_max; each cached block has a header
of 96 bytes in memory (OpenZFS issue 11702, arc_buf_hdr_t_l2only).
"""

from __future__ import annotations

import msgspec

from appliance.facts.box import Caching
from appliance.formatting import binary_text, size_text
from appliance.layout.geometry import GIB, TYPICAL_BLOCK
from appliance.message import Message, join_messages

HEADER = 96  # bytes of memory for each block in a cache device
SMALL_BLOCK = 16 * 2**10
LOG_EVER_USED = 8 * GIB  # about twice what may wait in memory (zfs_dirty_data_max is at most 4 GiB)
WELL_CACHED = 90  # per cent
MANY_SYNC_WRITES = 20  # per cent
HEAVY_INDEX = 4  # an index of more than a quarter of the memory for caching costs more than it brings


def index_memory(size: int, block: int = TYPICAL_BLOCK) -> int:
    """Bytes of memory for the index of a full cache device."""
    return size // block * HEADER


class AuxAdvice(msgspec.Struct, frozen=True):
    """Advantages and costs of a kind of device on this box. ``worth`` is None where nothing was measured."""

    worth: bool | None
    measured: str
    brings: str
    costs: str


def log_advice(caching: Caching) -> AuxAdvice:
    """Whether a log device is worth it, by the share of writes that programs waited for."""
    share = caching.sync_percent
    if share is None:
        measured = Message(
            "Too little has been written since the box started to say how much of it programs waited for."
        )
    elif share >= MANY_SYNC_WRITES:
        measured = Message(
            "Programs waited for {percent} % of all bytes written since the box started. A fast log would be "
            "noticeable.",
            percent=share,
        )
    else:
        measured = Message(
            "Programs waited for {percent} % of all bytes written since the box started. A log would hardly "
            "be noticeable here.",
            percent=share,
        )
    return AuxAdvice(
        None if share is None else share >= MANY_SYNC_WRITES,
        measured,
        Message(
            "Makes writes faster that a program waits for: NFS, databases, virtual machines. Copying files "
            "over SMB hardly uses it."
        ),
        Message(
            "A solid-state disk, better two as a mirror: if a single one dies in a power cut, the last "
            "seconds of such writes are lost. Only about {size} of it is ever used.",
            size=size_text(LOG_EVER_USED),
        ),
    )


def cache_advice(caching: Caching, size: int = 0) -> AuxAdvice:
    """Whether a cache device is worth it, by the share of reads that memory answers.
    ``size``: bytes of the chosen disks."""
    hits = caching.hit_percent
    if hits is None:
        measured = Message("Too little has been read since the box started to say how often memory answered.")
    elif hits >= WELL_CACHED:
        measured = Message(
            "Memory answers {percent} % of the reads that programs wait for. A cache device could add little.",
            percent=hits,
        )
    else:
        measured = Message(
            "Memory answers {percent} % of the reads that programs wait for. A cache device could help with "
            "what is read again and again.",
            percent=hits,
        )
    whole = size or 100 * GIB
    memory = Message(
        "Memory for its index, {header} bytes for each block: {cache} of cache take about {large} with "
        "blocks of 128 KiB, {small} with blocks of 16 KiB, and more with smaller ones. That memory no longer "
        "caches data.",
        header=HEADER,
        cache=size_text(whole),
        large=binary_text(index_memory(whole)),
        small=binary_text(index_memory(whole, SMALL_BLOCK)),
    )
    heavy = (
        Message(
            "More than a quarter of what this box keeps in memory ({memory}) would go to the index.",
            memory=binary_text(caching.memory),
        )
        if is_index_heavy(whole, caching.memory)
        else ""
    )
    return AuxAdvice(
        None if hits is None else hits < WELL_CACHED,
        measured,
        Message(
            "Keeps a second copy of data that is read often, on a solid-state disk. It hardly helps with "
            "films and other large files that are read once. It may fail without loss."
        ),
        join_messages([memory, heavy]),
    )


def is_index_heavy(size: int, memory: int) -> bool:
    """Whether the index of such a cache device would take more memory than it is worth.
    False where memory is unknown."""
    return bool(memory) and index_memory(size) * HEAVY_INDEX > memory
