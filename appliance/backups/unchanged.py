"""Which folders of a run have nothing new, found for all of them by a few commands, however many there are.

All were just snapshotted at the same moment. What was written since the snapshot that a copy ends with is told by each
later snapshot's ``written`` (zfsprops(7)), which is exact: unlike that of the folder itself, it misses nothing that
still waits in memory. Wherever anything is in doubt, the folder is sent, which then looks closely.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from appliance import command
from appliance.backups import copies
from appliance.errors import Failed, explain_error
from appliance.facts.datasets import Dataset, Snapshot
from appliance.message import Message
from appliance.operation import Work
from appliance.zfs import libzfs, list_snapshots

LOOKED_AT = ("written", copies.RESUME)
SECONDS = 300


def find_unchanged(
    work: Work, tree: Sequence[Dataset], targets: Mapping[int, str], taken: Iterable[Snapshot], root: str
) -> set[int]:
    """The guids of the datasets whose copies are as these are. ``taken``: all snapshots of the tree, this run's too."""
    try:
        values = read_below(root, {*LOOKED_AT, *(key for one in tree for key in copies.properties_of(one))})
        newest = newest_guids(targets[one.guid] for one in tree if targets[one.guid] in values)
    except Failed as error:
        work.note(
            Message(
                "Larder could not find out which folders have nothing new, so all are looked at: {error}",
                error=explain_error(error),
            )
        )
        return set()
    here: dict[str, list[Snapshot]] = {}
    for snapshot in taken:
        here.setdefault(snapshot.dataset, []).append(snapshot)
    return {
        one.guid
        for one in tree
        if is_unchanged(
            one, here.get(one.name, []), newest.get(targets[one.guid], 0), values.get(targets[one.guid], {})
        )
    }


def is_unchanged(one: Dataset, snapshots: Sequence[Snapshot], newest: int, copy: Mapping[str, str]) -> bool:
    """Whether a copy that ends with the snapshot ``newest`` has everything of ``snapshots``, the oldest first.

    An encrypted dataset is always sent: a new passphrase travels in its streams and is nothing that was written.
    """
    if one.encryption != "off":
        return False
    is_as_left = copy.get("written") == "0" and not copy.get(copies.RESUME)
    is_settled = all(copy.get(key) == value for key, value in copies.properties_of(one).items())
    return is_as_left and is_settled and has_nothing_new(snapshots, newest)


def has_nothing_new(snapshots: Sequence[Snapshot], newest: int) -> bool:
    """Whether a copy that ends with the snapshot ``newest`` has everything of ``snapshots``, the oldest first."""
    guids = [snapshot.guid for snapshot in snapshots]
    later = snapshots[guids.index(newest) + 1 :] if newest in guids else ()
    return bool(later) and not any(snapshot.written for snapshot in later)


def read_below(root: str, wanted: Iterable[str]) -> dict[str, dict[str, str]]:
    """Properties of all datasets from ``root`` down, user properties only where set on the dataset itself; empty where
    there is none. Raises Failed."""
    argv = [
        "zfs",
        "get",
        "-H",
        "-p",
        "-r",
        "-t",
        "filesystem,volume",
        "-o",
        "name,property,value,source",
        ",".join(sorted(wanted)),
        root,
    ]
    try:
        lines = command.run(argv, timeout=SECONDS).stdout.splitlines()
    except command.CommandFailed as failed:
        if "does not exist" in failed.said:
            return {}
        raise
    found: dict[str, dict[str, str]] = {}
    for row in (line.split("\t") for line in lines):
        if len(row) == 4 and row[2] != "-" and (":" not in row[1] or row[3] == "local"):
            found.setdefault(row[0], {})[row[1]] = row[2]
    return found


def newest_guids(names: Iterable[str]) -> dict[str, int]:
    """The guid of the newest snapshot of each copy. Raises Failed."""
    return {one.dataset: one.guid for one in list_snapshots.list_snapshots(names)}


def drop_snapshots(work: Work, names: Iterable[str]) -> None:
    """Destroy the snapshots that a run took of datasets that it leaves out: nothing continues from them."""
    for left in libzfs.destroy_snapshots(names):
        work.note(Message("{left} stays: {why}", left=left.name, why=left.why))
