"""Make a clone independent of the dataset that it was made from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from appliance import command
from appliance.datasets.base import DatasetOperation
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Plan, Step, Work
from appliance.snapshots import policy, retention


class PromoteDataset(DatasetOperation, tag="promote-dataset"):
    """Promote a clone: it takes over the shared snapshots, and the original dataset depends on it instead."""

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        """Whether the clone's snapshot schedule retains less than that of the dataset whose snapshots it gets."""
        dataset = self.find_dataset(facts)
        origin = facts.dataset(dataset.origin.partition("@")[0]) if dataset else None
        if dataset is None or origin is None:
            return True
        return retention.keeps_less(policy.policy_of(origin), policy.policy_of(dataset))

    @property
    def title(self) -> str:
        return Message("Make {dataset} independent", dataset=self.dataset)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        if dataset and not dataset.origin:
            yield Reason("dataset-not-clone", "{dataset} does not depend on another folder.", dataset=self.dataset)

    def plan(self, facts: Facts) -> Plan:
        dataset = self.find_dataset(facts)
        origin, _at, snapshot = (dataset.origin if dataset else "").partition("@")
        argv = ["zfs", "promote", self.dataset]  # it does not accept “--” (2.3.9: "invalid option '-'")

        def promote(work: Work) -> None:
            command.run(argv, timeout=300)
            work.note(Message("{dataset} is independent", dataset=self.dataset))

        return Plan(
            summary=Message(
                "{dataset} was made from {origin} as of {snapshot}. It takes over that snapshot and all "
                "before it; {origin} then depends on {dataset}, and can be destroyed without it.",
                dataset=self.dataset,
                origin=origin,
                snapshot=snapshot,
            ),
            steps=(
                Step(
                    "promote",
                    Message("Swap which of the two depends on the other"),
                    shlex.join(argv),
                    promote,
                    (self.dataset, origin),
                    Message("Make {origin} independent again", origin=origin),
                ),
            ),
            identity={**self.plan_identity(), "origin": dataset.origin if dataset else ""},
            undo=Message("Make {origin} independent again, which gives the snapshots back.", origin=origin),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = self.find_dataset(facts)
        return dataset is not None and not dataset.origin

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message(
            "Nothing was changed. A snapshot of the same name in both is a common reason: rename one of them."
        )
