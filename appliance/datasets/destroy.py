"""Destroy a dataset with everything below it, and never more than the review showed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from appliance.datasets import dataset_detail, reasons
from appliance.datasets.base import DatasetOperation
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import and_more, names_text, size_text
from appliance.message import Message, join_messages
from appliance.operation import Loss, Plan, Step, Work, always
from appliance.shares import teardown
from appliance.zfs import system_datasets
from appliance.zfs.dataset_losses import list_dataset_losses


class DestroyDataset(DatasetOperation, tag="destroy-dataset"):
    """Destroy a dataset with its snapshots and all datasets below it; ``clones``: also the clones of its snapshots.

    The digest covers the snapshots that were taken by hand, since one may have been taken after the review. Snapshots
    of a schedule are not covered: they come and go every quarter of an hour and are meant to be destroyed too.
    """

    needs_proof = always

    clones: bool = False

    @property
    def title(self) -> str:
        return Message("Destroy {dataset}", dataset=self.dataset)

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), "shares")

    def files_taken(self) -> tuple[str, ...]:
        # Clones can be anywhere in the pool.
        return (self.dataset.split("/", 1)[0] if self.clones else self.dataset,)

    def load_extra_facts(self, facts: Facts) -> Facts:
        return dataset_detail.add_detail(facts, self.find_dataset(facts))

    def datasets_to_destroy(self, facts: Facts) -> list[Dataset]:
        """The dataset, all datasets below it, and the clones where ``clones`` is set."""
        detail = facts.dataset_detail(self.guid)
        clones = set(detail.clones) if detail and self.clones else set()
        return [*facts.below(self.dataset), *(dataset for dataset in facts.datasets if dataset.name in clones)]

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if self.find_dataset(facts) is None:
            return
        if self.is_pool:
            yield reasons.dataset_is_pool()
            return
        for dataset in self.datasets_to_destroy(facts):
            if refusal := system_datasets.reason_against(dataset, facts.datasets):
                yield refusal
                return
        detail = facts.dataset_detail(self.guid)
        if detail is None:
            yield Reason(
                "destroy-preview-missing", "What would be destroyed has not been read yet. Try again in a moment."
            )
            return
        if detail.clones and not self.clones:
            yield Reason(
                "clones-depend-on-dataset",
                "Clones of its snapshots depend on it: {clones}. Make them independent first, or destroy them with it.",
                clones=names_text(detail.clones, 5),
            )
        if detail.held:
            first, count = detail.held[0], len(detail.held)
            many = (
                Message("{count} of its snapshots, for example {snapshot}", count=count, snapshot=first)
                if count < dataset_detail.MOST_NAMED
                else Message("at least {count} of its snapshots, for example {snapshot}", count=count, snapshot=first)
            )
            yield Reason(
                "snapshots-protected",
                "Protected from deletion: {held}. A backup may still need that. Release it first.",
                held=first if count == 1 else many,
            )

    def plan(self, facts: Facts) -> Plan:
        going, detail = self.datasets_to_destroy(facts), facts.dataset_detail(self.guid)
        shares = teardown.shares_at(facts, going)
        argv = ["zfs", "destroy", "-R" if self.clones else "-r", "--", self.dataset]

        def destroy(work: Work) -> None:
            teardown.run_unmounting(
                argv, self.dataset, [dataset.mountpoint for dataset in going if dataset.mounted], serve_again=True
            )
            work.note(Message("{dataset} is destroyed", dataset=self.dataset))

        freed = self.freed_space(going)
        return Plan(
            summary=Message(
                "{dataset} and everything in it is gone for good. About {freed} are freed.",
                dataset=self.dataset,
                freed=size_text(freed),
            ),
            steps=(
                *teardown.stop_step(shares, frozenset(dataset.guid for dataset in going)),
                Step(
                    "destroy",
                    Message("Destroy {dataset}", dataset=self.dataset),
                    shlex.join(argv),
                    destroy,
                    tuple(dataset.name for dataset in going),
                ),
            ),
            identity={
                **self.plan_identity(),
                "going": sorted(dataset.guid for dataset in going),
                "chosen": detail.chosen if detail else "",
                **teardown.connected_computers(shares),
            },
            losses=tuple(self.list_losses(going, facts)),
            warnings=(
                *(
                    (Message("Its snapshots are destroyed too: they are no backup."),)
                    if detail and detail.snapshots
                    else ()
                ),
                *teardown.disk_warnings(shares),
            ),
            undo=Message("It cannot be recovered, unless the pool has a checkpoint from before."),
            type_to_confirm=self.dataset,
            details={
                Message("Snapshots"): join_messages(
                    [str(detail.snapshots), and_more(detail.named[:5], detail.snapshots - 5)], ": "
                )
                if detail
                else "",
                Message("Space freed"): size_text(freed),
                **teardown.review_facts(facts, shares),
            },
        )

    def freed_space(self, going: list[Dataset]) -> int:
        """Bytes freed: what the topmost datasets use, everything below included."""
        names = {dataset.name for dataset in going}
        return sum(dataset.used for dataset in going if dataset.name.rsplit("/", 1)[0] not in names)

    def list_losses(self, going: list[Dataset], facts: Facts) -> Iterator[Loss]:
        yield from list_dataset_losses(going)
        for share in teardown.shares_at(facts, going):
            yield Loss(Message("the share {share}", share=share.name))

    def probe(self, step: str, facts: Facts) -> bool:
        gone = facts.dataset_of(self.guid) is None
        return gone or (step == "shares" and not teardown.shares_at(facts, facts.below(self.dataset)))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.dataset_of(self.guid) is None:
            return Message("{dataset} is destroyed.", dataset=self.dataset)
        off = (
            ""
            if teardown.shares_at(facts, facts.below(self.dataset))
            else Message(" Its shares are off: switch them on if it stays.")
        )
        return Message(
            "{dataset} is still there; some of what was below it, or of its snapshots, may be gone.{off}",
            dataset=self.dataset,
            off=off,
        )
