"""Restore a folder whole out of its copy, with the folders below it, under a name that is free.

Nothing at the copy or at the original is changed. What arrives is received into a folder of its own (``staging.py``) and
renamed to its place once everything is there, so an interrupted restore leaves nothing that looks complete.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from appliance import names, schedule
from appliance.backups import copies, match, tasks
from appliance.backups.staging import Restored, Staging, remove_stage
from appliance.backups.transfer import read_features, run_transfer, send_flags
from appliance.datasets import reasons
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.copy_mark import CopyMark, parse_copy_mark
from appliance.facts.datasets import Dataset, Snapshot
from appliance.formatting import size_text
from appliance.operation import Plan, Step, Work, never
from appliance.snapshots import policy
from appliance.snapshots.take import SnapshotsOperation, pool_stopped
from appliance.zfs import mount

TOKEN = re.compile(r"[0-9a-f]{8}")
MOST = 300  # folders at once
NAMED = 5
SPARE = 2**20  # bytes that even an empty folder needs


class RestoreFolder(SnapshotsOperation, tag="restore-folder"):
    """Copy ``snapshots`` (name and guid of each; that of ``copy`` first, parents before children) to ``parent``/``name``.

    ``token`` names the folder that it receives into, so that the same restore goes on there and another one never does.
    """

    needs_proof = never
    settled = "Larder was interrupted meanwhile; looking afterwards, the folder is restored."

    copy: str
    guid: int
    snapshots: tuple[tuple[str, int], ...]
    parent: str
    name: str
    token: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.copy, field="copy")
        names.existing_dataset(self.parent, field="parent")
        names.check_folder_name(self.name)
        if not TOKEN.fullmatch(self.token):
            raise Refused(Reason("restore-token-invalid", "That is not a restore of Larder.", field="token"))
        seen: set[str] = set()
        for snapshot, _guid in self.snapshots:
            dataset = names.existing_snapshot(snapshot).partition("@")[0]
            if dataset in seen or not (dataset == self.copy if not seen else dataset.rpartition("/")[0] in seen):
                raise Refused(Reason("restore-snapshots-malformed", "Those are not the snapshots of one copy.", field="snapshot"))  # fmt: skip
            seen.add(dataset)
        if not 1 <= len(seen) <= MOST:
            raise Refused(Reason("restore-too-many", "At most {most} folders can be restored at once. Restore those below one by one.", field="snapshot", most=MOST))  # fmt: skip

    @property
    def target(self) -> str:
        return f"{self.parent}/{self.name}"

    @property
    def stage(self) -> str:
        return f"{self.parent}/restoring-{self.token}"

    @property
    def title(self) -> str:
        return f"Restore {self.target} from its backup"

    @property
    def subject(self) -> str:
        return self.target

    def locks(self) -> tuple[str, ...]:
        # Not the pools: it takes hours. No run of the backup may prune the copy meanwhile.
        return (copies.lock_of(self.copy),)

    def files_used(self) -> tuple[str, ...]:
        return (self.copy, self.parent)

    def files_taken(self) -> tuple[str, ...]:
        return (self.target,)

    def lasts(self) -> bool:
        return True

    def moved(self, dataset: str, root: str) -> str:
        """The name below ``root`` of what is a dataset of the copy."""
        return root + dataset.removeprefix(self.copy)

    def snapshot_datasets(self) -> tuple[str, ...]:
        found = [snapshot.partition("@")[0] for snapshot, _guid in self.snapshots]
        roots = (f"{self.stage}/{self.name}", self.target)
        return (*found, *(self.moved(dataset, root) for root in roots for dataset in found))

    # --- what speaks against it ---------------------------------------------------------------------------------------
    def check(self, facts: Facts) -> Iterator[Reason]:
        copy = facts.dataset(self.copy)
        if copy is None or copy.guid != self.guid:
            yield reasons.dataset_missing(self.copy)
            return
        for name in (copy.pool, self.parent.split("/", 1)[0]):
            if (pool := facts.pool(name)) and pool.state == "SUSPENDED":
                yield pool_stopped(name)
        for snapshot, guid in self.snapshots:
            yield from self.check_source(snapshot, guid, facts)
        yield from self.check_place(facts)
        longest = max(len(self.moved(name, f"{self.stage}/{self.name}")) for name, _guid in self.snapshots)
        if longest > names.LONGEST_SNAPSHOT:
            yield reasons.name_too_long()

    def check_source(self, snapshot: str, guid: int, facts: Facts) -> Iterator[Reason]:
        """The reasons against one dataset of the copy."""
        dataset = facts.dataset(snapshot.partition("@")[0])
        mark = parse_copy_mark(dataset.copy_of) if dataset else None
        if dataset is None or mark is None or not copies.is_copy(dataset):
            yield Reason(
                "not-a-copy", "{dataset} is not a copy that a backup made.", dataset=snapshot.partition("@")[0]
            )
            return
        if find(snapshot, guid, facts) is None:
            yield Reason("snapshot-missing", "The snapshot {snapshot} is no longer there.", snapshot=snapshot)
        if dataset.locked and not mark.raw:
            yield reasons.dataset_locked(dataset.name)

    def check_place(self, facts: Facts) -> Iterator[Reason]:
        """The reasons against the new name."""
        parent = facts.dataset(self.parent)
        if parent is None or parent.kind != "filesystem":
            yield reasons.dataset_missing(self.parent).with_field("parent")
            return
        if parent.copy_of:
            yield Reason("restore-into-copy", "{parent} belongs to copies that backups made. Choose another folder.", field="parent", parent=self.parent)  # fmt: skip
        if parent.locked:
            yield reasons.dataset_locked(self.parent).with_field("parent")
        if parent.readonly:
            yield reasons.dataset_read_only(self.parent).with_field("parent")
        if not parent.mountpoint.startswith("/") or parent.mountpoint == "/":
            yield Reason("parent-without-mountpoint", "{dataset} has no mountpoint of its own on this box. Choose another folder.", field="parent", dataset=self.parent)  # fmt: skip
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
                "It needs about {needed}, and {parent} has {free} free. Make room there, or choose a folder in another pool.",
                field="parent",
                needed=size_text(needed),
                parent=self.parent,
                free=size_text(free),
            )

    def size(self, facts: Facts) -> int:
        """The bytes that the snapshots hold at the copy."""
        return sum(found.referenced for name, guid in self.snapshots if (found := find(name, guid, facts)))

    def mountpoint_in(self, parent: Dataset) -> str:
        return f"{parent.mountpoint.rstrip('/')}/{self.name}"

    def is_placed(self, facts: Facts) -> bool:
        """Whether what has this name was put there by this restore, and is not finished."""
        found = facts.dataset(self.target)
        mark = parse_copy_mark(found.copy_of) if found else None
        return mark is not None and mark.guid == self.guid and self.has_arrived(self.copy, self.target, facts)

    def has_arrived(self, dataset: str, root: str, facts: Facts) -> bool:
        """Whether the snapshot of a dataset of the copy is at its place below ``root``."""
        wanted = {name.partition("@")[0]: guid for name, guid in self.snapshots}.get(dataset)
        return any(one.guid == wanted for one in facts.snapshots_of(self.moved(dataset, root)))

    # --- the plan -----------------------------------------------------------------------------------------------------
    def plan(self, facts: Facts) -> Plan:
        parent, staging = facts.dataset(self.parent), self.staging(facts)
        count = len(staging.parts)
        text = shlex.join(staging.create_argv)
        prepare = Step("prepare", "Make a folder to receive into", text, staging.create, (self.stage,))
        place = Step("place", f"Put it at {self.target}", staging.command_text(), staging.put_in_place, (self.target,))
        what = f"{self.copy} and {count - 1} below it" if count > 1 else self.copy
        newest = find(*self.snapshots[0], facts)
        return Plan(
            summary=f"{what}: everything as it was on {moment_text(newest)}, about {size_text(self.size(facts))}, is "
            f"copied to {self.target}. The copy stays as it is.",
            steps=(prepare, *(self.copy_step(one, staging, facts) for one in staging.parts), place),
            identity={"operation": msgspec.to_builtins(self), "parent": parent.guid if parent else 0,
                      "unshare": staging.unshare},
            warnings=tuple(self.warnings(facts)),
            undo=f"{self.target} can be destroyed. The copy stays.",
            details={
                "Comes back": "files and folders with their contents, dates, owners, access rights and attributes, and this "
                "moment as a snapshot",
                **self.settings_text(staging),
                "To be set again": "shares, snapshot schedule, backups and limits. Earlier snapshots stay in the copy.",
                "While it runs": f"everything arrives in {self.stage}. If you stop it, that folder is destroyed and nothing else.",
            },
        )  # fmt: skip

    def settings_text(self, staging: Staging) -> dict[str, str]:
        """The settings of the original that its copy remembers."""
        found = staging.parts[0].origin
        said = ", ".join(f"{key.rpartition(':')[2]} {value}" for key, value in found.settings.items()) if found else ""
        return {"Settings that come back": said} if said else {}

    def staging(self, facts: Facts) -> Staging:
        parent, parts = facts.dataset(self.parent), []
        for snapshot, guid in self.snapshots:
            name, _at, short = snapshot.partition("@")
            dataset = facts.dataset(name)
            if dataset is None:
                raise Refused(reasons.dataset_missing(name))
            flags = ("-w",) if is_raw(dataset) else ()
            target = self.moved(name, f"{self.stage}/{self.name}")
            parts.append(Restored(dataset, target, short, flags, self.moved(name, self.target), guid))
        volume = parts[0].is_volume
        place = self.mountpoint_in(parent) if parent and not volume else ""
        return Staging(self.stage, tuple(parts), place, unshare=parent is not None and bool(parent.share))

    def copy_step(self, one: Restored, staging: Staging, facts: Facts) -> Step:
        parent = facts.dataset(self.parent)
        encrypted = parent is not None and parent.encryption != "off"

        def run(work: Work) -> None:
            if staging.is_placed():
                work.note(f"{one.place} is there already")
                return
            flags = send_flags(read_features(self.parent.split("/", 1)[0]), raw=one.raw, into_encrypted=encrypted)
            run_transfer(work, replace(one, flags=flags), one.guid)

        decision = match.Decision("full")
        text = f"{shlex.join(one.sender(decision))} | {shlex.join(one.receiver(decision))}"
        return Step(f"copy-{one.guid}", f"Copy {one.source.name}", text, run, (one.target,))

    def warnings(self, facts: Facts) -> Iterator[str]:
        """What the owner should know before."""
        copy, parent = facts.dataset(self.copy), facts.dataset(self.parent)
        if copy is None or parent is None:
            return
        chosen = {name.partition("@")[0] for name, _guid in self.snapshots}
        left = [one.name for one in facts.below(self.copy) if one.copy_of and one.name not in chosen]
        if left:
            more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
            yield f"Left out, since there is no copy of that moment: {', '.join(left[:NAMED])}{more}."
        if original := self.original(facts):
            yield f"{original.name} is still there and stays as it is. Both use space."
        else:
            yield "A new backup of it makes a new copy under another name: this copy stays that of the folder that is gone."
        sources = [found for name in chosen if (found := facts.dataset(name))]
        if any(is_raw(one) for one in sources):
            yield "Encrypted folders come back locked. Each is unlocked by itself, with the passphrase or key file that the original had when this copy was made."
        if parent.encryption != "off" and not all(is_raw(one) for one in sources):
            yield f"It is encrypted with the key of {parent.encryption_root}."
        elif any(one.encryption != "off" and not is_raw(one) for one in sources):
            yield f"{self.copy} is encrypted by its pool, as the original was not. The restored folder is not encrypted."
        if parent.share:
            yield f"It is not shared, although {self.parent} is."
        if schedule_there := policy.parent_policy(parent):
            yield f"It follows the snapshot schedule of {self.parent}: {schedule_there.sentence}."
        for above in facts.datasets:
            if f"{self.target}/".startswith(f"{above.name}/") and any(task.below for task in tasks.tasks_of(above)):
                yield f"The backup of {above.name} copies it too, from its next run on."

    def original(self, facts: Facts) -> Dataset | None:
        """The folder that this is a copy of, where it is still there."""
        copy = facts.dataset(self.copy)
        mark = parse_copy_mark(copy.copy_of) if copy else None
        return facts.dataset_of(mark.guid) if mark and mark.guid else None

    # --- after an interruption ------------------------------------------------------------------------------------------
    def probe(self, step: str, facts: Facts) -> bool:
        there = facts.dataset(self.target)
        placed = there is not None and self.has_arrived(self.copy, self.target, facts) and not facts.dataset(self.stage)
        if placed and there:
            return step != "place" or not there.copy_of
        if step == "prepare":
            return facts.dataset(self.stage) is not None
        of = {f"copy-{guid}": name.partition("@")[0] for name, guid in self.snapshots}.get(step, "")
        return bool(of) and self.has_arrived(of, f"{self.stage}/{self.name}", facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.dataset(self.stage):
            return f"What has arrived is kept in {self.stage}. Start the restore again to go on there, or destroy that folder to give up."
        if self.is_placed(facts):
            return f"{self.target} has everything, but is not ready. Start the restore again to finish it."
        return "Nothing was restored. Start the restore again."

    def clean_up(self, work: Work) -> None:
        found = (snapshot.partition("@")[0] for snapshot, _guid in self.snapshots)
        remove_stage(self.stage, {self.moved(name, f"{self.stage}/{self.name}") for name in found}, work)


def find(snapshot: str, guid: int, facts: Facts) -> Snapshot | None:
    return next((one for one in facts.snapshots if (one.name, one.guid) == (snapshot, guid)), None)


def is_raw(dataset: Dataset) -> bool:
    """Whether a copy was sent encrypted, as the original lay on its disk. Then it is sent back like that."""
    mark = parse_copy_mark(dataset.copy_of)
    return mark is not None and mark.raw


def moment_text(snapshot: Snapshot | None) -> str:
    return f"{snapshot.created.astimezone(schedule.box_zone()):%d %B %Y, %H:%M}" if snapshot else "a day unknown"
