"""A pool of an older ZFS is offered its new features, and one that is meant to stay readable elsewhere is not."""

from __future__ import annotations

from deploy.image.machine import wait_for
from tests.system import moving
from tests.visitor import create_pool, disk_paths


def state(appliance, pool: str, feature: str) -> str:
    return appliance.run("zpool", "get", "-H", "-o", "value", f"feature@{feature}", pool).strip()


def test_an_old_pool_is_upgraded_after_its_name_is_typed(visitor, appliance):
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-d", "tank", disk)
    guid = moving.guid_of(appliance, "tank")
    assert state(appliance, "tank", "raidz_expansion") == "disabled"
    review = moving.end_review(visitor, guid, "upgrade", "raidz_expansion", "It cannot be undone")
    assert visitor.send("/jobs/confirm/", review.hidden()).status == 400
    moving.done(visitor, review, typed="tank")
    assert state(appliance, "tank", "raidz_expansion") in {"enabled", "active"}
    visitor.wait_until(f"/pools/{guid}/", "Checkpoint, export and destroy", without=("Newer features",), timeout=90)
    moving.clear(appliance, disk)


def test_a_pool_that_shall_stay_readable_is_left_so(visitor, appliance):
    (disk,) = disk_paths(appliance, 2)
    create_pool(appliance, "-o", "compatibility=openzfs-2.1-linux", "careful", disk)
    guid = moving.guid_of(appliance, "careful")

    def told() -> bool:
        return "It stays readable for openzfs-2.1-linux" in visitor.get(f"/pools/{guid}/").words

    wait_for("its compatibility on its page", told, timeout=90, every=1)
    answer = visitor.get(f"/pools/{guid}/end/upgrade/")
    assert answer.status == 409
    assert "meant to stay readable" in answer.words
    moving.clear(appliance, disk)
