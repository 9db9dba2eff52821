"""Wait for udev, which makes the stable names of disks and partitions, have the kernel reread a
disk, or keep udev from it."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from appliance import command
from appliance.errors import Failed

LOOKS, SECONDS_BETWEEN_LOOKS = 20, 0.5
RULES = Path("/run/udev/rules.d")  # udev(7): rules until the next boot
BLOCK = Path("/sys/class/block")
PREFIX = "61-larder-unwatched-"  # after 60-block.rules, which watches every disk


def settle_udev() -> None:
    """Wait until udev has handled its queue, 20 seconds at most. Raises Failed where it does not answer."""
    command.run(["udevadm", "settle", "--timeout=20"], timeout=30, accept=(0, 1))


def reread_disks(disks: Sequence[str]) -> None:
    """Have the kernel and udev drop partitions and signatures that are no longer on these disks, given by by-id paths.

    A process that has an old partition open, most often udev itself, keeps the kernel from
    dropping it, so this retries.
    """
    waiting = list(disks)
    for _ in range(LOOKS):
        settle_udev()
        waiting = [
            disk
            for disk in waiting
            if command.run(["blockdev", "--rereadpt", disk], timeout=60, accept=range(256)).status
        ]
        if not waiting:
            break
        time.sleep(SECONDS_BETWEEN_LOOKS)
    for disk in disks:
        command.run(["udevadm", "trigger", "--action=change", disk], timeout=30, accept=range(256))
    settle_udev()


@contextlib.contextmanager
def unwatched(disks: Sequence[str]) -> Iterator[None]:
    """Keep udev from rereading the partition tables of these disks, given by their paths, until the block ends.

    udev watches each disk, and when its last writer closes it, it takes all its partitions away and makes them anew
    (60-block.rules, ``OPTIONS+="watch"``). Who has just partitioned the disk then does not find what he made. A rule of
    the boot turns that off for these disks alone; their events are handled as before.

    Without a udev (in a container), or for paths that are no disks of this box, it does nothing. What is left behind by
    a process that was killed ends with the next boot, or with the next call: see ``forget_unwatched``.
    """
    names = sorted({Path(disk).resolve().name for disk in disks})
    names = [name for name in names if (BLOCK / name).exists()]
    if not names or not RULES.parent.is_dir():
        yield
        return
    forget_unwatched()
    rule = RULES / f"{PREFIX}{os.getpid()}-{uuid.uuid4().hex}.rules"
    try:
        RULES.mkdir(exist_ok=True)
        # KERNELS: a device or one that it is part of, so the partitions are meant, too.
        rule.write_text(
            "".join(f'ACTION!="remove", SUBSYSTEM=="block", KERNELS=="{name}", OPTIONS:="nowatch"\n' for name in names)
        )
        apply_rules(names)
        yield
    finally:
        rule.unlink(missing_ok=True)
        # They are watched again from their next event on, which also tells udev what is on them now.
        apply_rules(names)


def forget_unwatched() -> None:
    """Remove the rules of processes that are gone."""
    for rule in RULES.glob(f"{PREFIX}*.rules"):
        process = rule.name.removeprefix(PREFIX).split("-")[0]
        if not Path("/proc", process).exists():
            rule.unlink(missing_ok=True)


def apply_rules(names: Iterable[str]) -> None:
    """Have udev read its rules again and go through the events of these disks and their partitions.
    Never raises: the work between has its own errors, and a disk that is gone has no events."""
    disks = [BLOCK / name for name in names]
    paths = [str(path) for disk in disks for path in (disk, *(part.parent for part in disk.glob("*/partition")))]
    for argv in (
        ["udevadm", "control", "--reload"],
        ["udevadm", "trigger", "--action=change", "--settle", *paths],
    ):
        with contextlib.suppress(Failed):
            command.run(argv, timeout=60, accept=range(256))
