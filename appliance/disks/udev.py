"""Waiting for udev, which makes the stable names of disks and partitions."""

from __future__ import annotations

from appliance import command


def settle() -> None:
    """Return when it has done with all it has heard of, or after 20 seconds. Raises Failed where it cannot be asked."""
    command.run(["udevadm", "settle", "--timeout=20"], timeout=30, accept=(0, 1))
