"""The states of vdevs and pools as ZFS spells them: what each means, and the word that pages show for it.

ZFS names the state of a vdev in ``zpool_state_to_name()`` (OpenZFS 2.3, lib/libzfs/libzfs_pool.c); AVAIL and INUSE
are those of spares, SUSPENDED is only a pool's. Events and the JSON of ``zpool status`` spell a vdev's state by
the names of the enum instead (``vdev_state_str`` in cmd/zpool/zpool_main.c): a missing disk is CANT_OPEN there,
where the text says UNAVAIL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from appliance.message import Message


class VdevState(msgspec.Struct, frozen=True):
    """One state. ``phrase`` follows the name of a disk: ``bay 3 was taken offline``."""

    name: str
    word: str
    phrase: str
    level: Literal["healthy", "attention", "failed", "unknown"]
    working: bool = False  # ZFS reads from it and writes to it
    present: bool = True  # ZFS can open it, or could when it last looked

    @property
    def lost(self) -> bool:
        """Whether ZFS does not use it, although it should."""
        return self.level == "failed"


STATES = {
    state.name: state
    for state in (
        VdevState("ONLINE", Message("healthy"), Message("works"), "healthy", working=True),
        VdevState("DEGRADED", Message("degraded"), Message("is degraded"), "attention", working=True),
        VdevState("AVAIL", Message("ready"), Message("is ready as a spare"), "healthy"),
        VdevState("INUSE", Message("in use"), Message("is in use as a spare"), "healthy"),
        VdevState("FAULTED", Message("failed"), Message("failed and was taken out of use"), "failed"),
        VdevState("OFFLINE", Message("offline"), Message("was taken offline"), "failed"),
        VdevState("REMOVED", Message("removed"), Message("was pulled out"), "failed", present=False),
        VdevState("UNAVAIL", Message("missing"), Message("does not answer"), "failed", present=False),
        VdevState("SPLIT", Message("split off"), Message("was split off into another pool"), "failed"),
        VdevState("SUSPENDED", Message("stopped"), Message("has stopped"), "failed"),
    )
}
ENUM_NAMES = {"CANT_OPEN": "UNAVAIL", "HEALTHY": "ONLINE", "CLOSED": "OFFLINE"}
# Why a vdev cannot be opened, where that gives its state another name.
NAMES_BY_REASON = {"CORRUPT_DATA": "FAULTED", "BAD_LOG": "FAULTED", "SPLIT_POOL": "SPLIT"}

WORKING = frozenset(name for name, state in STATES.items() if state.working)
LOST = frozenset(name for name, state in STATES.items() if state.lost)
ABSENT = frozenset(name for name, state in STATES.items() if not state.present)
HEALTHY = frozenset(name for name, state in STATES.items() if state.level == "healthy")
UNUSABLE = frozenset({"FAULTED", "UNAVAIL"})  # a pool that ZFS could not open, or has given up
DIAGNOSED = frozenset({"FAULTED", "DEGRADED"})  # a disk that ZED has judged by its errors


def say(disk: str, name: str) -> str:
    """``bay 3 was taken offline``: a disk as people know it, and its state."""
    return Message("{disk} {phrase}", disk=disk, phrase=describe(name).phrase)


def read_state(raw: Mapping[str, object]) -> str:
    """The state of a vdev of the JSON of ``zpool status``, as ``zpool_state_to_name()`` would name it."""
    name = str(raw.get("state", "UNKNOWN"))
    if name == "CANT_OPEN":
        return NAMES_BY_REASON.get(str(raw.get("aux")), "UNAVAIL")
    return ENUM_NAMES.get(name, name)


def describe(name: str) -> VdevState:
    """The state with that name; one that ZFS has and this table has not is unknown, by its own name."""
    name = ENUM_NAMES.get(name, name)
    return STATES.get(name) or VdevState(
        name, name.lower() or Message("in another state"), Message("is in another state"), "unknown"
    )
