"""Restore a folder whole out of its copy in a pool of this box, with the folders below it, under a name that is free.

Nothing at the copy or at the original is changed. ``restore_base.py`` has what every restore does.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from appliance import names
from appliance.backups import copies, match
from appliance.backups.restore_base import NAMED, FolderRestore, moment_text
from appliance.backups.staging import Restored, Staging
from appliance.backups.transfer import read_features, run_transfer, send_flags
from appliance.datasets import reasons
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset, Snapshot
from appliance.facts.pool_reasons import stopped_pool
from appliance.formatting import names_text, size_text
from appliance.message import Message
from appliance.operation import Plan, Step, Work, never


class RestoreFolder(FolderRestore, tag="restore-folder"):
    """Copy ``snapshots`` (name and guid of each; that of ``copy`` first, parents before
    children) to ``parent``/``name``."""

    needs_proof = never

    snapshots: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        for snapshot, _guid in self.snapshots:
            names.existing_snapshot(snapshot)
        super().__post_init__()

    def sources(self) -> Iterator[tuple[str, int]]:
        return ((snapshot.partition("@")[0], guid) for snapshot, guid in self.snapshots)

    def dates(self, facts: Facts) -> Iterator[tuple[str, str, datetime | None]]:
        for snapshot, guid in self.snapshots:
            name, _at, short = snapshot.partition("@")
            found = find(snapshot, guid, facts)
            yield name, short, found.created if found else None

    def moment_at(self, facts: Facts) -> datetime | None:
        """When the snapshots of the chosen moment were made; of a restore that names none,
        the newest that comes back."""
        known = [(short, made) for _name, short, made in self.dates(facts) if made]
        chosen = [made for short, made in known if short == self.moment]
        return max(chosen or [made for _short, made in known], default=None)

    @property
    def title(self) -> str:
        return Message("Restore {target} from its backup", target=self.target)

    def locks(self) -> tuple[str, ...]:
        # Not the pools: it takes hours. No run of the backup may prune the copy meanwhile.
        return (copies.lock_of(self.copy),)

    def files_used(self) -> tuple[str, ...]:
        return (self.copy, self.parent)

    def snapshot_datasets(self) -> tuple[str, ...]:
        return (*(name for name, _guid in self.sources()), *super().snapshot_datasets())

    # --- what speaks against it ---------------------------------------------------------------------------------------
    def check(self, facts: Facts) -> Iterator[Reason]:
        copy = facts.dataset(self.copy)
        if copy is None or copy.guid != self.guid:
            yield reasons.dataset_missing(self.copy)
            return
        for name in (copy.pool, self.parent.split("/", 1)[0]):
            if (pool := facts.pool(name)) and pool.state == "SUSPENDED":
                yield stopped_pool(name)
        for snapshot, guid in self.snapshots:
            yield from self.check_source(snapshot, guid, facts)
        yield from self.check_place(facts)

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

    def size(self, facts: Facts) -> int:
        """The bytes that the snapshots hold at the copy."""
        return sum(found.referenced for name, guid in self.snapshots if (found := find(name, guid, facts)))

    # --- the plan -----------------------------------------------------------------------------------------------------
    def plan(self, facts: Facts) -> Plan:
        staging = self.staging(facts)
        count = len(staging.parts)
        what = Message("{copy} and {number} below it", copy=self.copy, number=count - 1) if count > 1 else self.copy
        return self.plan_of(
            facts,
            [self.copy_step(one, staging, facts) for one in staging.parts],
            summary=Message(
                "{what}: everything as it was on {moment_text}, about {size}, is copied to {target}. The "
                "copy stays as it is.",
                what=what,
                moment_text=moment_text(self.moment_at(facts)),
                size=size_text(self.size(facts)),
                target=self.target,
            ),
            warnings=tuple(self.warnings(facts)),
            details=self.details(staging, facts),
        )

    def staging(self, facts: Facts) -> Staging:
        parts = []
        for snapshot, guid in self.snapshots:
            name, _at, short = snapshot.partition("@")
            dataset = facts.dataset(name)
            if dataset is None:
                raise Refused(reasons.dataset_missing(name))
            flags = ("-w",) if is_raw(dataset) else ()
            target = self.moved(name, f"{self.stage}/{self.name}")
            parts.append(Restored(dataset, target, short, flags, self.moved(name, self.target), guid))
        return self.stage_of(parts, facts)

    def copy_step(self, one: Restored, staging: Staging, facts: Facts) -> Step:
        parent = facts.dataset(self.parent)
        encrypted = parent is not None and parent.encryption != "off"

        def run(work: Work) -> None:
            if staging.is_placed():
                work.note(Message("{place} is there already", place=one.place))
                return
            flags = send_flags(read_features(self.parent.split("/", 1)[0]), raw=one.raw, into_encrypted=encrypted)
            run_transfer(work, replace(one, flags=flags), one.guid)

        decision = match.Decision("full")
        text = f"{shlex.join(one.sender(decision))} | {shlex.join(one.receiver(decision))}"
        return Step(f"copy-{one.guid}", Message("Copy {source}", source=one.source.name), text, run, (one.target,))

    def warnings(self, facts: Facts) -> Iterator[str]:
        """What the owner should know before."""
        copy, parent = facts.dataset(self.copy), facts.dataset(self.parent)
        if copy is None or parent is None:
            return
        chosen = {name.partition("@")[0] for name, _guid in self.snapshots}
        left = [one.name for one in facts.below(self.copy) if one.copy_of and one.name not in chosen]
        if left:
            yield Message(
                "Left out, since there is no copy of that moment or an earlier one: {names_text}.",
                names_text=names_text(left, NAMED),
            )
        sources = [found for name in chosen if (found := facts.dataset(name))]
        yield from self.arrival_warnings(facts, [is_raw(one) for one in sources])
        if parent.encryption == "off" and any(one.encryption != "off" and not is_raw(one) for one in sources):
            yield Message(
                "{copy} is encrypted by its pool, as the original was not. The restored folder is not encrypted.",
                copy=self.copy,
            )
        yield from self.place_warnings(facts)

    def original(self, facts: Facts) -> Dataset | None:
        """The folder that this is a copy of, where it is still there."""
        copy = facts.dataset(self.copy)
        mark = parse_copy_mark(copy.copy_of) if copy else None
        return facts.dataset_of(mark.guid) if mark and mark.guid else None


def find(snapshot: str, guid: int, facts: Facts) -> Snapshot | None:
    return next((one for one in facts.snapshots if (one.name, one.guid) == (snapshot, guid)), None)


def is_raw(dataset: Dataset) -> bool:
    """Whether a copy was sent encrypted, as the original lay on its disk. Then it is sent back like that."""
    mark = parse_copy_mark(dataset.copy_of)
    return mark is not None and mark.raw
