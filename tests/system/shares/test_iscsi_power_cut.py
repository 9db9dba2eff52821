"""The power goes while another computer writes to a volume's disk: what it had flushed is there afterwards."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from deploy.image.machine import wait_for
from tests.system import initiators, sharing
from tests.system.iscsi_disk import Disk, DiskError, opened
from tests.visitor import Visitor

STATE = "pool"
BLOCKS, WRITES_A_FLUSH, BLOCK = 1024, 8, 4096
FLUSHES_SEEN = 25  # before the cut


@pytest.fixture(scope="module")
def visitor(appliance):
    sharing.make_pool(appliance, "tank")
    return Visitor.of_new(appliance)


@dataclass
class Writer(threading.Thread):
    """Writes blocks in turn, each with the number of its write, and flushes after every few, until the disk is gone.

    ``promised``: the last number of each block that a flush has made lasting.
    """

    disk: Disk
    promised: dict[int, int] = field(default_factory=dict)
    flushes: int = 0
    ended: str = ""

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def __hash__(self) -> int:  # threads are kept in sets
        return id(self)

    def run(self) -> None:
        number, pending = 0, {}
        try:
            while True:
                for _ in range(WRITES_A_FLUSH):
                    number += 1
                    # A prime stride: blocks that follow each other in time do not on the disk.
                    at = number * 389 % BLOCKS
                    self.disk.write(at, content(number))
                    pending[at] = number
                self.disk.flush()
                self.promised |= pending
                pending.clear()
                self.flushes += 1
        except DiskError as error:
            self.ended = str(error)


def content(number: int) -> bytes:
    """A block that says throughout which write it was, so that half of one is seen."""
    return number.to_bytes(8, "big") * (BLOCK // 8)


def broken_promises(disk: Disk, promised: dict[int, int]) -> dict[int, int]:
    """The blocks that hold an older write than was promised, or parts of two, and the promised number."""
    found = {}
    for at, number in promised.items():
        data = disk.read(at)
        held = int.from_bytes(data[:8], "big")
        if held < number or data != content(held):
            found[at] = number
    return found


def test_what_was_flushed_outlives_a_power_cut_in_the_middle_of_writing(visitor, appliance):
    """A second volume, on which ZFS is told to ignore flushes, shows that this test would see what is lost."""
    keys = {
        "kept": initiators.make_volume(visitor, appliance, "tank/kept"),
        "careless": initiators.make_volume(visitor, appliance, "tank/careless", "64M", "-o", "sync=disabled"),
    }
    for name, key in keys.items():
        assert initiators.share(visitor, key, name=name).startswith("Done.")
    with opened(appliance, "kept", size=BLOCK) as kept, opened(appliance, "careless", size=BLOCK) as careless:
        writers = {"kept": Writer(kept), "careless": Writer(careless)}
        for writer in writers.values():
            writer.start()
        wait_for(
            "both to have flushed",
            lambda: all(writer.flushes >= FLUSHES_SEEN or writer.ended for writer in writers.values()),
            timeout=300,
        )
        appliance.cut_power()
        for writer in writers.values():
            writer.join(300)
            assert writer.ended, "it was still writing when the power went"
            assert writer.flushes >= FLUSHES_SEEN, writer.ended
    appliance.power_on()
    wait_for("both to be served again", lambda: initiators.listed(appliance) >= set(keys), timeout=180)
    with opened(appliance, "kept", size=BLOCK) as disk:
        assert broken_promises(disk, writers["kept"].promised) == {}
    with opened(appliance, "careless", size=BLOCK) as disk:
        assert broken_promises(disk, writers["careless"].promised), "nothing was lost, so this shows nothing"
    assert "errors: No known data errors" in appliance.run("zpool", "status", "tank")
