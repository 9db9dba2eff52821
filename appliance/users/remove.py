"""Remove a user, and decide what happens to the files.

They stay where they are. Either nobody owns them any more (the number is never used again, so no new user gets them),
or another user gets them, together with the access that the removed user had to each folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import msgspec

from appliance import names, snapshot_names
from appliance.datasets import access_note, permissions, reasons
from appliance.datasets.access_note import AccessNote
from appliance.errors import Failed, Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.files import traversal
from appliance.files.posix_acl import ORDER
from appliance.formatting import names_text
from appliance.message import Message, join_messages
from appliance.operation import Plan, Step, Work, command_step, never
from appliance.shares.settings import setting_of
from appliance.snapshots.take import before_step
from appliance.system import accounts
from appliance.users import drop_from_shares
from appliance.users.accounts import samba_step
from appliance.users.base import AccountOperation, disconnect_step, user_number
from appliance.zfs import pool_sync


class RemoveAccount(AccountOperation, tag="remove-account"):
    """Remove a user. ``heir``: the user who gets the files; empty: nobody. ``before``: the name of the snapshot that is
    taken of each folder before its files are given away; empty for none."""

    needs_proof = never

    heir: str = ""
    before: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.heir:
            names.check_user_name(self.heir, field="heir")
        if self.before and not snapshot_names.is_for(snapshot_names.BEFORE, self.before):
            raise Refused(reasons.snapshot_name_not_before())

    @property
    def title(self) -> str:
        return Message("Remove {name}", name=self.name)

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), "shares")

    def files_taken(self) -> tuple[str, ...]:
        return ("",)  # any folder may give this user access

    def lasts(self) -> bool:
        # Every file of every folder may change its owner.
        return bool(self.heir)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if self.heir == self.name:
            yield Reason(
                "heir-is-removed",
                "The files of {user} cannot be given to the same user. Choose another user.",
                field="heir",
                user=self.name,
            )
        elif self.heir and not facts.account(self.heir):
            yield reasons.user_missing(self.heir).with_field("heir")
        elif self.heir:
            locked = [dataset.name for dataset in facts.datasets if dataset.kind == "filesystem" and dataset.locked]
            if locked:
                yield Reason(
                    "folders-locked",
                    "The files in locked folders cannot be given away: {folders}. Unlock them first, or let "
                    "the files belong to nobody.",
                    field="heir",
                    folders=names_text(locked, 3),
                )
            if self.before:
                yield from self.check_name_lengths(facts)

    def check_name_lengths(self, facts: Facts) -> Iterator[Reason]:
        for dataset in facts.datasets:
            if is_writable(dataset) and len(f"{dataset.name}@{self.before}") > names.LONGEST_SNAPSHOT:
                yield Reason(
                    "folder-name-too-long-for-snapshot",
                    "The name of {dataset} is too long for the snapshot that is taken first. Rename the "
                    "folder, or let the files belong to nobody.",
                    field="heir",
                    dataset=dataset.name,
                )

    def plan(self, facts: Facts) -> Plan:
        uid, heir = user_number(facts, self.name), user_number(facts, self.heir)
        first = (
            Message(
                "zfs snapshot -- FOLDER@{before} of each folder with files of {user}",
                before=self.before,
                user=self.name,
            )
            if self.before
            else ""
        )
        given = Message("for each file of {user} on every folder: chown {heir}", user=self.name, heir=self.heir)
        hand = Step(
            "files",
            Message("Give its files to {heir}", heir=self.heir),
            join_messages([first, given], "\n"),
            lambda work: self.hand_over(uid, heir, facts, work),
        )
        again = Message("Disconnect {name} once more", name=self.name)  # who signed in while it was being disabled
        steps = [
            samba_step("close", Message("Disable it in Samba"), ["smbpasswd", "-d", self.name], self.name),
            # AFP asks PAM. Until this a Mac connects again with the password that it has stored, and writes where the
            # files have been given away already; and userdel refuses while one of its processes runs.
            command_step("lock", Message("The same for AFP, and note it"), self.lock_argv(facts)),
            disconnect_step(self.name),
            *([hand] if heir else []),
            Step(
                "forget",
                Message("Remove it from the access lists of folders"),
                f"zfs set {user_properties.ACCESS}=… of each",
                lambda work: self.drop_from_rules(facts, work),
            ),
            drop_from_shares.drop_step(self.name, self.heir, facts),
            samba_step("samba", Message("Remove it from Samba"), ["smbpasswd", "-x", self.name], self.name),
            msgspec.structs.replace(disconnect_step(self.name), name="last-sessions", title=again),
            command_step("user", Message("Remove {name}", name=self.name), ["userdel", "--", self.name]),
        ]
        kept = (
            Message(
                " Each folder with files of {name} gets a snapshot first, which stays until you destroy it.",
                name=self.name,
            )
            if self.before
            else ""
        )
        files = (
            Message("The files go to {heir}.{kept}", heir=self.heir, kept=kept)
            if heir
            else Message("The files stay where they are and belong to nobody.")
        )
        return Plan(
            summary=Message(
                "{name} can no longer use any share. {files} Nothing is erased.", name=self.name, files=files
            ),
            steps=tuple(steps),
            identity={"operation": msgspec.to_builtins(self), "uid": uid, "heir": heir},
            warnings=tuple(warn_left_alone(self.name, facts)),
            undo=Message("No. A new user with this name owns none of these files."),
        )

    def lock_argv(self, facts: Facts) -> list[str]:
        """The command that keeps the user from signing in over AFP.
        Pages then show it as disabled, until it is gone."""
        account = facts.account(self.name)
        comment = accounts.account_comment(account.display if account else "", disabled=True)
        return ["usermod", "--lock", "--comment", comment, "--", self.name]

    def hand_over(self, uid: int, heir: int, facts: Facts, work: Work) -> None:
        """Give every file of ``uid`` on every mounted dataset to the heir, after a snapshot.
        Raises Failed, Cancelled."""
        kept: set[str] = set()

        def snapshot_once(dataset: Dataset) -> None:
            if self.before and dataset.name not in kept:
                before_step(dataset.name, self.before, f"before {self.name} was removed").run(work)
                work.note(
                    Message("{dataset}@{before} keeps {dataset} as it was", dataset=dataset.name, before=self.before)
                )
                kept.add(dataset.name)

        for dataset in facts.datasets:
            if is_writable(dataset):
                give_away(dataset, uid, heir, work, snapshot_once)
        for dataset in facts.datasets:
            note = access_note.valid_note(dataset, facts)
            if note and self.name in note.people:
                inherited = self.inherit_rules(note, facts)
                snapshot_once(dataset)
                permissions.apply_note(dataset, inherited, facts, work)

    def inherit_rules(self, note: AccessNote, facts: Facts) -> AccessNote:
        """The access note of a folder with the heir in place of the removed user, with the higher level of both."""
        level = max(note.people[self.name], note.level_of(self.heir, facts), key=ORDER.index)
        people = {name: has for name, has in note.people.items() if name != self.name} | {self.heir: level}
        return msgspec.structs.replace(note, people=people)

    def drop_from_rules(self, facts: Facts, work: Work) -> None:
        """Remove the user from the access notes of all folders, so that a later user of that name gets no access."""
        for dataset in facts.datasets:
            note = access_note.valid_note(dataset, facts)
            if note is None or self.name not in note.people:
                continue
            people = {name: has for name, has in note.people.items() if name != self.name}
            if self.heir:
                people = dict(self.inherit_rules(note, facts).people)
            access_note.rewrite_note(dataset, msgspec.structs.replace(note, people=people).with_numbers(facts), work)

    def probe(self, step: str, facts: Facts) -> bool:
        gone = facts.account(self.name) is None
        if step != "samba":
            # The user is removed last: without it, everything before has been done.
            return gone
        return gone and not accounts.known_to_samba(self.name)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        account = facts.account(self.name)
        # usermod writes the comment before it locks the password; Samba comes before both.
        if account and not (account.disabled and not accounts.has_password(self.name)):
            return Message(
                "{name} is still there and may still be able to use shares. Remove the user again.", name=self.name
            )
        if account:
            return Message(
                "{name} is disabled but still there. Remove the user again; what is done already is not done twice.",
                name=self.name,
            )
        return Message("{name} was removed.", name=self.name)


def is_writable(dataset: Dataset) -> bool:
    """Whether the files of a dataset can be given to another user."""
    return dataset.kind == "filesystem" and dataset.mounted and not dataset.readonly and dataset.mountpoint != "/"


def give_away(
    dataset: Dataset, uid: int, heir: int, work: Work, before_first: Callable[[Dataset], None] = lambda _dataset: None
) -> None:
    """Give the files of one user on one dataset to another; the kernel clears set-id bits.
    ``before_first`` is called before the first change."""
    with traversal.open_dir_nofollow(dataset.mountpoint) as root:
        traversal.refuse_unless_of(root, dataset.name)
        pace, given = traversal.WalkProgress(work, root), 0
        for found in traversal.walk_tree(root):
            if found.status.st_uid == uid:
                if not given:
                    before_first(dataset)
                try:
                    os.chown(found.link, heir, -1)
                except OSError as error:
                    raise Failed(
                        Message("A file in {dataset} could not be given away", dataset=dataset.name), str(error)
                    ) from error
                given += 1
            pace.count_one()
    if given:
        pool_sync.sync_pool_of(dataset.name)
        work.note(Message("{given} files and folders in {dataset} were given away", given=given, dataset=dataset.name))


def warn_left_alone(name: str, facts: Facts) -> Iterator[str]:
    """Yield a warning for each share that nobody could use any more, and each note that will keep the name."""
    for dataset in facts.datasets:
        setting = setting_of(dataset)
        if setting and setting.people == {name}:
            yield Message(
                "{name} is the only one who may use the share of {dataset}: nobody can use it then, until "
                "you give somebody access.",
                name=name,
                dataset=dataset.name,
            )
        noted = access_note.foreign_note(dataset, facts)
        if noted and name in noted.people:
            yield Message(
                "{dataset} names {name} in an access list that is not valid on this box and is not changed. "
                "Set access to its files afterwards.",
                dataset=dataset.name,
                name=name,
            )
