"""The settings of Larder's own database as a file of the record of the box: ``settings.json``.

Anybody may have written it, so each entry is read by its own rules. One that breaks them is left out and
named; it loses no other. Nothing in it is secret: passwords are sealed, and a webhook's address, which
often holds a token, is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from appliance.errors import Reason, Refused
from appliance.facts import box_record
from appliance.recovery.settings_entries import (
    LAST,
    AcceptedValue,
    AlertLevel,
    BayChoice,
    BoxLanguage,
    CareChoice,
    DiskChoice,
    LedgerEntry,
    Notifications,
    PageChoice,
    PlannedGrowth,
    PriceChoice,
    SelfTests,
    out_of_range,
    require,
)
from appliance.strict_struct import StrictStruct

VERSION = 1
LARGEST = 900_000  # bytes: it has to fit into one request to the agent
MOST_FORMER = 8  # databases whose settings one file has taken the place of


def bad_entry() -> Reason:
    return Reason("setting-malformed", "An entry is damaged or was not written by Larder.")


def unknown_setting() -> Reason:
    return Reason("kept-setting-unknown", "This version of Larder does not know it.")


class SettingGroups(StrictStruct, omit_defaults=True):
    """What is kept, in groups of which each can be left out when they are brought back."""

    box: tuple[BoxLanguage, ...] = ()
    notifications: tuple[Notifications, ...] = ()
    levels: tuple[AlertLevel, ...] = ()
    accepted: tuple[AcceptedValue, ...] = ()
    disks: tuple[DiskChoice, ...] = ()
    self_tests: tuple[SelfTests, ...] = ()
    care: tuple[CareChoice, ...] = ()
    price: tuple[PriceChoice, ...] = ()
    growth: tuple[PlannedGrowth, ...] = ()
    bays: tuple[BayChoice, ...] = ()
    pages: tuple[PageChoice, ...] = ()
    snapshots: tuple[LedgerEntry, ...] = ()

    def __post_init__(self) -> None:
        for group, (_kind, most) in GROUPS.items():
            found = getattr(self, group)
            require(len(found) <= most, len({one.key for one in found}) == len(found))

    @property
    def digest_text(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")


# By group what its entries are, and how many there may be.
GROUPS: dict[str, tuple[Any, int]] = {
    "box": (BoxLanguage, 1),
    "notifications": (Notifications, 1),
    "levels": (AlertLevel, 500),
    "accepted": (AcceptedValue, 1000),
    "disks": (DiskChoice, 1000),
    "self_tests": (SelfTests, 1),
    "care": (CareChoice, 200),
    "price": (PriceChoice, 1),
    "growth": (PlannedGrowth, 50),
    "bays": (BayChoice, 500),
    "pages": (PageChoice, 50),
    "snapshots": (LedgerEntry, 8000),
}


class BoxSettings(StrictStruct):
    """``made`` identifies the database: when it was made, in microseconds since 1970. ``written``: when they last
    changed, in seconds. ``former``: the databases whose settings these have taken the place of, as somebody decided."""

    version: int = VERSION
    made: int
    written: int = 0
    former: tuple[int, ...] = ()
    groups: SettingGroups

    def __post_init__(self) -> None:
        require(
            self.version == VERSION,
            0 < self.made < LAST and 0 <= self.written < 2**33,
            len(self.former) <= MOST_FORMER and all(0 < one < LAST for one in self.former),
        )

    @property
    def text(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")


class LeftOut(msgspec.Struct, frozen=True):
    """Entries of a group that were not read: how many, and the code of the reason against the first."""

    group: str
    count: int
    code: str

    @property
    def reason(self) -> Reason:
        known = {one.code: one for one in (out_of_range(), unknown_setting())}
        return known.get(self.code, bad_entry())


class FoundSettings(msgspec.Struct, frozen=True):
    """What could be read of a file, and what could not."""

    settings: BoxSettings
    left_out: tuple[LeftOut, ...] = ()


class RawSettings(msgspec.Struct):
    version: int
    made: int
    groups: dict[str, msgspec.Raw]
    written: int = 0
    former: tuple[int, ...] = ()


class OnlyVersion(msgspec.Struct):
    version: int


def too_large() -> Reason:
    return Reason("settings-too-large", "The settings in that record are too large to be Larder's.")


def malformed() -> Reason:
    return Reason("settings-malformed", "The settings in that record are damaged or were not written by Larder.")


def read_settings(text: bytes) -> FoundSettings:
    """The settings in a text, without the entries that break a rule. Raises Refused where it is no such text at all."""
    if len(text) > LARGEST:
        raise Refused(too_large())
    try:
        if msgspec.json.decode(text, type=OnlyVersion).version > VERSION:
            raise Refused(box_record.too_new())
        raw = msgspec.json.decode(text, type=RawSettings)
        left_out: list[LeftOut] = []
        groups = {
            group: tuple(read_group(group, raw.groups[group], left_out)) for group in GROUPS if group in raw.groups
        }
        left_out += [
            LeftOut(group[:40], 1, unknown_setting().code) for group in list(raw.groups)[:50] if group not in GROUPS
        ]
        settings = BoxSettings(
            version=raw.version, made=raw.made, written=raw.written, former=raw.former, groups=SettingGroups(**groups)
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(malformed()) from error
    return FoundSettings(settings, tuple(left_out))


def read_group(group: str, raw: msgspec.Raw, left_out: list[LeftOut]) -> Iterator[Any]:
    """The entries of a group that keep its rules; the others are counted."""
    kind, most = GROUPS[group]
    seen: set[object] = set()
    bad: list[str] = []
    try:
        entries: Iterable[msgspec.Raw] = msgspec.json.decode(raw, type=list[msgspec.Raw])
    except msgspec.MsgspecError:
        left_out.append(LeftOut(group, 1, bad_entry().code))
        return
    for entry in entries:
        try:
            found = msgspec.json.decode(entry, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            bad.append(bad_entry().code)
        except Refused as refused:
            bad.append(refused.reasons[0].code)
        else:
            if found.key in seen or len(seen) >= most:
                bad.append(out_of_range().code)
            else:
                seen.add(found.key)
                yield found
    if bad:
        left_out.append(LeftOut(group, len(bad), bad[0]))
