"""Killed or cut off at any recorded step of making a pool, Larder tells the truth and leaves a way on."""

from __future__ import annotations

import re

import pytest

from tests.system.crash import no_lock_left, struck, watching
from tests.visitor import Visitor, blank, disk_paths

STEPS = ("erase", "create", "verify")
POINTS = [
    (entry, step, victim) for step in STEPS for entry in ("step begun", "step done") for victim in ("agent", "worker")
]
# In every run of the tests; the others in the soak.
SAMPLE = {("step begun", "create", "agent"), ("step done", "erase", "agent"), ("step begun", "create", "worker")}


@pytest.fixture
def old_data(appliance, visitor) -> list[str]:
    """Three disks, the first of which holds something; no pool."""
    appliance.run("zpool", "destroy", "-f", "tank", check=False)
    disks = disk_paths(appliance, 1, 2, 3)
    blank(appliance, *disks)
    visitor.wait_until("/disks/", "WD-WCAZA0000001", without=("old-photos", "tank"))
    appliance.run("mkswap", "-q", "-L", "old-photos", disks[0])
    appliance.run("udevadm", "settle")
    visitor.wait_until("/disks/", "old-photos", without=("tank",))
    return disks


def create(visitor: Visitor, disks: list[str]) -> str:
    review = visitor.review_pool("tank", disks, "raidz1-1")
    assert "old-photos" in review.words
    return visitor.confirm(review, typed="tank")


def check_the_truth(visitor: Visitor, appliance, job: str) -> None:
    """The job's end agrees with the system; where the pool is not there, planning again makes it."""
    said = visitor.ended(job)
    pools = appliance.run("zpool", "list", "-H", "-o", "name,health").split()
    if said.startswith("Done."):
        assert pools == ["tank", "ONLINE"], said
    else:
        assert said.startswith(("Interrupted.", "Failed.")), said
        assert re.search(r"after \d of 3 steps|before its first step", said), said
        assert "tank" in said, said
        if not pools:
            visitor.wait_until("/disks/", "tank" if "traces" in said else "Disks", without=("part of the pool",))
            review = visitor.get(f"/jobs/{job}/again/")
            again = visitor.confirm(review, typed="tank")
            assert visitor.ended(again).startswith("Done."), visitor.ended(again)
    assert appliance.run("zpool", "list", "-H", "-o", "name,health").split() == ["tank", "ONLINE"]
    no_lock_left(appliance)
    visitor.wait_until("/pools/", "tank")


@pytest.mark.parametrize(
    ("entry", "step", "victim"),
    [
        pytest.param(*point, marks=[] if point in SAMPLE else [pytest.mark.soak], id="-".join(point).replace(" ", "-"))
        for point in POINTS
    ],
)
def test_kill_9_at_a_recorded_step_leaves_the_truth_and_a_way_on(visitor, appliance, old_data, entry, step, victim):
    with watching(appliance, entry=entry, step=step, victim=victim) as watcher:
        job = create(visitor, old_data)
        struck(watcher)
    check_the_truth(visitor, appliance, job)


# Two boots under emulation take more than two minutes.
@pytest.mark.parametrize(("entry", "step"), [("step begun", "create"), ("step done", "create"), ("step done", "erase")])
def test_a_power_cut_leaves_the_truth_and_a_way_on(visitor, appliance, old_data, entry, step):
    with watching(appliance, entry=entry, step=step, victim="nobody") as watcher:
        job = create(visitor, old_data)
        struck(watcher)
        appliance.cut_power()
    appliance.power_on()
    visitor.sign_in()
    check_the_truth(visitor, appliance, job)


def test_a_job_runs_once_however_often_it_is_asked_for(visitor, appliance, old_data):
    job = create(visitor, old_data)
    for _ in range(3):
        appliance.run(
            "/opt/larder/venv/bin/python",
            "-I",
            "-c",
            f"from appliance import agent_client as client; print(list(client.stream_replies({{'verb': "
            f"'follow', 'job': '{job}'}})))",
        )
    assert visitor.ended(job).startswith("Done.")
    journal = appliance.run("cat", f"/var/lib/larder-agent/journal/{job}.jsonl")
    assert journal.count('"entry": "step begun", "step": "create"') == 1
