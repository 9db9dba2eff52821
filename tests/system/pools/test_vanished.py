"""A disk is taken out while a raidz grows, while a mirror is emptied, while a disk is erased:
nothing is lost, all is told."""

from __future__ import annotations

import re

from deploy.image.machine import wait_for
from tests.system import moving, shapes
from tests.system.care import PARAMETERS, reported
from tests.system.shapes import LONG, chosen, done, guid_of, names, page_of, status
from tests.visitor import blank, create_pool, disk_paths

MIB = 2**20


def found_of(text: str, *words: str) -> str:
    """The first of these words that the text says; empty for none."""
    return next((word for word in words if word in text), "")


# Two minutes.
def test_a_disk_that_vanishes_while_a_raidz_grows_holds_it_up_until_it_is_back(appliance, visitor):
    *three, fourth = disk_paths(appliance, 1, 2, 3, 4)
    create_pool(appliance, "-O", "compression=off", "-o", "ashift=12", "tank", "raidz1", *three)
    appliance.shell("head -c 128M /dev/urandom > /tank/photo; sha256sum /tank/photo > /root/sum; zpool sync tank")
    page = page_of(appliance, "tank")
    visitor.wait_until(page, "raidz1 of 3", timeout=LONG)
    appliance.shell(f"echo {8 * MIB} > {PARAMETERS}/raidz_expand_max_reflow_bytes")
    group = guid_of(appliance, "tank", "raidz1-0")
    done(visitor, chosen(f"{page}add/expand/", fourth, vdev=str(group)))
    visitor.wait_until(page, "Growing tank by a disk", timeout=LONG)
    appliance.pull(2)
    appliance.shell(f"echo 0 > {PARAMETERS}/raidz_expand_max_reflow_bytes")
    words = (
        "waiting until every disk of the group is back and rebuilt",
        "Put it back, or put another one in its place.",
    )
    visitor.wait_until(page, *words, timeout=LONG)
    appliance.run("sha256sum", "-c", "/root/sum")
    appliance.put_back(2)
    # Rebuilt before it noticed, ZFS waits to be told that it may go on; else it goes on by itself.
    waits = "Growing tank is paused, although all its disks are back."
    said = wait_for("an end", lambda: found_of(visitor.get(page).words, waits, "The new disk is in use"), timeout=300)
    if said == waits:
        done(visitor, f"{page}vdev/{page.split('/')[2]}/clear/")
    report = reported(appliance, visitor, "tank", "expand", 1, timeout=300)
    assert report["outcome"] == "finished"
    visitor.wait_until(page, "raidz1 of 4", "The new disk is in use", without=("Growing tank",), timeout=LONG)
    appliance.run("sha256sum", "-c", "/root/sum")
    assert status(appliance, "tank")["error_count"] == 0
    appliance.run("zpool", "destroy", "tank")
    blank(appliance, *three, fourth)


# Two minutes.
def test_a_disk_that_vanishes_from_a_mirror_that_is_emptied_stops_nothing(appliance, visitor):
    paths = disk_paths(appliance, 1, 2, 3, 4)
    create_pool(appliance, "-f", "-o", "ashift=12", "pair", "mirror", *paths[:2], "mirror", *paths[2:])
    appliance.shell("head -c 96M /dev/urandom > /pair/photo; sha256sum /pair/photo > /root/sum; zpool sync pair")
    page = page_of(appliance, "pair")
    visitor.wait_until(page, "2 × mirror of 2", timeout=LONG)
    appliance.shell(f"echo 1 > {PARAMETERS}/zfs_removal_suspend_progress")
    done(visitor, f"{page}vdev/{guid_of(appliance, 'pair', 'mirror-1')}/remove/")
    visitor.wait_until(page, "Emptying a device of pair", timeout=LONG)
    appliance.pull(4)
    visitor.wait_until(page, "Emptying a device of pair", "Bay 4", "Put it back", timeout=LONG)
    appliance.shell(f"echo 0 > {PARAMETERS}/zfs_removal_suspend_progress")
    visitor.wait_until(page, "mirror of 2", without=("2 × mirror", "Emptying a device"), timeout=LONG)
    assert reported(appliance, visitor, "pair", "remove", 1)["outcome"] == "finished"
    assert appliance.disks[2].serial not in names(appliance, "pair")
    appliance.run("sha256sum", "-c", "/root/sum")
    # ZFS still counts the disk that was away when its group left, until it looks at all disks again.
    if status(appliance, "pair")["state"] != "ONLINE":
        visitor.wait_until(page, "pair is complete.", timeout=LONG)
        shapes.press(visitor, visitor.get(page), f"{page}scrub/", act="start")
    visitor.wait_until(page, "pair is healthy. It survives one more failed disk.", timeout=LONG)
    assert status(appliance, "pair")["state"] == "ONLINE"
    appliance.put_back(4)
    visitor.wait_until("/disks/", appliance.disks[3].serial, timeout=LONG)


def test_a_disk_that_vanishes_while_it_is_erased_is_told_as_gone(appliance, visitor):
    serial = appliance.disks[5].serial
    appliance.monitor(f"block_set_io_throttle d6 0 0 {16 * MIB} 0 0 0")
    key = moving.disk_key(visitor, serial)
    review = visitor.get(f"/disks/{key}/wipe/?how=full")
    found = re.search(r'class="to-type">([^<]*)<', review.text)
    assert found, review.words
    job = visitor.confirm(review, typed=found[1])
    visitor.wait_until(f"/jobs/{job}/", "TB written, estimating the time left", timeout=LONG)
    appliance.pull(6)
    said = visitor.ended(job, timeout=LONG)
    assert "it was taken out, or its cable or its power failed" in said, said
    assert "The disk no longer answers" in said
    appliance.monitor("block_set_io_throttle d6 0 0 0 0 0 0")
    appliance.put_back(6)
    wait_for("the disk", lambda: appliance.device_of(serial), timeout=60)
