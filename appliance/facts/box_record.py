"""The record of a box, on its pools and beside its copies: validated when read, because anybody may have written it.

Users and groups have the numbers that own the files, folders the settings that a copy does not carry.
Its secrets lie beside it, sealed (``recovery/seal.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from appliance import names
from appliance.errors import Reason, Refused
from appliance.facts import user_properties
from appliance.facts.sharing import GIDS, UIDS
from appliance.strict_struct import StrictStruct

VERSION = 1
LARGEST = 4 * 2**20  # bytes
MOST_BOXES = 16  # that have left a record on one pool
MOST_USERS, MOST_FOLDERS = 5000, 20_000
BOX_ID = re.compile(r"[0-9a-f]{16}")
SID = re.compile(r"S-1-5-21(-[0-9]{1,10}){3}")
HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# The settings of a folder that a copy does not carry, and what they are called in a sentence.
NOTED = {
    user_properties.SHARE: "shares",
    user_properties.POLICY: "snapshot schedule",
    user_properties.BACKUP: "backups",
    user_properties.ACCESS: "access",
}


def malformed() -> Reason:
    return Reason("record-malformed", "The record of that box is damaged or was not written by Larder.")


def too_new() -> Reason:
    return Reason(
        "record-too-new", "That record was written by a newer version of Larder. Update this box, then try again."
    )


class RecordedUser(StrictStruct):
    name: str
    uid: int
    display: str = ""
    disabled: bool = False

    def __post_init__(self) -> None:
        names.check_user_name(self.name)
        if self.display:
            names.check_display_name(self.display)
        if self.uid not in UIDS:
            raise Refused(malformed())


class RecordedGroup(StrictStruct):
    name: str
    gid: int
    members: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names.check_group_name(self.name)
        for member in self.members:
            names.check_user_name(member)
        if self.gid not in GIDS:
            raise Refused(malformed())


class RecordedFolder(StrictStruct):
    """A dataset of the box. ``settings``: those of NOTED that were set on it; each is parsed like any hostile text."""

    name: str
    guid: int
    kind: str = "filesystem"
    encrypted: bool = False
    settings: dict[str, str] = {}

    def __post_init__(self) -> None:
        names.existing_dataset(self.name)
        if not 0 < self.guid < 2**64 or not set(self.settings) <= set(NOTED):
            raise Refused(malformed())


class BoxRecord(StrictStruct):
    """``box`` is the id of the box, ``written`` in seconds since 1970.
    ``next_uid``, ``next_gid``: no number below was ever free again. ``samba_sid``: who the box is for Windows."""

    version: int
    box: str
    host: str
    written: int
    larder: str = ""
    zfs: str = ""
    users: tuple[RecordedUser, ...] = ()
    groups: tuple[RecordedGroup, ...] = ()
    next_uid: int = UIDS.start
    next_gid: int = GIDS.start
    samba_sid: str = ""
    pools: dict[str, str] = {}
    folders: tuple[RecordedFolder, ...] = ()
    sealed: bool = False

    def __post_init__(self) -> None:
        if (
            self.version != VERSION
            or not BOX_ID.fullmatch(self.box)
            or not HOST.fullmatch(self.host)
            or not 0 < self.written < 2**33
            or len(self.users) > MOST_USERS
            or len(self.groups) > MOST_USERS
            or len(self.folders) > MOST_FOLDERS
            or (self.samba_sid and not SID.fullmatch(self.samba_sid))
            or not UIDS.start <= self.next_uid <= UIDS.stop
            or not GIDS.start <= self.next_gid <= GIDS.stop
            or has_twice([*(one.name for one in self.users), *(one.name for one in self.groups)])
            or has_twice(one.uid for one in self.users)
            or has_twice(one.gid for one in self.groups)
        ):
            raise Refused(malformed())

    @property
    def text(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")

    def folder(self, guid: int) -> RecordedFolder | None:
        return next((one for one in self.folders if one.guid == guid), None)


def has_twice(found: Iterable[object]) -> bool:
    listed = list(found)
    return len(set(listed)) < len(listed)


class Versioned(msgspec.Struct):
    version: int


def parse_record(text: bytes) -> BoxRecord:
    """The record in a text. Raises Refused for one that is damaged, hostile, or newer than this code."""
    try:
        if len(text) > LARGEST:
            raise Refused(malformed())
        if msgspec.json.decode(text, type=Versioned).version > VERSION:
            raise Refused(too_new())
        return msgspec.json.decode(text, type=BoxRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(malformed()) from error


class BoxMark(StrictStruct, omit_defaults=True):
    """A box that has left its record on a pool. ``by``: the name of the box that has taken its place."""

    id: str
    host: str
    at: int
    by: str = ""

    def __post_init__(self) -> None:
        if not (BOX_ID.fullmatch(self.id) and HOST.fullmatch(self.host) and 0 < self.at < 2**33):
            raise Refused(malformed())
        if self.by and not HOST.fullmatch(self.by):
            raise Refused(malformed())


class BoxMarks(StrictStruct):
    """The text of ``larder:box``, on the top folder of a pool."""

    boxes: tuple[BoxMark, ...] = ()

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    def find(self, box: str) -> BoxMark | None:
        return next((one for one in self.boxes if one.id == box), None)

    def with_mark(self, mark: BoxMark) -> BoxMarks:
        """The same with this mark; where there are too many, the oldest goes."""
        others = sorted((one for one in self.boxes if one.id != mark.id), key=lambda one: one.at)
        return BoxMarks(boxes=(*others[-(MOST_BOXES - 1) :], mark))


def parse_marks(text: str) -> BoxMarks:
    """What the property says; nothing where it says nothing that Larder could have written."""
    try:
        found = msgspec.json.decode(text, type=BoxMarks) if text else BoxMarks()
    except (msgspec.MsgspecError, RecursionError, Refused):
        return BoxMarks()
    return found if len(found.boxes) <= MOST_BOXES else BoxMarks()
