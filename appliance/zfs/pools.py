"""Pools: making one. Each change is an operation; see ``appliance/operation.py`` for the contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from appliance import command, names, places
from appliance.errors import Failed, Reason
from appliance.facts import Disk, Facts, Pool
from appliance.layout.geometry import LEAST_DISKS, parity_of, usable_bytes
from appliance.operation import Loss, Operation, Plan, Step, Work, command_step
from appliance.words import disk_label, size_text
from appliance.zfs import status

Layout = Literal["stripe", "mirror", "raidz1", "raidz2", "raidz3"]
MOST_DISKS = 64
# libzfs and the kernel call sizes equal within this (ZPOOL_FUZZ, zpool_vdev.c); beyond it zpool create wants -f.
FUZZ = 16 * 2**20
NOTABLY_UNEQUAL = 0.05
ROOT_FOLDERS = {"bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "lost+found", "media", "mnt", "opt", "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"}  # fmt: skip


class CreatePool(Operation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make a pool of whole disks. ``groups`` are vdevs of by-id paths, all of one layout and one number of disks."""

    name: str
    layout: Layout
    groups: tuple[tuple[str, ...], ...]
    ashift: Literal[9, 12, 13] = 12
    compression: Literal["lz4", "zstd", "off"] = "lz4"
    atime: bool = False
    autotrim: bool = False
    encrypted: bool = False

    def __post_init__(self) -> None:
        names.pool(self.name)
        for path in self.disks:
            names.by_id(path)

    @property
    def disks(self) -> list[str]:
        return [path for group in self.groups for path in group]

    @property
    def title(self) -> str:
        return f"Create the pool {self.name}"

    @property
    def subject(self) -> str:
        return self.name

    def wants_secret(self) -> bool:
        return self.encrypted

    def locks(self) -> tuple[str, ...]:
        return (self.name, *self.disks)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.zfs == "missing":
            yield Reason("The ZFS module is not loaded on this system, so no pool can be made.")
            return
        yield from self.check_name(facts)
        if not self.groups or not self.disks:
            yield Reason("Choose at least one disk.", "disks")
            return
        if len(self.disks) > MOST_DISKS:
            yield Reason(f"A pool made here has at most {MOST_DISKS} disks.", "disks")
        if len(set(self.disks)) < len(self.disks):
            yield Reason("A disk was chosen twice.", "disks")
        least = LEAST_DISKS[self.layout]
        if min(len(group) for group in self.groups) < least:
            yield Reason(f"{LAYOUT_NAMES[self.layout]} needs at least {least} disks in each group.", "layout")
        if len({len(group) for group in self.groups}) > 1:
            yield Reason(
                "Every group of a pool should have the same number of disks. Choose a number that divides evenly.",
                "layout",
            )
        for path in self.disks:
            yield from self.check_disk(path, facts)

    def check_name(self, facts: Facts) -> Iterator[Reason]:
        if facts.pool(self.name):
            yield Reason(f"The name {self.name} is taken by a pool of this box. Choose another.", "name")
        elif self.name in ROOT_FOLDERS:
            yield Reason(f"The system has a folder /{self.name} of its own. Choose another name.", "name")
        for disk in facts.disks:
            for use in disk.uses:
                if use.kind == "exported" and use.pool == self.name and disk.path not in self.disks:
                    yield Reason(
                        f"The name {self.name} belongs to a pool on {disk_label(disk)} that is not in use at the moment. Choose another, so that both can be used.",
                        "name",
                    )
                    return

    def check_disk(self, path: str, facts: Facts) -> Iterator[Reason]:
        disk = facts.disk(path)
        if disk is None:
            yield Reason(f"The disk {path.rsplit('/', 1)[-1]} is no longer there.", "disks")
        elif disk.logical_sector > 1 << self.ashift:
            yield Reason(
                f"{disk_label(disk)} has sectors of {disk.logical_sector} bytes; choose a larger sector size.", "ashift"
            )
        elif disk.blocked:
            yield Reason(f"{disk_label(disk)} {disk.blocked.text}, so it cannot be used.", "disks")

    def plan(self, facts: Facts) -> Plan:
        disks = [disk for path in self.disks if (disk := facts.disk(path))]
        sizes = {disk.path: disk.size for disk in disks}
        groups = [[sizes[path] for path in group] for group in self.groups]
        full = [disk for disk in disks if disk.uses]
        survives = parity_of(self.layout, len(self.groups[0]))
        steps: list[Step] = []
        if full:
            steps.append(erase_step(full))
        steps.append(self.create_step(groups))
        steps.append(
            Step(
                "verify",
                f"Read {self.name} back and see that every disk is in it",
                f"zpool status -j --json-int -- {self.name}",
                self.verify,
            )
        )
        return Plan(
            summary=f"The pool {self.name}: {LAYOUT_NAMES[self.layout].lower()} of {len(disks)} disks, about {size_text(usable_bytes(self.layout, groups, self.ashift))} for files.",
            steps=tuple(steps),
            identity={"operation": msgspec.to_builtins(self), "disks": [disk.identity for disk in disks]},
            losses=tuple(Loss(f"{disk_label(disk)} {use.text}", disk.size) for disk in full for use in disk.uses),
            warnings=tuple(self.warnings(groups)),
            undo="Nothing can bring back what the disks held before."
            if full
            else "The pool can be destroyed again; the disks are empty now.",
            type_to_confirm=self.name if full else "",
            facts={"Survives": survival(survives)},
        )

    def warnings(self, groups: list[list[int]]) -> Iterator[str]:
        every = [size for group in groups for size in group]
        if self.layout != "stripe" and max(every) - min(every) > NOTABLY_UNEQUAL * max(every):
            lost = sum(size - min(group) for group in groups for size in group)
            yield f"The disks differ in size. Each counts only as much as the smallest of its group, so {size_text(lost)} would lie unused."
        if self.layout == "stripe":
            yield "One failed disk loses everything in this pool. Keep a copy elsewhere."
        if self.layout == "raidz1" and max(every) >= 4 * 10**12:
            yield "After one failure, rebuilding such large disks takes a day or more, and a second failure in that time loses everything. raidz2 survives it."
        if self.ashift == 9:
            yield "Sectors of 512 bytes (ashift 9) are slow on nearly every disk sold since 2011 and cannot be changed later."

    def create_step(self, groups: list[list[int]]) -> Step:
        argv = ["zpool", "create"]
        if self.layout != "stripe" and any(max(group) - min(group) > FUZZ for group in groups):
            argv.append("-f")
        argv += ["-o", f"ashift={self.ashift}", "-o", f"autotrim={on_off(self.autotrim)}"]
        settings = {
            "compression": self.compression,
            "atime": on_off(self.atime),
            "xattr": "sa",
            "acltype": "posix",
            "dnodesize": "auto",
        }
        if self.encrypted:
            settings |= {"encryption": "aes-256-gcm", "keyformat": "passphrase", "keylocation": "prompt"}
        for key, value in settings.items():
            argv += ["-O", f"{key}={value}"]
        argv += ["-m", str(places.POOLS / self.name), "--", self.name]
        for group in self.groups:
            argv += [*([] if self.layout == "stripe" else [self.layout]), *group]
        return command_step(
            "create",
            f"Create {self.name}",
            argv,
            touches=self.disks,
            undo=f"Destroy {self.name}",
            secret_on_stdin="{}\n" if self.encrypted else "",
            timeout=600,
        )

    def verify(self, work: Work) -> None:
        pool = next((pool for pool in status.read_pools() if pool.name == self.name), None)
        if pool is None or not self.made_of_our_disks(pool):
            raise Failed(f"{self.name} does not consist of the disks that were chosen")
        if pool.state != "ONLINE":
            raise Failed(f"{self.name} was made but is {pool.state}", pool.status)
        work.note(f"{self.name} is online with {len(list(pool.devices()))} disks")

    def made_of_our_disks(self, pool: Pool) -> bool:
        found = {device.path.removesuffix("-part1") for device in pool.devices()}
        return found == set(self.disks)

    def happened(self, step: str, facts: Facts) -> bool:
        pool = facts.pool(self.name)
        there = pool is not None and self.made_of_our_disks(pool)
        if step == "erase":
            return there or all(disk is not None and disk.free for disk in map(facts.disk, self.disks))
        return there and (step == "create" or (pool is not None and pool.state == "ONLINE"))

    def way_on(self, step: str, facts: Facts) -> str:
        pool = facts.pool(self.name)
        if pool is not None and self.made_of_our_disks(pool):
            return f"{self.name} is there and its state is {pool.state.lower()}. Look at its page."
        gone = [path.rsplit("/", 1)[-1] for path in self.disks if facts.disk(path) is None]
        if gone:
            return f"{self.name} is not there, and {', '.join(gone)} does not answer. Put the disk back or choose others, then create the pool again."
        if any(use.pool == self.name for disk in facts.disks if disk.path in self.disks for use in disk.uses):
            return f"{self.name} is not in use; its disks carry traces of it that hold nothing of yours. Create it again on the same disks: Larder will show the traces and erase them."
        return f"{self.name} is not there, and nothing of it is left on the disks. Create it again when you like."


LAYOUT_NAMES = {
    "stripe": "Stripe",
    "mirror": "Mirror",
    "raidz1": "raidz1",
    "raidz2": "raidz2",
    "raidz3": "raidz3",
}


def on_off(value: bool) -> str:  # a property's value, not a switch of behaviour
    return "on" if value else "off"


def survival(disks: int) -> str:
    """How many failures are survived, as a phrase."""
    if disks == 0:
        return "no failed disk"
    return "one failed disk" if disks == 1 else f"{disks} failed disks"


def partition_path(disk: Disk, kernel_name: str) -> str:
    """The by-id path of a disk's partition from its kernel name (``sda1``, ``nvme0n1p1``)."""
    part = kernel_name.removeprefix(disk.name).lstrip("p")
    return f"{disk.path}-part{part}" if part else disk.path


def erase_step(disks: Iterable[Disk]) -> Step:
    """Remove what tells the system that these disks hold something; their other bytes stay until overwritten."""
    targets = [(disk, partition_path(disk, name)) for disk in disks for name in (disk.content or (disk.name,))]
    commands = [["wipefs", "--all", "--force", "--", path] for _disk, path in targets]

    def act(work: Work) -> None:
        for (disk, path), argv in zip(targets, commands, strict=True):
            if not Path(path).exists():
                raise Failed(f"{disk_label(disk)} vanished before it could be erased")
            # Where there is no ZFS label this fails, which is no failure here; one that stays makes the next step refuse.
            command.run(["zpool", "labelclear", "-f", path], timeout=60, accept=range(256))
            command.run(argv, timeout=60)
            work.note(f"Erased the signatures on {path}")
        command.run(["udevadm", "settle", "--timeout=20"], timeout=30, accept=(0, 1))

    shown = "\n".join(" ".join(argv) for argv in commands)
    return Step("erase", "Erase what the chosen disks hold", shown, act, tuple(path for _disk, path in targets))
