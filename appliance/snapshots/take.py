"""Take snapshots: of one folder or its whole tree in one transaction, and those that snapshot schedules ask for."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from appliance import names, snapshot_names
from appliance.errors import Failed, Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.copy_mark import is_continued
from appliance.facts.datasets import Dataset
from appliance.facts.pool_reasons import missing_pool, stopped_pool
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.strict_struct import StrictStruct
from appliance.zfs import libzfs, list_snapshots

NAMED = 5  # snapshots that the command of a plan names


class SnapshotsOperation(Operation):
    """Base of operations on snapshots: the agent reads the snapshots of the datasets that they name."""

    def load_extra_facts(self, facts: Facts) -> Facts:
        there = {dataset.name for dataset in facts.datasets}
        found = list_snapshots.list_snapshots(name for name in self.snapshot_datasets() if name in there)
        return replace(facts, snapshots=tuple(found))

    def check_pool(self, facts: Facts) -> Iterator[Reason]:
        """Refuse where the pool is missing or does not respond."""
        name = self.subject.split("/", 1)[0]
        pool = facts.pool(name)
        if pool is None:
            yield missing_pool(name)
        elif pool.state == "SUSPENDED":
            yield stopped_pool(name)


def is_volume(name: str, facts: Facts) -> bool:
    """Whether a dataset is a volume, which has no files that Larder could speak of."""
    found = facts.dataset(name)
    return found is not None and found.kind == "volume"


def dataset_missing(dataset: str) -> Reason:
    return Reason("folder-missing", "The folder {folder} is no longer there.", folder=dataset)


def snapshot_exists(dataset: str, name: str, *, field: str) -> Reason:
    """The reason not to give a snapshot a name that another snapshot of the dataset has."""
    return Reason(
        "snapshot-exists",
        "{dataset} already has a snapshot {name}. Choose another name.",
        field=field,
        dataset=dataset,
        name=name,
    )


def copies_text(copies: int) -> str:
    if copies == 1:
        return Message("1 copy that backups made below it: no snapshot is taken of it.")
    return Message("{copies} copies that backups made below it: no snapshot is taken of these.", copies=copies)


class TakeSnapshot(SnapshotsOperation, tag="take-snapshot"):
    """Keep a dataset as it is now; with ``below``, its whole tree at the same moment."""

    needs_proof = never

    dataset: str
    name: str
    below: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        if not snapshot_names.is_for(snapshot_names.BY_HAND, self.name):  # the name that Larder proposes
            names.check_snapshot_name(self.name)
        names.check_note(self.note)

    @property
    def title(self) -> str:
        return join_messages(
            [
                Message("Take a snapshot of {dataset}", dataset=self.dataset),
                Message(" and all folders below it") if self.below else "",
            ],
            "",
        )

    @property
    def subject(self) -> str:
        return self.dataset

    def snapshot_datasets(self) -> tuple[str, ...]:
        return (self.dataset,)

    def find_members(self, facts: Facts) -> list[Dataset]:
        """The datasets that get a snapshot: never copies below, which no run could continue after it."""
        return [one for one in self.find_tree(facts) if one.name == self.dataset or not is_continued(one.copy_of)]

    def find_tree(self, facts: Facts) -> tuple[Dataset, ...]:
        if self.below:
            return facts.below(self.dataset)
        return tuple(one for one in facts.datasets if one.name == self.dataset)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from self.check_pool(facts)
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            yield dataset_missing(self.dataset)
        elif is_continued(dataset.copy_of):
            yield Reason(
                "snapshot-of-copy",
                "{dataset} is the copy of a backup. With a snapshot of its own, it could take no later "
                "backup. Take one of the original folder.",
                dataset=self.dataset,
            )
        for member in self.find_members(facts):
            if len(f"{member.name}@{self.name}") > names.LONGEST_SNAPSHOT:
                yield Reason(
                    "snapshot-name-too-long",
                    "The name is too long for {dataset}. Choose a shorter one.",
                    field="name",
                    dataset=member.name,
                )
        if any(snapshot.short == self.name for snapshot in facts.snapshots_of(self.dataset)):
            yield snapshot_exists(self.dataset, self.name, field="name")

    def plan(self, facts: Facts) -> Plan:
        members = self.find_members(facts)
        wanted = [f"{member.name}@{self.name}" for member in members]
        copies = len(self.find_tree(facts)) - len(members)

        properties = {user_properties.NOTE: self.note} if self.note else {}

        def act(_work: Work) -> None:
            libzfs.take_snapshots(wanted, properties)

        below = (
            Message("{count} folders below it", count=len(wanted) - 1)
            if len(wanted) > 2
            else Message("1 folder below it")
        )
        tree = Message(" and of {below}, all at the same moment", below=below) if len(wanted) > 1 else ""
        return Plan(
            summary=Message(
                "Take a snapshot of {dataset}{tree}. It uses no space until files are changed or deleted.",
                dataset=self.dataset,
                tree=tree,
            )
            if not is_volume(self.dataset, facts)
            else Message(
                "Take a snapshot of {dataset}. It uses no space until what is on the volume is overwritten.",
                dataset=self.dataset,
            ),
            steps=(
                Step(
                    "take",
                    Message("Take the snapshot {name}", name=self.name),
                    snapshot_text(wanted, properties),
                    act,
                    tuple(wanted),
                    Message("Destroy the snapshot"),
                ),
            ),
            identity={
                "operation": msgspec.to_builtins(self),
                "datasets": [member.guid for member in members],
            },
            warnings=(copies_text(copies),) if copies else (),
            undo=Message("The snapshot can be destroyed."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return any(snapshot.short == self.name for snapshot in facts.snapshots_of(self.dataset))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The snapshot was not taken. Take it again. If the pool is full, destroy old snapshots first.")


def snapshot_text(wanted: list[str], properties: dict[str, str]) -> str:
    """The command that takes these snapshots in one transaction, as libzfs_core does; the first few are named."""
    options = [word for name, value in properties.items() for word in ("-o", f"{name}={value}")]
    return shlex.join(["zfs", "snapshot", *options, "--", *wanted[:NAMED]]) + (" …" if len(wanted) > NAMED else "")


def before_step(dataset: str, name: str, note: str) -> Step:
    """The first step of a change that cannot be undone: a snapshot, with ``snapshot_names.BEFORE`` in its name."""
    wanted = f"{dataset}@{name}"
    return Step(
        "before",
        Message("Take a snapshot first"),
        snapshot_text([wanted], {user_properties.NOTE: note}),
        lambda _work: libzfs.take_snapshots([wanted], {user_properties.NOTE: note}),
        (wanted,),
        Message("Destroy the snapshot"),
    )


class SnapshotTarget(StrictStruct):
    """A dataset whose schedule wants a snapshot, identified by its guid, and the grains that the snapshot serves."""

    dataset: str
    guid: int
    grains: tuple[str, ...]

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        if not self.grains or not set(self.grains) <= set(snapshot_names.GRAINS):
            raise Refused(Reason("grains-invalid", "No snapshot schedule has these intervals.", field="grains"))


class RunSnapshotPolicies(SnapshotsOperation, tag="run-snapshot-policies"):
    """Take the snapshots that are due in one pool, in one transaction. Each carries ``run`` as a property."""

    needs_proof = never

    pool: str
    run: str
    moment: str  # as in snapshot_names.FORMAT
    targets: tuple[SnapshotTarget, ...]

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)
        names.job_id(self.run)
        if not snapshot_names.MOMENT.fullmatch(self.moment):
            raise Refused(Reason("moment-invalid", "That is not a date and time.", field="moment"))
        if not self.targets or any(target.dataset.split("/", 1)[0] != self.pool for target in self.targets):
            raise Refused(
                Reason("targets-of-other-pool", "All folders of a run must be in the same pool.", field="targets")
            )

    @property
    def title(self) -> str:
        return Message("Take the snapshots that are due in {pool}", pool=self.pool)

    @property
    def subject(self) -> str:
        return self.pool

    def snapshot_datasets(self) -> tuple[str, ...]:
        return ()

    def load_extra_facts(self, facts: Facts) -> Facts:
        # Only the probe needs the snapshots, and listing those of hundreds of datasets before each run takes long.
        return facts

    def name_of(self, target: SnapshotTarget) -> str:
        grain = snapshot_names.coarsest_grain(target.grains)
        return f"{target.dataset}@{snapshot_names.PREFIX}{grain}-{self.moment}"

    def find_targets(self, facts: Facts) -> list[SnapshotTarget]:
        """The targets that are still the same dataset; those destroyed or renamed meanwhile are skipped."""
        guids = {dataset.name: dataset.guid for dataset in facts.datasets}
        return [
            target
            for target in self.targets
            if guids.get(target.dataset) == target.guid and len(self.name_of(target)) <= names.LONGEST_SNAPSHOT
        ]

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from self.check_pool(facts)
        if not self.find_targets(facts):
            yield Reason("datasets-missing", "None of these folders is there any more.")

    def plan(self, facts: Facts) -> Plan:
        wanted = [self.name_of(target) for target in self.find_targets(facts)]
        properties = {user_properties.RUN: self.run}

        def act(work: Work) -> None:
            left = libzfs.take_most_snapshots(wanted, properties)
            for failure in left:
                work.note(Message("{failure} was not taken: {why}", failure=failure.name, why=failure.why))
            if left and len(left) == len(wanted):
                raise Failed(Message("No snapshot was taken"), join_messages([left[0].name, left[0].why], ": "))

        text = snapshot_text(wanted, properties)
        return Plan(
            summary=Message(
                "Take {count} snapshots in {pool}, all at the same moment.", count=len(wanted), pool=self.pool
            )
            if len(wanted) != 1
            else Message("Take the snapshot {name}.", name=wanted[0]),
            steps=(Step("take", Message("Take the snapshots"), text, act, tuple(wanted)),),
            identity={"operation": msgspec.to_builtins(self)},
            undo=Message("Yes: destroy the snapshots."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        # One transaction: either all snapshots of a run exist or none. Those refused one by one are in the job's log.
        datasets = [target.dataset for target in self.find_targets(facts)]
        return any(snapshot.run == self.run for snapshot in list_snapshots.list_snapshots(datasets))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("No snapshot was taken. The next run follows within minutes.")

    @classmethod
    def for_targets(cls, pool: str, run: str, moment: str, targets: list[tuple[str, int, tuple[str, ...]]]) -> Self:
        """The operation for these names, guids and grains of datasets."""
        made: Any = tuple(SnapshotTarget(dataset=name, guid=guid, grains=grains) for name, guid, grains in targets)
        return cls(pool=pool, run=run, moment=moment, targets=made)
