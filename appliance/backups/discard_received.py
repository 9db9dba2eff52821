"""Discard what an interrupted run has left half received at a copy: space that no list of folders shows."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance import names
from appliance.backups import copies
from appliance.backups.tasks import HOME
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.pool_reasons import stopped_pool
from appliance.formatting import size_text
from appliance.message import Message
from appliance.operation import Loss, Operation, Plan, command_step, never
from appliance.snapshots.take import dataset_missing


def is_half_received(dataset: Dataset) -> bool:
    """Whether a receive at this dataset was interrupted and can go on."""
    return copies.RESUME in dataset.properties


def half_received(root: str, facts: Facts) -> list[Dataset]:
    """The copies from ``root`` down at which a receive was interrupted."""
    return [one for one in facts.below(root) if is_half_received(one)]


def received_size(dataset: Dataset, facts: Facts) -> int:
    """The bytes that have arrived. ZFS counts those of a first copy as written, and others among the folders below,
    where they belong to none."""
    below = (one.used for one in facts.below(dataset.name) if one.name.rpartition("/")[0] == dataset.name)
    return dataset.written + max(0, dataset.used_by_children - sum(below))


class DiscardReceived(Operation, tag="discard-received"):
    """Discard the half received state of a copy. Its snapshots stay."""

    needs_proof = never  # no complete copy can be lost by it, and the next run sends the same again

    copy: str
    guid: int

    def __post_init__(self) -> None:
        names.existing_dataset(self.copy, field="copy")

    @property
    def title(self) -> str:
        return Message("Discard what an interrupted run left at {copy}", copy=self.copy)

    @property
    def subject(self) -> str:
        return self.copy

    def locks(self) -> tuple[str, ...]:
        # Not the pool: a run that goes on from it has the same lock.
        return (copies.lock_of(self.copy),)

    def files_used(self) -> tuple[str, ...]:
        return (self.copy,)

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.copy)
        if dataset is None or dataset.guid != self.guid:
            yield dataset_missing(self.copy)
            return
        if self.copy.split("/")[1:2] != [HOME] or self.copy.count("/") < 2:
            yield Reason("not-a-copy", "{dataset} is not a copy that a backup made.", dataset=self.copy)
        if not is_half_received(dataset):
            yield Reason("nothing-received", "There is nothing at {dataset} to discard.", dataset=self.copy)
        if (pool := facts.pool(dataset.pool)) and pool.state == "SUSPENDED":
            yield stopped_pool(pool.name)

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.copy)
        size = received_size(dataset, facts) if dataset else 0
        argv = ["zfs", "receive", "-A", self.copy]
        return Plan(
            summary=Message(
                "The part of an interrupted copy that has arrived is discarded, which frees about {size}. "
                "The complete copies stay. The next run sends it again from the beginning.",
                size=size_text(size),
            ),
            steps=(command_step("discard", Message("Discard what has arrived"), argv, affects=[self.copy]),),
            identity={"operation": msgspec.to_builtins(self)},
            losses=(Loss(Message("The part of an incomplete copy that has arrived at {copy}", copy=self.copy), size),),
            undo=Message("The next run of the backup sends it again."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.copy)
        return dataset is None or not is_half_received(dataset)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("It is still there. Discard it again.")
