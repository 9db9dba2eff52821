"""Who may read or change a folder, as POSIX ACLs in the form in which the kernel takes them.

Why POSIX ACLs: Samba, netatalk and the NFS server all act as the person, and the kernel decides. An ACL on the files is
therefore the one rule that holds the same over SMB, NFS and AFP (ZFS with ``acltype=posix``). Plain group and mode
cannot say "anna changes, ben reads, cleo neither".

The layout is the kernel's ``include/uapi/linux/posix_acl_xattr.h``: version 2, then tag, permissions and id of each entry
in the order of the tags. See acl(5) for how the kernel chooses: a person's own entry counts before any group's; of
groups the most generous counts.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["none", "read", "change"]
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
VERSION = 2
OWNER, PERSON, OWN_GROUP, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
NO_ID = 0xFFFFFFFF
READ, WRITE, ENTER = 4, 2, 1
ORDER: tuple[Level, ...] = ("none", "read", "change")
MAY: dict[Level, str] = {"none": "neither read nor change", "read": "read", "change": "read and change"}
BITS: dict[Level, int] = {"none": 0, "read": READ, "change": READ | WRITE}


@dataclass(frozen=True)
class Access:
    """Who may do what, by number: people by uid, groups by gid. ``everybody`` is whoever has an account."""

    everybody: Level = "none"
    people: Mapping[int, Level] = field(default_factory=dict)
    groups: Mapping[int, Level] = field(default_factory=dict)

    def level(self, uid: int, gids: frozenset[int]) -> Level:
        """What the kernel lets that person do with a file that another owns."""
        if uid in self.people:
            return self.people[uid]
        return max((self.everybody, *(self.groups[gid] for gid in gids & set(self.groups))), key=ORDER.index)

    def encoded(self, *, enter: bool) -> bytes:
        """The ACL for a folder or a program (``enter``: whoever may read may also enter or run it) or for another file."""
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
