"""Mount and unmount a dataset."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec.structs import replace

from appliance import command
from appliance.datasets import reasons
from appliance.datasets.base import DatasetOperation
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.message import Message, join_messages
from appliance.operation import Plan, Step, Work, never
from appliance.shares import publish, teardown
from appliance.zfs import mount as zfs_mount
from appliance.zfs import system_datasets
from appliance.zfs.dataset_losses import name_with_below


def unmount_argv(dataset: str) -> list[str]:
    return ["zfs", "unmount", "--", dataset]


class MountDataset(DatasetOperation, tag="mount-dataset"):
    """Mount a file system at its mountpoint."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Mount {dataset}", dataset=self.dataset)

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), "shares")

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        if dataset is None:
            return
        if dataset.mounted:
            yield Reason("dataset-mounted", "{dataset} is already mounted.", dataset=self.dataset)
        elif dataset.locked:
            yield reasons.dataset_locked(self.dataset)
        elif dataset.kind != "filesystem" or dataset.canmount == "off" or not dataset.mountpoint.startswith("/"):
            yield Reason("dataset-without-mountpoint", "{dataset} has no mountpoint on this box.", dataset=self.dataset)
        elif against := zfs_mount.reason_against(self.dataset, dataset.mountpoint, facts.datasets):
            yield against

    def plan(self, facts: Facts) -> Plan:
        dataset = self.find_dataset(facts)
        place = dataset.mountpoint if dataset else ""
        # Set by mount_at_boot, or left by an interrupted creation: no start of the box would mount it.
        noauto = dataset is not None and dataset.canmount == "noauto"
        later = zfs_mount.remember_argv(self.dataset) if noauto else []

        def mount(work: Work) -> None:
            zfs_mount.mount_dataset(self.dataset, work)
            if later:
                command.run(later, timeout=60)
            publish.republish_quietly(work)

        step = zfs_mount.mount_step(self.dataset, place)
        step = replace(
            step, run=mount, command_text="\n".join([step.command_text, *([shlex.join(later)] if later else [])])
        )
        return Plan(
            summary=join_messages(
                [
                    Message("The files of {dataset} can be reached at {place}", dataset=self.dataset, place=place),
                    Message(", from now on after each start of the box too.") if noauto else ".",
                ],
                "",
            ),
            steps=(step,),
            identity={**self.plan_identity(), "place": place},
            undo=Message("It can be unmounted at any time."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = self.find_dataset(facts)
        return dataset is not None and dataset.mounted

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("It is not mounted. Check whether something else is at its mountpoint.")


class UnmountDataset(DatasetOperation, tag="unmount-dataset"):
    """Unmount a file system and everything mounted below it."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Unmount {dataset}", dataset=self.dataset)

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), "shares")

    def files_taken(self) -> tuple[str, ...]:
        return (self.dataset,)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        if dataset and not dataset.mounted:
            yield Reason("dataset-unmounted", "{dataset} is not mounted.", dataset=self.dataset)
        if dataset and (refusal := system_datasets.reason_against(dataset, facts.datasets)):
            yield refusal

    def plan(self, facts: Facts) -> Plan:
        mounted = [dataset for dataset in facts.below(self.dataset) if dataset.mounted]
        shares = teardown.shares_at(facts, mounted)
        argv = unmount_argv(self.dataset)

        def unmount(work: Work) -> None:
            teardown.run_unmounting(argv, self.dataset, [dataset.mountpoint for dataset in mounted], serve_again=True)
            work.note(Message("{dataset} is unmounted", dataset=self.dataset))
            if shares:
                publish.tell_network(work.note)

        return Plan(
            summary=Message(
                "The files of {folders} cannot be reached until {dataset} is mounted again. Nothing is erased.",
                folders=name_with_below(self.dataset, mounted),
                dataset=self.dataset,
            ),
            steps=(
                *teardown.close_step(shares),
                Step(
                    "unmount",
                    Message("Unmount it"),
                    shlex.join(argv),
                    unmount,
                    tuple(dataset.name for dataset in mounted),
                    Message("Mount it again"),
                ),
            ),
            identity={**self.plan_identity(), "mounted": sorted(dataset.guid for dataset in mounted)},
            warnings=(Message("Its shares answer nobody meanwhile."),) if shares else (),
            undo=Message("Mount it again at any time. The next start of the box mounts it by itself."),
            details=teardown.review_facts(facts, shares),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = self.find_dataset(facts)
        return dataset is not None and not dataset.mounted

    def recovery_hint(self, step: str, facts: Facts) -> str:
        dataset = self.find_dataset(facts)
        return Message(
            "{dataset} is {what} mounted.",
            dataset=self.dataset,
            what=Message("still") if dataset and dataset.mounted else Message("not"),
        )
