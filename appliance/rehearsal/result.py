"""What a rehearsal of a rebuild stores on the pool, and how long one takes. Pure.

A pool without files is filled to a chosen share, one of its disks is taken offline, cleared and rebuilt. The measured
time is the property ``larder:rehearsal`` of the pool's top folder, so it moves with the disks. While test data is
there, that property of its dataset names the disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from appliance import names
from appliance.errors import Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Dataset
from appliance.layout.geometry import MIB
from appliance.pools.rebuild_estimate import HARD_DISK, SHORTEST, SOLID_STATE, PastWork
from appliance.strict_struct import StrictStruct
from appliance.zfs import vdev_tree

FOLDER = "larder-rehearsal"
SHARES, USUAL_SHARE = (10, 25, 50, 75), 25  # per cent of the pool's space for files
MOST_DISKS = 40  # whose names are stored: a property holds 8 KiB
LONGEST_NAME = 120
LARGEST = 2**64


def checked_number(number: int, least: int, most: int) -> None:
    """Raise ValueError for a number that no rehearsal can have stored."""
    if not least <= number <= most:
        raise ValueError(number)


class RehearsalResult(StrictStruct):
    """A finished rehearsal. ``looked``: bytes that the rebuild went through;
    ``vdev``: the guid that the disk had before."""

    ended: int  # seconds since 1970
    seconds: int
    looked: int
    written: int  # bytes, on the disk that was rebuilt
    share: int  # how full the pool was, in per cent
    vdev: int
    size: int  # of that disk, in bytes
    disk: str  # its by-id name, with the serial number
    disks: tuple[str, ...]  # by-id names of all disks of the pool
    zfs: str = ""

    def __post_init__(self) -> None:
        checked_number(self.ended, 0, 2**33)
        checked_number(self.seconds, 1, 2**26)
        for number in (self.looked, self.written, self.vdev, self.size):
            checked_number(number, 0, LARGEST)
        checked_number(self.share, 1, 100)
        checked_number(len(self.disks), 0, MOST_DISKS)
        checked_number(max(map(len, (self.disk, self.zfs, *self.disks))), 0, LONGEST_NAME)

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.ended, UTC)

    @property
    def is_too_short(self) -> bool:
        """Whether it says nothing of a speed."""
        return self.seconds < SHORTEST

    @property
    def work(self) -> PastWork:
        return PastWork("rehearsal", self.looked, self.seconds)


class DiskOut(StrictStruct):
    """Which disk a rehearsal takes out: the guid of its vdev, and its by-id path."""

    vdev: int
    disk: str

    def __post_init__(self) -> None:
        checked_number(self.vdev, 1, LARGEST)
        names.by_id(self.disk)


def rehearsal_folder(pool: str) -> str:
    """The dataset with the test data."""
    return f"{pool}/{FOLDER}"


def own_text(dataset: Dataset | None) -> str:
    """The property as set on the dataset itself: hostile until parsed."""
    noted = dataset.properties.get(user_properties.REHEARSAL) if dataset else None
    return noted.value if noted and noted.source == "local" else ""


def read_result(pool: Pool, datasets: Iterable[Dataset]) -> RehearsalResult | None:
    """The last rehearsal of a pool; None without one, with other text, and where the pool has
    another number of disks now."""
    root = next((one for one in datasets if one.name == pool.name), None)
    try:
        found = msgspec.json.decode(own_text(root), type=RehearsalResult)
    except msgspec.MsgspecError:
        return None
    return found if len(found.disks) == len(member_names(pool)) else None


def read_disk_out(pool: str, datasets: Iterable[Dataset]) -> DiskOut | None:
    """The disk of a rehearsal whose test data is still there; None where none is."""
    folder = next((one for one in datasets if one.name == rehearsal_folder(pool)), None)
    try:
        return msgspec.json.decode(own_text(folder), type=DiskOut)
    except (msgspec.MsgspecError, Refused):
        return None


def member_names(pool: Pool) -> tuple[str, ...]:
    """By-id names of the disks that hold data."""
    devices = [device for vdev in pool.vdevs if vdev.role == "normal" for device in vdev.devices()]
    return tuple(vdev_tree.link_of(device)[:LONGEST_NAME] for device in devices)[:MOST_DISKS]


# --- how long ---------------------------------------------------------------------------------------------------
def fill_bytes(facts: Facts, pool: str, share: int) -> int:
    """How much test data makes an empty pool so full."""
    root = facts.dataset(pool)
    return root.available * share // 100 // MIB * MIB if root else 0


def expected_seconds(pool: Pool, share: int, *, rotational: bool) -> tuple[int, int]:
    """About how long the filling and the rebuild take, at the usual speed of a disk."""
    largest = max((device.size for device in pool.devices() if device.role == "normal"), default=0)
    part = largest * share // 100 // (HARD_DISK if rotational else SOLID_STATE)
    return part, part
