"""Set a copy aside: it keeps its snapshots under another name, and the next run of the backup makes a new one.

For copies that cannot be continued: the source was rolled back, or the copy was changed. Nothing is destroyed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Self

import msgspec

from appliance import names
from appliance.backups.tasks import HOME
from appliance.errors import Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.copy_mark import CopyMark, parse_copy_mark
from appliance.facts.datasets import Dataset
from appliance.facts.pool_reasons import stopped_pool
from appliance.message import Message
from appliance.operation import Operation, Plan, command_step, never
from appliance.snapshots.take import dataset_missing


class SetCopyAside(Operation, tag="set-copy-aside"):
    """Rename a copy, and everything below it, to ``name`` in the folder of copies, where no backup looks for it."""

    needs_proof = never

    copy: str
    guid: int
    name: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.copy, field="copy")
        names.check_folder_name(self.name)

    @classmethod
    def of(cls, copy: Dataset, facts: Facts, day: date) -> Self:
        """The operation with a name that is free: ``photos set aside 2026-11-23``."""
        stem = f"{copy.name.rpartition('/')[2][:30].rstrip()} set aside {day:%Y-%m-%d}"
        free = next(
            name
            for number in range(1, 10_000)
            if facts.dataset(f"{copy.pool}/{HOME}/{(name := stem if number == 1 else f'{stem} {number}')}") is None
        )
        return cls(copy=copy.name, guid=copy.guid, name=free)

    @property
    def title(self) -> str:
        return Message("Set the copy {copy} aside", copy=self.copy)

    @property
    def subject(self) -> str:
        return self.copy

    @property
    def target(self) -> str:
        return f"{self.copy.split('/', 1)[0]}/{HOME}/{self.name}"

    def files_taken(self) -> tuple[str, ...]:
        return (self.copy,)

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.copy)
        if dataset is None or dataset.guid != self.guid:
            yield dataset_missing(self.copy)
            return
        mark = parse_copy_mark(dataset.copy_of)
        if mark is None or self.copy.count("/") < 2:
            yield Reason("not-a-copy", "{dataset} is not a copy that a backup made.", dataset=self.copy)
        if facts.dataset(self.target):
            yield Reason(
                "name-taken", "There is already a folder {name}. Choose another name.", field="name", name=self.target
            )
        if (pool := facts.pool(dataset.pool)) and pool.state == "SUSPENDED":
            yield stopped_pool(pool.name)
        longest = max(len(one.name) - len(self.copy) + len(self.target) for one in facts.below(self.copy))
        if longest > names.LONGEST_DATASET:
            yield Reason("backup-name-too-long", "The names of the copies would be too long for ZFS.", field="name")

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.copy)
        mark = parse_copy_mark(dataset.copy_of) if dataset else None
        if dataset is None or mark is None:
            raise Refused(dataset_missing(self.copy))
        none = CopyMark(0, mark.raw).text
        unmark = ["zfs", "set", "-u", f"{user_properties.COPY_OF}={none}", self.copy]
        rename = ["zfs", "rename", "-u", self.copy, self.target]
        # In this order: interrupted in between, the copy is nobody's, and a run is refused instead of going on with it.
        return Plan(
            summary=Message(
                "The copy is kept as {target}, with all its snapshots. The next run of the backup makes a "
                "new copy, which sends everything again.",
                target=self.target,
            ),
            steps=(
                command_step("unmark", Message("Take it out of its backup"), unmark, affects=[self.copy]),
                command_step(
                    "rename",
                    Message("Rename it to {target}", target=self.target),
                    rename,
                    affects=[self.copy],
                    undo=Message("Rename it back"),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self)},
            warnings=(
                Message(
                    "Until you destroy {target}, both copies use space in {pool}.",
                    target=self.target,
                    pool=dataset.pool,
                ),
            ),
            undo=Message("Nothing is destroyed."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset_of(self.guid)
        mark = parse_copy_mark(dataset.copy_of) if dataset else None
        if step == "unmark":
            return mark is not None and mark.guid == 0
        return dataset is not None and dataset.name == self.target

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The copy is still there. Set it aside again.")
