"""Share a folder in one job: its new users, the folder, who may use it, each protocol and its snapshot schedule.

Every part is an operation of its own (``CreateAccount``, ``CreateDataset``, ``SetAccess``, ``SetShare``,
``SetSnapshotPolicy``), checked and planned against what the parts before it will have made. A part that needs what an
earlier one makes (a number, a guid) is planned once more when its first step runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from appliance import names
from appliance.datasets.create import CreateDataset
from appliance.datasets.permissions import SetAccess
from appliance.datasets.reasons import dataset_missing
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Account
from appliance.files.posix_acl import Level
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, Step, Work, checked_plan
from appliance.shares import publish
from appliance.shares.set_share import SetShare
from appliance.shares.settings import PROTOCOLS, Afp, Nfs, ShareSetting, Smb, setting_of
from appliance.snapshots.policy import Policy, policy_of
from appliance.snapshots.set_policy import SetSnapshotPolicy
from appliance.system import accounts
from appliance.users import new_passwords
from appliance.users.accounts import CreateAccount
from appliance.users.set_password import password_step
from appliance.zfs import status

# Under which name the one form asks for what a part calls otherwise.
FIELDS: dict[type[Operation], dict[str, str]] = {
    CreateAccount: {"name": "new_users"},
    CreateDataset: {"parent": "pool"},
    SetAccess: {"groups": "people", "": "name"},
    SetShare: {"write": "people", "read": "people", "everybody_as": "people", "": "name"},
}
NOT_INHERITED = frozenset({"quota", "refquota", "reservation", "refreservation"})
FILLED_IN = "\n# A number that is 0 here is known once the steps before have run."
PLACES = {
    "smb": Message("Windows and Mac (SMB)"),
    "nfs": Message("Linux and media players (NFS)"),
    "afp": Message("Older Macs (AFP)"),
}
Made = TypeVar("Made", bound=Operation)


class ShareFolder(Operation, tag="share-folder"):
    """Share ``dataset``: a new folder without ``guid``, else the folder with that guid.

    ``new_users`` are created first; the job's secret has their passwords. ``people``, ``groups`` and
    ``everybody`` are as in ``SetAccess``; without ``people`` the access stays as it is. ``policy``: the snapshot
    schedule; None: none is set.
    """

    dataset: str
    guid: int = 0
    new_users: tuple[str, ...] = ()
    everybody: Level = "none"
    people: dict[str, Level] = {}
    groups: dict[str, Level] = {}
    smb: Smb | None = None
    nfs: Nfs | None = None
    afp: Afp | None = None
    policy: Policy | None = None

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset, field="name")
        if not 0 <= self.guid < 2**64:
            raise Refused(dataset_missing(self.dataset).with_field("name"))
        if len(set(self.new_users)) < len(self.new_users):
            raise Refused(Reason("new-user-twice", "Each new user needs a name of its own.", field="new_users"))
        if len(self.new_users) > new_passwords.MOST:
            raise Refused(
                Reason(
                    "new-users-too-many",
                    "Add at most {most} users here. Create the others on the Users page.",
                    field="new_users",
                    most=new_passwords.MOST,
                )
            )
        if not self.setting.anything:
            raise Refused(
                Reason("share-without-protocol", "Choose at least one kind of computer to share with.", field="smb")
            )
        tuple(self.parts())
        for name in self.new_users:
            if self.people.get(name, "none") == "none":
                raise Refused(
                    Reason("new-user-without-access", "Give {user} access to the folder.", field="new_users", user=name)
                )

    @property
    def title(self) -> str:
        return Message("Share the folder {dataset}", dataset=self.dataset)

    @property
    def subject(self) -> str:
        return self.dataset

    @property
    def setting(self) -> ShareSetting:
        return ShareSetting(smb=self.smb, nfs=self.nfs, afp=self.afp)

    def parts(self) -> Iterator[tuple[str, Operation]]:
        """The operations that it consists of, in their order, by a name that begins those of their steps."""
        for name in self.new_users:
            yield f"user {name}", built(CreateAccount, name=name)
        if not self.guid:
            parent, _slash, last = self.dataset.rpartition("/")
            yield "folder", built(CreateDataset, parent=parent, name=last)
        if self.people:
            yield (
                "access",
                built(
                    SetAccess, dataset=self.dataset, everybody=self.everybody, people=self.people, groups=self.groups
                ),
            )
        for protocol in PROTOCOLS:
            if part := self.setting.part(protocol):
                yield protocol, SetShare.of(self.dataset, protocol, part)
        if self.policy:
            yield "schedule", SetSnapshotPolicy(dataset=self.dataset, policy=self.policy)

    def wants_secret(self) -> bool:
        return bool(self.new_users)

    def locks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _key, part in self.parts() for name in part.locks()))

    def files_used(self) -> tuple[str, ...]:
        return (self.dataset,) if self.people else ()

    def lasts(self) -> bool:
        return bool(self.guid and self.people)

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        """Whether one of its parts does; a schedule takes nothing from a folder that has no snapshots yet."""
        later = self.facts_later(facts)
        return any(part.needs_proof(later, part.plan(later)) for _key, part in self.parts())

    def check(self, facts: Facts) -> Iterator[Reason]:
        if self.guid:
            dataset = facts.dataset(self.dataset)
            if dataset is None or dataset.guid != self.guid:
                yield dataset_missing(self.dataset).with_field("name")
                return
            now = setting_of(dataset) or ShareSetting()
            if any(now.part(one) not in {None, self.setting.part(one)} for one in PROTOCOLS):
                yield Reason(
                    "folder-already-shared",
                    "{dataset} is shared already. Change how on its own page.",
                    field="name",
                    dataset=self.dataset,
                )
                return
        later = self.facts_later(facts)
        found: dict[Reason, None] = {}
        for _key, part in self.parts():
            makes = isinstance(part, (CreateAccount, CreateDataset))
            if not makes and later.dataset(self.dataset) is None:
                continue  # there is no pool to make it in, which the folder's own part says
            known = facts if makes else later
            found |= dict.fromkeys(renamed(type(part), reason) for reason in part.check(known))
        yield from found

    def facts_later(self, facts: Facts) -> Facts:
        """The facts with the users and the folder that its first parts make; numbers and guid are 0."""
        new = tuple(Account(name, 0) for name in self.new_users if not facts.account(name))
        datasets = facts.datasets
        parent = facts.dataset(self.dataset.rpartition("/")[0])
        if not self.guid and parent and facts.dataset(self.dataset) is None:
            datasets = (*datasets, child_of(parent, self.dataset))
        return msgspec.structs.replace(facts, datasets=datasets, accounts=(*facts.accounts, *new))

    def plan(self, facts: Facts) -> Plan:
        later, passwords = self.facts_later(facts), new_passwords.NewPasswords()
        steps: list[Step] = []
        identities: list[dict[str, object]] = []
        warnings: list[str] = []
        for key, part in self.parts():
            plan = part.plan(later)
            identities.append(plan.identity)
            warnings += plan.warnings
            if isinstance(part, CreateAccount):
                read = passwords.reader(part.name)
                own = [password_step(part.name, read) if step.name == "password" else step for step in plan.steps]
            elif isinstance(part, CreateDataset):
                own = list(plan.steps)
            else:
                own = planned_later(part, plan, unknown=not self.guid or bool(self.new_users))
            steps += [msgspec.structs.replace(step, name=f"{key}: {step.name}") for step in own]
        return Plan(
            summary=self.summary(),
            steps=tuple(steps),
            identity={"operation": msgspec.to_builtins(self), "parts": identities},
            warnings=tuple(dict.fromkeys(warnings)),
            undo=Message(
                "Every part can be changed on its own page. Switching a share off leaves the files as they are."
            ),
            details=self.described(later),
        )

    def summary(self) -> str:
        what = Message("The folder") if self.guid else Message("The new folder")
        return Message(
            "{what} {dataset} can be used from other computers, by the users below.", what=what, dataset=self.dataset
        )

    def described(self, facts: Facts) -> dict[str, str]:
        """What will be so, line by line."""
        dataset = facts.dataset(self.dataset)
        policy = self.policy or (policy_of(dataset) if dataset else None)
        setting = self.setting
        lines = {
            Message("Folder"): Message("{folder}, with the files in it", folder=self.dataset)
            if self.guid
            else Message("{folder}, which is created", folder=self.dataset),
            Message("New users"): ", ".join(self.new_users),
            Message("Can read and change"): self.names_with("change", facts),
            Message("Can only read"): self.names_with("read", facts),
            PLACES["smb"]: Message("as {name}", name=setting.smb.name) if setting.smb else "",
            PLACES["nfs"]: Message("from {hosts}, without a password", hosts=", ".join(setting.nfs.hosts))
            if setting.nfs
            else "",
            PLACES["afp"]: Message("as {name}", name=setting.afp.name) if setting.afp else "",
            Message("Automatic snapshots"): policy.sentence if policy else Message("none"),
        }
        return {name: value for name, value in lines.items() if value}

    def names_with(self, level: Level, facts: Facts) -> str:
        chosen = [name for name, found in self.people.items() if found == level]
        if not self.people and self.setting.smb:
            chosen = list(self.setting.smb.write if level == "change" else self.setting.smb.read)
        return ", ".join(account.called if (account := facts.account(name)) else name for name in chosen)

    def part_of_step(self, step: str) -> tuple[Operation | None, str]:
        """The part that a step belongs to, and its name there."""
        key, _colon, name = step.partition(": ")
        return dict(self.parts()).get(key), name

    def probe(self, step: str, facts: Facts) -> bool:
        part, name = self.part_of_step(step)
        return part is not None and part.probe(name, facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        part, name = self.part_of_step(step)
        hint = part.recovery_hint(name, facts) if part else ""
        return join_messages([hint, Message("What was made before stays. “Try again” does only what is missing.")])

    def again(self, facts: Facts) -> ShareFolder:
        made = facts.dataset(self.dataset)
        return msgspec.structs.replace(
            self,
            guid=self.guid or (made.guid if made else 0),
            new_users=tuple(name for name in self.new_users if not facts.account(name)),
        )


def built(kind: type[Made], **fields: Any) -> Made:
    """A part from its fields. Raises Refused with the names of the one form's fields."""
    try:
        return kind(**fields)
    except Refused as refusal:
        raise Refused(*(renamed(kind, reason) for reason in refusal.reasons)) from refusal


def renamed(kind: type[Operation], reason: Reason) -> Reason:
    fields: Mapping[str, str] = FIELDS.get(kind, {})
    return reason.with_field(fields.get(reason.field, reason.field))


def child_of(parent: Dataset, name: str) -> Dataset:
    """The folder that ``CreateDataset`` will have made: mounted, empty, with what it inherits."""

    def inherits(source: str) -> bool:
        return source in {"local", "inherited", "received", "waiting"}

    return msgspec.structs.replace(
        parent,
        name=name,
        guid=0,
        mounted=True,
        mountpoint=f"{parent.mountpoint.rstrip('/')}/{name.rpartition('/')[2]}",
        canmount="on",
        used=0,
        referenced=0,
        used_by_snapshots=0,
        snapshots_changed=0,
        access="",
        access_source="none",
        origin="",
        share_source="inherited" if inherits(parent.share_source) else "none",
        share_from=parent.share_from or parent.name,
        properties={name: found for name, found in parent.properties.items() if name not in NOT_INHERITED},
        policy_source="waiting"
        if parent.policy_source in {"received", "waiting"}
        else "inherited"
        if inherits(parent.policy_source)
        else "none",
        policy_from=parent.policy_from or parent.name,
    )


def planned_later(part: Operation, plan: Plan, *, unknown: bool) -> list[Step]:
    """The steps of a part that are planned from what is there when the first of them runs."""
    fresh: dict[str, Step] = {}

    def late(step: Step) -> Step:
        def run(work: Work) -> None:
            if not fresh:
                fresh.update({one.name: one for one in checked_plan(part, read_facts()).steps})
            fresh[step.name].run(work)

        text = f"{step.command_text}{FILLED_IN}" if unknown and isinstance(part, SetAccess) else step.command_text
        return msgspec.structs.replace(step, run=run, command_text=text)

    return [late(step) for step in plan.steps]


def read_facts() -> Facts:
    """What the parts look at, as it is now. Raises Failed."""
    return Facts(
        datasets=status.read_datasets(),
        accounts=accounts.read_accounts(),
        groups=accounts.read_groups(),
        smb_policy=publish.smb_policy(),
    )
