"""Wait for udev, which makes the stable names of disks and partitions, and have the kernel reread a disk."""

from __future__ import annotations

import time
from collections.abc import Sequence

from appliance import command

LOOKS, SECONDS_BETWEEN_LOOKS = 20, 0.5


def settle_udev() -> None:
    """Wait until udev has handled its queue, 20 seconds at most. Raises Failed where it does not answer."""
    command.run(["udevadm", "settle", "--timeout=20"], timeout=30, accept=(0, 1))


def reread_disks(disks: Sequence[str]) -> None:
    """Have the kernel and udev drop partitions and signatures that are no longer on these disks, given by by-id paths.

    A process that has an old partition open, most often udev itself, keeps the kernel from dropping it, so this retries.
    """
    waiting = list(disks)
    for _ in range(LOOKS):
        settle_udev()
        waiting = [
            disk
            for disk in waiting
            if command.run(["blockdev", "--rereadpt", disk], timeout=60, accept=range(256)).status
        ]
        if not waiting:
            break
        time.sleep(SECONDS_BETWEEN_LOOKS)
    for disk in disks:
        command.run(["udevadm", "trigger", "--action=change", disk], timeout=30, accept=range(256))
    settle_udev()
