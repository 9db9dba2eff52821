"""A checkpoint is taken, shown, gone back to, and discarded, by the pages."""

from __future__ import annotations

from deploy.image.machine import wait_for
from tests.system import moving
from tests.visitor import create_pool, disk_paths


def kept(appliance) -> str:
    return appliance.run("zpool", "get", "-H", "-o", "value", "checkpoint", "tank").strip()


def test_a_checkpoint_from_taking_to_discarding(visitor, appliance):
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "tank", disk)
    appliance.run("zfs", "create", "-o", "mountpoint=/films", "tank/films")
    appliance.put("/tank/before.txt", "before\n")
    guid = moving.guid_of(appliance, "tank")
    visitor.wait_until(f"/pools/{guid}/", "Take a checkpoint", timeout=60)

    moving.done(visitor, moving.end_review(visitor, guid, "checkpoint"))
    assert kept(appliance) not in {"-", ""}
    visitor.wait_until(f"/pools/{guid}/", "The checkpoint from", "Put the pool back to it", timeout=60)
    assert visitor.get(f"/pools/{guid}/end/checkpoint/").status == 409

    # The risky act.
    appliance.run("rm", "/tank/before.txt")
    appliance.run("zfs", "create", "tank/new")
    visitor.wait_until(f"/pools/{guid}/", "tank/new", timeout=60)
    review = moving.end_review(visitor, guid, "rewind", "everything written to tank after")
    assert visitor.send("/jobs/confirm/", review.hidden()).status == 400
    moving.done(visitor, review, typed="tank")
    assert appliance.run("cat", "/tank/before.txt") == "before\n"
    names = appliance.run("zfs", "list", "-H", "-o", "name").split()
    assert names == ["tank", "tank/films"]
    # A folder that was somewhere else before is there again, and the pool comes with the next start.
    assert appliance.run("findmnt", "-n", "-o", "SOURCE", "/films").strip() == "tank/films"
    assert appliance.run("zpool", "get", "-H", "-o", "value", "cachefile", "tank").strip() != "none"
    assert kept(appliance) == "-"

    visitor.wait_until(f"/pools/{guid}/", "Take a checkpoint", timeout=60)
    moving.done(visitor, moving.end_review(visitor, guid, "checkpoint"))
    visitor.wait_until(f"/pools/{guid}/", "Discard the checkpoint", timeout=60)
    moving.done(visitor, moving.end_review(visitor, guid, "discard"))
    wait_for("its space to be freed", lambda: kept(appliance) == "-", timeout=120)
    moving.clear(appliance, disk)
