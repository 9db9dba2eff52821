"""Requests to the agent about the content of snapshots: a folder, a file, the versions of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from appliance import names
from appliance.errors import Reason, Refused
from appliance.snapshots.browse import file_versions, listing
from appliance.snapshots.browse.file_versions import Versions
from appliance.snapshots.browse.listing import Listing
from appliance.zfs import list_snapshots, private_mount


def list_folder(snapshot: str, path: str, after: str) -> Listing:
    """A page of a folder's entries, each compared with the files of now. Raises Refused, Failed."""
    dataset = listing.dataset_now(snapshot.partition("@")[0])
    with private_mount.root_of(snapshot) as root, listing.open_live_folder(dataset) as now:
        return listing.list_entries(root, names.parse_relative_path(path), after, now)


@contextmanager
def open_file(snapshot: str, path: str) -> Iterator[tuple[dict[str, object], int]]:
    """Open a file for reading; with its size in bytes and its time in seconds since 1970. Raises Refused, Failed."""
    listing.dataset_now(snapshot.partition("@")[0])
    with private_mount.root_of(snapshot) as root:
        handle = listing.open_file(root, names.parse_relative_path(path))
        try:
            status = os.fstat(handle)
            yield {"size": status.st_size, "mtime": status.st_mtime}, handle
        finally:
            os.close(handle)


def versions_of(dataset: str, path: str) -> Versions:
    """Find the versions of a file in all snapshots of its dataset. Raises Refused, Failed."""
    if not path:
        raise Refused(Reason("path-not-chosen", "Choose a file or folder."))
    current = listing.dataset_now(dataset)
    snapshots = sorted(list_snapshots.list_snapshots([dataset]), key=lambda snapshot: snapshot.txg)
    with listing.open_live_folder(current) as now:
        return file_versions.read_versions(snapshots, names.parse_relative_path(path), now)
