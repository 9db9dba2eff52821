"""Crashes during a case: nothing is left, other pools are untouched, and the sweep continues or says why not."""

from __future__ import annotations

import pytest

from deploy.image.machine import wait_for
from tests.system import sharing
from tests.system.crash import no_lock_left, struck, watching
from tests.system.measuring import begin, ended, everything_told, nothing_left, review
from tests.visitor import blank, create_pool, disk_paths


def long_one(visitor, disks, **changes):
    """A sweep with one case that lasts long enough to be interrupted."""
    made = {"layouts": ["mirror"], "workloads": ["sync-write"], "seconds": 15, "repeats": 2}
    return review(visitor, "ashift", disks, **{**made, **changes})


@pytest.mark.parametrize("step", ["create", "run-1"])
@pytest.mark.parametrize("victim", ["agent", "worker"])
def test_killed_case_is_cleaned_up_and_the_sweep_continues(visitor, appliance, victim, step):
    disks = disk_paths(appliance, 1, 2)
    with watching(appliance, entry="step begun", step=step, victim=victim) as watcher:
        path = begin(visitor, long_one(visitor, disks))
        struck(watcher)
    said = ended(visitor, path)
    assert ">done<" in said.text, said.words
    assert "does not count" not in said.words
    no_lock_left(appliance)
    nothing_left(appliance, *disks)


def test_stopped_sweep_cleans_up_and_paused_sweep_resumes(visitor, appliance):
    disks = disk_paths(appliance, 1, 2)
    path = begin(visitor, long_one(visitor, disks, seconds=300))
    visitor.wait_until(path, "Run 1 of 2", timeout=180)
    visitor.send(f"{path}act/cancel/", {**visitor.get(path).hidden()})
    assert ">stopped<" in ended(visitor, path).text
    nothing_left(appliance, *disks)


@pytest.mark.parametrize(("act", "measured"), [("pause", 1), ("pause-now", 0)])
def test_sweep_pauses_after_the_case_or_now_and_resumes(visitor, appliance, act, measured):
    disks = disk_paths(appliance, 1, 2)
    path = begin(visitor, long_one(visitor, disks, ashifts=[9, 12], seconds=20, repeats=1))
    # Before the first case has started there is nothing to pause.
    visitor.wait_until(path, "Run 1 of 1", timeout=180)
    visitor.send(f"{path}act/{act}/", {**visitor.get(path).hidden()})
    said = ended(visitor, path, timeout=300)
    assert ">paused<" in said.text, everything_told(visitor, path)
    assert f"{measured} of 2 cases" in said.words
    nothing_left(appliance, *disks)
    visitor.send(f"{path}act/resume/", {**visitor.get(path).hidden()})
    visitor.watch(path, lambda page: ">done<" in page.text, timeout=600, part=True)
    assert visitor.get(path).text.count('class="measured"') == 2
    nothing_left(appliance, *disks)


def test_sweep_does_not_delay_short_jobs_and_shares(visitor, appliance):
    sharing.make_person(visitor, "anna")
    disks = disk_paths(appliance, 1, 2)
    path = begin(visitor, long_one(visitor, disks, seconds=300))
    visitor.wait_until(path, "Run 1 of 2", timeout=180)
    other = disk_paths(appliance, 4)
    job = visitor.confirm(visitor.review_pool("quick", other, "stripe-1"))
    assert visitor.ended(job).startswith("Done.")
    assert sharing.set_share(visitor, appliance, "quick", name="quick", write="anna").startswith("Done.")
    sharing.click(visitor, appliance, "quick", "off")
    sharing.wait_for_switch(visitor, appliance, "quick", "off")
    assert "Run 1 of 2" in visitor.get(path).words
    visitor.send(f"{path}act/cancel/", {**visitor.get(path).hidden()})
    ended(visitor, path)
    appliance.run("zpool", "destroy", "quick")
    blank(appliance, *other)
    nothing_left(appliance, *disks)


def test_sweep_cleans_up_and_continues_after_a_power_cut(visitor, appliance):
    disks = disk_paths(appliance, 1, 2)
    create_pool(appliance, "-f", "tank", *disk_paths(appliance, 3))
    appliance.shell("head -c 8M /dev/urandom > /tank/photo; sha256sum /tank/photo > /root/sum; sync; zpool sync tank")
    path = begin(visitor, long_one(visitor, disks))
    visitor.wait_until(path, "Run 1 of 2", timeout=180)
    appliance.cut_power()
    appliance.power_on()
    visitor.sign_in()
    said = ended(visitor, path)
    assert ">done<" in said.text, said.words
    appliance.run("sha256sum", "-c", "/root/sum")
    nothing_left(appliance, *disks)
    appliance.run("zpool", "destroy", "tank")
    blank(appliance, *disk_paths(appliance, 3))


def test_pulled_disk_is_reported_and_its_figures_do_not_count(visitor, appliance):
    disks = disk_paths(appliance, 1, 2, 3)
    path = begin(visitor, long_one(visitor, disks, layouts=["raidz1"], seconds=30))
    visitor.wait_until(path, "Run 1 of 2", timeout=180)
    appliance.pull(2)
    try:
        said = ended(visitor, path)
        assert "stopped answering" in said.words or "no longer there" in said.words, said.words
    finally:
        appliance.put_back(2)
    wait_for("the disk", lambda: appliance.run("ls", disks[1]), timeout=120)
    if ">paused<" in visitor.get(path).text:
        visitor.send(f"{path}act/cancel/", {**visitor.get(path).hidden()})
        ended(visitor, path)
    nothing_left(appliance, *disks)


def test_sweep_waits_until_its_only_disk_is_back(visitor, appliance):
    disks = disk_paths(appliance, 1)
    path = begin(visitor, long_one(visitor, disks, layouts=["stripe"], seconds=30))
    visitor.wait_until(path, "Run 1 of 2", timeout=180)
    appliance.pull(1)
    try:
        said = ended(visitor, path)
        assert ">paused<" in said.text, everything_told(visitor, path)
        assert "Put the disk back" in said.words or "no longer there" in said.words, said.words
    finally:
        appliance.put_back(1)
    wait_for("the disk", lambda: appliance.run("ls", disks[0]), timeout=120)
    visitor.watch("/benchmarks/new/disks/", lambda form: f'value="{disks[0]}"' in form.text, timeout=120)
    visitor.send(f"{path}act/resume/", {**visitor.get(path).hidden()})
    visitor.watch(path, lambda page: ">done<" in page.text, timeout=900, part=True)
    nothing_left(appliance, *disks)
