"""Locate a disk: by the light of its bay where the hardware has one, else by reading from the disk in a rhythm.

A second of reading and a second of rest make the disk's activity light blink as no other does. It only reads, at random
places, and stops after half a minute.
"""

from __future__ import annotations

import mmap
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance import names
from appliance.disks import query
from appliance.disks.inventory import missing_disk
from appliance.errors import Failed, Refused
from appliance.message import Message
from appliance.request import Exchange, Request, Send

SECONDS = 30
SECONDS_TO_SWITCH = 10
LAMP = ".lamp"
BLOCK = 64 * 2**10
SYS_BLOCK = Path("/sys/block")


def kernel_name(path: str) -> str:
    """The kernel name of the disk at a by-id path. Raises Refused where it is missing."""
    name = Path(path).resolve().name
    if not (SYS_BLOCK / name / "device").exists():
        raise Refused(missing_disk(path, ""))
    return name


def find_light(name: str) -> Path | None:
    """The sysfs switch of the bay's locate light, if the enclosure has one (Linux, drivers/misc/enclosure.c)."""
    return next(iter(sorted((SYS_BLOCK / name / "device").glob("enclosure_device*/locate"))), None)


@contextmanager
def switch_light(path: str) -> Iterator[str]:
    """Keep a light on during the body; yields the method.

    ``light``: the enclosure's switch. ``perhaps``: ledctl reported no error, which it also does for an AHCI port
    without a light, so the disk must blink as well. ``blink``: there is only the disk's own light.
    """
    name = kernel_name(path)
    if switch := find_light(name):
        write_switch(path, switch, "1")
        try:
            yield "light"
        finally:
            write_switch(path, switch, "0")
        return
    try:
        if query.query_disk(path, ["ledctl", f"locate=/dev/{name}"], timeout=SECONDS_TO_SWITCH, part=LAMP).status:
            raise Failed(Message("ledctl cannot switch that lamp"))
    except Failed:
        # ledctl is missing or failed: only the disk's own light is left.
        yield "blink"
        return
    try:
        yield "perhaps"
    finally:
        query.query_disk(path, ["ledctl", f"locate_off=/dev/{name}"], timeout=SECONDS_TO_SWITCH, part=LAMP)


def show_disk(path: str, send: Send) -> None:
    """Make a disk show where it is for ``SECONDS``, having sent by which way. Raises Failed, Refused."""
    with switch_light(path) as way:
        send({"facts": {"way": way, "seconds": SECONDS}})
        if way == "light":
            time.sleep(SECONDS)
        else:
            blink_by_command(path)


def write_switch(path: str, switch: Path, to: str) -> None:
    """Write to a lamp's switch, by a command: an enclosure that does not answer blocks the writer in the kernel."""
    if query.query_disk(path, ["tee", str(switch)], timeout=SECONDS_TO_SWITCH, given=to, part=LAMP).status:
        raise Failed(Message("The lamp of the bay cannot be switched"))


def blink_by_command(path: str) -> None:
    """Blink with the disk in a separate process, so that a hang blocks nobody. Raises Failed."""
    argv = [sys.executable, "-I", "-m", "appliance.disks.locate", path]
    if query.query_disk(path, argv, timeout=SECONDS + SECONDS_TO_SWITCH).status:
        raise Failed(Message("The disk cannot be read, so its light shows nothing"))


def blink_disk(path: str, *, seconds: float = SECONDS) -> int:
    """Read from the disk in a rhythm for ``seconds``; returns the blocks read.
    Raises Failed where it cannot be opened."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        raise Failed(Message("The disk cannot be opened"), str(error)) from error
    read = 0
    begun = time.monotonic()
    try:
        with mmap.mmap(-1, BLOCK) as buffer:
            blocks = max(os.lseek(handle, 0, os.SEEK_END) // BLOCK, 1)
            while (passed := time.monotonic() - begun) < seconds:
                if int(passed) % 2:
                    time.sleep(min(1 - passed % 1, max(seconds - passed, 0)))
                    continue
                try:
                    # a place to read
                    read += os.preadv(handle, [buffer], random.randrange(blocks) * BLOCK) > 0  # noqa: S311
                except OSError:
                    # A failing disk blinks too: its light is on while it retries.
                    time.sleep(0.05)
    finally:
        os.close(handle)
    return read


class Locate(Request, tag="locate"):
    """Make the light of a disk's bay, or the disk's own, show where it is, for half a minute. Nothing is changed."""

    disk: str

    def __post_init__(self) -> None:
        names.by_id(self.disk)

    def answer(self, exchange: Exchange) -> None:
        show_disk(self.disk, exchange.send)


if __name__ == "__main__":
    blink_disk(sys.argv[1])
