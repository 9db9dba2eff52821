"""The snapshot that a run takes of its whole tree at one moment, with a bookmark for each folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from appliance import command
from appliance.backups import unchanged
from appliance.backups.copy_dataset import PREFIX
from appliance.errors import Failed
from appliance.facts import user_properties
from appliance.facts.datasets import Dataset, Snapshot
from appliance.message import Message
from appliance.operation import Work
from appliance.zfs import libzfs, list_snapshots

SHOWN = 5
BOOKMARKS = "feature@bookmarks"  # a pool made long ago, or with a compatibility setting, may not have it


class RunSnapshot(msgspec.Struct, frozen=True):
    """``mine``: of this run, by their dataset. ``found``: all snapshots of the tree. ``marks``: bookmarks by dataset.
    ``left``: why a dataset has none, by its name."""

    mine: dict[str, Snapshot]
    found: tuple[Snapshot, ...]
    marks: dict[str, str]
    left: dict[str, str]

    @property
    def taken(self) -> datetime | None:
        return min((one.created for one in self.mine.values()), default=None)

    def members(self, tree: Iterable[Dataset]) -> list[Dataset]:
        """Those of the tree that have a snapshot of this run."""
        return [one for one in tree if one.name in self.mine]

    def failures(self, tree: Iterable[Dataset]) -> dict[int, str]:
        """Why the others cannot be copied, by their guid."""
        return {
            one.guid: Message("{dataset}: no snapshot could be taken. {why}", dataset=one.name, why=self.left[one.name])
            for one in tree
            if one.name in self.left
        }

    def leave_out(self, work: Work, tree: Sequence[Dataset], guids: Iterable[int]) -> None:
        """Take back the snapshots and bookmarks of the folders with these guids: they have nothing new."""
        left_out = [one.name for one in tree if one.guid in set(guids)]
        if left_out:
            work.note(
                Message(
                    "Nothing new in {count} of {count_2} folders: their copies are complete.",
                    count=len(left_out),
                    count_2=len(tree),
                )
            )
            unchanged.drop_snapshots(work, [self.mine[name].name for name in left_out])
            libzfs.destroy_bookmarks([self.marks[name] for name in left_out])


def command_text(snapshots: Sequence[str]) -> str:
    """The command that takes these, as a plan shows it."""
    return shlex.join(["zfs", "snapshot", "--", *snapshots[:SHOWN]]) + (" …" if len(snapshots) > SHOWN else "")


def refuse_without_bookmarks(pool: str) -> None:
    """Raise Failed where a pool cannot keep bookmarks: no run would end, and each would leave its snapshots behind."""
    try:
        said = command.run(["zpool", "get", "-H", "-o", "value", BOOKMARKS, pool], timeout=60).stdout.strip()
    except (command.CommandFailed, command.CommandMissing):
        return  # the bookmarks themselves will tell
    if said == "disabled":
        raise Failed(Message("No snapshot was taken"), libzfs.SAID["BookmarkNotSupported"])


def take_snapshot(work: Work, tree: Sequence[Dataset], short: str, key: str) -> RunSnapshot:
    """One snapshot of every dataset in one transaction, without those that ZFS refuses, such as a volume that
    reserves more than is free; and bookmarks, which keep the moment even where the snapshot is destroyed before
    the next run. Raises Failed.
    """
    refuse_without_bookmarks(tree[0].pool)
    refused = libzfs.take_most_snapshots([f"{one.name}@{short}" for one in tree], {user_properties.TASK: key})
    found = tuple(list_snapshots.list_snapshots([one.name for one in tree]))
    # Killed before it had its bookmarks, the same run may be there already: ZFS refuses that too.
    mine = {one.dataset: one for one in found if one.short == short and one.task == key}
    left = {one.name.partition("@")[0]: one.why for one in refused}
    left = {one.name: left.get(one.name, "") for one in tree if one.name not in mine}
    for name, why in left.items():
        work.note(Message("{failure} was not taken: {why}", failure=f"{name}@{short}", why=why))
    if not mine:
        raise Failed(Message("No snapshot was taken"), libzfs.explain_left(refused))
    marks = {one.dataset: f"{one.dataset}#{PREFIX}{key}-{one.guid}" for one in mine.values()}
    libzfs.create_bookmarks({marks[name]: one.name for name, one in mine.items()})
    return RunSnapshot(mine, found, marks, left)
