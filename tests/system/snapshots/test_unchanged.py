"""An unchanged folder on real ZFS: its latest snapshot also serves the next day, and no new one is taken."""

from __future__ import annotations

from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.system.policy import made, set_policy
from tests.system.sharing import key_of
from tests.visitor import create_pool, disk_paths

RECORD = "select guid, grains, until from larder_snapshots_madesnapshot"


def recorded(appliance: Machine) -> list[list[str]]:
    """Guid, grains and last served moment of each snapshot of the schedule."""
    return [row for row in alerting.ask(appliance, RECORD) if row[1]]


def test_unchanged_folder_gives_next_grain_to_latest_snapshot(appliance, visitor):
    create_pool(appliance, "-o", "ashift=12", "tank", *disk_paths(appliance, 1))
    appliance.run("zfs", "create", "tank/photos")
    visitor.wait_until("/folders/", "tank/photos", timeout=90)
    set_policy(visitor, f"/snapshots/of/{key_of(appliance, 'tank/photos')}/", hourly=2, daily=2, skip_unchanged="on")
    (first,) = wait_for("the first of the policy", lambda: made(appliance), timeout=180)
    ((guid, grains, until),) = wait_for("its record", lambda: recorded(appliance), timeout=120)
    assert (guid, grains, until) == (key_of(appliance, f"tank/photos@{first}"), "hourly,daily", None)

    appliance.run("date", "-s", "+1 day")
    wait_for("the next day to be served", lambda: recorded(appliance)[0][2], timeout=240)
    assert made(appliance) == [first]

    # A change after that needs an hourly snapshot; the day has one already.
    appliance.run("touch", "/tank/photos/new")
    appliance.run("zpool", "sync", "tank")
    appliance.run("date", "-s", "+1 hour")
    wait_for("the next snapshot", lambda: len(recorded(appliance)) == 2, timeout=240)
    wait_for("both to be there", lambda: len(made(appliance)) == 2, timeout=60)
    by_guid = {row[0]: row[1] for row in recorded(appliance)}
    second = made(appliance)[1]
    assert by_guid[key_of(appliance, f"tank/photos@{second}")] in {"hourly", "hourly,daily"}
    assert by_guid[guid] == "hourly,daily"
