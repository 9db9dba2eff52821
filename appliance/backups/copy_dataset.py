"""Bring the copy of one dataset up to a snapshot, and only then let go of what went before."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo

from msgspec.structs import replace

from appliance import schedule
from appliance.backups import copies, match, retention
from appliance.backups.tasks import BackupTask
from appliance.backups.transfer import Transfer, find_snapshot, run_transfer
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.datasets import Bookmark, Snapshot
from appliance.message import Message
from appliance.operation import Work
from appliance.snapshots.bookmarks import read_bookmarks
from appliance.zfs import libzfs, list_snapshots

PREFIX = "larder-backup-"  # of bookmarks
LARGE, PLAIN = "large", "plain"  # larder:sent: with large and embedded blocks as they are, or without
BOOKMARKS = 5  # that are kept: they cost nothing, and the newest copies may be destroyed at the destination


class DatasetCopy(Transfer, frozen=True):
    """One dataset of a run of a task."""

    task: BackupTask

    @property
    def properties(self) -> dict[str, str]:
        return {**copies.properties_of(self.source), user_properties.SENT: LARGE if self.flags else PLAIN}

    def most_bytes_a_second(self) -> int:
        return self.task.most_bytes_a_second(datetime.now(UTC), schedule.box_zone())

    @property
    def bookmark_prefix(self) -> str:
        return f"{PREFIX}{self.task.key}-"

    def command_text(self, facts: Facts) -> str:
        """Both commands as they will most likely run; the run itself notes the ones that it used."""
        known = [
            one.name for one in facts.bookmarks if one.name.startswith(f"{self.source.name}#{self.bookmark_prefix}")
        ]
        kind = "increment" if facts.dataset(self.target) and known else "full"
        decision = match.Decision(kind, base=known[-1] if kind == "increment" else "")
        return f"{shlex.join(self.sender(decision))} | {shlex.join(self.receiver(decision))}"


def keep_flags(target: str, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The flags for a copy's streams: those of its first one for as long as it lives. To go over to large blocks, after
    the pool was upgraded, has written zeros in place of files (openzfs/zfs#6224). Raises Failed."""
    noted = copies.read_values(target, (user_properties.SENT,)).get(user_properties.SENT)
    return () if noted == PLAIN else wanted


def run_copy(work: Work, one: DatasetCopy, zone: tzinfo) -> int:
    """Bring the copy up to the run's snapshot; the bytes that were sent. Raises Refused, Failed, Cancelled."""
    wanted = find_snapshot(one)
    one = replace(one, flags=keep_flags(one.target, one.flags))
    moved = run_transfer(work, one, wanted)
    let_go(work, one, wanted, zone)
    return moved


def let_go(work: Work, one: DatasetCopy, arrived: int, zone: tzinfo) -> None:
    """After a snapshot has arrived: drop earlier bookmarks of the task, snapshots of its earlier runs
    that no task continues from, and copies that are no longer kept. What cannot be destroyed is noted;
    the copy is good all the same.

    What runs of other tasks have taken is theirs: where one was interrupted, its stream can
    go on with that snapshot only.
    """
    expired = retention.expired_copies(list(list_snapshots.list_snapshots([one.target])), one.task.keep, zone)
    let_go_here(work, one, arrived, [found.name for found in expired])


def let_go_here(work: Work, one: DatasetCopy, arrived: int, expired: Iterable[str] = ()) -> None:
    """The same without a look at the destination, where nothing but ``expired`` goes."""
    name = one.source.name
    marks = sorted(
        (mark for mark in read_bookmarks([name]) if mark.short.startswith(PREFIX)), key=lambda mark: mark.txg
    )
    # Of each task the newest: what it continues from, and what the copy is compared with.
    bases = {mark.short.rpartition("-")[0]: mark.guid for mark in marks}.values()
    here = list(list_snapshots.list_snapshots([name]))
    at = next((found.txg for found in here if found.guid == arrived), 0)
    mine = [mark for mark in marks if mark.short.startswith(one.bookmark_prefix)]
    past = [
        found.name for found in own_snapshots(here, mine, one.task.key) if found.txg < at and found.guid not in bases
    ]
    for going in (past, list(expired)):
        for left in libzfs.destroy_snapshots(going):
            work.note(Message("{left} stays: {why}", left=left.name, why=left.why))
    for mark in mine[:-BOOKMARKS]:
        libzfs.destroy_bookmark(mark.name)


def own_snapshots(snapshots: Iterable[Snapshot], marks: Iterable[Bookmark], key: str) -> list[Snapshot]:
    """The snapshots that runs of the task ``key`` have taken: they have the name, and the task in
    ``larder:task``, which is set with them. Those of before that have a bookmark instead. One that somebody
    named like that has neither."""
    marked = {mark.guid for mark in marks}
    return [
        one
        for one in snapshots
        if retention.is_backup(one.short) and (one.task == key if one.task else one.guid in marked)
    ]


def withdraw(work: Work, one: DatasetCopy) -> None:
    """After a run that could not send anything of a dataset: destroy the snapshot that it
    took for it, and its bookmark.

    Otherwise each try would leave one, and they would keep the space of deleted files.
    """
    name = one.source.name
    marks = [mark for mark in read_bookmarks([name]) if mark.short.startswith(one.bookmark_prefix)]
    mine = [
        found
        for found in own_snapshots(list_snapshots.list_snapshots([name]), marks, one.task.key)
        if found.short == one.short
    ]
    for left in libzfs.destroy_snapshots([found.name for found in mine]):
        work.note(Message("{left} stays: {why}", left=left.name, why=left.why))
    for mark in marks:
        if mark.guid in {found.guid for found in mine}:
            libzfs.destroy_bookmark(mark.name)
