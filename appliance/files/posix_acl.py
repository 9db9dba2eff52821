"""Who may read or change a folder, encoded as POSIX ACLs for the kernel.

Why POSIX ACLs: Samba, netatalk and the NFS server all act as the user, and the kernel decides. An ACL on the files is
therefore the only rule that works the same over SMB, NFS and AFP (ZFS with ``acltype=posix``). Group and mode alone
cannot express "anna changes, ben reads, cleo neither".

The layout is the kernel's ``include/uapi/linux/posix_acl_xattr.h``: version 2, then tag, permissions and id of each
entry in the order of the tags. acl(5) describes how the kernel chooses: a user's own entry counts before any group's
entry; among groups, the most permissive entry counts.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Literal

import msgspec

from appliance.message import Message

Level = Literal["none", "read", "change"]
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
VERSION = 2
OWNER, PERSON, OWN_GROUP, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
NO_ID = 0xFFFFFFFF
READ, WRITE, ENTER = 4, 2, 1
ORDER: tuple[Level, ...] = ("none", "read", "change")
MAY: dict[Level, str] = {
    "none": Message("neither read nor change"),
    "read": Message("read"),
    "change": Message("read and change"),
}
BITS: dict[Level, int] = {"none": 0, "read": READ, "change": READ | WRITE}


class Access(msgspec.Struct, frozen=True):
    """Access levels of users by uid and of groups by gid. ``everybody`` means every user of the box."""

    everybody: Level = "none"
    people: Mapping[int, Level] = msgspec.field(default_factory=dict)
    groups: Mapping[int, Level] = msgspec.field(default_factory=dict)

    def level_of(self, uid: int, gids: frozenset[int]) -> Level:
        """What the kernel lets a user do with a file that somebody else owns."""
        if uid in self.people:
            return self.people[uid]
        return max((self.everybody, *(self.groups[gid] for gid in gids & set(self.groups))), key=ORDER.index)

    def encode_acl(self, *, enter: bool) -> bytes:
        """The ACL in the kernel's format. ``enter``: for a folder or program, which readers may also enter or run."""
        extra = ENTER if enter else 0

        def bits(level: Level) -> int:
            return BITS[level] | (extra if level != "none" else 0)

        entries = [
            (OWNER, READ | WRITE | extra, NO_ID),
            *((PERSON, bits(self.people[uid]), uid) for uid in sorted(self.people)),
            (OWN_GROUP, bits(self.everybody), NO_ID),
            *((GROUP, bits(self.groups[gid]), gid) for gid in sorted(self.groups)),
            (MASK, READ | WRITE | extra, NO_ID),
            (OTHER, 0, NO_ID),
        ]
        return struct.pack("<I", VERSION) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
