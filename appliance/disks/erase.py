"""Taking from disks what tells the system that they hold something: the step that every change begins with that takes disks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from appliance import command
from appliance.disks import udev
from appliance.errors import Failed
from appliance.facts import Disk
from appliance.operation import Step, Work
from appliance.words import disk_label


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
        udev.look_anew(sorted({disk.path for disk, _path in targets}))

    shown = "\n".join(" ".join(argv) for argv in commands)
    return Step("erase", "Erase what the chosen disks hold", shown, act, tuple(path for _disk, path in targets))
