"""A pool is destroyed after a look at what goes, and comes back while its disks are untouched."""

from __future__ import annotations

from tests.system import moving
from tests.visitor import create_pool, disk_paths


def test_destroy_shows_what_goes_wants_the_name_and_can_be_undone(visitor, appliance):
    disks = disk_paths(appliance, 1, 2, 3)
    create_pool(appliance, "-o", "ashift=12", "tank", "raidz1", *disks)
    appliance.run("zfs", "create", "tank/photos")
    appliance.put("/tank/photos/holiday.txt", "sun\n")
    appliance.run("zfs", "snapshot", "-r", "tank@yesterday")
    guid = moving.guid_of(appliance, "tank")
    visitor.wait_until(f"/pools/{guid}/", "tank/photos", timeout=60)

    review = moving.end_review(visitor, guid, "destroy", "the folder tank/photos", "Snapshots 2,")
    assert visitor.send("/jobs/confirm/", {**review.hidden(), "typed": "Tank"}).status == 400
    assert moving.pools(appliance) == ["tank"]
    words = moving.done(visitor, review, typed="tank")
    assert "Recover it" in words
    assert moving.pools(appliance) == []
    visitor.wait_until("/pools/", "No pools yet", timeout=60)

    # The same form sent again is the same job, which is over.
    visitor.send("/jobs/confirm/", {**review.hidden(), "typed": "tank"})
    # Larder looked by itself after the job.
    visitor.wait_until(moving.BRING_IN, "Destroyed pools that can be recovered", "Recover tank", timeout=120)
    assert moving.bring_in(visitor, guid, name="tank").startswith("Done.")
    assert moving.pools(appliance) == ["tank"]
    assert appliance.run("cat", "/tank/photos/holiday.txt") == "sun\n"
    assert "tank@yesterday" in appliance.run("zfs", "list", "-H", "-o", "name", "-t", "snapshot")
    moving.clear(appliance, *disks)
