"""The disks of a virtual machine: those that it has from the start, and one that cannot be read at a place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TB = 10**12


@dataclass(frozen=True)
class DiskModel:
    """Model of a virtual disk. Sizes in bytes; ``physical`` is its physical sector size."""

    model: str
    serial: str
    size: int
    physical: int = 4096
    rpm: int = 5400


DISKS = (
    DiskModel("WDC WD20EARS-00MVWB0", "WD-WCAZA0000001", 2 * TB),
    DiskModel("WDC WD20EARS-00MVWB0", "WD-WCAZA0000002", 2 * TB),
    DiskModel("WDC WD20EARS-00MVWB0", "WD-WCAZA0000003", 2 * TB),
    DiskModel("WDC WD20EADS-00S2B0", "WD-WCAVY0000004", 2 * TB, physical=512),
    DiskModel("WDC WD20EADS-00S2B0", "WD-WCAVY0000005", 2 * TB, physical=512),
    DiskModel("WDC WD30EZRS-11J99B1", "WD-WCAWZ0000006", 3 * TB),
)


def failing_drive(path: Path, at: int) -> str:
    """QEMU's options of a raw image in which reads of the sector at byte ``at`` fail (blkdebug, ``inject-error``)."""
    rule = {"event": "none", "iotype": "read", "errno": 5, "sector": at // 512, "once": "off"}
    options = ",".join(f"file.inject-error.0.{name}={value}" for name, value in rule.items())
    return f"format=raw,file.driver=blkdebug,file.image.driver=file,file.image.filename={path},{options}"
