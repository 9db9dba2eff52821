"""Disks are erased quickly and fully, can be stopped, and never while something uses them."""

from __future__ import annotations

import re

from deploy.image.machine import wait_for
from tests.system import moving
from tests.system.crash import no_lock_left, struck, watching
from tests.visitor import Answer, Visitor, create_pool, disk_paths

MIB = 2**20
SCRAP, LONG = "SCRAP0001", "LONG0001"


def wipe(visitor: Visitor, key: str, how: str) -> str:
    """Confirm an erasing by typing what the page asks for; the job's id."""
    review = visitor.get(f"/disks/{key}/wipe/?how={how}")
    assert review.status == 200, review.words
    assert visitor.send("/jobs/confirm/", {**review.hidden()}).status == 400, "the serial number has to be typed"
    return visitor.confirm(review, typed=asked_for(review))


def asked_for(review: Answer) -> str:
    found = re.search(r'class="to-type">([^<]*)<', review.text)
    assert found, review.words
    return found[1]


def test_a_quick_wipe_leaves_nothing_to_be_recognised(visitor, appliance):
    (disk,) = disk_paths(appliance, 6)
    serial = appliance.disks[5].serial
    create_pool(appliance, "-f", "old", disk)
    appliance.run("zpool", "export", "old")
    visitor.wait_until("/disks/", "holds the pool old", timeout=60)
    job = wipe(visitor, moving.disk_key(visitor, serial), "quick")
    said = visitor.ended(job, timeout=300)
    assert said.startswith("Done."), said
    assert appliance.run("wipefs", "-n", disk).strip() == ""
    assert appliance.run("lsblk", "-n", "-o", "NAME", disk).split() == [appliance.device_of(serial)]
    moving.look(visitor, "No pool was found")


def test_a_full_wipe_leaves_zeros_and_the_drives_counts_in_its_log(visitor, appliance):
    appliance.insert("scrap", 128 * MIB, serial=SCRAP)
    name = wait_for("the disk", lambda: appliance.device_of(SCRAP), timeout=60)
    appliance.shell(f"head -c {128 * MIB} /dev/urandom > /dev/{name}; sync")
    job = wipe(visitor, moving.disk_key(visitor, SCRAP), "full")
    said = visitor.ended(job, timeout=300)
    assert said.startswith("Done."), said
    words = visitor.get(f"/jobs/{job}/").words
    assert "Every sector was written" in words
    assert "Before: " in words
    assert "After: " in words
    appliance.shell(f"cmp -n {128 * MIB} /dev/{name} /dev/zero")


def test_a_disk_in_use_is_refused_by_the_page_and_by_the_kernel(visitor, appliance):
    (disk,) = disk_paths(appliance, 5)
    serial = appliance.disks[4].serial
    key = moving.disk_key(visitor, serial)
    review = visitor.get(f"/disks/{key}/wipe/?how=full")
    assert review.status == 200
    create_pool(appliance, "-f", "busy", disk)
    answer = visitor.send("/jobs/confirm/", {**review.hidden(), "typed": asked_for(review)})
    if "/jobs/confirm/" not in answer.url:
        said = visitor.ended(answer.url.rstrip("/").rsplit("/", 1)[-1])
        assert said.startswith("Refused."), said
    visitor.wait_until("/disks/", "busy", timeout=60)
    assert visitor.get(f"/disks/{key}/wipe/").status == 409
    # Were everything above mistaken, the disk could still not be opened.
    code = f"from appliance.disks.exclusive_disk import ExclusiveDisk\nwith ExclusiveDisk({disk!r}): pass"
    assert "Something has begun to use this disk" in appliance.run(
        "sh", "-c", '/opt/larder/venv/bin/python -I -c "$1" 2>&1 || true', "sh", code
    )
    assert appliance.run("zpool", "status", "-x", "busy").strip().endswith("is healthy")
    moving.clear(appliance, disk)


def test_a_full_wipe_tells_its_progress_and_stops_when_asked(visitor, appliance):
    appliance.insert("long", 2048 * MIB, serial=LONG)
    key = moving.disk_key(visitor, LONG)
    appliance.monitor("block_set_io_throttle drive-long 0 0 4194304 0 0 0")
    job = wipe(visitor, key, "full")
    page = visitor.wait_until(f"/jobs/{job}/", "of 2.1 GB written", "left", timeout=120)
    visitor.send(f"/jobs/{job}/stop/", page.hidden())
    assert visitor.ended(job, timeout=120).startswith("Stopped.")
    no_lock_left(appliance)


def test_killed_while_it_writes_it_is_told_as_interrupted_and_offered_again(visitor, appliance):
    key = moving.disk_key(visitor, LONG)
    with watching(appliance, entry="step begun", step="zero", victim="agent") as watcher:
        job = wipe(visitor, key, "full")
        struck(watcher)
    said = visitor.ended(job, timeout=120)
    assert said.startswith("Interrupted."), said
    assert "plan it again to erase it from the beginning" in said
    no_lock_left(appliance)
    appliance.monitor("block_set_io_throttle drive-long 0 0 0 0 0 0")
    review = visitor.get(f"/jobs/{job}/again/")
    again = visitor.confirm(review, typed=asked_for(review))
    assert visitor.ended(again, timeout=300).startswith("Done.")
