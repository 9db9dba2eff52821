"""What changes behind Larder's back shows on its pages."""

from __future__ import annotations

import pytest

from tests.visitor import create_pool, disk_paths

# The promise is ten seconds while somebody looks.
SOON = 10


@pytest.fixture(scope="module")
def tank(appliance, visitor) -> str:
    """A pool made by hand, with a folder."""
    create_pool(appliance, "-o", "ashift=12", "tank", "raidz1", *disk_paths(appliance, 1, 2, 3))
    appliance.run("zfs", "create", "tank/photos")
    return "tank"


def test_a_pool_made_by_hand_shows_within_ten_seconds(visitor, tank):
    visitor.wait_until("/pools/", "tank", "raidz1 of 3", timeout=SOON)
    visitor.wait_until("/folders/", "tank/photos", timeout=SOON)


def test_every_disk_says_what_it_is_and_what_it_is_for(visitor, tank, appliance):
    page = visitor.wait_until("/disks/", "tank", timeout=SOON)
    for disk in appliance.disks:
        assert disk.serial in page.words
        assert disk.model in page.words
    assert "2 TB" in page.words
    assert "3 TB" in page.words
    assert "holds the system" in page.words


def test_temperatures_come_from_the_drives(visitor, tank):
    assert visitor.wait_until("/disks/", "°C", timeout=60)


def test_a_pulled_disk_shows_within_ten_seconds_and_so_does_its_return(visitor, tank, appliance):
    appliance.pull(2)
    visitor.wait_until("/", "tank is degraded: one more failed disk would lose data", "was pulled out", timeout=SOON)
    appliance.put_back(2)
    # ZED brings it online again by itself, and its rebuilding takes a moment.
    visitor.wait_until("/pools/", "tank", without=("pulled out",), timeout=60)


def test_a_destroyed_dataset_disappears_within_ten_seconds(visitor, tank, appliance):
    visitor.wait_until("/folders/", "tank/photos", timeout=SOON)
    appliance.run("zfs", "destroy", "tank/photos")
    visitor.wait_until("/folders/", "tank", without=("tank/photos",), timeout=SOON)


def test_the_rows_say_what_zfs_says_after_all_this(visitor, tank, appliance):
    listed = appliance.run("zfs", "list", "-H", "-o", "name").split()
    words = visitor.wait_until("/folders/", *listed, timeout=SOON).words
    assert "tank/photos" not in words


def test_a_scrub_started_by_hand_is_followed_and_its_end_is_told(visitor, tank, appliance):
    appliance.run("zpool", "scrub", "tank")
    guid = appliance.run("zpool", "get", "-H", "-o", "value", "guid", "tank").strip()
    visitor.wait_until(f"/pools/{guid}/", "Scrub clean", "took", timeout=60)
