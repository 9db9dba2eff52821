"""What a disk holds, read from the disk itself by the agent, directly before something is written to it.

The inventory goes by udev's database, which is empty where udev could not read the disk, and which knows nothing of data
without a signature (VeraCrypt, plain dm-crypt, a raw database). So a disk that is to be taken as empty has to have no
signature and nothing but zeros at both ends. Reading wakes a disk that sleeps: nothing here is for a clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from appliance.disks import query, udev
from appliance.errors import Failed
from appliance.facts.box import Disk, Facts, Use
from appliance.layout.geometry import MIB

NOTHING, AMBIVALENT = 2, 8  # blkid(8), exit status of --probe
SECONDS = 60
UNKNOWN = Use("unknown", "holds data of a kind that Larder does not recognise")
UNREADABLE = Use("unreadable", "cannot be read, so that nobody can tell what it holds")


def inspect_disk(disk: Disk) -> Use | None:
    """What a disk holds that looks empty in the inventory; None where it is empty."""
    try:
        found = query.query_disk(disk.path, ["blkid", "--probe", "--output", "export", disk.path], timeout=SECONDS)
        if found.status not in {0, NOTHING, AMBIVALENT}:
            return UNREADABLE
        words = dict(line.split("=", 1) for line in found.stdout.splitlines() if "=" in line)
        if kind := words.get("TYPE") or words.get("PTTYPE"):
            # The next look at the inventory says so too, and then it can be reviewed as what it is.
            udev.reread_disks([disk.path])
            return Use("differs", f"holds {kind[:30]} data that the system had not noticed (try again in a minute)")
        if found.status == AMBIVALENT:
            return UNKNOWN
        for start in (0, max(disk.size - MIB, 0)):
            argv = ["cmp", "--quiet", f"--bytes={MIB}", f"--ignore-initial={start}:0", disk.path, "/dev/zero"]
            status = query.query_disk(disk.path, argv, timeout=SECONDS).status
            if status:
                return UNKNOWN if status == 1 else UNREADABLE
    except Failed:
        return UNREADABLE
    return None


def probe_disks(facts: Facts, paths: Iterable[str]) -> dict[str, Use]:
    """What is found on those of the disks that the facts call free."""
    chosen = [disk for path in dict.fromkeys(paths) if (disk := facts.disk(path)) and disk.free]
    return {disk.path: use for disk in chosen if (use := inspect_disk(disk))}


def with_uses(facts: Facts, found: dict[str, Use]) -> Facts:
    """The facts with what was found on disks that they call free."""
    if not found:
        return facts
    disks = [
        replace(disk, uses=(found[disk.path],)) if disk.free and disk.path in found else disk for disk in facts.disks
    ]
    return replace(facts, disks=tuple(disks))
