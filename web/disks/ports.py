"""Ports and bays: which port is which bay, remembered from the first time that a disk is seen there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from appliance.facts.box import Disk
from web.disks.models import BayRow


def port_of(slot: str) -> str:
    """One name for a port, of the two that udev gives an ATA port (``…-ata-1`` and ``…-ata-1.0``)."""
    return re.sub(r"(-ata-\d+)\.0$", r"\1", slot)


def in_front(disk: Disk) -> bool:
    """Whether a disk sits in a bay that its owner can reach."""
    return disk.bus not in {"nvme", "usb", "mmc"} and not any(use.kind == "system" for use in disk.uses)


def remember_ports(disks: Iterable[Disk]) -> bool:
    """Keep the ports where disks are seen for the first time, in chassis order, after those that are known."""
    known = dict(BayRow.objects.values_list("port", "position"))
    new = sorted({port_of(disk.slot) for disk in disks if disk.slot and in_front(disk)} - set(known), key=natural_key)
    first = max(known.values(), default=0) + 1
    BayRow.objects.bulk_create(
        [BayRow(port=port[:200], position=first + at) for at, port in enumerate(new)], ignore_conflicts=True
    )
    return bool(new)


def natural_key(port: str) -> tuple[str, int]:
    """Sort key by which port 10 of a controller comes after its port 9. Before that stand hexadecimal addresses."""
    rest, number = re.fullmatch(r"(.*?)([0-9]*)", port, re.DOTALL).groups()  # type: ignore[union-attr]  # it always fits
    return rest, int(number or 0)
