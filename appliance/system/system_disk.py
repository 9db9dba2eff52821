"""The file systems of the box itself: how full they are, and whether the kernel has stopped writing to them."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from appliance.system import paths

MOUNTS = Path("/proc/self/mountinfo")
# ext4 without another word, and as newer kernels say that they have stopped writing after an error.
READ_ONLY = {"ro", "emergency_ro"}


class SystemDisk(msgspec.Struct, frozen=True):
    """A file system of the box itself: where it is mounted, how full it is as df(1) counts it (what only root may use
    is not free), whether it takes no writes."""

    place: str
    percent: int
    free: int
    read_only: bool = False


def places_to_watch() -> tuple[Path, ...]:
    """What Larder writes to, what the box starts from, and where logs grow."""
    return (paths.STATE, Path("/"), Path("/boot"), Path("/var/log"))


def read_filesystems() -> tuple[SystemDisk, ...]:
    """Each file system once, by the first of the places on it. Raises OSError where Larder's own cannot be asked."""
    found: dict[int, SystemDisk] = {}
    states = filesystem_options()
    for place in places_to_watch():
        try:
            device, size = place.stat().st_dev, os.statvfs(place)
        except OSError:
            if place == paths.STATE:
                raise
            continue
        used = size.f_blocks - size.f_bfree
        if device in found or not used + size.f_bavail:
            continue
        # Only Larder's own has to take writes: the rest may be made read-only on purpose.
        read_only = place == paths.STATE and bool(READ_ONLY & states.get(device, set()))
        percent = -(-used * 100 // (used + size.f_bavail))
        found[device] = SystemDisk(str(place), percent, size.f_bavail * size.f_frsize, read_only)
    return tuple(found.values())


def filesystem_options() -> dict[int, set[str]]:
    """The options of each file system by its device number, not those of single mounts: a
    service sees much read-only."""
    found = {}
    for line in MOUNTS.read_bytes().decode(errors="replace").split("\n"):
        head, _dash, tail = line.partition(" - ")
        fields, more = head.split(), tail.split()
        if len(fields) > 2 and more:
            major, _colon, minor = fields[2].partition(":")
            found[os.makedev(int(major), int(minor))] = set(more[-1].split(","))
    return found
