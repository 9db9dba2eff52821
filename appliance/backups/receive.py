"""What a transfer asks and does where copies are received: in a pool of this box, or on
another computer (``remote``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from appliance import command
from appliance.backups import copies
from appliance.backups.match import Copy
from appliance.operation import Work
from appliance.zfs import kstat, list_snapshots


class Destination(Protocol):
    """A destination. Names are those of datasets there.
    ``may_end``: whether a receiver that hangs can be ended: ZFS cannot."""

    may_end: bool

    def read_copy(self, name: str) -> Copy:
        """A copy as it is now. Raises Failed."""

    def settle(self, work: Work, name: str, wanted: Mapping[str, str]) -> None:
        """See that a copy is marked and kept out of use. Raises Failed where it is not, whatever ZFS said before."""

    def discard(self, name: str) -> None:
        """Discard what an interrupted receive has left. Raises Failed."""

    def free_space(self, name: str) -> tuple[str, int] | None:
        """A dataset with a copy's room, and its free bytes; None where that is not known. Raises Failed."""

    def key_set(self, name: str, guid: int) -> str:
        """The ``ivsetguid`` of a snapshot of a copy; empty where it has none, or none is known. Raises Failed."""

    def is_stopped(self, name: str) -> bool:
        """Whether the pool there waits for its disks, so that a receiver cannot end; False where that is not known."""

    def receiver(self, name: str, wanted: Mapping[str, str], *, new: bool) -> list[str]:
        """The command that receives a stream. ``wanted``: what has to be set on a copy that is ``new``."""


class LocalPlace:
    """A pool of this box."""

    may_end = False

    def read_copy(self, name: str) -> Copy:
        return copies.read_copy(name)

    def settle(self, work: Work, name: str, wanted: Mapping[str, str]) -> None:
        copies.settle(work, name, dict(wanted))

    def discard(self, name: str) -> None:
        command.run(["zfs", "receive", "-A", name], timeout=300)

    def free_space(self, name: str) -> tuple[str, int] | None:
        place, found = name, copies.read_values(name, ["available"])
        while not found and "/" in place:  # a first copy: there is room in what it is made in
            place = place.rpartition("/")[0]
            found = copies.read_values(place, ["available"])
        return (place, int(found["available"])) if "available" in found else None

    def key_set(self, name: str, guid: int) -> str:
        found = (one.name for one in list_snapshots.list_snapshots([name]) if one.guid == guid)
        return copies.read_values(next(found, ""), ["ivsetguid"]).get("ivsetguid", "")

    def is_stopped(self, name: str) -> bool:
        return kstat.is_stopped(name.partition("/")[0])

    def receiver(self, name: str, wanted: Mapping[str, str], *, new: bool) -> list[str]:
        options = [word for key, value in wanted.items() for word in ("-o", f"{key}={value}")] if new else []
        # -h: without the holds of the stream, which would keep the copy from ever being removed.
        return ["zfs", "receive", "-u", "-s", "-h", *options, name]


LOCAL = LocalPlace()
