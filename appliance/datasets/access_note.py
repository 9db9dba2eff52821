"""The note ``larder:access`` on a dataset: who may use it, as last set, and whether every file follows.

Pages read the note, since reading the files themselves would wake sleeping disks. Names mean the users of one box; files
carry numbers. The note therefore names its box and the numbers. On a box where they differ, ``said_of`` returns None.
"""

from __future__ import annotations

import json

import msgspec

from appliance import command, names
from appliance.datasets.encryption import key_store
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.files.posix_acl import ORDER, Level
from appliance.operation import Work
from appliance.system.accounts import people_number

PROPERTY = "larder:access"
MOST = 100  # users and groups of one folder; a ZFS user property holds 8 KiB


class AccessNote(msgspec.Struct, frozen=True, kw_only=True):
    """What ``larder:access`` says. It may come with disks from anywhere, so decoding validates it."""

    guid: int
    everybody: Level = "none"
    people: dict[str, Level] = {}
    groups: dict[str, Level] = {}
    done: bool = False
    box: str = ""  # where it was said; empty: before Larder noted that
    numbers: tuple[int, ...] = ()  # of people, then of groups, each in the order of their names; 0: not there
    people_gid: int = 0  # of the group of everybody

    def __post_init__(self) -> None:
        check_names(self.people, self.groups)

    def with_numbers(self, facts: Facts) -> AccessNote:
        """The same with this box and its numbers."""
        return msgspec.structs.replace(
            self, box=key_store.box_mark(), numbers=read_numbers(self, facts), people_gid=people_number()
        )

    def is_valid_here(self, facts: Facts) -> bool:
        """Whether the names mean here whom they meant where it was said: the same box, and the numbers unchanged."""
        if (self.box, self.people_gid) != (key_store.box_mark(), people_number()):
            return False
        here = read_numbers(self, facts)
        if len(here) != len(self.numbers):
            return False
        return resolve_numbers(self, facts).member_names <= self.member_names and all(
            now in (0, then) for now, then in zip(here, self.numbers, strict=True)
        )

    @property
    def member_names(self) -> frozenset[str]:
        """Accounts, and groups as ``@group``."""
        return frozenset(self.people) | {f"@{name}" for name in self.groups}

    def level_of(self, name: str, facts: Facts) -> Level:
        """What that account may do here, groups counted."""
        if name in self.people:
            return self.people[name]
        through = [
            level for group, level in self.groups.items() if (found := facts.group(group)) and name in found.members
        ]
        return max((self.everybody, *through), key=ORDER.index)


def check_names(people: dict[str, Level], groups: dict[str, Level]) -> None:
    """Raise Refused where a name is none, or there are too many."""
    for name in people:
        names.check_user_name(name, field="people")
    for name in groups:
        names.check_group_name(name, field="groups")
    if len(people) + len(groups) > MOST:
        raise Refused(
            Reason(
                "access-list-too-long",
                "A folder's list has at most {most} users and groups. Put users into a group.",
                field="people",
                most=MOST,
            )
        )


def read_numbers(said: AccessNote, facts: Facts) -> tuple[int, ...]:
    """The numbers that the names have on this box, in the order in which a note keeps them."""
    uids = [account.uid if (account := facts.account(name)) else 0 for name in sorted(said.people)]
    return (*uids, *(group.gid if (group := facts.group(name)) else 0 for name in sorted(said.groups)))


def resolve_numbers(said: AccessNote, facts: Facts) -> AccessNote:
    """What the files let in on this box: the accounts and groups that have the noted numbers here, whatever their names."""
    levels = [
        *(said.people[name] for name in sorted(said.people)),
        *(said.groups[name] for name in sorted(said.groups)),
    ]
    pairs = list(zip(said.numbers, levels, strict=False))
    uids, gids = dict(pairs[: len(said.people)]), dict(pairs[len(said.people) :])
    return AccessNote(
        guid=said.guid,
        everybody=said.everybody if said.people_gid == people_number() else "none",
        people={one.name: uids[one.uid] for one in facts.accounts if one.uid in uids},
        groups={one.name: gids[one.gid] for one in facts.groups if one.gid in gids},
        done=said.done,
    )


def valid_note(dataset: Dataset, facts: Facts) -> AccessNote | None:
    """What was last said about this very dataset on this box; None where nothing was."""
    said = read_note(dataset)
    return said if said and said.is_valid_here(facts) else None


def foreign_note(dataset: Dataset, facts: Facts) -> AccessNote | None:
    """A note that does not apply here: of another box, with other numbers, or of before numbers were noted."""
    said = read_note(dataset)
    return said if said and not said.is_valid_here(facts) else None


def read_note(dataset: Dataset) -> AccessNote | None:
    """The note of this very dataset, wherever it was written; None where there is none that Larder could have written."""
    if not dataset.access or dataset.access_source != "local":
        return None
    try:
        said = msgspec.json.decode(dataset.access, type=AccessNote)
    except (msgspec.MsgspecError, Refused):
        return None
    return said if said.guid == dataset.guid else None


def encode_note(said: AccessNote) -> str:
    """The property's text."""
    return json.dumps(msgspec.to_builtins(said), sort_keys=True, separators=(",", ":"))


def rewrite_note(dataset: Dataset, said: AccessNote, work: Work) -> None:
    """Change what is noted with a folder without touching its files; a folder that cannot be written is told in a note."""
    try:
        command.run(["zfs", "set", f"{PROPERTY}={encode_note(said)}", dataset.name], timeout=60)
    except command.CommandFailed as failed:
        work.note(f"{dataset.name} could not be changed and says what it said: {failed.said}")
