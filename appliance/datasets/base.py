"""Base of all operations on one existing dataset."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance import names
from appliance.datasets.reasons import dataset_missing
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.pool_reasons import stopped_pool
from appliance.operation import Operation
from appliance.pools.import_reasons import pool_guid


class DatasetOperation(Operation):
    """An operation on one dataset. The guid identifies it, so that a new dataset of the same name
    is never changed instead."""

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
        """The dataset with this name and guid, or None."""
        dataset = facts.dataset(self.dataset)
        return dataset if dataset and dataset.guid == self.guid else None

    def reason_missing(self, facts: Facts) -> Reason:
        """Why ``find_dataset`` returned None: it was renamed, replaced or destroyed since the page was shown."""
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
            yield stopped_pool(pool.name)

    def plan_identity(self) -> dict[str, object]:
        return {"operation": msgspec.to_builtins(self)}
