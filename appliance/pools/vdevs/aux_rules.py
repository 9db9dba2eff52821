"""Log, cache and spare vdevs: refusals, warnings and arguments for zpool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from appliance.errors import Reason
from appliance.facts.box import Disk
from appliance.formatting import binary_text, disk_label, size_text
from appliance.layout.aux_devices import index_memory
from appliance.message import Message

MOST_LOGS = 3
# libzfs and the kernel treat sizes as equal within this (ZPOOL_FUZZ, zpool_vdev.c); beyond it zpool create needs -f.
FUZZ = 16 * 2**20


def aux_vdev_args(logs: Sequence[str], cache: Sequence[str], spares: Sequence[str]) -> list[str]:
    """The arguments of zpool that follow the data disks; several logs become one mirror (zpoolconcepts(7))."""
    argv: list[str] = []
    if logs:
        argv += ["log", *(["mirror"] if len(logs) > 1 else []), *logs]
    if cache:
        argv += ["cache", *cache]
    if spares:
        argv += ["spare", *spares]
    return argv


def check_spare(disk: Disk, needed: int) -> Iterator[Reason]:
    """Refuse a spare with less than ``needed`` bytes, the smallest disk of the group with the largest disks."""
    if disk.size + FUZZ < needed:
        yield Reason(
            "spare-too-small",
            "{disk} is {size} too small to stand in for the other disks. Choose a larger spare.",
            field="spares",
            disk=disk_label(disk),
            size=size_text(needed - disk.size),
        )


def log_warnings(disks: Sequence[Disk]) -> Iterator[str]:
    """Disadvantages of these disks as a log."""
    if len(disks) == 1:
        yield Message(
            "The log is on a single disk. If it fails in a power cut, the last seconds of synchronous writes "
            "are lost. Two disks as a mirror prevent that."
        )
    if any(disk.rotational for disk in disks):
        yield Message(
            "A hard disk as log is no faster than the pool itself. Choose a solid-state disk, or leave the log out."
        )


def cache_warnings(disks: Sequence[Disk]) -> Iterator[str]:
    """Disadvantages of these disks as a cache."""
    if any(disk.rotational for disk in disks):
        yield Message(
            "A hard disk as cache is no faster than the pool itself. Choose a solid-state disk, or leave the cache out."
        )


def aux_warnings(logs: Sequence[Disk], cache: Sequence[Disk]) -> Iterator[str]:
    """What to know about the log and cache of a new pool."""
    yield from log_warnings(logs)
    yield from cache_warnings(cache)
    if cache:
        size = sum(disk.size for disk in cache)
        yield Message(
            "The cache's index takes memory: about {memory} when its {size} are full of large files, more "
            "with small ones. It may fail without loss.",
            memory=binary_text(index_memory(size)),
            size=size_text(size),
        )
