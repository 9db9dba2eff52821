"""Read what a disk holds from the disk itself, directly before something is written to it.

The inventory uses udev's database, which is empty where udev could not read the disk and does not know data without a
signature (VeraCrypt, plain dm-crypt, a raw database). So an empty disk must have no signature and only zeros at both
ends. Reading wakes a sleeping disk, so nothing here runs on a schedule.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from appliance.disks import query, udev
from appliance.disks.disk_request import DiskRequest
from appliance.errors import Failed
from appliance.facts.box import Disk, Facts, Use
from appliance.layout.geometry import MIB
from appliance.message import Message
from appliance.request import Exchange, as_facts

NOTHING, AMBIVALENT = 2, 8  # blkid(8), exit status of --probe
SECONDS = 60
UNKNOWN = Use("unknown", Message("holds data of a kind that Larder does not recognise"))
UNREADABLE = Use("unreadable", Message("cannot be read, so its content is unknown"))


def inspect_disk(disk: Disk) -> Use | None:
    """What a disk holds that the inventory takes for empty; None where it is empty.
    Has udev reread a disk that it misjudged."""
    try:
        status, words = read_signature(disk.path)
        if status not in {0, NOTHING, AMBIVALENT}:
            return UNREADABLE
        if kind := words.get("TYPE") or words.get("PTTYPE"):
            # The next reading of the inventory then shows it, so the operation can be reviewed again.
            udev.reread_disks([disk.path])
            return Use(
                "differs",
                Message("holds {kind} data that the system had not noticed (try again in a minute)", kind=kind[:30]),
            )
        return UNKNOWN if status == AMBIVALENT else inspect_ends(disk.path, disk.size)
    except Failed:
        return UNREADABLE


def inspect_member(path: str, size: int, guid: int) -> Use | None:
    """What a partition of so many bytes holds that is not of the pool with that guid.

    None where it has that pool's label, or no signature and only zeros at both ends, as after its label was cleared.
    """
    try:
        status, words = read_signature(path)
        if (words.get("TYPE"), words.get("UUID")) == ("zfs_member", str(guid)):
            return None
        if status not in {0, NOTHING, AMBIVALENT}:
            return UNREADABLE
        if kind := words.get("TYPE") or words.get("PTTYPE"):
            return Use("old", Message("holds {kind} data", kind=kind[:30]))
        return UNKNOWN if status == AMBIVALENT else inspect_ends(path, size)
    except Failed:
        return UNREADABLE


def read_signature(path: str) -> tuple[int, dict[str, str]]:
    """The exit status and the words of ``blkid --probe``. Raises Failed."""
    found = query.query_disk(path, ["blkid", "--probe", "--output", "export", path], timeout=SECONDS)
    return found.status, dict(line.split("=", 1) for line in found.stdout.splitlines() if "=" in line)


def inspect_ends(path: str, size: int) -> Use | None:
    """None where the first and the last MiB of a device are zeros. Raises Failed."""
    for start in (0, max(size - MIB, 0)):
        argv = ["cmp", "--quiet", f"--bytes={MIB}", f"--ignore-initial={start}:0", path, "/dev/zero"]
        if status := query.query_disk(path, argv, timeout=SECONDS).status:
            return UNKNOWN if status == 1 else UNREADABLE
    return None


def probe_disks(facts: Facts, paths: Iterable[str]) -> dict[str, Use]:
    """What is on those of the disks that the facts call free; empty disks are left out."""
    chosen = [disk for path in dict.fromkeys(paths) if (disk := facts.disk(path)) and disk.free]
    return {disk.path: use for disk in chosen if (use := inspect_disk(disk))}


def with_uses(facts: Facts, found: dict[str, Use]) -> Facts:
    """The facts with the content that ``probe_disks`` found."""
    if not found:
        return facts
    disks = [
        replace(disk, uses=(found[disk.path],)) if disk.free and disk.path in found else disk for disk in facts.disks
    ]
    return replace(facts, disks=tuple(disks))


class ReadContent(DiskRequest, tag="read-content"):
    """What disks hold that look empty: somebody is about to take them, so they are woken and read."""

    def answer(self, exchange: Exchange) -> None:
        exchange.send(as_facts(probe_disks(exchange.read_facts(), self.disks)))
