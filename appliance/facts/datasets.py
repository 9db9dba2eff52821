"""Datasets and their snapshots, as plain frozen values.

Bytes are ``int``, times are aware datetimes, guids are ``int``. Nothing here reads anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec


class Property(msgspec.Struct, frozen=True):
    """One property of a dataset as ``zfs list -p`` spells it: sizes in bytes, and where its value comes from."""

    value: str
    source: str = "none"  # local, inherited, default, received, unknown, none
    of: str = ""  # the dataset that it is inherited from


class Dataset(msgspec.Struct, frozen=True):
    name: str
    guid: int
    kind: str  # filesystem, volume
    created: datetime
    used: int
    available: int
    referenced: int
    used_by_snapshots: int = 0
    mounted: bool = False
    mountpoint: str = ""
    canmount: str = "on"
    encryption: str = "off"
    key_status: str = ""  # available, unavailable, empty when not encrypted
    key_format: str = ""  # passphrase, hex, raw; empty when not encrypted or not told
    encryption_root: str = ""
    readonly: bool = False
    share: str = ""  # the text of larder:share, as found: hostile until parsed
    share_source: str = "none"  # local, inherited, received, none
    policy: str = ""  # the text of larder:policy, as found: hostile until parsed
    policy_source: str = "none"  # as share_source; waiting: inherited from one that was received
    policy_from: str = ""  # as share_from
    written: int = 0  # bytes written since its latest snapshot
    snapshots_changed: int = 0  # when a snapshot was last made or destroyed, in seconds since 1970; 0 where not told
    access: str = ""  # the text of larder:access, as found: hostile until parsed
    access_source: str = "none"  # as share_source
    used_by_data: int = 0
    used_by_children: int = 0
    used_by_reservation: int = 0  # kept free for it (refreservation)
    origin: str = ""  # the snapshot that it is a clone of
    volsize: int = 0
    properties: dict[str, Property] = msgspec.field(default_factory=dict)  # those that ``zfs/status.py`` keeps
    share_from: str = ""  # where it is inherited: the dataset that has it
    backup: str = ""  # the text of larder:backup, as found: hostile until parsed
    backup_source: str = "none"  # as share_source
    copy_of: str = ""  # the text of larder:copy-of where it is set on the dataset itself
    scratch: bool = False  # a benchmark has made it and will destroy it

    @property
    def pool(self) -> str:
        return self.name.split("/", 1)[0]

    @property
    def own_backup(self) -> str:
        """The text of larder:backup where this box has set it on the dataset itself; "" otherwise. A copy has none."""
        return self.backup if self.backup_source == "local" and not self.copy_of else ""

    @property
    def can_mount(self) -> bool:
        """Whether it is meant to be mounted at boot or when unlocked."""
        return self.kind == "filesystem" and self.canmount == "on" and self.mountpoint.startswith("/")

    @property
    def locked(self) -> bool:
        return self.key_status == "unavailable"


class Snapshot(msgspec.Struct, frozen=True):
    """A snapshot as ``zfs list`` tells it. ``used`` is what it alone holds, in bytes: what destroying only it frees."""

    name: str  # dataset@short
    guid: int
    txg: int  # in which transaction group it was made: the order within a pool, whatever the clock said
    created: datetime
    used: int = 0
    referenced: int = 0
    written: int = 0  # bytes written since the snapshot before it
    holds: int = 0
    clones: tuple[str, ...] = ()
    run: str = ""  # the policy's run that made it (larder:run)
    note: str = ""  # hostile text
    task: str = ""  # the key of the backup whose run made it (larder:task)

    @property
    def dataset(self) -> str:
        return self.name.partition("@")[0]

    @property
    def short(self) -> str:
        return self.name.partition("@")[2]


class Bookmark(msgspec.Struct, frozen=True):
    """A moment of a dataset that is remembered without its files. ``guid`` and ``txg`` are those of its snapshot."""

    name: str  # dataset#short
    guid: int
    txg: int
    created: datetime  # when the snapshot was taken

    @property
    def dataset(self) -> str:
        return self.name.partition("#")[0]

    @property
    def short(self) -> str:
        return self.name.partition("#")[2]


class Span(msgspec.Struct, frozen=True):
    """What comes back, in bytes, when every snapshot of a dataset from ``first`` to ``last`` goes, both included."""

    first: str
    last: str
    size: int


class SpaceUse(msgspec.Struct, frozen=True):
    """What one person or group takes up in a dataset, and may at most; ``quota`` 0: as much as there is."""

    kind: str  # user, group
    who: str
    used: int
    quota: int = 0


class DatasetDetail(msgspec.Struct, frozen=True):
    """What is read of a dataset only when somebody looks closer: what would go with it, and who takes up its space."""

    name: str
    guid: int
    snapshots: int = 0  # with those of the clones
    named: tuple[str, ...] = ()  # the newest of them
    held: tuple[str, ...] = ()  # snapshots that something holds, at most ``dataset_detail.MOST_NAMED``
    clones: tuple[str, ...] = ()  # datasets outside of it that need its snapshots
    uses: tuple[SpaceUse, ...] = ()
    chosen: str = ""  # which snapshots there are that no policy made; ``dataset_details.Listed``


def names_above(dataset: str) -> Iterator[str]:
    """The datasets above one, the nearest first."""
    while dataset := dataset.rpartition("/")[0]:
        yield dataset
