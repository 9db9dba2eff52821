"""Preconditions of a benchmark case. The review checks them, and the agent again before each case. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from appliance import names
from appliance.benchmarks.case import Case
from appliance.errors import Reason, Refused
from appliance.facts.box import Disk, Facts
from appliance.facts.datasets import Dataset
from appliance.facts.pool_reasons import missing_pool, stopped_pool
from appliance.formatting import disk_label, size_text
from appliance.layout.choices import SLACK
from appliance.layout.geometry import GIB, PARTITION_MARGIN, usable_bytes

ROOM = 1.3  # a scratch pool or dataset needs this many times the data of a run
LEAST_FREE = 0.05  # share of a pool in use that stays free


def check_case(case: Case, name: str, facts: Facts) -> Iterator[Reason]:
    """Every reason against a case; ``name`` is the name of its scratch pool or dataset."""
    if case.where == "disk":
        if facts.disk(case.disks[0]) is None:
            yield disk_missing(case.disks[0])
        return
    if case.where == "network":
        return
    if facts.zfs == "missing":
        yield Reason(
            "benchmark-without-zfs", "The ZFS module is not loaded on this system, so pools cannot be benchmarked."
        )
    elif case.where == "dataset":
        yield from check_pool(case, facts)
    else:
        yield from check_disks(case, name, facts)
        if case.sample:
            yield from check_sample(facts.dataset(case.sample), case.sample, case.sample_guid)


def disk_missing(path: str) -> Reason:
    return Reason("disk-missing", "The disk {disk} is no longer there.", field="disks", disk=path.rsplit("/", 1)[-1])


def check_pool(case: Case, facts: Facts) -> Iterator[Reason]:
    """Reasons against a scratch dataset in a pool in use."""
    pool, root = facts.pool_of(case.guid), facts.dataset(case.pool)
    if pool is None or pool.name != case.pool or root is None:
        yield missing_pool(case.pool).with_field("pool")
    elif pool.state == "SUSPENDED":
        yield stopped_pool(pool.name).with_field("pool")
    elif root.locked or root.readonly:
        yield Reason(
            "pool-not-writable",
            "{pool} is locked or read-only, so it cannot be benchmarked. Unlock it, or choose another pool.",
            field="pool",
            pool=pool.name,
        )
    elif root.available - dataset_quota(case) < LEAST_FREE * pool.size:
        yield Reason(
            "benchmark-needs-space",
            "{pool} has {free} free. This benchmark needs {needed} and some reserve. Use less data.",
            field="size",
            pool=pool.name,
            free=size_text(root.available),
            needed=size_text(dataset_quota(case)),
        )


def check_disks(case: Case, name: str, facts: Facts) -> Iterator[Reason]:
    """Reasons against a scratch pool, which needs empty disks."""
    if facts.pool(name):
        yield Reason(
            "benchmark-leftovers",
            "Something of this benchmark is still there. Larder cleans it up first. Try again then.",
        )
    found: list[Disk] = []
    for path in case.all_disks:
        disk = facts.disk(path)
        if disk is None:
            yield disk_missing(path)
        elif disk.uses:
            yield Reason(
                "benchmark-disk-in-use",
                "{disk} {use}. This benchmark takes empty disks only.",
                field="disks",
                disk=disk_label(disk),
                use=disk.uses[0].text,
            )
        elif disk.logical_sector > 1 << case.ashift:
            yield Reason(
                "ashift-too-small",
                "{disk} has sectors of {sector} bytes, so ashift {ashift} is too small. Choose a larger one.",
                field="ashifts",
                disk=disk_label(disk),
                sector=disk.logical_sector,
                ashift=case.ashift,
            )
        elif case.partition and path in case.disks and disk.size < case.partition + SLACK:
            yield Reason(
                "disk-too-small-for-partition",
                "{disk} has no room for a partition of {size}. Choose the whole disk.",
                field="partitions",
                disk=disk_label(disk),
                size=size_text(case.partition),
            )
        else:
            found.append(disk)
    if len(found) < len(case.all_disks):
        return
    margin = 0 if case.partition else PARTITION_MARGIN
    room = usable_bytes(case.layout, vdev_disk_sizes(case, facts), case.ashift, margin=margin)
    if case.workload != "resilver" and room < case.size * ROOM:
        yield Reason(
            "scratch-pool-too-small",
            "The scratch pool would hold {room}, too little for {size} of data. Use less data.",
            field="size",
            room=size_text(room),
            size=size_text(case.size),
        )


def check_sample(found: Dataset | None, name: str, guid: int) -> Iterator[Reason]:
    """Reasons against using the files of a dataset as a sample; ``found`` is the dataset of that name now."""
    if found is None or found.guid != guid or found.kind != "filesystem":
        yield Reason("folder-missing", "The folder {folder} is no longer there.", field="sample", folder=name)
        return
    if found.encryption != "off":
        # Cleaning up removes labels and tables only. The data itself would stay readable on the disks.
        yield Reason(
            "sample-encrypted",
            "{folder} is encrypted, but its sample would be written to the disks unencrypted. Choose another folder.",
            field="sample",
            folder=found.name,
        )
    elif not found.mounted:
        yield Reason(
            "sample-not-mounted", "{folder} is not mounted. Mount it first.", field="sample", folder=found.name
        )
    try:
        names.served_path(found.mountpoint)
    except Refused:
        yield Reason(
            "sample-in-system-folder",
            "{folder} is mounted inside a system folder. Choose a folder with your own files.",
            field="sample",
            folder=found.name,
        )


def vdev_disk_sizes(case: Case, facts: Facts) -> list[list[int]]:
    """The bytes that each disk of each vdev contributes."""
    return [[case.partition or disk.size for path in group if (disk := facts.disk(path))] for group in case.vdev_disks]


def dataset_quota(case: Case) -> int:
    """The quota in bytes of a scratch dataset in a pool in use."""
    return int(case.size * ROOM) + GIB // 4
