"""What restores of a whole folder have in common, wherever its copy lies: a name that is free, a folder to receive
into, and what an interruption or the owner's stop leaves.

What arrives is received into a folder of its own (``staging.py``) and renamed to its place once everything is there, so
an interrupted restore leaves nothing that looks complete.
"""

from __future__ import annotations

import re
import shlex
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from appliance import names, schedule
from appliance.backups import tasks
from appliance.backups.staging import Restored, Staging, remove_stage
from appliance.datasets import reasons
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.copy_mark import CopyMark, parse_copy_mark
from appliance.facts.datasets import Dataset
from appliance.formatting import moment_text as at_moment
from appliance.formatting import names_text, size_text
from appliance.message import Message
from appliance.operation import Plan, Step, Work
from appliance.snapshots import policy
from appliance.snapshots.take import SnapshotsOperation
from appliance.zfs import mount, volmode

TOKEN = re.compile(r"[0-9a-f]{8}")
MOST = 300  # folders at once
NAMED = 5
SPARE = 2**20  # bytes that even an empty folder needs


class FolderRestore(SnapshotsOperation):
    """Copy everything of ``copy`` to ``parent``/``name``. ``guid``: of the dataset ``copy``.

    ``moment`` is the name of the snapshots of the chosen moment (``moments.py``), which some of what comes
    back may be older than. ``token`` names the folder that it receives into, so that the same restore goes on
    there and another one never does.
    """

    settled = Message("Larder was interrupted meanwhile. A check afterwards found the folder restored.")

    copy: str
    guid: int
    parent: str
    name: str
    token: str
    moment: str = ""

    def __post_init__(self) -> None:
        names.existing_dataset(self.copy, field="copy")
        if self.moment:
            names.existing_snapshot(f"{self.copy}@{self.moment}")
        names.existing_dataset(self.parent, field="parent")
        names.check_folder_name(self.name)
        if not TOKEN.fullmatch(self.token):
            raise Refused(Reason("restore-token-invalid", "That is not a restore of Larder.", field="token"))
        seen: set[str] = set()
        for dataset, _guid in self.sources():
            names.existing_dataset(dataset, field="snapshot")
            if dataset in seen or not (dataset == self.copy if not seen else dataset.rpartition("/")[0] in seen):
                raise Refused(
                    Reason("restore-snapshots-malformed", "Those are not the snapshots of one copy.", field="snapshot")
                )
            seen.add(dataset)
        if not 1 <= len(seen) <= MOST:
            raise Refused(
                Reason(
                    "restore-too-many",
                    "At most {most} folders can be restored at once. Restore those below one by one.",
                    field="snapshot",
                    most=MOST,
                )
            )

    # --- what each restore says itself --------------------------------------------------------------------------------
    @abstractmethod
    def sources(self) -> Iterable[tuple[str, int]]:
        """The datasets of the copy, parents first, each with the guid of the snapshot that comes back."""

    @abstractmethod
    def size(self, facts: Facts) -> int:
        """About how many bytes come back."""

    @abstractmethod
    def dates(self, facts: Facts) -> Iterable[tuple[str, str, datetime | None]]:
        """Each dataset that comes back, the name of its snapshot, and when that was made."""

    @abstractmethod
    def original(self, facts: Facts) -> Dataset | None:
        """The folder that this is a copy of, where it is still there."""

    @abstractmethod
    def staging(self, facts: Facts) -> Staging:
        """What is received where. Raises Refused."""

    # --- the same for each --------------------------------------------------------------------------------------------
    @property
    def target(self) -> str:
        return f"{self.parent}/{self.name}"

    @property
    def stage(self) -> str:
        return f"{self.parent}/restoring-{self.token}"

    @property
    def subject(self) -> str:
        return self.target

    def files_taken(self) -> tuple[str, ...]:
        return (self.target,)

    def lasts(self) -> bool:
        return True

    def moved(self, dataset: str, root: str) -> str:
        """The name below ``root`` of what is a dataset of the copy."""
        return root + dataset.removeprefix(self.copy)

    def snapshot_datasets(self) -> tuple[str, ...]:
        roots = (f"{self.stage}/{self.name}", self.target)
        return tuple(self.moved(dataset, root) for root in roots for dataset, _guid in self.sources())

    def check_place(self, facts: Facts) -> Iterator[Reason]:
        """The reasons against the new name."""
        parent = facts.dataset(self.parent)
        if parent is None or parent.kind != "filesystem":
            yield reasons.dataset_missing(self.parent).with_field("parent")
            return
        if parent.copy_of:
            yield Reason(
                "restore-into-copy",
                "{parent} belongs to copies that backups made. Choose another folder.",
                field="parent",
                parent=self.parent,
            )
        if parent.locked:
            yield reasons.dataset_locked(self.parent).with_field("parent")
        if parent.readonly:
            yield reasons.dataset_read_only(self.parent).with_field("parent")
        if not parent.mountpoint.startswith("/") or parent.mountpoint == "/":
            yield Reason(
                "parent-without-mountpoint",
                "{dataset} has no mountpoint of its own on this box. Choose another folder.",
                field="parent",
                dataset=self.parent,
            )
        elif against := mount.reason_against(self.target, self.mountpoint_in(parent), facts.datasets):
            yield against.with_field("parent")
        stage = facts.dataset(self.stage)
        if stage and parse_copy_mark(stage.copy_of) != CopyMark(0, raw=False):
            yield reasons.dataset_exists(self.stage)
        if self.is_placed(facts):
            return
        if taken := next((one.name for one in facts.datasets if one.name.lower() == self.target.lower()), ""):
            yield reasons.dataset_exists(taken)
        free = parent.available + (stage.used if stage else 0)
        if (needed := self.size(facts) + SPARE) > free:
            yield Reason(
                "restore-no-room",
                "It needs about {needed}, and {parent} has {free} free. Make room there, or choose a folder "
                "in another pool.",
                field="parent",
                needed=size_text(needed),
                parent=self.parent,
                free=size_text(free),
            )
        longest = max(len(self.moved(name, f"{self.stage}/{self.name}")) for name, _guid in self.sources())
        if longest > names.LONGEST_SNAPSHOT:
            yield reasons.name_too_long()

    def mountpoint_in(self, parent: Dataset) -> str:
        return f"{parent.mountpoint.rstrip('/')}/{self.name}"

    def is_placed(self, facts: Facts) -> bool:
        """Whether what has this name was put there by this restore, and is not finished."""
        found = facts.dataset(self.target)
        mark = parse_copy_mark(found.copy_of) if found else None
        return mark is not None and mark.guid == self.guid and self.has_arrived(self.copy, self.target, facts)

    def has_arrived(self, dataset: str, root: str, facts: Facts) -> bool:
        """Whether the snapshot of a dataset of the copy is at its place below ``root``."""
        wanted = dict(self.sources()).get(dataset)
        return any(one.guid == wanted for one in facts.snapshots_of(self.moved(dataset, root)))

    # --- the plan -----------------------------------------------------------------------------------------------------
    def plan_of(self, facts: Facts, copies: Iterable[Step], **said: Any) -> Plan:
        """The plan around the steps that copy. ``said``: its other sentences."""
        parent, staging = facts.dataset(self.parent), self.staging(facts)
        text = shlex.join(staging.create_argv)
        prepare = Step("prepare", Message("Make a folder to receive into"), text, staging.create, (self.stage,))
        place = Step(
            "place",
            Message("Put it at {target}", target=self.target),
            staging.command_text(),
            staging.put_in_place,
            (self.target,),
        )
        return Plan(
            steps=(prepare, *copies, place),
            identity={
                "operation": msgspec.to_builtins(self),
                "parent": parent.guid if parent else 0,
                "unshare": staging.unshare,
            },
            undo=Message("{target} can be destroyed. The copy stays.", target=self.target),
            **said,
        )

    def details(self, staging: Staging, facts: Facts) -> dict[str, str]:
        """What comes back, what does not, and what happens meanwhile."""
        return {
            Message("Comes back"): Message(
                "files and folders with their contents, dates, owners, access rights and attributes, and "
                "this moment as a snapshot"
            ),
            **self.earlier_text(facts),
            **settings_text(staging),
            Message("To be set again"): Message(
                "shares, snapshot schedule, backups and limits. Earlier snapshots stay in the copy."
            ),
            Message("While it runs"): Message(
                "everything arrives in {stage}. If you stop it, that folder is destroyed and nothing else.",
                stage=self.stage,
            ),
        }

    def earlier_text(self, facts: Facts) -> dict[str, str]:
        """Which folders come back as of an earlier moment."""
        earlier = [(name, made) for name, short, made in self.dates(facts) if self.moment and short != self.moment]
        named = [Message("{name} ({moment})", name=name, moment=moment_text(made)) for name, made in earlier]
        said = Message(
            "{names}. A backup makes no new copy of a folder in which nothing has changed.",
            names=names_text(named, NAMED),
        )
        return {Message("As of an earlier copy"): said} if named else {}

    def stage_of(self, parts: Iterable[Restored], facts: Facts) -> Staging:
        """Where these are received."""
        parent, found = facts.dataset(self.parent), tuple(parts)
        place = self.mountpoint_in(parent) if parent and not found[0].is_volume else ""
        return Staging(self.stage, found, place, unshare=parent is not None and bool(parent.share))

    def arrival_warnings(self, facts: Facts, raw: Sequence[bool]) -> Iterator[str]:
        """What becomes of the original, and which key is needed.
        ``raw``: of each dataset whether it comes encrypted."""
        if original := self.original(facts):
            yield Message("{original} is still there and stays as it is. Both use space.", original=original.name)
        else:
            yield Message(
                "A new backup of the restored folder makes a new copy under another name. This one remains "
                "the copy of the lost folder."
            )
        if any(raw):
            yield Message(
                "Encrypted folders come back with the key that the original had when this copy was made. "
                "Where this box stores that key, they are unlocked with it; others stay locked until you "
                "give it."
            )
        parent = facts.dataset(self.parent)
        if parent and parent.encryption != "off" and not all(raw):
            yield Message("It is encrypted with the key of {encryption_root}.", encryption_root=parent.encryption_root)

    def place_warnings(self, facts: Facts) -> Iterator[str]:
        """What its place means for the new folder."""
        parent = facts.dataset(self.parent)
        if parent is None:
            return
        if volumes := [one.place for one in self.staging(facts).parts if one.is_volume]:
            yield volmode.unread_text(volumes)
        if parent.share:
            yield Message("It is not shared, although {parent} is.", parent=self.parent)
        if schedule_there := policy.parent_policy(parent):
            yield Message(
                "It follows the snapshot schedule of {parent}: {sentence}.",
                parent=self.parent,
                sentence=schedule_there.sentence,
            )
        for above in facts.datasets:
            if f"{self.target}/".startswith(f"{above.name}/") and any(task.below for task in tasks.tasks_of(above)):
                yield Message("The backup of {above} copies it too, from its next run on.", above=above.name)

    # --- after an interruption ----------------------------------------------------------------------------------------
    def probe(self, step: str, facts: Facts) -> bool:
        there = facts.dataset(self.target)
        placed = there is not None and self.has_arrived(self.copy, self.target, facts) and not facts.dataset(self.stage)
        if placed and there:
            return step != "place" or not there.copy_of
        if step == "prepare":
            return facts.dataset(self.stage) is not None
        of = {f"copy-{guid}": name for name, guid in self.sources()}.get(step, "")
        return bool(of) and self.has_arrived(of, f"{self.stage}/{self.name}", facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.dataset(self.stage):
            return Message(
                "What has arrived is kept in {stage}. Start the restore again to go on there, or destroy "
                "that folder to give up.",
                stage=self.stage,
            )
        if self.is_placed(facts):
            return Message(
                "{target} has everything, but is not ready. Start the restore again to finish it.", target=self.target
            )
        if self.probe("place", facts):
            return Message("Everything is in {target}. Mount those folders on their pages.", target=self.target)
        return Message("Nothing was restored. Start the restore again.")

    def clean_up(self, work: Work) -> None:
        made = {self.moved(name, f"{self.stage}/{self.name}") for name, _guid in self.sources()}
        remove_stage(self.stage, made, work)


def settings_text(staging: Staging) -> dict[str, str]:
    """The settings of the original that are known."""
    found = staging.parts[0].origin
    said = ", ".join(f"{key.rpartition(':')[2]} {value}" for key, value in found.settings.items()) if found else ""
    return {Message("Settings that come back"): said} if said else {}


def moment_text(created: datetime | None) -> str:
    return at_moment(created.astimezone(schedule.box_zone())) if created else Message("an unknown date")
