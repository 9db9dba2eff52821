"""Partition disks of unequal size: the first partition is equal on all, the second takes the rest."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from appliance import command
from appliance.disks import udev
from appliance.disks.udev import LOOKS, SECONDS_BETWEEN_LOOKS
from appliance.errors import Failed
from appliance.facts.box import Disk
from appliance.formatting import disk_label
from appliance.layout.choices import rest_mirrors
from appliance.layout.geometry import MIB
from appliance.message import Message
from appliance.operation import Step, Work

BLOCK = Path("/sys/class/block")
SECTOR = 512  # sysfs counts in these, whatever the disk's own sectors are
ZFS_TYPE = "BF01"  # sgdisk(8): Solaris /usr and Mac ZFS, the type that zpool itself gives


class Cut(msgspec.Struct, frozen=True):
    """One disk and the sizes of its partitions, in bytes; ``rest`` is 0 where it has no second one."""

    disk: Disk
    first: int
    rest: int = 0

    @property
    def paths(self) -> list[str]:
        return [f"{self.disk.path}-part{number}" for number in (1, 2)[: 2 if self.rest else 1]]

    @property
    def sizes(self) -> list[int]:
        return [size for size in (self.first, self.rest) if size]


def commands_for(cut: Cut, labels: Sequence[str]) -> list[list[str]]:
    """The commands that write a new table and its partitions, aligned by sgdisk; sizes are whole MiB."""
    argv = ["sgdisk", "--clear"]
    for number, (size, label) in enumerate(zip(cut.sizes, labels, strict=False), 1):
        argv += [
            f"--new={number}:0:+{size // MIB}M",
            f"--typecode={number}:{ZFS_TYPE}",
            f"--change-name={number}:{label}",
        ]
    return [["sgdisk", "--zap-all", "--", cut.disk.path], [*argv, "--", cut.disk.path]]


def mirrors_of(cuts: Sequence[Cut]) -> list[list[Cut]]:
    """The second partitions as mirrors; empty where fewer than two disks have one."""
    return [[cuts[at] for at in group] for group in rest_mirrors([cut.rest for cut in cuts])]


def is_uneven(mirrors: Sequence[Sequence[Cut]], fuzz: int) -> bool:
    """Whether zpool needs -f: the mirrors have different sizes or widths."""
    sizes = [[cut.rest for cut in group] for group in mirrors]
    return len({len(group) for group in sizes}) > 1 or any(max(group) - min(group) > fuzz for group in sizes)


def partition_step(cuts: Sequence[Cut], labels: Sequence[str]) -> Step:
    """The step that partitions every disk; ``labels`` are the names of the first and second partitions."""
    commands = [(cut, commands_for(cut, labels)) for cut in cuts]

    def act(work: Work) -> None:
        for cut, argvs in commands:
            if not Path(cut.disk.path).exists():
                raise Failed(Message("{disk} vanished before it could be partitioned", disk=disk_label(cut.disk)))
            zap, make = argvs
            command.run(zap, timeout=60, accept=range(256))  # it fails on a damaged table but still clears it
            command.run(make, timeout=60)
            work.note(Message("Partitioned {disk_path}", disk_path=cut.disk.path))
        for cut in cuts:
            wait_for(cut)

    return Step(
        "partition",
        Message("Partition the disks into equal parts"),
        "\n".join(shlex.join(argv) for _cut, argvs in commands for argv in argvs),
        act,
        tuple(cut.disk.path for cut in cuts),
    )


def wait_for(cut: Cut) -> None:
    """Wait until udev has the partitions under their names in two checks in a row. Raises Failed.

    When sgdisk closes the disk, udev rereads its table and may drop the partitions for a moment.
    """
    seen = 0
    for _ in range(LOOKS):
        udev.settle_udev()
        seen = seen + 1 if has_partitions(cut) else 0
        if seen == 2:
            return
        time.sleep(SECONDS_BETWEEN_LOOKS)
    raise Failed(Message("The partitions of {disk} did not appear", disk=disk_label(cut.disk)))


def has_partitions(cut: Cut) -> bool:
    """Whether the disk has these partitions, of these sizes, under their stable names."""
    return all(size_of(path) == size for path, size in zip(cut.paths, cut.sizes, strict=True))


def size_of(path: str) -> int:
    """Bytes of a block device by its stable path; 0 where there is none."""
    try:
        return int((BLOCK / Path(path).resolve(strict=True).name / "size").read_text()) * SECTOR
    except (OSError, ValueError):
        return 0
