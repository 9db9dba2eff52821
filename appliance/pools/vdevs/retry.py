"""Commands that take freshly erased disks into a pool.

When the last writer closes a disk, udev has the kernel read its partition table again, and for that instant the
partition that ``zpool`` has just made is away. ZFS waits a second for it (``zfs_vdev_open_timeout_ms``); a slow box needs
longer. Such a failure comes from opening the disks, before anything was written to them (``spa_vdev_add``,
``spa_create``: the vdevs are opened first), so trying again is safe.
"""

from __future__ import annotations

from collections.abc import Sequence

from appliance import command
from appliance.disks import udev

AWAY = "one or more devices is currently unavailable"
GONE = "no such pool or dataset"  # ENOENT, as zpool words it: of a pool that is being made, the disk's own
TIMES = 3


def run_with_udev_retry(argv: Sequence[str], *, timeout: float, given: str | bytes | None = None) -> command.Result:
    """Run it, and again where a disk was away for a moment. Raises what ``command.run`` raises."""
    for _again in range(TIMES - 1):
        try:
            return command.run(argv, timeout=timeout, given=given)
        except command.CommandFailed as failed:
            if AWAY not in failed.said and GONE not in failed.said:
                raise
            udev.settle()
    return command.run(argv, timeout=timeout, given=given)
