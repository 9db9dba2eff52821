"""Clear signatures and labels from disks: the first step of every operation that takes disks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from appliance import command
from appliance.disks import udev
from appliance.disks.exclusive_disk import ExclusiveDisk
from appliance.errors import Failed
from appliance.facts.box import Disk, Use
from appliance.formatting import disk_label
from appliance.layout.geometry import LABEL, MIB
from appliance.message import Message, join_messages
from appliance.operation import Loss, Step, Work


def partition_path(disk: Disk, kernel_name: str) -> str:
    """The by-id path of a disk's partition from its kernel name (``sda1``, ``nvme0n1p1``)."""
    part = kernel_name.removeprefix(disk.name).lstrip("p")
    return f"{disk.path}-part{part}" if part else disk.path


def erase_step(disks: Iterable[Disk]) -> Step:
    """The step that removes signatures, labels and partition tables; other bytes stay until overwritten.

    Both open the device exclusively (O_EXCL), so the kernel refuses a disk that a pool, a mount or a RAID set has begun
    to use. Zeros at both ends also clear ZFS labels and the tables, so the disk counts as empty afterwards.
    """
    disks = list(disks)
    targets = [
        (disk, partition_path(disk, name))
        for disk in disks
        for name in (*(name for name in disk.content if name != disk.name), disk.name)
    ]
    commands = [["wipefs", "--all", "--", path] for _disk, path in targets]

    def act(work: Work) -> None:
        udev.settle_udev()
        for (disk, path), argv in zip(targets, commands, strict=True):
            if not Path(path).exists():
                raise Failed(Message("{disk} vanished before it could be erased", disk=disk_label(disk)))
            command.run(argv, timeout=60)
            zero_ends(path)
            work.note(Message("Erased the signatures on {path}", path=path))
        udev.reread_disks(sorted({disk.path for disk, _path in targets}))

    shown = join_messages(
        [
            Message("{command}\nzeros over the first and last MiB of {disk}", command=shlex.join(argv), disk=argv[-1])
            for argv in commands
        ],
        "\n",
    )
    return Step(
        "erase", Message("Erase what the chosen disks hold"), shown, act, tuple(path for _disk, path in targets)
    )


def zero_ends(path: str) -> None:
    """Write zeros over the first and last MiB of an unused device; all four ZFS labels lie within. Raises Failed."""
    with ExclusiveDisk(path) as target:
        for start, end in ((0, min(MIB, target.size)), (max(target.size // LABEL * LABEL - MIB, 0), target.size)):
            for _done in target.write_zeros(start, end):
                pass
        target.require_written()


def lost_use(disk: Disk, use: Use) -> Loss:
    """What a disk holds, as something that will be gone."""
    return Loss(Message("{disk} {use}", disk=disk_label(disk), use=use.text), disk.size)
