"""Taking snapshots: of one folder or of all below it too, in one transaction; and what policies take by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import msgspec

from appliance import names
from appliance.errors import Failed, Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.snapshots import names as snapshot_names
from appliance.strict_struct import StrictStruct
from appliance.zfs import libzfs, list_snapshots

STOPPED = "The pool {} has stopped. Bring its disks back first."


class SnapshotsOperation(Operation):
    """What every operation about snapshots shares: the agent reads the snapshots of the datasets that it is about."""

    def load_extra_facts(self, facts: Facts) -> Facts:
        there = {dataset.name for dataset in facts.datasets}
        found = list_snapshots.list_snapshots(name for name in self.snapshot_datasets() if name in there)
        return replace(facts, snapshots=tuple(found))

    def stopped(self, facts: Facts) -> Iterator[Reason]:
        """A pool that does not answer, or that can only be read, takes no change."""
        name = self.subject.split("/", 1)[0]
        pool = facts.pool(name)
        if pool is None:
            yield Reason("", f"The pool {name} is no longer there.")
        elif pool.state == "SUSPENDED":
            yield Reason("", STOPPED.format(name))


class TakeSnapshot(SnapshotsOperation, tag="take-snapshot"):
    """Keep a dataset as it is now; with ``below``, the whole tree at the same moment."""

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
        return f"Take a snapshot of {self.dataset}" + (" and all below it" if self.below else "")

    @property
    def subject(self) -> str:
        return self.dataset

    def snapshot_datasets(self) -> tuple[str, ...]:
        return (self.dataset,)

    def members(self, facts: Facts) -> list[Dataset]:
        below = f"{self.dataset}/"
        return [one for one in facts.datasets if one.name == self.dataset or (self.below and one.name.startswith(below))]  # fmt: skip

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from self.stopped(facts)
        if facts.dataset(self.dataset) is None:
            yield Reason("", f"The folder {self.dataset} is no longer there.")
        for member in self.members(facts):
            if len(f"{member.name}@{self.name}") > 255:
                yield Reason("", f"The name would be too long for {member.name}. Choose a shorter one.", field="name")
        if any(one.short == self.name for one in facts.snapshots_of(self.dataset)):
            yield Reason("", f"{self.dataset} has a snapshot {self.name} already. Choose another name.", field="name")

    def plan(self, facts: Facts) -> Plan:
        wanted = [f"{member.name}@{self.name}" for member in self.members(facts)]

        def act(_work: Work) -> None:
            libzfs.snapshot(wanted, {"larder:note": self.note} if self.note else {})

        many = f" and of {len(wanted) - 1} folders below it, all at the same moment" if len(wanted) > 1 else ""
        return Plan(
            summary=f"A snapshot of {self.dataset}{many}. It takes no space until something in it is changed or deleted.",
            steps=(
                Step(
                    "take",
                    f"Take the snapshot {self.name}",
                    f"zfs snapshot {'-r ' if self.below else ''}-- '{self.dataset}@{self.name}'",
                    act,
                    tuple(wanted),
                    "Destroy the snapshot",
                ),
            ),
            identity={
                "operation": msgspec.to_builtins(self),
                "datasets": [member.guid for member in self.members(facts)],
            },
            undo="It can be destroyed again.",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return any(one.short == self.name for one in facts.snapshots_of(self.dataset))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "There is no such snapshot. Take it again; if the pool is full, destroy old snapshots first."


def before_step(dataset: str, name: str, note: str) -> Step:
    """The first step of a change that nothing takes back: keep the folder as it is now, under a name of ``naming.BEFORE``."""
    wanted = f"{dataset}@{name}"
    return Step(
        "before",
        "Keep it as it is now",
        f"zfs snapshot -- '{wanted}'",
        lambda _work: libzfs.snapshot([wanted], {"larder:note": note}),
        (wanted,),
        "Destroy the snapshot",
    )


class SnapshotTarget(StrictStruct):
    """A dataset whose policy wants a snapshot, known by its guid, and for which grains."""

    dataset: str
    guid: int
    grains: tuple[str, ...]

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        if not self.grains or not set(self.grains) <= set(snapshot_names.GRAINS):
            raise names.refuse("That is not what a policy makes.", "grains")


class RunSnapshotPolicies(SnapshotsOperation, tag="run-snapshot-policies"):
    """Take what the policies of one pool want now, in one transaction. ``run`` is set on each, to know them by."""

    needs_proof = never

    pool: str
    run: str
    moment: str  # FORMAT of naming.py
    targets: tuple[SnapshotTarget, ...]

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)
        names.job_id(self.run)
        if not re.fullmatch(r"\d{4}(\.\d\d){2}-\d\d(\.\d\d){2}", self.moment):
            raise names.refuse("That is not a moment.", "moment")
        if not self.targets or any(one.dataset.split("/", 1)[0] != self.pool for one in self.targets):
            raise names.refuse("A run is about the folders of one pool.", "targets")

    @property
    def title(self) -> str:
        return f"Take the snapshots that are due in {self.pool}"

    @property
    def subject(self) -> str:
        return self.pool

    def snapshot_datasets(self) -> tuple[str, ...]:
        return ()

    def load_extra_facts(self, facts: Facts) -> Facts:
        # Only the probe asks for them, and a run over hundreds of datasets is not to list them all before.
        return facts

    def name_of(self, target: SnapshotTarget) -> str:
        return f"{target.dataset}@{snapshot_names.PREFIX}{snapshot_names.coarsest(target.grains)}-{self.moment}"

    def wanted(self, facts: Facts) -> list[SnapshotTarget]:
        """Those that are still the same dataset: one that was destroyed or renamed meanwhile is not waited for."""
        guids = {dataset.name: dataset.guid for dataset in facts.datasets}
        return [
            one
            for one in self.targets
            if guids.get(one.dataset) == one.guid and len(self.name_of(one)) <= names.LONGEST_SNAPSHOT
        ]

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from self.stopped(facts)
        if not self.wanted(facts):
            yield Reason("", "None of these folders is there any more.")

    def plan(self, facts: Facts) -> Plan:
        wanted = [self.name_of(one) for one in self.wanted(facts)]

        def act(work: Work) -> None:
            left = libzfs.snapshot_most(wanted, {"larder:run": self.run})
            for one in left:
                work.note(f"{one.name} was not taken: {one.why}")
            if left and len(left) == len(wanted):
                raise Failed("No snapshot was taken", f"{left[0].name}: {left[0].why}")

        shown = " ".join(f"'{name}'" for name in wanted[:5]) + (" …" if len(wanted) > 5 else "")
        return Plan(
            summary=f"{len(wanted)} snapshots in {self.pool}, all at the same moment.",
            steps=(Step("take", "Take them", f"zfs snapshot -- {shown}", act, tuple(wanted)),),
            identity={"operation": msgspec.to_builtins(self)},
        )

    def probe(self, step: str, facts: Facts) -> bool:
        # One transaction: all of a run are there, or none; those refused one by one were told.
        first = self.wanted(facts)
        return any(one.run == self.run for one in list_snapshots.list_snapshots([one.dataset for one in first]))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "None was taken. The next run follows within minutes."

    @classmethod
    def of(cls, pool: str, run: str, moment: str, targets: list[tuple[str, int, tuple[str, ...]]]) -> Self:
        made: Any = tuple(SnapshotTarget(dataset=name, guid=guid, grains=grains) for name, guid, grains in targets)
        return cls(pool=pool, run=run, moment=moment, targets=made)
