"""The snapshot that a run takes of its whole tree at one moment, with a bookmark for each folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from appliance.backups import unchanged
from appliance.backups.copy_dataset import PREFIX
from appliance.facts.datasets import Dataset, Snapshot
from appliance.message import Message
from appliance.operation import Work
from appliance.zfs import libzfs, list_snapshots


class RunSnapshot(msgspec.Struct, frozen=True):
    """``mine``: of this run, by their dataset. ``found``: all snapshots of the tree. ``marks``: bookmarks by dataset."""

    mine: dict[str, Snapshot]
    found: tuple[Snapshot, ...]
    marks: dict[str, str]

    @property
    def taken(self) -> datetime | None:
        return min((one.created for one in self.mine.values()), default=None)

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


def take_snapshot(tree: Sequence[Dataset], short: str, key: str) -> RunSnapshot:
    """One snapshot of every dataset in one transaction, and bookmarks, which keep the moment even where the snapshot is
    destroyed before the next run. Raises Failed."""
    libzfs.take_snapshots([f"{one.name}@{short}" for one in tree], {})
    found = tuple(list_snapshots.list_snapshots([one.name for one in tree]))
    mine = {one.dataset: one for one in found if one.short == short}
    marks = {one.dataset: f"{one.dataset}#{PREFIX}{key}-{one.guid}" for one in mine.values()}
    libzfs.create_bookmarks({marks[name]: one.name for name, one in mine.items()})
    return RunSnapshot(mine, found, marks)
