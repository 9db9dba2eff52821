"""Pools that lie on the disks without being in use, as plain frozen values beside those of ``facts.py``."""

from __future__ import annotations

import msgspec

from appliance.facts import vdev_state


class ImportablePart(msgspec.Struct, frozen=True):
    """One line of an importable pool's make-up: its name and state as ``zpool import`` says them, not verified."""

    name: str
    state: str
    note: str = ""
    depth: int = 0
    role: str = "normal"


class Rewind(msgspec.Struct, frozen=True):
    """How a damaged pool could be used again: its state of an earlier moment, in ZFS's own words."""

    as_of: str
    lost: str = ""
    # Where ZFS promises none of the last moments: the oldest one on the disks.
    # ``as_of`` is then the best that can come.
    at_worst: str = ""

    @property
    def last_resort(self) -> bool:
        """Whether every earlier moment has to be tried, which reads the whole pool each time."""
        return bool(self.at_worst)


class Importable(msgspec.Struct, frozen=True):
    """A pool on disks of this box that is not in use here. Every text comes with the disks: hostile."""

    name: str
    guid: int
    state: str  # ONLINE, DEGRADED, FAULTED, UNAVAIL
    destroyed: bool = False
    status: str = ""
    action: str = ""
    comment: str = ""
    parts: tuple[ImportablePart, ...] = ()
    other_host: bool = False  # its labels say that another system was the last to use it, and did not let go of it
    active_elsewhere: bool = False  # another system writes to it at this moment (multihost)
    host: str = ""  # the name that the other system gave itself
    read_only_only: bool = False  # it uses a feature that this system can only read
    log_missing: bool = False
    rewind: Rewind | None = None

    @property
    def usable(self) -> bool:
        """Whether ZFS would take it as it is."""
        return self.state in vdev_state.WORKING
