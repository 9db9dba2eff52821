"""Rows for the bench: as many pools, disks and folders as asked for, all plausible."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from appliance.facts.box import Disk, Pool, Use, Vdev
from appliance.facts.datasets import Dataset
from web.inventory import store
from web.inventory.dataset_models import DatasetRow, SnapshotRow
from web.inventory.models import DiskRow, PoolRow

MADE = datetime(2026, 1, 1, tzinfo=UTC)
TB = 10**12


def fill(*, pools: int, datasets: int) -> None:
    """Make the inventory hold exactly this; four disks a pool."""
    store.replace(PoolRow, [pool(number) for number in range(pools)], lambda found: str(found.guid))
    store.replace(
        DiskRow,
        [disk(number, at) for number in range(pools) for at in range(4)],
        lambda found: found.path.rsplit("/", 1)[-1],
    )
    rows = [dataset(f"pool{number}") for number in range(pools)]
    rows += [dataset(f"pool{number % pools}/folder{number}") for number in range(datasets - pools)]
    store.replace(DatasetRow, rows, lambda found: str(found.guid), pool=lambda found: found.pool)


def fill_snapshots(count: int, datasets: int) -> None:
    """So many snapshots, spread over the first folders of the inventory; of many a third is made by policies and a
    fiftieth held, of ten all are."""
    SnapshotRow.objects.all().delete()
    keys = list(DatasetRow.objects.order_by("name").values_list("key", "name")[:datasets])
    rows = (
        SnapshotRow(
            dataset_key=keys[at % len(keys)][0],
            dataset=keys[at % len(keys)][1],
            short=f"larder-hourly-{at:06d}",
            guid=str(at + 1),
            txg=at,
            created=MADE + timedelta(minutes=at),
            used=at * 4096,
            run="" if at % 3 and count > 10 else "6b1f6a5e-3f0c-4c2e-9a53-0d5b8f9f6a11",
            holds=at % 50 == 0 or count <= 10,
        )
        for at in range(count)
    )
    SnapshotRow.objects.bulk_create(rows, batch_size=60)


def path_of(number: int, at: int) -> str:
    return f"/dev/disk/by-id/ata-MODEL_SERIAL-{number}-{at}"


def pool(number: int) -> Pool:
    members = tuple(
        Vdev(path_of(number, at), "disk", number * 10 + at + 1, "ONLINE", path=f"{path_of(number, at)}-part1")
        for at in range(4)
    )
    group = Vdev("raidz2-0", "raidz", number * 10, "ONLINE", children=members)
    return Pool(f"pool{number}", 10**15 + number, "ONLINE", (group,), size=8 * TB, allocated=TB, free=7 * TB)


def disk(number: int, at: int) -> Disk:
    use = Use("pool", f"is part of the pool pool{number}", str(10**15 + number), f"pool{number}")
    return Disk(
        path_of(number, at),
        f"sd{number}{at}",
        f"SERIAL-{number}-{at}",
        "MODEL",
        2 * TB,
        512,
        4096,
        True,
        "sata",
        uses=(use,),
    )


def dataset(name: str) -> Dataset:
    return Dataset(name, abs(hash(name)), "filesystem", MADE, 10**9, TB, 10**9, mounted=True, mountpoint=f"/{name}")
