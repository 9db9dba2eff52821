"""At each start, as root, before ``zfs mount -a``: mount the datasets of the pools without following symbolic links.

``zfs mount -a`` follows links, and the mountpoint of a dataset that was unmounted before the last
shutdown may have become one. It leaves alone what is already mounted. Datasets that cannot be mounted
safely get ``canmount=noauto`` first.
"""

from __future__ import annotations

import logging
import sys

from appliance import command
from appliance.datasets.encryption.unlock_at_boot import JournalWork
from appliance.errors import LarderError, explain_error
from appliance.message import Message
from appliance.zfs import mount, mountpoints, status


def main() -> None:
    """Mount every dataset that can be mounted. Exit with status 1 if one could not be."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if not status.is_module_loaded():
        return
    work, unread = JournalWork(), list[str]()
    datasets = status.read_each_pool(unread.append)
    failures = len(unread)
    for text in unread:
        work.note(text)
    ready = [dataset for dataset in datasets if dataset.can_mount and not dataset.mounted and not dataset.locked]
    for dataset in sorted(ready, key=lambda found: found.mountpoint.count("/")):
        if mount.reason_against(dataset.name, dataset.mountpoint, datasets):
            continue  # an administrator chose that mountpoint; zfs mount -a mounts it
        try:
            mount.mount_dataset(dataset.name, work)
        except mountpoints.Blocked as blocked:
            failures += 1
            work.note(Message("{dataset} was left unmounted: {blocked}", dataset=dataset.name, blocked=blocked))
            command.run(["zfs", "set", "-u", "canmount=noauto", dataset.name], timeout=60, accept=range(256))
        except LarderError as error:
            failures += 1
            work.note(
                Message(
                    "{dataset} was not mounted: {explain_error}",
                    dataset=dataset.name,
                    explain_error=explain_error(error),
                )
            )
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
