"""One notice for all automatic snapshots that the schedules of their folders leave alone."""

from __future__ import annotations

from collections.abc import Iterator

from appliance.alerts.fault import Fault
from appliance.formatting import names_text
from appliance.message import Message
from web.inventory import store
from web.snapshots import adoption
from workers.interval import Interval
from workers.snapshot_policies import datasets_with_policies

MOST_NAMED = 5


class UnrecordedSnapshots:
    """What has no record is looked for every few minutes, as that reads many rows."""

    def __init__(self, seconds: float = 300.0) -> None:
        self.looks = Interval(seconds)
        self.counts: dict[str, int] = {}

    def update_faults(self) -> Iterator[Fault]:
        """The notice, naming the folders whose schedule leaves snapshots alone; nothing where there are none."""
        if store.is_read("snapshots"):
            self.looks.take_turn(self.refresh_counts)
        if self.counts:
            yield Fault(
                "policy.unrecorded",
                "snapshots",
                Message("Snapshot schedules leave some automatic snapshots alone."),
                Message(
                    "{count} in {names}: taken by another Larder box, for another folder, or before this box "
                    "lost its settings.",
                    count=sum(self.counts.values()),
                    names=names_text(sorted(self.counts), MOST_NAMED),
                ),
                "/snapshots/policies/",
            )

    def refresh_counts(self) -> None:
        every = [dataset for datasets in datasets_with_policies().values() for dataset, _policy in datasets]
        found = adoption.count_unrecorded(str(dataset.guid) for dataset in every)
        self.counts = {one.name: found[str(one.guid)] for one in every if str(one.guid) in found}


unrecorded = UnrecordedSnapshots()
