"""When disks sleep: a real disk takes its time, and is told again after it was pulled and after a start.

No disk of a virtual machine ever falls asleep, so that part is tested with what smartctl says of one
(tests/unit/disks/test_standby.py).
"""

from __future__ import annotations

import json

from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.visitor import disk_paths


def kept(appliance: Machine, key: str) -> list[object]:
    """What is wanted of a disk, what it was told last, and what came of it."""
    query = f"select sleep, told, answer from larder_alerts_diskcare where disk = '{key}'"
    found = json.loads(appliance.run("python3", "-c", alerting.ASK, alerting.SETTINGS, query))
    return list(found[0]) if found else [None, "", ""]


def told(appliance: Machine, key: str, before: object = "", *, timeout: float = 180) -> object:
    """Wait until the disk was told anew and took it; what marks that telling."""

    def look() -> object:
        alerting.ask_disks(appliance)
        _wanted, mark, answer = kept(appliance, key)
        return mark if mark and mark != before and answer == "told" else None

    return wait_for("a disk that was told when to sleep", look, timeout=timeout, every=5)


def test_a_disk_takes_its_time_and_is_told_again_when_it_may_have_forgotten(appliance, visitor):
    path = disk_paths(appliance, 2)[0]
    key = path.rsplit("/", 1)[-1]
    visitor.wait_until(f"/disks/{key}/health/", "Go to sleep", timeout=300)
    fields = {**visitor.get(f"/disks/{key}/health/").hidden(), "sleep": "20"}
    answer = visitor.send(f"/disks/{key}/health/sleep/", fields)
    assert answer.status == 200, answer.words
    first = told(appliance, key)
    assert kept(appliance, key)[0] == 20
    appliance.pull(2)
    serial = appliance.disks[1].serial
    visitor.wait_until("/disks/", without=(serial,), timeout=120)
    appliance.put_back(2)
    second = told(appliance, key, before=first)
    appliance.reboot()
    told(appliance, key, before=second, timeout=400)  # after a start the first readings take their time
