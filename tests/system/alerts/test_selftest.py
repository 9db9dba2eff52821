"""A self-test that a person starts: the disk does it, and its page shows how it ended.

A virtual disk has done it at once, and notes made-up hours of use for it; how far a running one is comes from
recordings (tests/unit/disks/test_smart.py).
"""

from __future__ import annotations

import json

from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.visitor import disk_paths


def in_log(appliance: Machine, disk: str) -> int:
    """How many tests stand in the disk's own log."""
    said = json.loads(appliance.run("smartctl", "--json", "-l", "selftest", disk, check=False))
    return int(said["ata_smart_self_test_log"]["standard"]["count"])


def test_the_disk_does_it_and_its_page_tells_how_it_ended(appliance, visitor):
    (disk,) = disk_paths(appliance, 2)
    page = f"/disks/{disk.rsplit('/', 1)[-1]}/health/"
    visitor.wait_until(page, "No tests in the disk’s log.", "Start a short test", timeout=300)
    before = in_log(appliance, disk)
    answer = visitor.send(f"{page}test/", {**visitor.get(page).hidden(), "test": "short"})
    assert answer.status == 200, answer.words
    wait_for("a test in the disk's log", lambda: in_log(appliance, disk) == before + 1, timeout=180, every=2)

    def is_shown() -> bool:
        alerting.ask_disks(appliance)
        words = visitor.get(page).words
        return "hours of use, short" in words and "Completed without error" in words

    wait_for("how it ended", is_shown, timeout=300, every=5)
