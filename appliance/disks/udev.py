"""Waiting for udev, which makes the stable names of disks and partitions, and having the system look at a disk anew."""

from __future__ import annotations

import time
from collections.abc import Sequence

from appliance import command

LOOKS, SECONDS_BETWEEN_LOOKS = 20, 0.5


def settle_udev() -> None:
    """Return when it has done with all it has heard of, or after 20 seconds. Raises Failed where it cannot be asked."""
    command.run(["udevadm", "settle", "--timeout=20"], timeout=30, accept=(0, 1))


def reread_disks(disks: Sequence[str]) -> None:
    """Have the system forget partitions and signatures that are no longer on these disks; by-id paths.

    Whoever has an old partition open at that moment, udev itself most of all, keeps the kernel from letting go of it.
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
