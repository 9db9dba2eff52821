"""Made up: pools of every shape, on the disks of ``made``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from appliance.facts.box import Disk, Facts, Pool, Scan, Use, Vdev
from appliance.operation import Operation
from appliance.zfs.vdev_tree import partition_bytes
from tests.reasons import codes
from tests.unit.made import disk

SIZE = 2 * 10**12
PARTITION = partition_bytes(SIZE)
NEEDED = 1997164511232  # rep_dev_size of the recorded raidz2 of such disks
RESILVER = Scan("resilver", "scanning", datetime(2026, 11, 20, tzinfo=UTC), None, 100, 50, 41, 0)


def refusals(operation: Operation, found: Facts) -> list[str]:
    """The codes of the reasons against an operation."""
    return codes(operation.check(found))


def leaf(number: int, state: str = "ONLINE", **changes: Any) -> Vdev:
    one = disk(number)
    made = Vdev(
        one.path.rsplit("/", 1)[-1],
        "disk",
        100 + number,
        state,
        path=f"{one.path}-part1",
        size=PARTITION,
        replace_size=NEEDED,
        slot=f"pci-0000:00:0{number}.0-ata-1.0",
    )
    return replace(made, **changes)


def group(name: str, *children: Vdev, guid: int = 50, **changes: Any) -> Vdev:
    kind = "raidz" if name.startswith("raidz") else name.split("-")[0]
    made = Vdev(name, kind, guid, "ONLINE", ashift=12, space=8 * 10**12, used=10**9, children=children)
    return replace(made, **changes)


def raidz2(*states: str) -> Pool:
    """A raidz2 of four, disks 1 to 4, in these states."""
    found = states or ("ONLINE",) * 4
    return pool(group("raidz2-0", *(leaf(number, state) for number, state in enumerate(found, 1))))


def mirror(*states: str) -> Pool:
    return pool(group("mirror-0", *(leaf(number, state) for number, state in enumerate(states or ("ONLINE",) * 2, 1))))


def single() -> Pool:
    return pool(leaf(1, ashift=12))


def pool(*vdevs: Vdev, **changes: Any) -> Pool:
    weak = any(device.state not in {"ONLINE", "AVAIL", "INUSE"} for vdev in vdevs for device in vdev.devices())
    return replace(Pool("tank", 7, "DEGRADED" if weak else "ONLINE", vdevs), **changes)


def facts(found: Pool, *absent: int, disks: tuple[Disk, ...] = (), count: int = 6) -> Facts:
    """The box with that pool and six disks of which some are not there; members know that they are."""
    members = {device.path.removesuffix("-part1") for device in found.devices()}
    there = [disk(number) for number in range(1, count + 1) if number not in absent]
    used = Use("pool", f"is part of the pool {found.name}", str(found.guid), found.name)
    return Facts(
        (found,), disks=(*(replace(one, uses=(used,)) if one.path in members else one for one in there), *disks)
    )


def spared(original: str = "REMOVED", *, scan: Scan | None = None) -> Pool:
    """A mirror of which disk 2 is away and the spare, disk 5, stands in."""
    standing = group("spare-1", leaf(2, original), leaf(5), guid=60, kind="spare", state="DEGRADED")
    return pool(group("mirror-0", leaf(1), standing), leaf(5, "INUSE", role="spare"), scan=scan)


def replacing(old: str = "OFFLINE", new: str = "ONLINE", *, scan: Scan | None = RESILVER) -> Pool:
    """A raidz2 of four in which disk 5 is taking the place of disk 1."""
    change = group("replacing-0", leaf(1, old), leaf(5, new, processed=10), guid=61, kind="replacing", state="DEGRADED")
    return pool(group("raidz2-0", change, leaf(2), leaf(3), leaf(4)), scan=scan)
