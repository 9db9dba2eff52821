"""udev's links to disks and partitions, and which disk of the box a device of a pool is.

A pool stores for each device the path it was found by when the pool was made or imported: a by-id name other than the
one that Larder uses (``wwn-…``), another kind of link, or a kernel name (``/dev/sdc1``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

BY_ID = Path("/dev/disk/by-id")
BY_PATH = Path("/dev/disk/by-path")
# Where ``zpool import`` looks for devices, besides by-id.
OTHER_FOLDERS = tuple(
    BY_ID.with_name(name) for name in ("by-path", "by-partuuid", "by-partlabel", "by-uuid", "by-label")
)
# The name that says model and serial is the one a person can compare with the sticker; a bare WWN is the last choice.
PREFERENCE = ("ata-", "nvme-", "scsi-", "usb-", "virtio-", "mmc-", "wwn-")
PARTITION = re.compile(r"(?P<disk>(?:sd|vd|xvd|hd)[a-z]+)[0-9]+|(?P<numbered>(?:nvme[0-9]+n|mmcblk)[0-9]+)p[0-9]+")


def stable_names(links: Mapping[str, str]) -> dict[str, str]:
    """Kernel name → best by-id path, from ``{link name: kernel name}``."""

    def rank(link: str) -> tuple[int, int, str]:
        order = next((at for at, prefix in enumerate(PREFERENCE) if link.startswith(prefix)), len(PREFERENCE))
        return (order + (10 if link.startswith(("nvme-eui.", "nvme-nvme.")) else 0), len(link), link)

    best: dict[str, str] = {}
    for link in sorted(links, key=rank):
        best.setdefault(links[link], str(BY_ID / link))
    return best


def read_links(folder: Path = BY_ID) -> dict[str, str]:
    """Link name → kernel name, of udev's links in a folder."""
    try:
        return {link.name: link.resolve().name for link in folder.iterdir()}
    except FileNotFoundError:
        return {}


def read_other_links() -> dict[str, str]:
    """Link name → kernel name, of udev's links besides by-id. What they name can change: by-path is a port."""
    found: dict[str, str] = {}
    for folder in OTHER_FOLDERS:
        found |= read_links(folder)
    return found


def whole_disk(kernel: str) -> str:
    """The kernel name of the disk of a partition: ``sdc1`` is on ``sdc``; that of a disk itself as it is."""
    found = PARTITION.fullmatch(kernel)
    return str(found["disk"] or found["numbered"]) if found else kernel


class DiskLinks:
    """What links say of the devices of pools: ``links`` are those of by-id, ``others`` of the other folders."""

    def __init__(self, links: Mapping[str, str], others: Mapping[str, str]) -> None:
        self.links = links
        self.others = others
        self.stable = stable_names(links)

    def find_disk(self, path: str, devid: str, *, opened: bool) -> str:
        """The path of the whole disk behind a device, as ``Disk.path`` says it; empty where the links do not tell.

        ``opened``: ZFS has the device open, so its path leads to it, whatever kind of name that is. Otherwise only what
        identifies the disk itself counts: by-id, or the ``devid`` that ZFS stores beside the path. The disk that is at
        a port or called ``sdc`` now may be another one. One that is not in the box keeps the name of its ``devid``.
        """
        name = path.rpartition("/")[2]
        if not path.startswith("/dev/"):
            return ""
        if (kernel := self.links.get(name) or (self.other_target(path, name) if opened else "")) and (
            found := self.stable.get(whole_disk(kernel))
        ):
            return found
        if opened or not devid:
            return ""
        if stored := self.links.get(devid):
            return self.stable.get(whole_disk(stored), "")
        is_named = path.startswith(f"{BY_ID}/") and not name.startswith("wwn-")
        return "" if is_named else str(BY_ID / devid.rsplit("-part", 1)[0])

    def other_target(self, path: str, name: str) -> str:
        """The kernel name that another path leads to; a kernel name is one itself."""
        return self.others.get(name, "") or (name if path == f"/dev/{name}" else "")


def read_disk_links() -> DiskLinks:
    """The links that are there now."""
    return DiskLinks(read_links(), read_other_links())
