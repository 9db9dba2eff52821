"""Bad days: two who confirm at once, a disk a little too small, a second failure while rebuilding, a
stopped pool, a full one."""

from __future__ import annotations

import json
import re
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from deploy.image.machine import wait_for
from tests.system import moving, shapes
from tests.system.shapes import LONG, by_id, chosen, done, guid_of, page_of, status
from tests.visitor import Visitor, create_pool, disk_paths

TB = 10**12
ASK = (
    "import sys, json; from appliance import agent_client as client\ntry:\n    "
    "print(json.dumps(list(client.stream_replies(json.load(sys.stdin)))))\nexcept Exception as error:\n    "
    "print(json.dumps(str(error)))"
)
SUSPEND_SCANS = "/sys/module/zfs/parameters/zfs_scan_suspend_progress"


@pytest.fixture(scope="module")
def tank(appliance, visitor) -> str:
    """A raidz2 of bays 1 to 4 with a file; the address of its page."""
    create_pool(appliance, "-o", "ashift=12", "tank", "raidz2", *disk_paths(appliance, 1, 2, 3, 4))
    appliance.shell(
        "dd if=/dev/urandom of=/tank/photo bs=1M count=128 status=none; sha256sum /tank/photo > /root/sum; "
        "zpool sync tank"
    )
    path = page_of(appliance, "tank")
    visitor.wait_until(path, "raidz2 of 4", timeout=LONG)
    return path


def test_of_two_plans_confirmed_at_once_one_is_done(appliance, visitor, tank):
    other = Visitor(appliance)
    other.sign_in()
    fifth, sixth = disk_paths(appliance, 5, 6)
    reviews = [
        (visitor, visitor.get(chosen(f"{tank}add/spare/", fifth))),
        (other, other.get(chosen(f"{tank}add/spare/", sixth))),
    ]
    assert [review.status for _who, review in reviews] == [200, 200]
    with ThreadPoolExecutor() as both:
        answers = list(
            both.map(lambda pair: pair[0].send("/jobs/confirm/", {**pair[1].hidden(), "typed": "tank"}), reviews)
        )
    jobs = [re.search(r"/jobs/([0-9a-f-]{36})/", answer.url) for answer in answers]
    said = [
        visitor.ended(job[1], timeout=LONG) if job else answer.words for job, answer in zip(jobs, answers, strict=True)
    ]
    assert sorted(text.startswith("Done.") for text in said) == [False, True], said
    assert "Something changed" in next(text for text in said if not text.startswith("Done.")), said
    spares = status(appliance, "tank")["spares"]
    assert len(spares) == 1
    done(visitor, f"{tank}vdev/{next(iter(spares.values()))['guid']}/remove/")


def test_the_agent_itself_refuses_a_disk_a_little_too_small_and_says_by_how_much(appliance, visitor, tank):
    needed = next(
        int(node["rep_dev_size"]) for node in shapes.nodes(status(appliance, "tank")) if node["vdev_type"] == "disk"
    )
    appliance.insert("short", needed - 8 * 2**20, serial="LARDER-SHORT")
    visitor.wait_until("/disks/", "LARDER-SHORT", timeout=120)
    path = by_id(appliance, "LARDER-SHORT")
    guid = guid_of(appliance, "tank", appliance.disks[0].serial)
    operation = {"kind": "replace-disk", "pool": "tank", "vdev": guid, "disk": path}
    request = {"verb": "run", "job": str(uuid.uuid4()), "digest": "0" * 16, "operation": operation}
    said = appliance.run("/opt/larder/venv/bin/python", "-I", "-c", ASK, given=json.dumps(request))
    assert "is too small by" in said, said
    assert "MB (" in said
    # What Larder refuses is what ZFS refuses.
    by_hand = appliance.shell(f"zpool replace -f tank {guid} {path} 2>&1 || true")
    assert "too small" in by_hand, by_hand
    assert status(appliance, "tank")["state"] == "ONLINE"


def test_a_second_failure_while_rebuilding_is_told_and_survived(appliance, visitor, tank):
    appliance.run("sh", "-c", f"echo 1 > {SUSPEND_SCANS}")
    try:
        case = shapes.press(
            visitor,
            visitor.get(f"{tank}replace/"),
            f"{tank}replace/",
            vdev=guid_of(appliance, "tank", appliance.disks[0].serial),
        ).url
        path = case[case.index("/pools/") :]
        shapes.press(visitor, visitor.get(path), f"{path}offline/")
        visitor.wait_until(path, "Pull out bay 1", timeout=LONG)
        done(visitor, f"{path}accept/?disk={disk_paths(appliance, 5)[0]}")
        visitor.wait_until(path, "is being rebuilt", "survives 1 more failed disk", timeout=LONG)
        appliance.pull(2)
        visitor.wait_until(path, "Another disk is missing while", "do not pull anything else", timeout=120)
        visitor.wait_until(tank, "one more failed disk would lose data", "It is rebuilding", timeout=120)
    finally:
        appliance.run("sh", "-c", f"echo 0 > {SUSPEND_SCANS}")
    appliance.put_back(2)
    page = visitor.wait_until(path, "tank is complete again", timeout=LONG)
    shapes.press(visitor, page, f"{path}close/")
    appliance.run("sha256sum", "-c", "/root/sum")
    assert status(appliance, "tank")["error_count"] == 0


# Four minutes: ZFS takes its time to give a disk up that vanished.
def test_a_new_disk_that_vanishes_while_it_is_being_rebuilt_loses_nothing_and_the_old_one_can_go_on(
    appliance, visitor, tank
):
    old = appliance.disks[2].serial
    new = next(bay for bay in (6, 5, 1) if appliance.disks[bay - 1].serial not in shapes.names(appliance, "tank"))
    appliance.run("sh", "-c", f"echo 1 > {SUSPEND_SCANS}")
    try:
        case = shapes.press(
            visitor, visitor.get(f"{tank}replace/"), f"{tank}replace/", vdev=guid_of(appliance, "tank", old)
        ).url
        path = case[case.index("/pools/") :]
        shapes.press(visitor, visitor.get(path), f"{path}offline/")
        visitor.wait_until(path, "Pull out bay 3", timeout=LONG)
        done(visitor, f"{path}accept/?disk={disk_paths(appliance, new)[0]}")
        visitor.wait_until(path, "is being rebuilt", timeout=LONG)
        appliance.pull(new)
        page = visitor.wait_until(path, "has failed as well", "Stop with this disk", timeout=120)
        done(visitor, shapes.link(page, "/detach/"))
    finally:
        appliance.run("sh", "-c", f"echo 0 > {SUSPEND_SCANS}")
    page = visitor.wait_until(path, "Pull out bay 3", "Bring the old disk online again", timeout=120)
    done(visitor, shapes.link(page, "/online/"))
    visitor.wait_until(tank, "survives 2 more failed disks", "was begun, and the disk is in use", timeout=LONG)
    shapes.press(visitor, visitor.get(path), f"{path}close/")
    visitor.wait_until(tank, "survives 2 more failed disks", without=("What to do",), timeout=LONG)
    appliance.run("sha256sum", "-c", "/root/sum")
    assert status(appliance, "tank")["state"] == "ONLINE"
    appliance.put_back(new)
    wait_for("the disk", lambda: appliance.device_of(appliance.disks[new - 1].serial), timeout=60)
    appliance.run("udevadm", "settle")


# About three minutes.
def test_a_pool_that_stopped_says_what_to_do_and_starts_again(appliance, visitor, tank):
    create_pool(appliance, "-f", "-o", "ashift=12", "-o", "failmode=wait", "pond", disk_paths(appliance, 6)[0])
    path = page_of(appliance, "pond")
    visitor.wait_until(path, "pond is healthy", timeout=LONG)
    appliance.pull(6)
    # Something has to be written before ZFS notices; it waits until the pool goes on.
    appliance.shell(
        "(dd if=/dev/urandom of=/pond/late bs=1M count=4 conv=fsync >/dev/null 2>&1 &) ; (zpool sync pond "
        ">/dev/null 2>&1 &) ; true"
    )
    visitor.wait_until(path, "pond has stopped", "Put the missing disks back", appliance.disks[5].serial, timeout=LONG)
    guid = path.split("/")[2]
    refused = visitor.get(f"{path}vdev/{guid}/clear/")
    assert refused.status == 409
    assert "still missing" in refused.words
    appliance.put_back(6)
    visitor.wait_until(path, "Enough disks are back", timeout=LONG)
    done(visitor, f"{path}vdev/{guid}/clear/")
    visitor.wait_until(path, "pond is healthy", timeout=LONG)
    appliance.shell("ls -l /pond/late; zpool sync pond")
    assert status(appliance, "pond")["state"] == "ONLINE"


# Two and a half minutes.
def test_a_full_pool_says_so_refuses_with_a_sentence_and_has_room_again_after_a_disk_is_added(appliance, visitor):
    for name in ("drop", "more"):
        appliance.insert(name, 2**30, serial=f"LARDER-{name.upper()}")
    visitor.wait_until("/disks/", "LARDER-DROP", "LARDER-MORE", timeout=120)
    create_pool(appliance, "-o", "ashift=12", "drop", by_id(appliance, "LARDER-DROP"))
    path = page_of(appliance, "drop")
    full = appliance.shell(
        "dd if=/dev/urandom of=/drop/films bs=1M 2>&1 || true; zpool sync drop; sha256sum /drop/films > /root/drop.sum",
        timeout=300,
    )
    assert "No space left" in full, full
    visitor.wait_until(path, "drop is full.", "nothing more can be written", "or add disks", timeout=120)
    assert "drop is full." in visitor.get("/").words
    form = visitor.get("/folders/new/")
    refused = visitor.send("/folders/new/", {**form.hidden(), "parent": "drop", "name": "photos", "preset": "photos"})
    assert "drop is full. Delete" in refused.words, refused.words
    said = visitor.ended(visitor.confirm(moving.end_review(visitor, path.split("/")[2], "checkpoint")), timeout=LONG)
    assert "The pool has no space left for it." in said, said
    # What helps has to be possible on a full pool.
    done(visitor, chosen(f"{path}add/group/", by_id(appliance, "LARDER-MORE"), layout="stripe"))
    visitor.wait_until(path, "drop is healthy", timeout=120)
    appliance.shell("sha256sum -c /root/drop.sum && head -c 64M /dev/urandom > /drop/photos && zpool sync drop")
    assert status(appliance, "drop")["error_count"] == 0
