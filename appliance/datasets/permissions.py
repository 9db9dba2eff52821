"""Set who may read or change a folder, and apply that to every file in it."""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from appliance import command, names, snapshot_names
from appliance.datasets import reasons
from appliance.datasets.access_note import AccessNote, check_names, set_note_argv, valid_note
from appliance.errors import Failed, Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Account
from appliance.files import leftover, traversal
from appliance.files.posix_acl import ACCESS, DEFAULT, Access, Level
from appliance.message import Message, join_messages, message_template
from appliance.operation import Plan, Step, Work, command_step, never
from appliance.snapshots.take import SnapshotsOperation, before_step
from appliance.system.accounts import PEOPLE, UIDS, group_number
from appliance.zfs import mount, mountpoints

FOLDER_MODE = 0o2770  # new files get the group of their folder
SCRATCH_MODE = 0o2700
ENTER_BITS = 0o111


class SetAccess(SnapshotsOperation, tag="set-access"):
    """Set who may read or change a folder, and apply that to every file in it.

    A user's own level counts before those of groups and ``everybody``; of the latter the most generous counts.
    ``before`` is the name of a snapshot to take first; empty for none.
    """

    needs_proof = never

    dataset: str
    everybody: Level = "none"
    people: dict[str, Level] = {}
    groups: dict[str, Level] = {}
    before: str = ""

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        if self.before and not snapshot_names.is_for(snapshot_names.BEFORE, self.before):
            raise Refused(reasons.snapshot_name_not_before())
        check_names(self.people, self.groups)

    @property
    def title(self) -> str:
        return Message("Set access to the files of {dataset}", dataset=self.dataset)

    @property
    def subject(self) -> str:
        return self.dataset

    def locks(self) -> tuple[str, ...]:
        # Not the whole pool: a scrub or a new folder does not have to wait for a million files.
        return (f"access {self.dataset}",)

    def files_used(self) -> tuple[str, ...]:
        return (self.dataset,)

    def lasts(self) -> bool:
        return True

    def snapshot_datasets(self) -> tuple[str, ...]:
        return (self.dataset,) if self.before else ()

    @property
    def snapshot_name(self) -> str:
        return f"{self.dataset}@{self.before}"

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.dataset)
        if dataset is None or dataset.kind != "filesystem":
            yield reasons.dataset_missing(self.dataset)
            return
        if dataset.locked:
            yield reasons.dataset_locked(self.dataset)
        elif not dataset.mounted:
            yield Reason("dataset-not-mounted", "{dataset} is not mounted. Mount it first.", dataset=self.dataset)
        if dataset.readonly:
            yield reasons.dataset_read_only(self.dataset)
        if self.before and len(self.snapshot_name) > names.LONGEST_SNAPSHOT:
            yield Reason(
                "dataset-name-too-long-for-snapshot",
                "The name of {dataset} is too long for a snapshot with the date in its name. Continue "
                "without a snapshot.",
                field="before",
                dataset=self.dataset,
            )
        try:
            names.served_path(dataset.mountpoint)
        except Refused:
            yield Reason(
                "mountpoint-in-system",
                "The mountpoint of {dataset} is among the system's own folders. Larder does not change "
                "permissions there.",
                dataset=self.dataset,
            )
        for name in self.people:
            if not facts.account(name):
                yield reasons.user_missing(name).with_field("people")
        for name in self.groups:
            if not facts.group(name):
                yield reasons.group_missing(name).with_field("groups")

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.dataset)
        assert dataset is not None  # noqa: S101  # check refused this
        place = dataset.mountpoint
        numbers = {name: account.uid for name in self.people if (account := facts.account(name))}
        numbers |= {f"@{name}": group.gid for name in self.groups if (group := facts.group(name))}
        note = self.make_note(dataset.guid).with_numbers(facts)
        return Plan(
            summary=summarise_access(self, facts),
            steps=(
                *(
                    (before_step(self.dataset, self.before, "before setting access to its files"),)
                    if self.before
                    else ()
                ),
                command_step(
                    "kind",
                    Message("Let the file system store access lists"),
                    ["zfs", "set", "acltype=posix", "aclinherit=passthrough", self.dataset],
                ),
                self.note_step("begun", Message("Note the list of users with the folder"), note),
                Step(
                    "apply",
                    Message("Apply it to every file and folder in it"),
                    Message(
                        "for each below {place}, by descriptor: chgrp {group}; chmod; set {access} (folders "
                        "also {default})",
                        place=place,
                        group=PEOPLE,
                        access=ACCESS,
                        default=DEFAULT,
                    ),
                    lambda work: apply_note(dataset, note, facts, work),
                    (self.dataset,),
                ),
                self.note_step(
                    "done", Message("Note that it was applied to every file"), msgspec.structs.replace(note, done=True)
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "dataset": dataset.guid, "numbers": numbers},
            warnings=tuple(warn_blocked_above(self, facts)),
            undo=Message(
                "It can be set again at any time. The snapshot keeps the files with the rights that they "
                "had; it stays until you destroy it."
            )
            if self.before
            else Message("It can be set again at any time. The rights from before are not kept."),
        )

    def make_note(self, guid: int, *, done: bool = False) -> AccessNote:
        return AccessNote(guid=guid, everybody=self.everybody, people=self.people, groups=self.groups, done=done)

    def note_step(self, name: Literal["begun", "done"], title: str, note: AccessNote) -> Step:
        return command_step(name, title, set_note_argv(self.dataset, note))

    def probe(self, step: str, facts: Facts) -> bool:
        if step == "before":
            return any(snapshot.name == self.snapshot_name for snapshot in facts.snapshots)
        # Only the last note says that every file was reached.
        dataset = facts.dataset(self.dataset)
        note = valid_note(dataset, facts) if dataset else None
        if note is None:
            return False
        wanted = self.make_note(note.guid, done=note.done).with_numbers(facts)
        return note == wanted and (note.done or step in {"kind", "begun"})

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if step == "apply":
            return Message(
                "Some files follow the new rules, the rest still the old ones. Set it again: it starts over, "
                "and doing it twice does no harm."
            )
        if step == "before":
            return Message(
                "Nothing was changed. Set it again; if the pool is full, destroy old snapshots first, or "
                "continue without one."
            )
        return Message("Look at the access to the files of the folder, and set it again.")


CAN_CHANGE = message_template("{users} can read and change it")
CAN_READ = message_template("{users} can only read it")


def summarise_access(operation: SetAccess, facts: Facts) -> str:
    """A sentence that says who can change and who can only read."""
    given: list[tuple[str, Level]] = [(Message("all users"), operation.everybody)]
    given += [(Message("all users in {group}", group=name), level) for name, level in operation.groups.items()]
    given += [
        (account.called if (account := facts.account(name)) else name, level)
        for name, level in operation.people.items()
    ]
    parts = []
    for level, sentence in (("change", CAN_CHANGE), ("read", CAN_READ)):
        who = [name for name, has in given if has == level]
        if who:
            parts.append(Message(sentence, users=join_messages(who, ", ")))
    refused = [name for name, has in given[1:] if has == "none"]
    if refused:
        parts.append(Message("{users} can do neither", users=join_messages(refused, ", ")))
    text = join_messages(parts, "; ") or Message("nobody can use it from another computer")
    return Message(
        "{dataset}: {text}. It applies to everything in it, over SMB, NFS and AFP. Folders below it that are "
        "datasets of their own keep their rules.",
        dataset=operation.dataset,
        text=text,
    )


def warn_blocked_above(operation: SetAccess, facts: Facts) -> Iterator[str]:
    """Yield a warning for each parent folder that users with access here may not enter."""
    here = operation.make_note(0)
    parts = operation.dataset.split("/")
    for depth in range(1, len(parts)):
        parent = facts.dataset("/".join(parts[:depth]))
        note = valid_note(parent, facts) if parent else None
        if parent is None or note is None:
            continue
        excluded = [
            account.called
            for account in facts.accounts
            if here.level_of(account.name, facts) != "none" and note.level_of(account.name, facts) == "none"
        ]
        if excluded:
            yield Message(
                "{excluded} may not enter {parent}, which contains it, and so cannot reach it.",
                excluded=", ".join(excluded),
                parent=parent.name,
            )


def apply_note(dataset: Dataset, note: AccessNote, facts: Facts, work: Work) -> None:
    """Apply a note to every file of the dataset. Names of missing users and groups have no effect."""
    people = {account.uid: level for name, level in note.people.items() if (account := facts.account(name))}
    groups = {group.gid: level for name, level in note.groups.items() if (group := facts.group(name))}
    change = {user.uid for user in facts.accounts if note.level_of(user.name, facts) == "change"}
    # Also numbers that nobody has here: files of another box's users must not fall to a user who is created later.
    demoted = (frozenset(UIDS) | {user.uid for user in facts.accounts}) - change
    apply_access(dataset.name, dataset.mountpoint, Access(note.everybody, people, groups), demoted, work)


def apply_access(dataset: str, place: str, access: Access, demoted: frozenset[int], work: Work) -> None:
    """Give every file and folder of a dataset the same rules, from the top down, so that new files get them too.

    An owner can always change rights back, so files of ``demoted`` users are given to root. Raises Refused if something
    else is mounted there, Failed if the system refuses, Cancelled.
    """
    people = group_number()
    encoded = {enter: access.encode_acl(enter=enter) for enter in (False, True)}
    with traversal.open_dir_nofollow(place) as root:
        traversal.refuse_unless_of(root, dataset)
        pace = traversal.WalkProgress(work, root)
        for entry in traversal.walk_tree(root):
            apply_to_entry(entry, people, encoded, demoted)
            pace.count_one()
    work.note(
        Message("1 file or folder follows the new rules")
        if pace.done == 1
        else Message("{done} files and folders follow the new rules", done=pace.done)
    )


def apply_to_entry(
    entry: traversal.OpenEntry, people: int, encoded: dict[bool, bytes], demoted: frozenset[int]
) -> None:
    """Apply ACL, group and (if demoted) owner to one file or folder.

    A demoted owner loses the file first: as its owner he could change the rules again in between. Then comes the
    ACL, so that access is never wider in between than before and after. It sets the mode as well. Setting the
    group clears the set-id bits of files. A scratch folder of Larder's own stays closed; what is still written
    there follows the new rules.
    """
    mode = entry.status.st_mode
    if leftover.is_scratch(entry.name, entry.status):
        os.setxattr(entry.link, DEFAULT, encoded[True])
        os.chown(entry.link, -1, people)
        Path(entry.link).chmod(SCRATCH_MODE)
        return
    if entry.status.st_uid in demoted:
        os.chown(entry.link, 0, -1)
    os.setxattr(entry.link, ACCESS, encoded[entry.is_folder or bool(mode & ENTER_BITS)])
    if entry.is_folder:
        os.setxattr(entry.link, DEFAULT, encoded[True])
    os.chown(entry.link, -1, people)
    if entry.is_folder and stat.S_IMODE(mode) != FOLDER_MODE:
        Path(entry.link).chmod(FOLDER_MODE)


def private_steps(dataset: str, name: str) -> tuple[Step, Step]:
    """Create a dataset that only one user may enter. The user may be created in the same job."""

    def let_in_owner(work: Work) -> None:
        argv = ["zfs", "get", "-H", "-p", "-o", "value", "guid,mountpoint", dataset]
        guid, place = command.run(argv, timeout=60).stdout.splitlines()
        try:
            uid = pwd.getpwnam(name).pw_uid
        except KeyError as error:
            raise Failed(Message("The user {name} is gone", name=name)) from error
        apply_access(dataset, place, Access("none", {uid: "change"}), frozenset(), work)
        note = AccessNote(guid=int(guid), people={name: "change"}, done=True).with_numbers(
            Facts(accounts=(Account(name, uid),))
        )
        command.run(set_note_argv(dataset, note), timeout=60)

    create = ["zfs", "create", *mount.NOT_YET, "-o", "acltype=posix", "-o", "aclinherit=passthrough", "--", dataset]

    def create_home(work: Work) -> None:
        parent_name, _slash, last = dataset.rpartition("/")
        (parent,) = mount.read_mountpoints(["-t", "filesystem", parent_name], ("mountpoint",))
        mountpoints.refuse_taken(f"{parent.values['mountpoint'].rstrip('/')}/{last}")
        command.run(create, timeout=300)
        mount.mount_new(dataset, work)

    commands = f"{shlex.join(create)}\n{mount.mount_text(dataset, new=True)}"
    return (
        Step("home", Message("Create the folder {dataset}", dataset=dataset), commands, create_home, (dataset,)),
        Step(
            "private",
            Message("Let only {name} in", name=name),
            Message(
                "set {access} and {default} of {dataset}\nzfs set {key}=… {dataset}",
                access=ACCESS,
                default=DEFAULT,
                dataset=dataset,
                key=user_properties.ACCESS,
            ),
            let_in_owner,
            (dataset,),
        ),
    )
