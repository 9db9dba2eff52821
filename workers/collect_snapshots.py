"""Snapshots in the inventory: only datasets whose snapshots have changed are read again."""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from itertools import groupby, islice

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from appliance.facts.datasets import Bookmark, Dataset, Snapshot
from appliance.snapshots import bookmarks
from appliance.zfs import list_snapshots
from web.inventory.dataset_models import BookmarkRow, SnapshotReading, SnapshotRow
from web.snapshots import policy_ledger

# ``snapshots_changed`` counts whole seconds: what was read within them may have changed again.
SECONDS_OF_DOUBT = 2
# A manual hold or bookmark changes nothing in the list of datasets, so every dataset is read now and then.
ANYWAY_AFTER = timedelta(minutes=15)
ANYWAY_AT_ONCE = 10
CHUNK = 500  # snapshots in memory at once
COLUMNS = ("dataset", "short", "txg", "created", "used", "referenced", "written", "holds", "clones", "run", "note")


def stamps_of(datasets: Iterable[Dataset]) -> dict[str, str]:
    """By the dataset's key what moves when a snapshot of it is made, destroyed or renamed, holds more than before, or
    has a clone more or less: that last only the clones tell (``origin``)."""
    every = list(datasets)
    clones: dict[str, list[str]] = defaultdict(list)
    for one in every:
        if one.origin:
            clones[one.origin.partition("@")[0]].append(f"{one.origin} {one.name}")
    # Only their sum: a stamp has its length.
    sums = {name: zlib.crc32(" ".join(sorted(found)).encode()) for name, found in clones.items()}
    return {str(one.guid): f"{one.snapshots_changed} {one.used_by_snapshots} {sums.get(one.name, 0)}" for one in every}


def update_snapshots(datasets: Sequence[Dataset], stopped: Collection[Dataset] = ()) -> bool:
    """Update the rows from ZFS, reading only datasets that changed; whether any row changed.

    ``stopped``: those of a pool that has stopped. They keep their rows, as ZFS answers no question about them.
    """
    known = {reading.dataset_key: reading for reading in SnapshotReading.objects.all()}
    keys, stamps = {str(dataset.guid): dataset for dataset in datasets}, stamps_of(datasets)
    gone = [key for key in known if key not in keys]
    policy_ledger.forget_datasets(destroyed_datasets(gone, known, keys))
    silent = {str(one.guid) for one in stopped}
    wanted = datasets_to_read({key: one for key, one in keys.items() if key not in silent}, known, stamps)
    changed = bool(gone)
    for start in range(0, len(gone), 500):
        SnapshotRow.objects.filter(dataset_key__in=gone[start : start + 500]).delete()
        BookmarkRow.objects.filter(dataset_key__in=gone[start : start + 500]).delete()
        SnapshotReading.objects.filter(dataset_key__in=gone[start : start + 500]).delete()
    for start in range(0, len(wanted), list_snapshots.AT_ONCE):
        group = wanted[start : start + list_snapshots.AT_ONCE]
        doubted = [dataset for dataset in group if in_doubt(dataset, known.get(str(dataset.guid)))]
        changed = read_group(group, stamps, doubted) or changed
    return changed


def destroyed_datasets(gone: Iterable[str], known: dict[str, SnapshotReading], keys: dict[str, Dataset]) -> list[str]:
    """Of datasets that are not listed any more those whose pool is still here. The others left with their pool and may
    come back with it."""
    here = {reading.dataset for key, reading in known.items() if key in keys and "/" not in reading.dataset}
    return [key for key in gone if known[key].dataset.split("/", 1)[0] in here]


def datasets_to_read(
    keys: dict[str, Dataset], known: dict[str, SnapshotReading], stamps: dict[str, str]
) -> list[Dataset]:
    """The datasets to read: those that changed, and a few that were not read for long."""
    changed, rest = [], []
    for key, dataset in keys.items():
        reading = known.get(key)
        if reading is None or reading.stamp != stamps[key] or reading.dataset != dataset.name:
            changed.append(dataset)
        elif abs(timezone.now() - reading.at) > ANYWAY_AFTER:
            rest.append((reading.at, dataset.name, dataset))
    return changed + [dataset for _at, _name, dataset in sorted(rest, key=lambda one: one[:2])[:ANYWAY_AT_ONCE]]


def in_doubt(dataset: Dataset, reading: SnapshotReading | None) -> bool:
    """Whether something may have changed that moves nothing in the list of datasets, such as a bookmark. Where only the
    stamp has moved, one process the less reads what did."""
    if reading is None or not reading.stamp or reading.dataset != dataset.name:
        return True
    return abs(timezone.now() - reading.at) > ANYWAY_AFTER


def read_group(datasets: Sequence[Dataset], stamps: dict[str, str], doubted: Sequence[Dataset]) -> bool:
    """Read these again, and the bookmarks of those in doubt; whether anything was different.

    Snapshots are written as they are read, some hundreds at a time. Only when a dataset has been read to its end do the
    rows of those that are gone go, and is it noted as read.
    """
    began = timezone.now()
    rows = {dataset.name: Rows(dataset) for dataset in datasets}
    for name, found in groupby(list_snapshots.list_snapshots(list(rows)), lambda snapshot: snapshot.dataset):
        while (of := rows.get(name)) and (some := list(islice(found, CHUNK))):
            of.write([one for one in some if not list_snapshots.is_diff_snapshot(one)])
    marks: dict[str, list[Bookmark]] = {dataset.name: [] for dataset in doubted}
    for mark in bookmarks.read_bookmarks(list(marks)):
        marks[mark.dataset].append(mark)
    changed = False
    for dataset in datasets:
        with transaction.atomic(using="inventory"):
            of = rows[dataset.name]
            of.close()
            changed = of.changed or changed
            if dataset.name in marks:
                changed = write_bookmarks(dataset, marks[dataset.name]) or changed
            settled = dataset.snapshots_changed < began.timestamp() - SECONDS_OF_DOUBT
            SnapshotReading.objects.update_or_create(
                dataset_key=str(dataset.guid),
                defaults={
                    "dataset": dataset.name,
                    "stamp": stamps[str(dataset.guid)] if settled else "",
                    "at": began,
                    "count": len(of.seen),
                    "used": dataset.used_by_snapshots,
                },
            )
    return changed


class Rows:
    """Updates the rows of one dataset, writing only those that differ."""

    def __init__(self, dataset: Dataset) -> None:
        self.key = str(dataset.guid)
        self.seen = array("Q")  # guids: eight bytes each, however many there are
        self.changed = False

    @property
    def table(self) -> QuerySet[SnapshotRow]:
        return SnapshotRow.objects.filter(dataset_key=self.key)

    def write(self, found: Sequence[Snapshot]) -> None:
        """Write some snapshots."""
        known = {row.guid: row for row in self.table.filter(guid__in=[str(one.guid) for one in found])}
        changed, new = [], []
        for snapshot in found:
            row = row_of(self.key, snapshot)
            self.seen.append(snapshot.guid)
            old = known.get(row.guid)
            if old is None:
                new.append(row)
            elif any(getattr(old, column) != getattr(row, column) for column in COLUMNS):
                row.pk = old.pk
                changed.append(row)
        if new or changed:
            with transaction.atomic(using="inventory"):
                SnapshotRow.objects.bulk_create(new, batch_size=50)
                SnapshotRow.objects.bulk_update(changed, COLUMNS, batch_size=40)
            self.changed = True
        policy_ledger.record_made(row for row in new if row.run)

    def close(self) -> None:
        """Delete the rows of snapshots that are gone."""
        if self.table.count() == len(self.seen):
            return  # each that was read has its row, so there is no other
        there, last = array("Q", sorted(self.seen)), 0
        while some := list(self.table.filter(pk__gt=last).order_by("pk").values_list("pk", "guid", "run")[:CHUNK]):
            last = some[-1][0]
            gone = [one for one in some if not contains_guid(there, int(one[1]))]
            SnapshotRow.objects.filter(pk__in=[pk for pk, _guid, _run in gone]).delete()
            policy_ledger.forget_gone(self.key, [guid for _pk, guid, run in gone if run])
            self.changed = self.changed or bool(gone)


def contains_guid(ordered: array[int], guid: int) -> bool:
    at = bisect_left(ordered, guid)
    return at < len(ordered) and ordered[at] == guid


def write_bookmarks(dataset: Dataset, found: Iterable[Bookmark]) -> bool:
    """Store exactly these bookmarks of a dataset; whether anything changed."""
    key = str(dataset.guid)
    table = BookmarkRow.objects.filter(dataset_key=key)
    wanted = {one.short: one for one in found}
    known = {row.short: row.fact for row in table}
    if known == wanted:
        return False
    table.delete()
    BookmarkRow.objects.bulk_create(
        (
            BookmarkRow(
                dataset_key=key,
                dataset=one.dataset,
                short=one.short,
                guid=str(one.guid),
                txg=one.txg,
                created=one.created,
            )
            for one in wanted.values()
        ),
        batch_size=100,
    )
    return True


def row_of(key: str, snapshot: Snapshot) -> SnapshotRow:
    return SnapshotRow(
        dataset_key=key,
        dataset=snapshot.dataset,
        short=snapshot.short,
        guid=str(snapshot.guid),
        txg=snapshot.txg,
        created=snapshot.created,
        used=snapshot.used,
        referenced=snapshot.referenced,
        written=snapshot.written,
        holds=snapshot.holds,
        clones=",".join(snapshot.clones),
        run=snapshot.run[:36],
        note=snapshot.note[:1000],
    )


def doubt_snapshots(datasets: Iterable[str]) -> None:
    """Have the snapshots of these datasets read again, whatever their stamp: a job was about them."""
    SnapshotReading.objects.filter(dataset__in=list(datasets)).update(stamp="")
