"""Ports and bays: each port becomes a bay when a disk is first seen there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count

from appliance.facts.box import Disk
from web.disks.models import BayRow


def port_of(slot: str) -> str:
    """One name for an ATA port, which udev names in two ways (``…-ata-1`` and ``…-ata-1.0``)."""
    return re.sub(r"(-ata-\d+)\.0$", r"\1", slot)


def in_front(disk: Disk) -> bool:
    """Whether a disk sits in a bay that the user can reach."""
    return disk.bus not in {"nvme", "usb", "mmc"} and not any(use.kind == "system" for use in disk.uses)


def remember_ports(disks: Iterable[Disk]) -> bool:
    """Store ports where disks are seen for the first time, in chassis order, after the known
    ones; whether there were any."""
    rows = list(BayRow.objects.all())
    known, labels = {row.port for row in rows}, {row.label for row in rows}
    new = sorted({port_of(disk.slot) for disk in disks if disk.slot and in_front(disk)} - known, key=natural_key)
    after = count(max((row.position for row in rows), default=0) + 1)
    places = (place for place in after if str(place) not in labels)  # a bay without a label is called by its place
    BayRow.objects.bulk_create(
        [BayRow(port=port[:200], position=place) for port, place in zip(new, places, strict=False)],
        ignore_conflicts=True,
    )
    return bool(new)


def natural_key(port: str) -> tuple[str, int]:
    """Sort key that puts port 10 of a controller after port 9; the address before it is hexadecimal."""
    # it always fits
    rest, number = re.fullmatch(r"(.*?)([0-9]*)", port, re.DOTALL).groups()  # type: ignore[union-attr]
    return rest, int(number or 0)
