"""Setting and taking away a folder's snapshot policy: a property of its dataset, so it goes where the data goes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance import names
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.operation import Operation, Plan, command_step
from appliance.snapshots import expiry
from appliance.snapshots import policy as snapshot_policy
from appliance.snapshots.policy import Policy

PROPERTY = "larder:policy"


class SetSnapshotPolicy(Operation, tag="set-snapshot-policy"):
    """Give a dataset its own policy, or with none let it follow the folder above it."""

    dataset: str
    policy: Policy | None = None

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        """Where it keeps less than now: what it destroys, the policies then destroy without a word."""
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            return True
        then = self.policy or snapshot_policy.above(facts.dataset(self.dataset.rpartition("/")[0]))
        return expiry.loses(
            [dataset, *snapshot_policy.followers(dataset, facts.datasets)], snapshot_policy.policy_of(dataset), then
        )

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)

    @property
    def title(self) -> str:
        if self.policy is None:
            return f"Let {self.dataset} follow the snapshot policy above it"
        return f"Set the snapshot policy of {self.dataset}"

    @property
    def subject(self) -> str:
        return self.dataset

    @property
    def text(self) -> str:
        return msgspec.json.encode(self.policy).decode()

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            yield Reason("", f"The folder {self.dataset} is no longer there.")
        elif dataset.readonly and (pool := facts.pool(dataset.pool)) and pool.state == "SUSPENDED":
            yield Reason("", f"The pool {dataset.pool} has stopped.")
        elif self.policy is None and dataset.policy_source not in snapshot_policy.OWN:
            yield Reason("", f"{self.dataset} has no policy of its own.")

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.dataset)
        if self.policy is None:
            argv = ["zfs", "inherit", PROPERTY, self.dataset]
            summary = f"{self.dataset} follows the folder above it. Snapshots that its own policy made stay until that one's numbers say otherwise."
        else:
            argv = ["zfs", "set", f"{PROPERTY}={self.text}", self.dataset]
            summary = f"Snapshots of {self.dataset}: {self.policy.sentence}."
        return Plan(
            summary=summary,
            steps=(command_step("set", self.title, argv, touches=[self.dataset], undo="Set it again as it was"),),
            identity={"operation": msgspec.to_builtins(self), "dataset": dataset.guid if dataset else 0},
            undo="It can be set again as it was. What expires meanwhile cannot be had back.",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            return False
        if self.policy is None:
            return dataset.policy_source not in snapshot_policy.OWN
        return dataset.policy_source == "local" and snapshot_policy.parse(dataset.policy) == self.policy

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "The policy is as it was. Set it again."
