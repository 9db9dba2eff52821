"""Set and remove a folder's snapshot schedule: a property of its dataset, so it moves with the data."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance import names
from appliance.errors import Reason
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.pool_reasons import stopped_pool
from appliance.message import Message
from appliance.operation import Operation, Plan, command_step
from appliance.snapshots import policy as snapshot_policy
from appliance.snapshots import retention
from appliance.snapshots.policy import Policy
from appliance.snapshots.take import dataset_missing


class SetSnapshotPolicy(Operation, tag="set-snapshot-policy"):
    """Give a dataset a schedule of its own; without ``policy``, let it follow the folder above it."""

    dataset: str
    policy: Policy | None = None

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        """Whether the folder, or one below that follows it, keeps less than now: the snapshots above the new numbers
        are then destroyed without a review."""
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            return True
        then = self.policy or snapshot_policy.parent_policy(facts.dataset(self.dataset.rpartition("/")[0]))
        # Those below may have followed another policy than this folder, or none: what each loses is its own question.
        below = snapshot_policy.inheriting_datasets(dataset, facts.datasets)
        return retention.may_lose([dataset], then) or retention.may_lose(below, then if then and then.below else None)

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)

    @property
    def title(self) -> str:
        if self.policy is None:
            return Message("Let {dataset} follow the snapshot schedule above it", dataset=self.dataset)
        return Message("Set the snapshot schedule of {dataset}", dataset=self.dataset)

    @property
    def subject(self) -> str:
        return self.dataset

    @property
    def property_value(self) -> str:
        return msgspec.json.encode(self.policy).decode()

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            yield dataset_missing(self.dataset)
        elif dataset.readonly and (pool := facts.pool(dataset.pool)) and pool.state == "SUSPENDED":
            yield stopped_pool(dataset.pool)
        elif self.policy and dataset.copy_of:  # snapshot_policy.policy_of: it would never run
            yield Reason(
                "schedule-of-copy",
                "{dataset} belongs to the copies of backups, and a schedule does nothing there. Set one for "
                "the original folder: its snapshots come with the next backup.",
                dataset=self.dataset,
            )
        elif self.policy is None and dataset.policy_source not in snapshot_policy.OWN:
            yield Reason("schedule-not-own", "{dataset} has no snapshot schedule of its own.", dataset=self.dataset)

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.dataset)
        if self.policy is None:
            argv = ["zfs", "inherit", user_properties.POLICY, self.dataset]
            summary = Message(
                "{dataset} follows the folder above it. Snapshots that its own schedule took stay until the "
                "schedule above no longer keeps them.",
                dataset=self.dataset,
            )
        else:
            argv = ["zfs", "set", f"{user_properties.POLICY}={self.property_value}", self.dataset]
            summary = Message(
                "Snapshots of {dataset}: {sentence}.", dataset=self.dataset, sentence=self.policy.sentence
            )
        return Plan(
            summary=summary,
            steps=(
                command_step("set", self.title, argv, affects=[self.dataset], undo=Message("Set it again as it was")),
            ),
            identity={"operation": msgspec.to_builtins(self), "dataset": dataset.guid if dataset else 0},
            undo=Message("The schedule can be set again as it was. Snapshots that expire meanwhile are lost."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            return False
        if self.policy is None:
            return dataset.policy_source not in snapshot_policy.OWN
        return dataset.policy_source == "local" and snapshot_policy.parse_policy(dataset.policy) == self.policy

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The schedule is unchanged. Set it again.")
