"""Datasets, which people see as folders: making one, and unlocking what is encrypted."""

from __future__ import annotations

import grp
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from appliance import command, names
from appliance.errors import Failed, Reason
from appliance.facts import Dataset, Facts
from appliance.operation import Operation, Plan, Step, Work, command_step
from appliance.shares.accounts import PEOPLE
from appliance.zfs import mounting

# Why these: field-notes; recordsize(7) in zfsprops. Large records suit files that are written once and read whole.
KEY_FILES = {"hex", "raw"}  # zfsprops(7), keyformat: what nobody types
RECORDSIZES = {"general": "128K", "media": "1M", "photos": "1M", "documents": "128K"}
LEAST_ROOM = 2**20  # bytes; even an empty folder takes some, and ZFS says no more than "out of space"


class CreateDataset(Operation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make a file system below ``parent`` that the people of this box may use."""

    parent: str
    name: str
    preset: Literal["general", "media", "photos", "documents"] = "general"

    def __post_init__(self) -> None:
        names.existing_dataset(self.parent, field="parent")
        names.folder(self.name)
        if len(self.full_name) > names.LONGEST_DATASET:
            raise names.refuse("The full name would be too long for ZFS. Choose a shorter one.", "name")

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}"

    @property
    def title(self) -> str:
        return f"Create the folder {self.full_name}"

    @property
    def subject(self) -> str:
        return self.full_name

    def check(self, facts: Facts) -> Iterator[Reason]:
        parent = facts.dataset(self.parent)
        if parent is None or parent.kind != "filesystem":
            yield Reason(f"The folder {self.parent} is no longer there.", "parent")
            return
        if parent.locked:
            yield Reason(f"{self.parent} is locked. Unlock it first.", "parent")
        if parent.readonly:
            yield Reason(f"{self.parent} can only be read.", "parent")
        if parent.available < LEAST_ROOM:
            yield Reason(
                f"{self.parent} is full. Delete what is not needed, also old snapshots that still hold it.", "parent"
            )
        if not parent.mountpoint.startswith("/") or parent.mountpoint == "/":
            yield Reason(
                f"{self.parent} has no place of its own among the folders of this box. Choose another.", "parent"
            )
        same = [dataset.name for dataset in facts.datasets if dataset.name.lower() == self.full_name.lower()]
        if same:
            yield Reason(f"There is already a folder {same[0]}. Choose another name.", "name")

    def plan(self, facts: Facts) -> Plan:
        parent = facts.dataset(self.parent)
        mountpoint = f"{parent.mountpoint.rstrip('/')}/{self.name}" if parent else ""
        return Plan(
            summary=f"The folder {self.full_name}, for {self.preset}.",
            steps=(
                command_step(
                    "create",
                    f"Create {self.full_name}",
                    ["zfs", "create", "-o", f"recordsize={RECORDSIZES[self.preset]}", "--", self.full_name],
                    touches=[self.full_name],
                    undo="The folder can be destroyed while it is empty.",
                ),
                command_step("group", "Let the people of this box use it", ["chgrp", "--", PEOPLE, mountpoint]),
                command_step("mode", "Keep everyone else out", ["chmod", "2770", "--", mountpoint]),
            ),
            identity={"operation": msgspec.to_builtins(self), "parent": parent.guid if parent else 0},
            undo="It can be destroyed again.",
        )

    def happened(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.full_name)
        if dataset is None or step == "create":
            return dataset is not None
        try:
            found = Path(dataset.mountpoint).stat()
            wanted = grp.getgrnam(PEOPLE).gr_gid
        except (OSError, KeyError):
            return False
        return found.st_gid == wanted if step == "group" else stat.S_IMODE(found.st_mode) == 0o2770

    def way_on(self, step: str, facts: Facts) -> str:
        if facts.dataset(self.full_name):
            return (
                f"{self.full_name} is there, but people may not be able to write to it. Destroy it and create it again."
            )
        return f"{self.full_name} is not there. Create it again."


class UnlockDataset(Operation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Load the key of an encryption root from a passphrase or a key file and mount what it unlocks."""

    dataset: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)

    @property
    def title(self) -> str:
        return f"Unlock {self.dataset}"

    @property
    def subject(self) -> str:
        return self.dataset

    def wants_secret(self) -> bool:
        return True

    def members(self, facts: Facts) -> list[Dataset]:
        return [dataset for dataset in facts.datasets if dataset.encryption_root == self.dataset and dataset.can_mount]

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            yield Reason(f"{self.dataset} is no longer there.")
        elif dataset.encryption_root != self.dataset:
            yield Reason(f"{self.dataset} has no key of its own.")
        elif not dataset.locked:
            yield Reason(f"{self.dataset} is unlocked already.")

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.dataset)
        waiting = [member.name for member in self.members(facts) if not member.mounted]
        kind = dataset.key_format if dataset else ""
        load = ["zfs", "load-key", "-L", "prompt", "--", self.dataset]

        def unlock(work: Work) -> None:
            secret = work.secret()
            if kind in KEY_FILES:
                names.key_digits(secret)
            # zfs-load-key(8): a line of text, or 32 bytes as they are for a raw key.
            result = command.run(load, timeout=300, given=bytes.fromhex(secret) if kind == "raw" else f"{secret}\n")
            for line in (result.stdout + result.stderr).splitlines():
                work.note(line)

        def mount(work: Work) -> None:
            for name in waiting:
                place = next(member.mountpoint for member in facts.datasets if member.name == name)
                if mounting.through_a_link(place):
                    raise Failed(f"{name} would be mounted through a symbolic link at {place}, so it was left alone")
                command.run(["zfs", "mount", "--", name], timeout=120)
                work.note(f"Mounted {name}")

        return Plan(
            summary=f"{self.dataset} and {max(len(waiting) - 1, 0)} folders below it become usable until the box is switched off.",
            steps=(
                Step("key", "Load the key", shlex.join(load), unlock, (self.dataset,)),
                Step(
                    "mount",
                    "Mount the folders",
                    "\n".join(f"zfs mount -- {name}" for name in waiting),
                    mount,
                    tuple(waiting),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "dataset": dataset.guid if dataset else 0},
            key_file=kind in KEY_FILES,
        )

    def happened(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.dataset)
        if dataset is None or dataset.locked:
            return False
        return step == "key" or all(member.mounted for member in self.members(facts))

    def way_on(self, step: str, facts: Facts) -> str:
        dataset = facts.dataset(self.dataset)
        if dataset and dataset.locked:
            what = "key file" if dataset.key_format in KEY_FILES else "passphrase"
            return f"It is still locked. Check the {what} and unlock it again."
        return "The key is loaded, but some folders are not mounted. Look at the folder's page."
