"""Bring what was written to the files of a pool to its disks.

ZFS writes its own commands (``zfs create``, ``zfs set``, ``zfs rename``) to the disks before they return. Owners, modes
and access lists of files follow up to five seconds later (zfs_txg_timeout in zfs(4)), and a power cut in between takes
them back. A job that has changed some is done only after this.
"""

from __future__ import annotations

from appliance import command

LONGEST = 600  # seconds: a slow disk, with much to write


def sync_pool_of(dataset: str) -> None:
    """Return when all that was written to the dataset's pool so far is on its disks. Raises Failed."""
    command.run(["zpool", "sync", "--", dataset.split("/", 1)[0]], timeout=LONGEST)
