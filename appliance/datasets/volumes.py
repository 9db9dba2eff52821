"""Volumes: block devices in a pool, for virtual machines and iSCSI."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance import names
from appliance.datasets import reasons
from appliance.datasets.base import DatasetOperation
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import binary_text, size_text
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, command_step, never
from appliance.shares.iscsi.targets import volume_part

KIB, MIB = 2**10, 2**20
BLOCKS = tuple(size * KIB for size in (4, 8, 16, 32, 64, 128))
LARGEST = 2**62
# A thick volume also reserves space for its metadata: zvol_volsize_to_reservation() adds
# indirect blocks and raidz padding.
METADATA_SHARE = 0.06


def not_multiple(block: int) -> Reason:
    return Reason(
        "volume-size-not-multiple",
        "The size has to be a multiple of the block size, {block}.",
        field="size",
        block=binary_text(block),
    )


def whole_blocks(size: int, block: int) -> int:
    """The next size that is a multiple of the block size, as a volume's has to be."""
    return -(-size // block) * block


class CreateVolume(Operation, tag="create-volume"):
    """Create a block device of ``size`` bytes. Thin: it uses space in the pool only as data is written."""

    needs_proof = never

    parent: str
    name: str
    size: int
    block: int = 16 * KIB
    thin: bool = True

    def __post_init__(self) -> None:
        names.existing_dataset(self.parent, field="parent")
        names.check_folder_name(self.name)
        if len(self.full_name) > names.LONGEST_DATASET:
            raise Refused(reasons.name_too_long())
        if " " in self.name:
            raise Refused(
                Reason(
                    "volume-name-with-space",
                    "A volume's name has no spaces, since it is part of a device's path.",
                    field="name",
                )
            )
        if self.block not in BLOCKS:
            raise Refused(Reason("block-size-invalid", "Choose one of the block sizes in the list.", field="block"))
        if not MIB <= self.size <= LARGEST:
            raise Refused(Reason("volume-too-small", "A volume has at least 1 MiB.", field="size"))
        if self.size % self.block:
            raise Refused(not_multiple(self.block))

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}"

    @property
    def title(self) -> str:
        return Message("Create the volume {full_name}", full_name=self.full_name)

    @property
    def subject(self) -> str:
        return self.full_name

    def check(self, facts: Facts) -> Iterator[Reason]:
        parent = facts.dataset(self.parent)
        if parent is None or parent.kind != "filesystem":
            yield reasons.dataset_missing(self.parent).with_field("parent")
            return
        if parent.locked:
            yield reasons.dataset_locked(self.parent).with_field("parent")
        taken = [dataset.name for dataset in facts.datasets if dataset.name.lower() == self.full_name.lower()]
        if taken:
            yield reasons.dataset_exists(taken[0])
        if not self.thin and self.size * (1 + METADATA_SHARE) > parent.available:
            yield Reason(
                "volume-without-room",
                "Only {free} are free there, and a volume needs a little more than its size. Make it smaller, or thin.",
                field="size",
                free=size_text(parent.available),
            )

    def plan(self, facts: Facts) -> Plan:
        parent = facts.dataset(self.parent)
        free = parent.available if parent else 0
        argv = [
            "zfs",
            "create",
            *(["-s"] if self.thin else []),
            "-o",
            f"volblocksize={self.block}",
            "-V",
            str(self.size),
            "--",
            self.full_name,
        ]
        over = self.thin and self.size > free
        return Plan(
            summary=join_messages(
                [
                    Message(
                        "The volume {full_name} of {size}, at /dev/zvol/{full_name}. ",
                        full_name=self.full_name,
                        size=size_text(self.size),
                    ),
                    Message("It uses space in the pool only as data is written.")
                    if self.thin
                    else Message("Its full size is reserved from the beginning."),
                ],
                "",
            ),
            steps=(
                command_step(
                    "create",
                    Message("Create {full_name}", full_name=self.full_name),
                    argv,
                    affects=[self.full_name],
                    undo=Message("Destroy it"),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "parent": parent.guid if parent else 0},
            warnings=(
                Message(
                    "Only {free} are free. When the pool is full, whatever uses the volume sees its disk fail.",
                    free=size_text(free),
                ),
            )
            if over
            else (),
            undo=Message("It can be destroyed again."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        found = facts.dataset(self.full_name)
        return found is not None and found.kind == "volume"

    def recovery_hint(self, step: str, facts: Facts) -> str:
        there = facts.dataset(self.full_name) is not None
        return Message(
            "{full_name} is {what}.",
            full_name=self.full_name,
            what=Message("there") if there else Message("not there. Create it again"),
        )


def block_of(volume: Dataset) -> int:
    """Bytes of a volume's blocks; where that was not read, what is a multiple of every block size."""
    return int(volume.properties["volblocksize"].value) if "volblocksize" in volume.properties else MIB


LOOK_AGAIN = Message(
    "It is a disk of another computer over iSCSI, which sees the new size once it looks again: on Linux with "
    "“iscsiadm -m session --rescan”, on Windows with “Rescan Disks” in Disk Management, on a Mac by "
    "connecting again."
)


class GrowVolume(DatasetOperation, tag="grow-volume"):
    """Make a volume larger. It can never shrink, which would cut off its end."""

    needs_proof = never

    size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.size <= LARGEST:
            raise Refused(reasons.size_malformed("size"))

    @property
    def title(self) -> str:
        return Message("Make {dataset} larger", dataset=self.dataset)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        volume = self.find_dataset(facts)
        if volume is None:
            return
        if volume.kind != "volume":
            yield Reason("dataset-not-volume", "{dataset} is not a volume, so it has no size.", dataset=self.dataset)
            return
        block = block_of(volume)
        kept = volume.properties.get("refreservation")
        if self.size <= volume.volsize:
            yield Reason(
                "volume-not-shrunk",
                "It already has {size}. A volume can only grow, since making it smaller would cut off its end.",
                field="size",
                size=size_text(volume.volsize),
            )
        elif self.size % block:
            yield not_multiple(block)
        elif (
            kept
            and kept.value not in {"0", "none"}
            and (self.size - volume.volsize) * (1 + METADATA_SHARE) > volume.available
        ):
            yield Reason(
                "volume-growth-without-room",
                "There is not enough free space for that size. Choose a smaller one.",
                field="size",
            )

    def plan(self, facts: Facts) -> Plan:
        volume = self.find_dataset(facts)
        before = volume.volsize if volume else 0
        return Plan(
            summary=Message(
                "{dataset} grows from {before} to {size}. What uses the volume then has to extend its file system.",
                dataset=self.dataset,
                before=size_text(before),
                size=size_text(self.size),
            ),
            steps=(
                command_step(
                    "grow",
                    Message("Make it larger"),
                    ["zfs", "set", "--", f"volsize={self.size}", self.dataset],
                    affects=[self.dataset],
                ),
            ),
            identity={**self.plan_identity(), "before": before},
            warnings=(LOOK_AGAIN,) if volume and volume_part(volume) else (),
            undo=Message("It cannot be made smaller again."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        volume = self.find_dataset(facts)
        return volume is not None and volume.volsize == self.size

    def recovery_hint(self, step: str, facts: Facts) -> str:
        volume = self.find_dataset(facts)
        return (
            Message("It has {volsize} now.", volsize=size_text(volume.volsize))
            if volume
            else self.reason_missing(facts).text
        )
