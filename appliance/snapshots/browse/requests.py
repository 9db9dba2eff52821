"""What the agent is asked about the content of snapshots: a folder, a file, the versions of a file."""

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


def folder(snapshot: str, path: str, after: str) -> Listing:
    """A page of a folder, each entry compared with what is there now. Raises Refused, Failed."""
    dataset = listing.dataset_now(snapshot.partition("@")[0])
    with private_mount.root_of(snapshot) as root, listing.live(dataset) as now:
        return listing.entries(root, names.parse_relative_path(path), after, now)


@contextmanager
def file(snapshot: str, path: str) -> Iterator[tuple[dict[str, object], int]]:
    """A file's size in bytes and time in seconds since 1970, and the file opened for reading. Raises Refused, Failed."""
    listing.dataset_now(snapshot.partition("@")[0])
    with private_mount.root_of(snapshot) as root:
        handle = listing.file(root, names.parse_relative_path(path))
        try:
            look = os.fstat(handle)
            yield {"size": look.st_size, "mtime": look.st_mtime}, handle
        finally:
            os.close(handle)


def versions_of(dataset: str, path: str) -> Versions:
    """The versions of a file in all snapshots of its dataset. Raises Refused, Failed."""
    if not path:
        raise Refused(Reason("", "Choose a file or folder."))
    found = listing.dataset_now(dataset)
    every = sorted(list_snapshots.list_snapshots([dataset]), key=lambda one: one.txg)
    with listing.live(found) as now:
        return file_versions.read_versions(every, names.parse_relative_path(path), now)
