"""Operations on groups of users."""

from __future__ import annotations

import grp
import shlex
from collections.abc import Iterable, Iterator

import msgspec

from appliance import command, names
from appliance.datasets import access_note
from appliance.datasets.reasons import group_missing, user_missing
from appliance.errors import Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, command_step, never
from appliance.system import accounts
from appliance.users import drop_from_shares
from appliance.users.accounts import group_exists, user_exists

MOST = 200


class GroupOperation(Operation):
    """Base of operations on one group."""

    name: str

    def __post_init__(self) -> None:
        names.check_group_name(self.name, field="name")

    @property
    def subject(self) -> str:
        return self.name

    def locks(self) -> tuple[str, ...]:
        return ("accounts",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if not facts.group(self.name):
            yield group_missing(self.name).with_field("name")


class GroupMembersOperation(GroupOperation):
    """Base of operations on a group and its members."""

    members: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for member in self.members:
            names.check_user_name(member, field="members")
        if len(self.members) > MOST:
            raise Refused(Reason("group-too-large", "A group has at most {most} members.", field="members", most=MOST))

    def unknown_members(self, facts: Facts) -> Iterator[Reason]:
        for member in self.members:
            if not facts.account(member):
                yield user_missing(member).with_field("members")

    def members_step(self) -> Step:
        argv = ["gpasswd", "--members", ",".join(sorted(set(self.members))), self.name]
        return command_step("members", Message("Set its members"), argv)

    def has_members(self, facts: Facts) -> bool:
        group = facts.group(self.name)
        return group is not None and set(group.members) == set(self.members)


class CreateGroup(GroupMembersOperation, tag="create-group"):
    """Create a group of users."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Create the group {name}", name=self.name)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.group(self.name):
            yield group_exists(self.name)
        if facts.account(self.name):
            yield user_exists(self.name)
        yield from self.unknown_members(facts)

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            Message(
                "The group {name}, with these members: {member_text}.",
                name=self.name,
                member_text=member_text(self.members),
            ),
            (
                Step(
                    "group",
                    Message("Create {name}", name=self.name),
                    accounts.text_of_creation(self.groupadd_argv),
                    self.make_group,
                ),
                self.members_step(),
            ),
            {"operation": msgspec.to_builtins(self)},
            undo=Message("It can be removed again."),
        )

    def groupadd_argv(self, gid: str) -> list[str]:
        return ["groupadd", "--gid", gid, "--", self.name]

    def make_group(self, work: Work) -> None:
        try:
            grp.getgrnam(self.name)
        except KeyError:
            argv = self.groupadd_argv(str(accounts.new_gid()))
            work.note(shlex.join(argv))
            command.run(argv, timeout=30)
            return
        raise Refused(names.used_by_system(self.name).with_field("name"))

    def probe(self, step: str, facts: Facts) -> bool:
        return facts.group(self.name) is not None if step == "group" else self.has_members(facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.group(self.name):
            return Message("The group {name} was created without its members. Choose them on its page.", name=self.name)
        return Message("There is no group {name} yet. Create it again.", name=self.name)


class SetMembers(GroupMembersOperation, tag="set-members"):
    """Replace the members of a group."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Set the members of {name}", name=self.name)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        yield from self.unknown_members(facts)

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            Message(
                "The members of {name} are then: {member_text}. Users who are connected keep their access "
                "until they connect again.",
                name=self.name,
                member_text=member_text(self.members),
            ),
            (self.members_step(),),
            {"operation": msgspec.to_builtins(self)},
            undo=Message("Yes: set other members at any time."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return self.has_members(facts)


class RemoveGroup(GroupOperation, tag="remove-group"):
    """Remove a group; its members and all files stay."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Remove the group {name}", name=self.name)

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), "shares")

    def files_taken(self) -> tuple[str, ...]:
        return ("",)  # any folder may give it access

    def plan(self, facts: Facts) -> Plan:
        used = [
            dataset.name
            for dataset in facts.datasets
            if (note := access_note.valid_note(dataset, facts)) and self.name in note.groups
        ]
        used += [name for name in drop_from_shares.folders_sharing_with(f"@{self.name}", facts) if name not in used]
        return Plan(
            Message(
                "The group {name} is removed; its members stay users, but lose the access that it gave them.",
                name=self.name,
            ),
            (
                Step(
                    "forget",
                    Message("Remove it from the access lists of folders"),
                    f"zfs set {user_properties.ACCESS}=… of each",
                    lambda work: self.drop_from_rules(facts, work),
                ),
                drop_from_shares.drop_step(f"@{self.name}", "", facts),
                command_step("group", Message("Remove {name}", name=self.name), ["groupdel", "--", self.name]),
            ),
            {"operation": msgspec.to_builtins(self), "gid": group.gid if (group := facts.group(self.name)) else 0},
            warnings=(Message("It has access to {used}.", used=", ".join(used)),) if used else (),
            undo=Message("No. A new group with this name starts without any access."),
        )

    def drop_from_rules(self, facts: Facts, work: Work) -> None:
        """Remove the group from the access notes of all folders."""
        for dataset in facts.datasets:
            note = access_note.valid_note(dataset, facts)
            if note and self.name in note.groups:
                groups = {name: has for name, has in note.groups.items() if name != self.name}
                access_note.rewrite_note(
                    dataset, msgspec.structs.replace(note, groups=groups).with_numbers(facts), work
                )

    def probe(self, step: str, facts: Facts) -> bool:
        return facts.group(self.name) is None


def member_text(members: Iterable[str]) -> str:
    return ", ".join(sorted(set(members))) or Message("nobody yet")
