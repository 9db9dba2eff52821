"""What ``larder:share`` says of a dataset: JSON that travels with the disks, so decoding it is its validation."""

from __future__ import annotations

from typing import Literal

import msgspec

from appliance import names
from appliance.errors import Refused
from appliance.facts import Dataset
from appliance.shares import clients

PROPERTY = "larder:share"


def people(listed: tuple[str, ...], *, field: str) -> None:
    """Accounts, or groups as ``@group``. Raises Refused."""
    for who in listed:
        names.account(who.removeprefix("@"), field=field)


class Smb(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A share over SMB; ``time_machine`` in bytes, 0 for none."""

    name: str
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    guest: Literal["no", "read", "write"] = "no"
    hidden: bool = False
    recycle: bool = False
    mac: bool = True
    time_machine: int = 0
    previous: bool = True
    encrypt: bool = False

    def __post_init__(self) -> None:
        names.share(self.name, field="name")
        people(self.write, field="write")
        people(self.read, field="read")


class Nfs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An NFS export: who may mount it, whether they may write, whether their root is root, whether writes are awaited."""

    hosts: tuple[str, ...]
    write: bool = True
    root: bool = False
    sync: bool = True

    def __post_init__(self) -> None:
        clients.clients(self.hosts)


class Afp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A volume over AFP; ``time_machine`` in bytes, 0 for none."""

    name: str
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    time_machine: int = 0

    def __post_init__(self) -> None:
        names.share(self.name, field="name")
        people(self.write, field="write")
        people(self.read, field="read")
        if self.time_machine < 0:
            raise names.refuse("A limit is a size.", "time_machine")


class ShareSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The three protocols of one dataset; None where one is off."""

    smb: Smb | None = None
    nfs: Nfs | None = None
    afp: Afp | None = None


def setting_of(dataset: Dataset) -> ShareSetting | None:
    """The dataset's own setting; None where it has none or where it is not one that Larder could have written."""
    if not dataset.share or dataset.share_source != "local":
        return None
    try:
        return msgspec.json.decode(dataset.share, type=ShareSetting)
    except (msgspec.MsgspecError, Refused, RecursionError):
        return None
