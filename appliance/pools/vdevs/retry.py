"""Run zpool commands that partition disks, and retry them when a disk briefly disappears.

When the last writer closes a disk, udev makes the kernel read its partition table again, and for that instant the
partition that ``zpool`` has just created is missing. OpenZFS 2.3.9 does not wait for it: since it opens disks with the
rights of the caller, ``vdev_disk_open`` leaves its loop after the first ENOENT, whatever ``zfs_vdev_open_timeout_ms``
says. The command then fails while it opens the disks, before anything is written to them (``spa_vdev_add`` and
``spa_create`` open the vdevs first), so a retry is safe.

So udev is kept from rereading these disks meanwhile. Where that is not possible, a retry writes the partition tables
anew, and udev takes them away anew: on a very slow box three attempts were too few.
"""

from __future__ import annotations

from collections.abc import Sequence

from appliance import command
from appliance.disks import udev

AWAY = "one or more devices is currently unavailable"
GONE = "no such pool or dataset"  # zpool's text for ENOENT; while a pool is created, it is the disk that is missing
UNSEEN = "failed to detect device partitions"  # udev took longer than libzfs waits for the partition it has just made
BRIEF = (AWAY, GONE, UNSEEN)
TIMES = 8


def run_with_udev_retry(argv: Sequence[str], *, timeout: float, given: str | bytes | None = None) -> command.Result:
    """Run a command, and retry it when a disk briefly disappears. Raises what ``command.run`` raises."""
    with udev.unwatched([word for word in argv if word.startswith("/dev/")]):
        for _attempt in range(TIMES - 1):
            try:
                return command.run(argv, timeout=timeout, given=given)
            except command.CommandFailed as failed:
                if not any(text in failed.said for text in BRIEF):
                    raise
                udev.settle_udev()
        return command.run(argv, timeout=timeout, given=given)
