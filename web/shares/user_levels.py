"""The table of a form that shares a folder: a row for each user and group, with one choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from django.utils.translation import gettext

from appliance.datasets.access_note import valid_note
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.files.posix_acl import ORDER, Level
from appliance.shares.settings import Afp, Smb

LEVELS: tuple[Level, ...] = ("change", "read", "none")
USER, GROUP = "user-", "group-"


class UserLine(msgspec.Struct, frozen=True):
    """A row: ``field`` is its name in the form, ``value`` the level chosen, ``files`` what its files allow where
    that is less than the share."""

    field: str
    who: str
    note: str
    value: str
    files: str = ""


def parse_level(text: str) -> Level:
    """The level of a row. Raises Refused where it has none."""
    level = next((one for one in LEVELS if one == text), None)
    if level is None:
        raise Refused(Reason("access-level-invalid", "Choose an access level for each user and group.", field="people"))
    return level


def level_in(part: Smb | Afp, who: str) -> Level:
    """What a share lets somebody do: a user, or ``@group``."""
    return "change" if who in part.write else "read" if who in part.read else "none"


def share_lines(facts: Facts, part: Smb | Afp, data: Mapping[str, str] | None, dataset: Dataset) -> list[UserLine]:
    """The rows of a share: all users, then all groups, as ``part`` has them or as they were sent.
    A row that was not sent is of somebody who was added meanwhile, and lets nobody in."""
    note = valid_note(dataset, facts)

    def line(field: str, name: str, who: str, hint: str) -> UserLine:
        value = level_in(part, name) if data is None else data.get(field, "none")
        allowed = note.level_of(name, facts) if note and field.startswith(USER) else "change"
        less = value in ORDER and ORDER.index(allowed) < ORDER.index(value)
        return UserLine(field, who, hint, value, allowed if less else "")

    users = [line(f"{USER}{one.name}", one.name, one.called, one.name if one.display else "") for one in facts.accounts]
    return users + [line(f"{GROUP}{one.name}", f"@{one.name}", one.name, gettext("group")) for one in facts.groups]


def chosen_levels(lines: list[UserLine]) -> dict[str, Level]:
    """The level of each user and ``@group``. Raises Refused where a row has none."""
    return {name_of(line.field): parse_level(line.value) for line in lines}


def name_of(field: str) -> str:
    """Whom a row is about, as a share's setting names them."""
    return f"@{field.removeprefix(GROUP)}" if field.startswith(GROUP) else field.removeprefix(USER)


def left_over(lines: list[UserLine], data: Mapping[str, str]) -> Iterator[str]:
    """Whom the answers let in although there is no such user or group."""
    known = {line.field for line in lines}
    for field, value in data.items():
        if field.startswith((USER, GROUP)) and field not in known and value != "none":
            yield name_of(field)


def split_levels(levels: Mapping[str, Level]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Who may change, and who may only read."""
    write = tuple(who for who, level in levels.items() if level == "change")
    return write, tuple(who for who, level in levels.items() if level == "read")
