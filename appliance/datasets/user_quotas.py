"""Quotas of users and groups in a dataset. The quota of the dataset itself is one of its
properties (``properties.py``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from appliance.datasets import dataset_detail, reasons
from appliance.datasets.base import DatasetOperation
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.formatting import size_text
from appliance.message import Message
from appliance.operation import Plan, command_step, never

PROPERTY = {"user": "userquota", "group": "groupquota"}


class SetUserQuota(DatasetOperation, tag="set-user-quota"):
    """Limit one user or group, by name or number, to ``size`` bytes in this dataset; 0 for no limit."""

    needs_proof = never

    of: Literal["user", "group"]
    who: str
    size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,30}|[0-9]{1,10}", self.who):
            raise Refused(
                Reason(
                    "quota-name-invalid", "Give the name of a user or group of this box, or its number.", field="who"
                )
            )
        if not 0 <= self.size < 2**63:
            raise Refused(reasons.size_malformed("size"))

    @property
    def title(self) -> str:
        return (
            Message("Limit {who} in {dataset}", who=self.who, dataset=self.dataset)
            if self.size
            else Message("Lift the limit of {who} in {dataset}", who=self.who, dataset=self.dataset)
        )

    def load_extra_facts(self, facts: Facts) -> Facts:
        return dataset_detail.add_detail(facts, self.find_dataset(facts))

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        if dataset is None:
            return
        if dataset.kind != "filesystem":
            yield Reason("quota-on-volume", "{dataset} is a volume, which has no files of users.", dataset=self.dataset)
        elif dataset.locked:
            yield reasons.dataset_locked(self.dataset)

    def plan(self, facts: Facts) -> Plan:
        value = size_text(self.size) if self.size else Message("no limit")
        word = str(self.size) if self.size else "none"
        return Plan(
            summary=Message(
                "{who} in {dataset}: {value}. Files above the limit stay, but no more can be added.",
                who=self.who,
                dataset=self.dataset,
                value=value,
            ),
            steps=(
                command_step(
                    "set",
                    Message("Set the limit of {who} to {value}", who=self.who, value=value),
                    ["zfs", "set", "--", f"{PROPERTY[self.of]}@{self.who}={word}", self.dataset],
                    affects=[self.dataset],
                ),
            ),
            identity=self.plan_identity(),
            undo=Message("It can be set back at any time."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        detail = facts.dataset_detail(self.guid)
        quotas = {(use.kind, use.who): use.quota for use in detail.uses} if detail else {}
        return detail is not None and quotas.get((self.of, self.who), 0) == self.size

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message(
            "The page “Space by user” shows the current limits. Check that there is a user of that name on this box."
        )
