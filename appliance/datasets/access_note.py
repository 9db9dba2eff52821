"""The note ``larder:access`` on a dataset: who may use it, as last set, and whether every file follows.

Pages read the note, since reading the files themselves would wake sleeping disks. Names mean the users of
one box; files carry numbers. The note therefore names its box and the numbers. ``valid_note`` returns
None on a box where they differ.
"""

from __future__ import annotations

import json

import msgspec

from appliance import command, names
from appliance.datasets.encryption import key_store
from appliance.errors import Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.files.posix_acl import ORDER, Level
from appliance.message import Message
from appliance.operation import Work
from appliance.system.accounts import people_number

MOST = 100  # users and groups of one folder; a ZFS user property holds 8 KiB


class AccessNote(msgspec.Struct, frozen=True, kw_only=True):
    """What ``larder:access`` says. It may come with disks from anywhere, so decoding validates it."""

    guid: int
    everybody: Level = "none"
    people: dict[str, Level] = {}
    groups: dict[str, Level] = {}
    done: bool = False
    box: str = ""  # the box that wrote it; empty: written by an early version of Larder
    numbers: tuple[int, ...] = ()  # of users, then of groups, each in the order of their names; 0: missing
    people_gid: int = 0  # of the group of everybody

    def __post_init__(self) -> None:
        check_names(self.people, self.groups)

    def with_numbers(self, facts: Facts) -> AccessNote:
        """Return the note with the mark and the numbers of this box."""
        return msgspec.structs.replace(
            self, box=key_store.box_mark(), numbers=read_numbers(self, facts), people_gid=people_number()
        )

    def is_valid_here(self, facts: Facts) -> bool:
        """Whether the names mean the same users as when it was written: the same box, and the numbers unchanged."""
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
        """Users, and groups as ``@group``."""
        return frozenset(self.people) | {f"@{name}" for name in self.groups}

    def level_of(self, name: str, facts: Facts) -> Level:
        """What that user may do here, groups included."""
        if name in self.people:
            return self.people[name]
        through = [
            level for group, level in self.groups.items() if (found := facts.group(group)) and name in found.members
        ]
        return max((self.everybody, *through), key=ORDER.index)


def check_names(people: dict[str, Level], groups: dict[str, Level]) -> None:
    """Raise Refused if a name is invalid, or there are too many."""
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


def read_numbers(note: AccessNote, facts: Facts) -> tuple[int, ...]:
    """The numbers of the names on this box, in the order of ``AccessNote.numbers``."""
    uids = [account.uid if (account := facts.account(name)) else 0 for name in sorted(note.people)]
    return (*uids, *(group.gid if (group := facts.group(name)) else 0 for name in sorted(note.groups)))


def resolve_numbers(note: AccessNote, facts: Facts) -> AccessNote:
    """Return the note with the users and groups that have the noted numbers on this box:
    what the files really allow."""
    levels = [
        *(note.people[name] for name in sorted(note.people)),
        *(note.groups[name] for name in sorted(note.groups)),
    ]
    pairs = list(zip(note.numbers, levels, strict=False))
    uids, gids = dict(pairs[: len(note.people)]), dict(pairs[len(note.people) :])
    return AccessNote(
        guid=note.guid,
        everybody=note.everybody if note.people_gid == people_number() else "none",
        people={user.name: uids[user.uid] for user in facts.accounts if user.uid in uids},
        groups={group.name: gids[group.gid] for group in facts.groups if group.gid in gids},
        done=note.done,
    )


def valid_note(dataset: Dataset, facts: Facts) -> AccessNote | None:
    """The note of this dataset if it is valid on this box, else None."""
    note = read_note(dataset)
    return note if note and note.is_valid_here(facts) else None


def foreign_note(dataset: Dataset, facts: Facts) -> AccessNote | None:
    """The note of this dataset if it is not valid here: from another box, with other numbers, or without numbers."""
    note = read_note(dataset)
    return note if note and not note.is_valid_here(facts) else None


def read_note(dataset: Dataset) -> AccessNote | None:
    """The note of this dataset, wherever it was written; None if there is none that Larder could have written."""
    if not dataset.access or dataset.access_source != "local":
        return None
    try:
        note = msgspec.json.decode(dataset.access, type=AccessNote)
    except (msgspec.MsgspecError, Refused):
        return None
    return note if note.guid == dataset.guid else None


def encode_note(note: AccessNote) -> str:
    """The property's text: JSON with sorted keys."""
    return json.dumps(msgspec.to_builtins(note), sort_keys=True, separators=(",", ":"))


def set_note_argv(dataset: str, note: AccessNote) -> list[str]:
    return ["zfs", "set", f"{user_properties.ACCESS}={encode_note(note)}", dataset]


def rewrite_note(dataset: Dataset, note: AccessNote, work: Work) -> None:
    """Replace the note of a dataset without touching its files. A failure only adds a line to the job's log."""
    try:
        command.run(set_note_argv(dataset.name, note), timeout=60)
    except command.CommandFailed as failed:
        work.note(
            Message(
                "{dataset} could not be changed and keeps its old list of users: {said}",
                dataset=dataset.name,
                said=failed.said,
            )
        )
