"""Which datasets are part of this box's own system, where its root file system or a folder of it lies on ZFS."""

from __future__ import annotations

from collections.abc import Iterable

from appliance import names
from appliance.errors import Reason
from appliance.facts.datasets import Dataset

RECORD = ".larder-box"  # of a pool: the records of boxes (recovery/records.py)


def record_dataset(pool: str) -> str:
    """The dataset of a pool that holds the records of boxes."""
    return f"{pool}/{RECORD}"


def is_record(name: str) -> bool:
    """Whether a dataset holds records of boxes: no folder, so it is not among the facts and
    nothing can be asked of it."""
    return name.partition("/")[2] == RECORD


def is_of_system(one: Dataset, datasets: Iterable[Dataset]) -> bool:
    """Whether a dataset holds a part of this box's system: its files may not be shown, put back, moved or destroyed.

    That is what is mounted among the system's folders, and what wants to be there in a pool that the system lies on,
    such as another boot environment. ``legacy``: something else than ZFS mounts it, so nobody knows where. Disks of
    another system that are only looked at here are none of it.
    """
    among = one.mountpoint.startswith("/") and names.is_system_folder(one.mountpoint)
    if one.kind != "filesystem" or not (among or one.mountpoint == "legacy"):
        return False
    return one.mounted or carries_system(one.pool, datasets)


def carries_system(pool: str, datasets: Iterable[Dataset]) -> bool:
    """Whether a folder of the system is mounted from that pool."""
    return any(
        one.pool == pool and one.mounted and one.mountpoint.startswith("/") and names.is_system_folder(one.mountpoint)
        for one in datasets
    )


def reason_against(one: Dataset, datasets: Iterable[Dataset]) -> Reason | None:
    """Why Larder does not change a dataset; None where it does not belong to the system."""
    if not is_of_system(one, datasets):
        return None
    return Reason(
        "system-dataset",
        "{dataset} is part of this box's own system, so Larder does not change it. Use the system's own tools.",
        dataset=one.name,
    )
