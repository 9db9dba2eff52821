"""What all changes of a dataset that is there have in common: which one is meant, and that it still is that one."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance import names
from appliance.datasets.reasons import dataset_missing
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.operation import Operation
from appliance.pools.import_pool import pool_guid


class DatasetOperation(Operation):
    """Base of what is done to one dataset: named for people, told apart by its guid, so that another of its name is not taken for it."""

    dataset: str
    guid: int

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        pool_guid(self.guid)

    @property
    def subject(self) -> str:
        return self.dataset

    @property
    def is_pool(self) -> bool:
        return "/" not in self.dataset

    def find_dataset(self, facts: Facts) -> Dataset | None:
        """The very dataset that was meant."""
        found = facts.dataset(self.dataset)
        return found if found and found.guid == self.guid else None

    def reason_missing(self, facts: Facts) -> Reason:
        """Why it is not there: renamed, replaced or destroyed behind the page's back."""
        now = facts.dataset_of(self.guid)
        if now:
            return Reason(
                "dataset-renamed",
                "{dataset} was renamed to {now}. Go to its page and start again.",
                dataset=self.dataset,
                now=now.name,
            )
        if facts.dataset(self.dataset):
            return Reason(
                "dataset-replaced",
                "{dataset} is not the folder that you looked at. Go to its page and start again.",
                dataset=self.dataset,
            )
        return dataset_missing(self.dataset)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if self.find_dataset(facts) is None:
            yield self.reason_missing(facts)
            return
        pool = facts.pool(self.dataset.split("/", 1)[0])
        if pool and pool.state == "SUSPENDED":
            yield Reason(
                "pool-stopped",
                "{pool} has stopped because its disks do not answer. Bring them back first.",
                pool=pool.name,
            )

    def plan_identity(self) -> dict[str, object]:
        return {"operation": msgspec.to_builtins(self)}
