"""What was found of a share that somebody cannot see."""

from __future__ import annotations

import msgspec

from appliance.message import Message
from appliance.shares import nfs_access
from appliance.shares.settings import Protocol

TITLES = {"smb": "Samba", "nfs": Message("The NFS server"), "afp": "netatalk"}


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one share for one person; ``person`` is empty where nobody was named."""

    dataset: str
    protocol: Protocol
    person: str = ""
    unit: str = ""  # active, inactive, failed; as systemd says
    port: bool = False
    drifted: bool = False  # the daemon's file was changed by hand
    served: bool | None = None  # None: the daemon could not be asked
    announced: bool | None = None  # None: Avahi could not be asked
    there: bool = False
    mounted: bool = False
    locked: str = ""  # the encryption root whose key is missing
    stopped_at: str = ""  # the first folder on the way that the person may not pass; empty where all are open
    may_write: bool = False
    unknown: tuple[str, ...] = ()  # over NFS: computers that may mount it and whose names nobody knows now
    client: nfs_access.Numbers | None = None  # over NFS: as whom the other computer acts, and what it may do
    account: str = ""  # ready, locked, unknown to the protocol ("strange"), missing; empty where nobody was named


class Check(msgspec.Struct, frozen=True):
    """One answer. ``mend`` names the button of its fix (serve, mount, unlock, let-in, password,
    edit, drift), empty: none."""

    name: str
    state: str  # healthy, failed, attention, empty (not asked)
    title: str
    meaning: str = ""
    mend: str = ""
