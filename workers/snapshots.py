"""Snapshots in the inventory: only datasets whose snapshots have changed are read again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from appliance.dataset import Dataset, Snapshot
from appliance.zfs import snapshots
from web.inventory.models import SnapshotReading, SnapshotRow
from web.snapshots import recorded

# ``snapshots_changed`` counts whole seconds: what was read within them may have changed again.
SECONDS_OF_DOUBT = 2
# A hold set by hand moves nothing that the list of datasets tells, so every dataset is read now and then.
ANYWAY_AFTER = timedelta(minutes=15)
ANYWAY_AT_ONCE = 10
COLUMNS = ("dataset", "short", "txg", "created", "used", "referenced", "written", "holds", "clones", "run", "note")


def stamp_of(dataset: Dataset) -> str:
    """What moves when a snapshot is made, destroyed or renamed, or holds more than before."""
    return f"{dataset.snapshots_changed} {dataset.used_by_snapshots}"


def follow(datasets: Sequence[Dataset]) -> bool:
    """Make the rows say what ZFS says, reading only what has changed; whether anything did."""
    known = {reading.dataset_key: reading for reading in SnapshotReading.objects.all()}
    keys = {str(dataset.guid): dataset for dataset in datasets}
    gone = [key for key in known if key not in keys]
    wanted = changed_of(keys, known)
    changed = bool(gone)
    for start in range(0, len(gone), 500):
        SnapshotRow.objects.filter(dataset_key__in=gone[start : start + 500]).delete()
        SnapshotReading.objects.filter(dataset_key__in=gone[start : start + 500]).delete()
    for start in range(0, len(wanted), snapshots.AT_ONCE):
        changed = read_group(wanted[start : start + snapshots.AT_ONCE]) or changed
    return changed


def changed_of(keys: dict[str, Dataset], known: dict[str, SnapshotReading]) -> list[Dataset]:
    """The datasets to read: those that changed, and a few that were not looked at for long."""
    changed, rest = [], []
    for key, dataset in keys.items():
        reading = known.get(key)
        if reading is None or reading.stamp != stamp_of(dataset) or reading.dataset != dataset.name:
            changed.append(dataset)
        elif abs(timezone.now() - reading.at) > ANYWAY_AFTER:
            rest.append((reading.at, dataset.name, dataset))
    return changed + [dataset for _at, _name, dataset in sorted(rest, key=lambda one: one[:2])[:ANYWAY_AT_ONCE]]


def read_group(datasets: Sequence[Dataset]) -> bool:
    began = timezone.now()
    found: dict[str, list[Snapshot]] = {dataset.name: [] for dataset in datasets}
    for snapshot in snapshots.read(found):
        found.setdefault(snapshot.dataset, []).append(snapshot)
    changed = False
    with transaction.atomic(using="inventory"):
        for dataset in datasets:
            changed = write(dataset, found[dataset.name]) or changed
            settled = dataset.snapshots_changed < began.timestamp() - SECONDS_OF_DOUBT
            SnapshotReading.objects.update_or_create(
                dataset_key=str(dataset.guid),
                defaults={
                    "dataset": dataset.name,
                    "stamp": stamp_of(dataset) if settled else "",
                    "at": began,
                    "count": len(found[dataset.name]),
                    "used": dataset.used_by_snapshots,
                },
            )
    return changed


def write(dataset: Dataset, found: Iterable[Snapshot]) -> bool:
    """Make the rows of one dataset say exactly this, touching only those that differ; whether any did."""
    key = str(dataset.guid)
    table = SnapshotRow.objects.filter(dataset_key=key)
    known = {row.guid: row for row in table}
    changed, new = [], []
    seen = set()
    for snapshot in found:
        row = row_of(key, snapshot)
        seen.add(row.guid)
        old = known.get(row.guid)
        if old is None:
            new.append(row)
        elif any(getattr(old, column) != getattr(row, column) for column in COLUMNS):
            row.pk = old.pk
            changed.append(row)
    SnapshotRow.objects.bulk_create(new, batch_size=50)
    if changed:
        SnapshotRow.objects.bulk_update(changed, COLUMNS, batch_size=40)
    gone = [row.pk for guid, row in known.items() if guid not in seen]
    for start in range(0, len(gone), 500):
        SnapshotRow.objects.filter(pk__in=gone[start : start + 500]).delete()
    recorded.remember(row for row in new if row.run)
    recorded.forget(key, [row.guid for guid, row in known.items() if guid not in seen and row.run])
    return bool(new or changed or gone)


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


def doubt(datasets: Iterable[str]) -> None:
    """Have the snapshots of these datasets read again, whatever their stamp says: a job was about them."""
    SnapshotReading.objects.filter(dataset__in=list(datasets)).update(stamp="")
