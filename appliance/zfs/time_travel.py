"""What the agent is asked about the content of snapshots: a folder, a file, the versions of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from appliance import names
from appliance.errors import Refused
from appliance.zfs import contents, looking, snapshots, versions
from appliance.zfs.contents import Listing
from appliance.zfs.versions import Versions


def folder(snapshot: str, path: str, after: str) -> Listing:
    """A page of a folder, each entry compared with what is there now. Raises Refused, Failed."""
    dataset = contents.dataset_now(snapshot.partition("@")[0])
    with looking.root_of(snapshot) as root, contents.live(dataset) as now:
        return contents.entries(root, names.inside(path), after, now)


@contextmanager
def file(snapshot: str, path: str) -> Iterator[tuple[dict[str, object], int]]:
    """A file's size in bytes and time in seconds since 1970, and the file opened for reading. Raises Refused, Failed."""
    contents.dataset_now(snapshot.partition("@")[0])
    with looking.root_of(snapshot) as root:
        handle = contents.file(root, names.inside(path))
        try:
            look = os.fstat(handle)
            yield {"size": look.st_size, "mtime": look.st_mtime}, handle
        finally:
            os.close(handle)


def versions_of(dataset: str, path: str) -> Versions:
    """The versions of a file in all snapshots of its dataset. Raises Refused, Failed."""
    if not path:
        raise Refused("Choose a file or folder.")
    found = contents.dataset_now(dataset)
    every = sorted(snapshots.read([dataset]), key=lambda one: one.txg)
    with contents.live(found) as now:
        return versions.read(every, names.inside(path), now)
