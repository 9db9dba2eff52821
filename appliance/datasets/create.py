"""Create a dataset, which pages call a folder."""

from __future__ import annotations

import grp
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from appliance import names
from appliance.datasets import presets, reasons
from appliance.datasets.encryption.unlock import key_step
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import continue_sentence, size_text
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, Step, Work, command_step, never
from appliance.shares import inheritance, teardown
from appliance.system.accounts import PEOPLE
from appliance.zfs import mount, mountpoints
from appliance.zfs.mountpoints import top_step

LEAST_ROOM = 2**20  # bytes; even an empty folder needs some, and ZFS only says "out of space"
KEY_FORMATS = {"passphrase": "passphrase", "key file": "hex"}
LEAST_LIMIT = 2**20


class CreateDataset(Operation, tag="create-dataset"):
    """Create a file system below ``parent`` that the users of this box may use; ``limit`` in bytes, 0 for none.

    ``key``: the kind of its own encryption key; empty: it inherits its parent's encryption.
    """

    needs_proof = never

    parent: str
    name: str
    preset: presets.Name = "general"
    limit: int = 0
    key: Literal["", "passphrase", "key file"] = ""

    def __post_init__(self) -> None:
        names.existing_dataset(self.parent, field="parent")
        names.check_folder_name(self.name)
        if len(self.full_name) > names.LONGEST_DATASET:
            raise Refused(reasons.name_too_long())
        if self.limit and not LEAST_LIMIT <= self.limit < 2**62:
            raise Refused(
                Reason("limit-too-small", "A limit is at least 1 MiB. Leave it empty for no limit.", field="limit")
            )

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}"

    @property
    def title(self) -> str:
        return Message("Create the folder {full_name}", full_name=self.full_name)

    @property
    def subject(self) -> str:
        return self.full_name

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), "shares")

    def wants_secret(self) -> bool:
        return bool(self.key)

    def mountpoint_in(self, parent: Dataset) -> str:
        """Its future mountpoint."""
        return f"{parent.mountpoint.rstrip('/')}/{self.name}"

    def check(self, facts: Facts) -> Iterator[Reason]:
        parent = facts.dataset(self.parent)
        if parent is None or parent.kind != "filesystem":
            yield reasons.dataset_missing(self.parent).with_field("parent")
            return
        if parent.locked:
            yield reasons.dataset_locked(self.parent).with_field("parent")
        if parent.readonly:
            yield reasons.dataset_read_only(self.parent).with_field("parent")
        if parent.available < LEAST_ROOM:
            yield Reason(
                "dataset-full",
                "{dataset} is full. Delete files that are no longer needed, and old snapshots that still contain them.",
                field="parent",
                dataset=self.parent,
            )
        if not parent.mountpoint.startswith("/") or parent.mountpoint == "/":
            yield Reason(
                "parent-without-mountpoint",
                "{dataset} has no mountpoint of its own on this box. Choose another folder.",
                field="parent",
                dataset=self.parent,
            )
        elif against := mount.reason_against(self.full_name, self.mountpoint_in(parent), facts.datasets):
            yield against.with_field("parent")
        taken = [dataset.name for dataset in facts.datasets if dataset.name.lower() == self.full_name.lower()]
        if taken:
            yield reasons.dataset_exists(taken[0])

    def plan(self, facts: Facts) -> Plan:
        parent = facts.dataset(self.parent)
        place = self.mountpoint_in(parent) if parent else ""
        preset = presets.PRESETS[self.preset]
        return Plan(
            summary=join_messages(
                [
                    Message(
                        "The folder {full_name}: {preset_title}.",
                        full_name=self.full_name,
                        preset_title=continue_sentence(preset.title),
                    ),
                    Message(" It never takes up more than {limit}.", limit=size_text(self.limit)) if self.limit else "",
                ],
                "",
            ),
            steps=(
                self.create_step(place),
                mount.mount_step(self.full_name, place, new=True),
                top_step(
                    "group", Message("Let the users of this box use it"), ["chgrp", PEOPLE], self.full_name, place
                ),
                top_step("mode", Message("Keep everyone else out"), ["chmod", "2770"], self.full_name, place),
                *inheritance.serve_new_step(parent, self.full_name),
            ),
            identity={"operation": msgspec.to_builtins(self), "parent": parent.guid if parent else 0},
            undo=Message("It can be destroyed again."),
            details={
                Message("Why"): preset.why,
                **({Message("Encrypted"): Message("by a {key}", key=self.key)} if self.key else {}),
            },
            key_file=self.key == "key file",
        )

    def create_step(self, place: str) -> Step:
        settings = [*presets.property_arguments(self.preset), *([f"quota={self.limit}"] if self.limit else [])]
        if self.key:
            settings += ["encryption=aes-256-gcm", f"keyformat={KEY_FORMATS[self.key]}", "keylocation=prompt"]
        options = [word for setting in settings for word in ("-o", setting)]
        argv = ["zfs", "create", *mount.NOT_YET, *options, "--", self.full_name]
        title, undo = (
            Message("Create {full_name}", full_name=self.full_name),
            Message("The folder can be destroyed while it is empty."),
        )
        if self.key:
            step = key_step("create", title, argv, KEY_FORMATS[self.key], self.full_name, undo)
        else:
            step = command_step("create", title, argv, affects=[self.full_name], undo=undo)

        def create_unless_taken(work: Work) -> None:
            mountpoints.refuse_taken(place)
            step.run(work)

        return replace(step, run=create_unless_taken)

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.full_name)
        if dataset is None or step == "create":
            return dataset is not None
        if step == "mount":
            return dataset.mounted
        if step == "serve":
            return teardown.all_served(facts, [dataset])
        try:
            status = Path(dataset.mountpoint).stat()
            wanted = grp.getgrnam(PEOPLE).gr_gid
        except (OSError, KeyError):
            return False
        return status.st_gid == wanted if step == "group" else stat.S_IMODE(status.st_mode) == 0o2770

    def recovery_hint(self, step: str, facts: Facts) -> str:
        dataset = facts.dataset(self.full_name)
        if dataset and not dataset.mounted:
            return Message(
                "{full_name} is there, but not mounted. Destroy it, check what else is at its mountpoint, "
                "and create it again.",
                full_name=self.full_name,
            )
        if dataset and step == "serve":
            return Message(
                "{full_name} is there, but its shares may not be on. Its page shows what is served.",
                full_name=self.full_name,
            )
        if dataset:
            return Message(
                "{full_name} is there, but users may not be able to write to it. Destroy it and create it again.",
                full_name=self.full_name,
            )
        return Message("{full_name} is not there. Create it again.", full_name=self.full_name)
