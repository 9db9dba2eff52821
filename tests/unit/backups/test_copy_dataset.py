"""What a run leaves at the source: only snapshots that runs have taken go, and a run that sent nothing leaves none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from appliance import snapshot_names
from appliance.backups import copy_dataset
from appliance.backups.copy_dataset import DatasetCopy, let_go, withdraw
from appliance.backups.tasks import BackupTask
from appliance.facts.datasets import Bookmark, Snapshot
from appliance.zfs import libzfs, list_snapshots
from tests.unit.made import dataset
from tests.unit.pools.test_create import Working

KEY, OTHER = "0123abcd", "89abcdef"
START = datetime(2026, 11, 20, 2, tzinfo=UTC)
SOURCE, TARGET = "tank/photos", "safe/backups/photos"


def snapshot(day: int, **changes) -> Snapshot:
    at = START + timedelta(days=day)
    return replace(Snapshot(f"{SOURCE}@{snapshot_names.name_for(snapshot_names.BACKUP, at)}", day, day, at), **changes)


def mark(day: int, key: str = KEY) -> Bookmark:
    return Bookmark(f"{SOURCE}#larder-backup-{key}-{day}", day, day, START + timedelta(days=day))


class Source:
    """Stands in for ZFS: what is there, and what was destroyed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.snapshots: list[Snapshot] = []
        self.marks: list[Bookmark] = []
        monkeypatch.setattr(copy_dataset, "read_bookmarks", lambda _names: iter(self.marks))
        monkeypatch.setattr(
            list_snapshots, "list_snapshots", lambda names: [one for one in self.snapshots if one.dataset in names]
        )
        monkeypatch.setattr(libzfs, "destroy_snapshots", self.destroy)
        monkeypatch.setattr(libzfs, "destroy_bookmark", self.destroy_bookmark)

    def destroy(self, names: list[str]) -> tuple[libzfs.Left, ...]:
        self.snapshots = [one for one in self.snapshots if one.name not in names]
        return ()

    def destroy_bookmark(self, name: str) -> None:
        self.marks = [one for one in self.marks if one.name != name]

    @property
    def days(self) -> list[int]:
        return [one.guid for one in self.snapshots]


@pytest.fixture
def source(monkeypatch) -> Source:
    return Source(monkeypatch)


def copy(day: int) -> DatasetCopy:
    task = BackupTask(key=KEY, pool=1, path="backups/photos")
    return DatasetCopy(dataset(SOURCE, guid=5), TARGET, snapshot(day).short, (), task)


def test_only_the_newest_snapshot_of_a_task_stays_and_five_bookmarks(source):
    source.snapshots = [snapshot(day) for day in range(1, 10)]
    source.marks = [mark(day) for day in range(1, 10)]
    let_go(Working(), copy(9), 9, UTC)
    assert source.days == [9]
    assert [one.guid for one in source.marks] == [5, 6, 7, 8, 9]


def test_what_another_task_continues_from_stays(source):
    source.snapshots = [snapshot(day) for day in (1, 2, 3)]
    source.marks = [mark(1), mark(2, OTHER), mark(3)]
    let_go(Working(), copy(3), 3, UTC)
    assert source.days == [2, 3]


def test_a_snapshot_that_an_interrupted_run_of_another_task_needs_to_go_on_stays(source):
    """Two runs to the other place were interrupted: its stream goes on with the first snapshot, not with the newest."""
    source.snapshots = [snapshot(day) for day in (1, 2, 3)]
    source.marks = [mark(1, OTHER), mark(2, OTHER), mark(3)]
    let_go(Working(), copy(3), 3, UTC)
    assert source.days == [1, 2, 3]


def test_snapshot_that_somebody_named_like_a_backup_stays(source):
    source.snapshots = [snapshot(1), snapshot(2), replace(snapshot(3), name=f"{SOURCE}@before")]
    source.marks = [mark(2), mark(3)]
    let_go(Working(), copy(2), 2, UTC)
    assert source.days == [1, 2, 3]


def test_newer_snapshots_of_a_run_under_way_stay(source):
    source.snapshots = [snapshot(1), snapshot(2), snapshot(3)]
    source.marks = [mark(1), mark(2), mark(3, OTHER)]
    let_go(Working(), copy(2), 2, UTC)
    assert source.days == [2, 3]


def test_run_that_could_not_send_leaves_what_was_there_before(source):
    source.snapshots = [snapshot(1), snapshot(2)]
    source.marks = [mark(1), mark(2), mark(1, OTHER)]
    withdraw(Working(), copy(2))
    assert source.days == [1]
    assert [one.name for one in source.marks] == [mark(1).name, mark(1, OTHER).name]


def test_snapshots_of_a_run_that_was_killed_before_it_had_bookmarks_go(source):
    """The run's own mark is set with them, in the same transaction."""
    source.snapshots = [snapshot(1, task=KEY), snapshot(2, task=OTHER), snapshot(3), snapshot(4, task=KEY)]
    source.marks = [mark(4)]
    let_go(Working(), copy(4), 4, UTC)
    assert source.days == [2, 3, 4]


def test_run_that_could_not_send_withdraws_its_snapshot_without_a_bookmark_too(source):
    source.snapshots = [snapshot(1, task=KEY), snapshot(2, task=KEY)]
    withdraw(Working(), copy(2))
    assert source.days == [1]


def test_snapshot_of_another_task_is_not_taken_for_this_ones_by_its_bookmark(source):
    source.snapshots = [snapshot(1, task=OTHER), snapshot(2, task=KEY)]
    source.marks = [mark(1), mark(2)]
    let_go(Working(), copy(2), 2, UTC)
    assert source.days == [1, 2]
