"""A disk is replaced by following its page: out of use, pulled, a new one in, rebuilt; and a spare stands in."""

from __future__ import annotations

import re

import pytest

from deploy.image.machine import wait_for
from tests.system import shapes
from tests.system.shapes import LONG, by_id, done, link, names, page_of, press, status
from tests.visitor import create_pool, disk_paths

NEW, SMALL, SPARE = "LARDER-NEW-7", "LARDER-SMALL-8", "LARDER-SPARE-9"
TB = 10**12


@pytest.fixture(scope="module")
def tank(appliance, visitor) -> str:
    """A raidz2 of bays 1 to 4 with a file; the address of its page."""
    create_pool(appliance, "-o", "ashift=12", "tank", "raidz2", *disk_paths(appliance, 1, 2, 3, 4))
    appliance.shell(
        "dd if=/dev/urandom of=/tank/photo bs=1M count=64 status=none; sha256sum /tank/photo > /root/sum; "
        "zpool sync tank"
    )
    path = page_of(appliance, "tank")
    visitor.wait_until(path, "raidz2 of 4", timeout=LONG)
    return path


def test_a_disk_is_replaced_and_a_wrong_one_is_noticed(appliance, visitor, tank):
    old = appliance.disks[1].serial
    which = visitor.get(f"{tank}replace/")
    case = press(visitor, which, f"{tank}replace/", vdev=shapes.guid_of(appliance, "tank", old)).url
    path = case[case.index("/pools/") :]
    page = visitor.wait_until(path, "is still in use", old)
    press(visitor, page, f"{path}offline/")
    visitor.wait_until(path, "Pull out bay 2", timeout=LONG)

    appliance.pull(3)
    visitor.wait_until(path, "That was another disk: bay 3", "Put it back", timeout=120)
    appliance.put_back(3)
    visitor.wait_until(path, "Pull out bay 2", without=("another disk",), timeout=LONG)
    # ZED brings it online by itself.
    wait_for("bay 3 to work again", lambda: state_of(appliance, appliance.disks[2].serial) == "ONLINE", timeout=LONG)

    appliance.remove(2)
    visitor.wait_until(path, "The right disk is out", timeout=120)
    assert "Bay 2" in visitor.get(tank).words

    appliance.insert("small8", 2 * TB - 4 * 10**9, serial=SMALL)
    visitor.wait_until(path, SMALL, "is too small by", timeout=120)
    appliance.insert("new7", 2 * TB, serial=NEW)
    page = visitor.wait_until(path, "A new disk was found", NEW, timeout=120)
    done(visitor, link(page, "accept/?disk="))

    page = visitor.wait_until(path, "tank is complete again", "survives 2 more failed disks", timeout=LONG)
    press(visitor, page, f"{path}close/")
    visitor.wait_until("/pools/replacements/", "was replaced by", old)
    assert status(appliance, "tank")["state"] == "ONLINE"
    assert old not in names(appliance, "tank")
    appliance.run("zpool", "scrub", "-w", "tank")
    appliance.run("sha256sum", "-c", "/root/sum")
    # What the pulling of bay 3 left in the counts is not what this is about.
    appliance.run("zpool", "clear", "tank")
    visitor.wait_until(tank, "tank is healthy", without=("What to do",), timeout=LONG)


def state_of(appliance, serial: str) -> str:
    return next(str(node["state"]) for node in shapes.nodes(status(appliance, "tank")) if serial in node["name"])


def test_a_light_can_be_asked_for_and_reads_only(appliance, visitor, tank):
    key = disk_paths(appliance, 1)[0].rsplit("/", 1)[-1]
    before = int(appliance.run("cat", f"/sys/block/{appliance.device_of(appliance.disks[0].serial)}/stat").split()[0])
    said = press(visitor, visitor.get(f"/disks/{key}/"), f"/disks/{key}/locate/")
    assert "its activity light blinks" in said.words, said.words
    wait_for(
        "reads from the disk",
        lambda: (
            int(appliance.run("cat", f"/sys/block/{appliance.device_of(appliance.disks[0].serial)}/stat").split()[0])
            > before + 20
        ),
        timeout=30,
    )


def test_a_spare_stands_in_and_goes_back(appliance, visitor, tank):
    appliance.insert("spare9", 2 * TB, serial=SPARE)
    visitor.wait_until("/disks/", SPARE, timeout=120)
    done(visitor, shapes.chosen(f"{tank}add/spare/", by_id(appliance, SPARE)))
    visitor.wait_until(tank, "spare", timeout=120)
    appliance.pull(4)
    # ZED puts the spare in by itself.
    visitor.wait_until(tank, "a spare stands in", timeout=LONG)
    appliance.put_back(4)

    def back() -> bool:
        page = visitor.get(tank)
        if "the spare is not needed any more" in page.words:
            give_back(visitor, link(page, "/detach/"))
        return [node["state"] for node in shapes.nodes({"spares": status(appliance, "tank")["spares"]})] == ["AVAIL"]

    wait_for("the spare to wait again", back, timeout=LONG, every=2)
    assert state_of(appliance, appliance.disks[3].serial) == "ONLINE"
    visitor.wait_until(tank, without=("stands in", "pulled out", "removed"), timeout=LONG)


def give_back(visitor, address: str) -> None:
    """Take the spare out of the place where it stands in, unless ZFS has done so in this very moment."""
    review = visitor.get(address)
    answer = visitor.send("/jobs/confirm/", {**review.hidden()}) if review.status == 200 else review
    job = re.search(r"/jobs/([0-9a-f-]{36})/", answer.url)
    said = visitor.ended(job[1], timeout=LONG) if job else answer.words
    assert (
        said.startswith("Done.") or "is waiting again already" in said or "is waiting again already" in answer.words
    ), said
