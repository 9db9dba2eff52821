"""What speaks against measuring a case now: looked at for the review, and again by the agent before each case. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from appliance import names
from appliance.benchmarks.case import Case
from appliance.errors import Reason, Refused
from appliance.facts.box import Disk, Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import disk_label, size_text
from appliance.layout.choices import SLACK
from appliance.layout.geometry import GIB, PARTITION_MARGIN, usable_bytes

ROOM = 1.3  # a scratch pool or dataset has to hold so many times what a run writes
LEAST_FREE = 0.05  # of a pool that is in use, which stays free whatever is measured in it


def reasons(case: Case, name: str, facts: Facts) -> Iterator[Reason]:
    """Every reason; ``name`` is what its scratch pool or dataset is going to be called."""
    if case.where == "disk":
        if facts.disk(case.disks[0]) is None:
            yield Reason("", f"The disk {case.disks[0].rsplit('/', 1)[-1]} is no longer there.", field="disks")
        return
    if case.where == "network":
        return
    if facts.zfs == "missing":
        yield Reason("", "The ZFS module is not loaded on this system, so nothing can be measured.")
    elif case.where == "dataset":
        yield from of_pool(case, facts)
    else:
        yield from of_disks(case, name, facts)
        if case.sample:
            yield from of_sample(facts.dataset(case.sample), case.sample, case.sample_guid)


def of_pool(case: Case, facts: Facts) -> Iterator[Reason]:
    """Against a scratch dataset in a pool that is in use."""
    pool, root = facts.pool_of(case.guid), facts.dataset(case.pool)
    if pool is None or pool.name != case.pool or root is None:
        yield Reason("", f"The pool {case.pool} is not in use here any more.", field="pool")
    elif pool.state == "SUSPENDED":
        yield Reason(
            "", f"{pool.name} has stopped because its disks do not answer. Bring them back first.", field="pool"
        )
    elif root.locked or root.readonly:
        yield Reason("", f"{pool.name} is locked or may only be read. Nothing can be measured in it.", field="pool")
    elif root.available - quota(case) < LEAST_FREE * pool.size:
        yield Reason(
            "",
            f"{pool.name} has {size_text(root.available)} left, and this needs {size_text(quota(case))} with some to spare. Measure with less data.",
            field="size",
        )


def of_disks(case: Case, name: str, facts: Facts) -> Iterator[Reason]:
    """Against a scratch pool of disks that have to hold nothing."""
    if facts.pool(name):
        yield Reason("", "Something of this measurement is still there. Larder clears it away first.")
    found: list[Disk] = []
    for path in case.every:
        disk = facts.disk(path)
        if disk is None:
            yield Reason("", f"The disk {path.rsplit('/', 1)[-1]} is no longer there.", field="disks")
        elif disk.uses:
            yield Reason("", f"{disk_label(disk)} {disk.uses[0].text}. Only disks that hold nothing are measured in this way.", field="disks")  # fmt: skip
        elif disk.logical_sector > 1 << case.ashift:
            yield Reason("", f"{disk_label(disk)} has sectors of {disk.logical_sector} bytes; ashift {case.ashift} is too small.", field="ashifts")  # fmt: skip
        elif case.partition and path in case.disks and disk.size < case.partition + SLACK:
            yield Reason("", f"{disk_label(disk)} has no room for a partition of {size_text(case.partition)}.", field="partitions")  # fmt: skip
        else:
            found.append(disk)
    if len(found) < len(case.every):
        return
    margin = 0 if case.partition else PARTITION_MARGIN
    room = usable_bytes(case.layout, sizes(case, facts), case.ashift, margin=margin)
    if case.workload != "resilver" and room < case.size * ROOM:
        yield Reason("", f"The pool would hold {size_text(room)}, too little for {size_text(case.size)} of data. Measure with less.", field="size")  # fmt: skip


def of_sample(found: Dataset | None, name: str, guid: int) -> Iterator[Reason]:
    """Against reading the files of a dataset to be measured with; ``found`` is what bears its name now."""
    if found is None or found.guid != guid or found.kind != "filesystem":
        yield Reason("", f"The folder {name} is no longer there.", field="sample")
        return
    if found.encryption != "off":
        # Clearing away takes labels and tables, not what was written: it would stay on the disks for anybody to read.
        yield Reason("", f"{found.name} is encrypted, and what is measured with would lie on the disks unencrypted. Choose another folder.", field="sample")  # fmt: skip
    elif not found.mounted:
        yield Reason("", f"{found.name} is not mounted. Make it available first.", field="sample")
    try:
        names.served_path(found.mountpoint)
    except Refused:
        yield Reason(
            "", f"{found.name} lies among the system's own folders. Choose one with files of yours.", field="sample"
        )


def sizes(case: Case, facts: Facts) -> list[list[int]]:
    """Bytes that each disk of each group gives."""
    return [[case.partition or disk.size for path in group if (disk := facts.disk(path))] for group in case.groups]


def quota(case: Case) -> int:
    """Bytes that a scratch dataset may take of a pool that is in use."""
    return int(case.size * ROOM) + GIB // 4
