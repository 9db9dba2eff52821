"""Who uses the box and what is shared with them, as plain frozen values beside those of ``facts.py``."""

from __future__ import annotations

from typing import Literal

import msgspec


class Share(msgspec.Struct, frozen=True):
    """A share that the file of its daemon names, and the folder it serves; an NFS export is called by its path.

    Over iSCSI the kernel itself names the target, the device of its volume and who has it open.
    """

    protocol: str  # smb, nfs, afp, iscsi
    name: str
    path: str
    open_by: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Names differ by more than their case."""
        return f"{self.protocol}:{self.name.lower()}"


class Session(msgspec.Struct, frozen=True):
    """Somebody who has a share open over SMB."""

    user: str
    machine: str
    share: str


UIDS, GIDS = range(10000, 20000), range(20000, 30000)  # of users and groups of shares


class Account(msgspec.Struct, frozen=True):
    """A person with a name and a password for shares."""

    name: str
    uid: int
    display: str = ""  # as people call them; free text, empty where none was given
    disabled: bool = False

    @property
    def called(self) -> str:
        return self.display or self.name


class Group(msgspec.Struct, frozen=True):
    """People under one name, to be let into folders together."""

    name: str
    gid: int
    members: tuple[str, ...] = ()


class SmbPolicy(msgspec.Struct, frozen=True):
    """How connections over SMB are protected, for all folders: where the client asks, where it can, or always."""

    signing: Literal["asked", "required"] = "asked"
    encryption: Literal["asked", "desired", "required"] = "asked"
