"""Who may read or change a folder: the simple view, applied to everything in it.

What was said last is kept with the folder (``larder:access``), with whether it was carried through: pages read that, for
looking at the files themselves would wake sleeping disks. Names mean the accounts of one box; the files carry numbers.
The note therefore names its box and the numbers: on a box where they differ, ``said_of`` finds nothing.
"""

from __future__ import annotations

import json
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
from appliance.datasets.encryption import key_store
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Account
from appliance.files import traversal
from appliance.files.posix_acl import ACCESS, DEFAULT, ORDER, Access, Level
from appliance.operation import Plan, Step, Work, command_step, never
from appliance.snapshots.take import SnapshotsOperation, before_step
from appliance.system.accounts import PEOPLE, UIDS, group_number, people_number
from appliance.zfs import mount, mountpoints

PROPERTY = "larder:access"
MOST = 100  # people and groups of one folder; a ZFS user property holds 8 KiB
FOLDER_MODE = 0o2770  # new files get the group of their folder
ENTER_BITS = 0o111


class Said(msgspec.Struct, frozen=True, kw_only=True):
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

    def signed(self, facts: Facts) -> Said:
        """The same with this box and its numbers."""
        return msgspec.structs.replace(
            self, box=key_store.mark(), numbers=numbers_of(self, facts), people_gid=people_number()
        )

    def holds(self, facts: Facts) -> bool:
        """Whether the names mean here whom they meant where it was said: the same box, and the numbers unchanged."""
        if (self.box, self.people_gid) != (key_store.mark(), people_number()):
            return False
        here = numbers_of(self, facts)
        if len(here) != len(self.numbers):
            return False
        return by_number(self, facts).names <= self.names and all(
            now in (0, then) for now, then in zip(here, self.numbers, strict=True)
        )

    @property
    def names(self) -> frozenset[str]:
        """Accounts, and groups as ``@group``."""
        return frozenset(self.people) | {f"@{name}" for name in self.groups}

    def level(self, name: str, facts: Facts) -> Level:
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


def numbers_of(said: Said, facts: Facts) -> tuple[int, ...]:
    """The numbers that the names have on this box, in the order in which a note keeps them."""
    uids = [account.uid if (account := facts.account(name)) else 0 for name in sorted(said.people)]
    return (*uids, *(group.gid if (group := facts.group(name)) else 0 for name in sorted(said.groups)))


def by_number(said: Said, facts: Facts) -> Said:
    """What the files let in on this box: the accounts and groups that have the noted numbers here, whatever their names."""
    levels = [
        *(said.people[name] for name in sorted(said.people)),
        *(said.groups[name] for name in sorted(said.groups)),
    ]
    pairs = list(zip(said.numbers, levels, strict=False))
    uids, gids = dict(pairs[: len(said.people)]), dict(pairs[len(said.people) :])
    return Said(
        guid=said.guid,
        everybody=said.everybody if said.people_gid == people_number() else "none",
        people={one.name: uids[one.uid] for one in facts.accounts if one.uid in uids},
        groups={one.name: gids[one.gid] for one in facts.groups if one.gid in gids},
        done=said.done,
    )


def said_of(dataset: Dataset, facts: Facts) -> Said | None:
    """What was last said about this very dataset on this box; None where nothing was."""
    said = note_of(dataset)
    return said if said and said.holds(facts) else None


def from_elsewhere(dataset: Dataset, facts: Facts) -> Said | None:
    """A note that does not apply here: of another box, with other numbers, or of before numbers were noted."""
    said = note_of(dataset)
    return said if said and not said.holds(facts) else None


def note_of(dataset: Dataset) -> Said | None:
    """The note of this very dataset, wherever it was written; None where there is none that Larder could have written."""
    if not dataset.access or dataset.access_source != "local":
        return None
    try:
        said = msgspec.json.decode(dataset.access, type=Said)
    except (msgspec.MsgspecError, Refused):
        return None
    return said if said.guid == dataset.guid else None


class SetAccess(SnapshotsOperation, tag="set-access"):
    """Say who may read or change a folder, and make it so for every file in it.

    A person's own level counts before what groups or ``everybody`` give; of those the most generous counts. ``before`` is
    the name of a snapshot to take first; empty for none.
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
        return f"Set who may use {self.dataset}"

    @property
    def subject(self) -> str:
        return self.dataset

    def locks(self) -> tuple[str, ...]:
        # Not the whole pool's: a scrub or a new folder need not wait for a million files.
        return (f"access {self.dataset}",)

    def files_used(self) -> tuple[str, ...]:
        return (self.dataset,)

    def lasts(self) -> bool:
        return True

    def snapshot_datasets(self) -> tuple[str, ...]:
        return (self.dataset,) if self.before else ()

    @property
    def snapshot(self) -> str:
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
        if self.before and len(self.snapshot) > names.LONGEST_SNAPSHOT:
            yield Reason(
                "dataset-name-too-long-for-snapshot",
                "The name of {dataset} is too long for a snapshot with the date in its name. Continue without a snapshot.",
                field="before",
                dataset=self.dataset,
            )
        try:
            names.served_path(dataset.mountpoint)
        except Refused:
            yield Reason(
                "mountpoint-in-system",
                "The mountpoint of {dataset} is among the system's own folders. Larder does not change permissions there.",
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
        assert dataset is not None  # noqa: S101  # check said so
        place = dataset.mountpoint
        numbers = {name: account.uid for name in self.people if (account := facts.account(name))}
        numbers |= {f"@{name}": group.gid for name in self.groups if (group := facts.group(name))}
        said = self.said(dataset.guid).signed(facts)
        return Plan(
            summary=summary(self, facts),
            steps=(
                *((before_step(self.dataset, self.before, "before setting who may use it"),) if self.before else ()),
                command_step(
                    "kind",
                    "Let the file system keep who may do what",
                    ["zfs", "set", "acltype=posix", "aclinherit=passthrough", self.dataset],
                ),
                self.note_step("begun", "Note with the folder what was said", said),
                Step(
                    "apply",
                    "Make it so for every file and folder in it",
                    f"for each below {place}, by descriptor: chgrp {PEOPLE}; chmod; set {ACCESS} (folders also {DEFAULT})",
                    lambda work: carry_out(dataset, said, facts, work),
                    (self.dataset,),
                ),
                self.note_step("done", "Note that it was carried through", msgspec.structs.replace(said, done=True)),
            ),
            identity={"operation": msgspec.to_builtins(self), "dataset": dataset.guid, "numbers": numbers},
            warnings=tuple(blocked_above(self, facts)),
            undo="It can be said anew at any time. The snapshot keeps the files with the rights that they had; it stays until you destroy it."
            if self.before
            else "It can be said anew at any time. Who could do what before is not kept.",
        )

    def said(self, guid: int, *, done: bool = False) -> Said:
        return Said(guid=guid, everybody=self.everybody, people=self.people, groups=self.groups, done=done)

    def note_step(self, name: Literal["begun", "done"], title: str, said: Said) -> Step:
        return command_step(name, title, ["zfs", "set", f"{PROPERTY}={noted(said)}", self.dataset])

    def probe(self, step: str, facts: Facts) -> bool:
        if step == "before":
            return any(one.name == self.snapshot for one in facts.snapshots)
        # Only the note at the end tells that every file was reached.
        dataset = facts.dataset(self.dataset)
        said = said_of(dataset, facts) if dataset else None
        if said is None:
            return False
        wanted = self.said(said.guid, done=said.done).signed(facts)
        return said == wanted and (said.done or step in {"kind", "begun"})

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if step == "apply":
            return "Some files follow the new rules, the rest still the old ones. Set it again: it begins from the start and does no harm twice."
        if step == "before":
            return "Nothing was changed. Set it again; if the pool is full, destroy old snapshots first, or go on without one."
        return "Look at who may use the folder, and set it again."


def summary(operation: SetAccess, facts: Facts) -> str:
    """Who can change, who can only read, in words."""
    given = [("everybody with an account", operation.everybody)]
    given += [(f"everybody in {name}", level) for name, level in operation.groups.items()]
    given += [
        (account.called if (account := facts.account(name)) else name, level)
        for name, level in operation.people.items()
    ]
    parts = []
    for level, words in (("change", "read and change"), ("read", "only read")):
        who = [name for name, has in given if has == level]
        if who:
            parts.append(f"{', '.join(who)} can {words} it")
    refused = [name for name, has in given[1:] if has == "none"]
    if refused:
        parts.append(f"{', '.join(refused)} can do neither")
    text = "; ".join(parts) or "nobody can use it from another computer"
    return f"{operation.dataset}: {text}. It holds for everything in it, over SMB, NFS and AFP. Folders within it that are datasets of their own keep their rules."


def blocked_above(operation: SetAccess, facts: Facts) -> Iterator[str]:
    """People who are let in here but not into the folder around, which they would have to pass."""
    here = operation.said(0)
    parts = operation.dataset.split("/")
    for depth in range(1, len(parts)):
        around = facts.dataset("/".join(parts[:depth]))
        said = said_of(around, facts) if around else None
        if around is None or said is None:
            continue
        shut = [
            account.called
            for account in facts.accounts
            if here.level(account.name, facts) != "none" and said.level(account.name, facts) == "none"
        ]
        if shut:
            yield f"{', '.join(shut)} may not enter {around.name}, which lies around it, and so cannot come in here."


def carry_out(dataset: Dataset, said: Said, facts: Facts, work: Work) -> None:
    """Make what was said so, for every file of the dataset; names that nobody has any more say nothing."""
    people = {account.uid: level for name, level in said.people.items() if (account := facts.account(name))}
    groups = {group.gid: level for name, level in said.groups.items() if (group := facts.group(name))}
    change = {one.uid for one in facts.accounts if said.level(one.name, facts) == "change"}
    # Numbers that nobody has here, too: files of another box's accounts must not fall to an account that is made later.
    demoted = (frozenset(UIDS) | {one.uid for one in facts.accounts}) - change
    apply(dataset.name, dataset.mountpoint, Access(said.everybody, people, groups), demoted, work)


def apply(dataset: str, place: str, access: Access, demoted: frozenset[int], work: Work) -> None:
    """Give every file and folder of a dataset the same rules, the top first, so that what is new meanwhile has them too.

    An owner can always change rights back, so what belongs to ``demoted`` people is given to root. Raises Refused where
    something else is at the place, Failed where the system refuses, Cancelled.
    """
    people = group_number()
    encoded = {enter: access.encode_acl(enter=enter) for enter in (False, True)}
    with traversal.open_dir_nofollow(place) as root:
        traversal.refuse_unless_of(root, dataset)
        pace = traversal.WalkProgress(work, root)
        for found in traversal.walk_tree(root):
            give(found, people, encoded, demoted)
            pace.count_one()
    work.note(f"{pace.done} files and folders follow the new rules")


def give(found: traversal.OpenEntry, people: int, encoded: dict[bool, bytes], demoted: frozenset[int]) -> None:
    """One file or folder: its rules, its group, its owner where that may not stay.

    The rules come first, so that at no moment more people may do more than before and after. They set the mode as well;
    giving the group drops set-id bits of files.
    """
    mode = found.status.st_mode
    os.setxattr(found.link, ACCESS, encoded[found.is_folder or bool(mode & ENTER_BITS)])
    if found.is_folder:
        os.setxattr(found.link, DEFAULT, encoded[True])
    os.chown(found.link, 0 if found.status.st_uid in demoted else -1, people)
    if found.is_folder and stat.S_IMODE(mode) != FOLDER_MODE:
        Path(found.link).chmod(FOLDER_MODE)


def noted(said: Said) -> str:
    """The property's text."""
    return json.dumps(msgspec.to_builtins(said), sort_keys=True, separators=(",", ":"))


def note_anew(dataset: Dataset, said: Said, work: Work) -> None:
    """Change what is noted with a folder without touching its files; a folder that cannot be written is told in a note."""
    try:
        command.run(["zfs", "set", f"{PROPERTY}={noted(said)}", dataset.name], timeout=60)
    except command.CommandFailed as failed:
        work.note(f"{dataset.name} could not be changed and says what it said: {failed.said}")


def private_steps(dataset: str, name: str) -> tuple[Step, Step]:
    """Make a dataset that only one person may enter. The account may be as new as the dataset."""

    def act(work: Work) -> None:
        argv = ["zfs", "get", "-H", "-p", "-o", "value", "guid,mountpoint", dataset]
        guid, place = command.run(argv, timeout=60).stdout.splitlines()
        try:
            uid = pwd.getpwnam(name).pw_uid
        except KeyError as error:
            raise Failed(f"The account {name} is gone") from error
        apply(dataset, place, Access("none", {uid: "change"}), frozenset(), work)
        said = Said(guid=int(guid), people={name: "change"}, done=True).signed(Facts(accounts=(Account(name, uid),)))
        command.run(["zfs", "set", f"{PROPERTY}={noted(said)}", dataset], timeout=60)

    create = ["zfs", "create", *mount.NOT_YET, "-o", "acltype=posix", "-o", "aclinherit=passthrough", "--", dataset]

    def make(work: Work) -> None:
        above, _slash, last = dataset.rpartition("/")
        (parent,) = mount.read_mountpoints(["-t", "filesystem", above], ("mountpoint",))
        mountpoints.refuse_taken(f"{parent.values['mountpoint'].rstrip('/')}/{last}")
        command.run(create, timeout=300)
        mount.mount_new(dataset, work)

    made = f"{shlex.join(create)}\nmount -t zfs {dataset}"
    return (
        Step("home", f"Create the folder {dataset}", made, make, (dataset,)),
        Step("private", f"Let only {name} in", f"set {ACCESS} and {DEFAULT} of {dataset}", act, (dataset,)),
    )
