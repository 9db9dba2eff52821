"""One disk becomes a mirror, a mirror wider and narrower; a disk goes offline and comes back; counts are cleared."""

from __future__ import annotations

import pytest

from deploy.image.machine import wait_for
from tests.system import shapes
from tests.system.shapes import LONG, chosen, done, guid_of, names, page_of, status
from tests.visitor import create_pool, disk_paths


@pytest.fixture(scope="module")
def pond(appliance, visitor) -> str:
    """A pool of one disk with a file; the address of its page."""
    create_pool(appliance, "-o", "ashift=12", "pond", *disk_paths(appliance, 1))
    appliance.shell("dd if=/dev/urandom of=/pond/photo bs=1M count=32 status=none; zpool sync pond")
    path = page_of(appliance, "pond")
    visitor.wait_until(path, "stripe of 1", timeout=LONG)
    return path


def resilvered(appliance) -> None:
    appliance.run("zpool", "wait", "-t", "resilver", "pond")


@pytest.fixture(scope="module")
def pair(appliance, visitor, pond) -> str:
    """The same pool after its disk got a copy through the pages."""
    first = guid_of(appliance, "pond", appliance.disks[0].serial)
    done(visitor, chosen(f"{pond}add/copy/", disk_paths(appliance, 2)[0], vdev=str(first)))
    resilvered(appliance)
    return pond


def test_a_single_disk_gets_a_copy(appliance, visitor, pair):
    visitor.wait_until(pair, "mirror of 2", "survives one more failed disk", timeout=LONG)


def test_a_disk_goes_offline_and_comes_back(appliance, visitor, pair):
    guid = guid_of(appliance, "pond", appliance.disks[1].serial)
    done(visitor, f"{pair}vdev/{guid}/offline/")
    page = visitor.wait_until(pair, "was taken offline", "stays offline until you bring it online", timeout=120)
    assert f"{pair}vdev/{guid}/online/" in page.text
    done(visitor, f"{pair}vdev/{guid}/online/")
    resilvered(appliance)
    visitor.wait_until(pair, "pond is healthy", without=("offline.",), timeout=LONG)


def test_a_mirror_becomes_wider_and_narrower_and_the_disk_is_free_again(appliance, visitor, pair):
    third, serial = disk_paths(appliance, 3)[0], appliance.disks[2].serial
    done(visitor, chosen(f"{pair}add/copy/", third, vdev=str(guid_of(appliance, "pond", "mirror-0"))))
    resilvered(appliance)
    visitor.wait_until(pair, "mirror of 3", "survives 2 more failed disks", timeout=LONG)
    done(visitor, f"{pair}vdev/{guid_of(appliance, 'pond', serial)}/detach/")
    assert serial not in names(appliance, "pond")
    visitor.wait_until(pair, "mirror of 2", timeout=120)
    assert visitor.get(chosen(f"{pair}add/spare/", third)).status == 200


def test_errors_are_explained_and_cleared(appliance, visitor, pair):
    disk = disk_paths(appliance, 2)[0].rsplit("/", 1)[-1]
    appliance.run("zinject", "-d", disk, "-e", "corrupt", "-T", "read", "-f", "10", "pond")
    try:
        appliance.run("zpool", "scrub", "-w", "pond")
    finally:
        appliance.run("zinject", "-c", "all")
    visitor.wait_until(pair, "returned other data than was written", timeout=120)
    review = visitor.get(f"{pair}vdev/{guid_of(appliance, 'pond', appliance.disks[1].serial)}/clear/")
    assert "checksum" in review.words
    said = shapes.change(visitor, review)
    assert said.startswith("Done."), said
    resilvered(appliance)
    wait_for(
        "no errors",
        lambda: not any(node["checksum_errors"] for node in shapes.nodes(status(appliance, "pond"))),
        timeout=120,
    )
    visitor.wait_until(pair, without=("returned other data than was written",), timeout=120)


def test_the_last_copy_is_not_taken_out(appliance, visitor, pair):
    done(visitor, f"{pair}vdev/{guid_of(appliance, 'pond', appliance.disks[1].serial)}/detach/")
    visitor.wait_until(pair, "stripe of 1", timeout=120)
    guid = guid_of(appliance, "pond", appliance.disks[0].serial)
    for what in ("detach", "offline"):
        assert visitor.get(f"{pair}vdev/{guid}/{what}/").status == 409
    assert status(appliance, "pond")["state"] == "ONLINE"
