"""At each start, as root, before ``zfs mount -a``: mount what belongs in the folders of the pools, following no links.

``zfs mount -a`` follows them, and a folder that was unmounted before the box was switched off may have a link at its place
by now. What is mounted already it leaves alone; what cannot be mounted safely is kept from it (``canmount=noauto``).
"""

from __future__ import annotations

import logging
import sys

from appliance import command
from appliance.datasets.encryption.unlock_at_boot import JournalWork
from appliance.errors import LarderError, explain
from appliance.zfs import mount, mountpoints, status


def main() -> None:
    """Mount what can be mounted; one that cannot be keeps no other unmounted."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if not status.loaded():
        return
    datasets, work, bad = status.read_datasets(), JournalWork(), 0
    ready = [one for one in datasets if one.can_mount and not one.mounted and not one.locked]
    for one in sorted(ready, key=lambda found: found.mountpoint.count("/")):
        if mount.reason_against(one.name, one.mountpoint, datasets):
            continue  # where root has put it: zfs mount -a goes on with that
        try:
            mount.mount(one.name, work)
        except mountpoints.Blocked as blocked:
            bad += 1
            work.note(f"{one.name} was left unmounted: {blocked}")
            command.run(["zfs", "set", "-u", "canmount=noauto", one.name], timeout=60, accept=range(256))
        except LarderError as error:
            bad += 1
            work.note(f"{one.name} was not mounted: {explain(error)}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
