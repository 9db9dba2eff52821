"""Requests to the agent about the content of snapshots: a folder, a file, the versions of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from appliance import names
from appliance.errors import Reason, Refused
from appliance.request import Exchange, Request
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


class SnapshotRequest(Request):
    """Base of what is read of a snapshot's content: its full name, and the way down to a file or folder in it."""

    snapshot: str
    path: str = ""

    def __post_init__(self) -> None:
        names.existing_snapshot(self.snapshot)
        names.parse_relative_path(self.path)


class ListFolder(SnapshotRequest, tag="list-folder"):
    """What a folder of a snapshot holds, a page from ``after`` on."""

    after: str = ""

    def read(self) -> object:
        return list_folder(self.snapshot, self.path, self.after)


class OpenFile(SnapshotRequest, tag="open-file"):
    """A file of a snapshot: the reply brings its descriptor, for reading."""

    def answer(self, exchange: Exchange) -> None:
        with open_file(self.snapshot, self.path) as (found, handle):
            exchange.send_file({"facts": found}, handle)


class ReadVersions(Request, tag="read-versions"):
    """The versions of one file across all snapshots of its dataset."""

    dataset: str
    path: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        names.parse_relative_path(self.path)

    def read(self) -> object:
        return versions_of(self.dataset, self.path)
