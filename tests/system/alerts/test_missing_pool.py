"""A pool that cannot be imported at start, as its disk is not in the box, is told once, and so is its return."""

from __future__ import annotations

from deploy.image.disk_models import DiskModel
from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.system.mailbox import text_of
from tests.visitor import create_pool, disk_paths

MISSING = "other is not there"


def start_again(appliance: Machine, disks: tuple[DiskModel, ...]) -> None:
    """Switched off, and on again with these disks in it."""
    appliance.run("sync")
    appliance.shut_down()
    appliance.disks = disks
    appliance.power_on()


# Five minutes, most of it for two starts.
def test_a_pool_whose_disk_was_taken_out_while_the_box_was_off_is_told_and_its_return_too(appliance, visitor, post):
    alerting.tell(visitor, post)
    create_pool(appliance, "-f", "-o", "ashift=12", "other", *disk_paths(appliance, 6))
    appliance.shell("echo here > /other/file; zpool sync other")
    query = "select name from larder_alerts_poolday where name = 'other' and not ended"
    wait_for("the pool to be remembered", lambda: alerting.ask(appliance, query), timeout=240, every=3)
    alerting.begin(appliance, post)
    everything = appliance.disks
    try:
        start_again(appliance, everything[:5])
        visitor.sign_in()
        assert alerting.raised(appliance, visitor, "pool.missing", timeout=600) == f"{MISSING}."
        alerting.arrived(post, MISSING)
        assert "all its disks are in the box" in text_of(post.about(MISSING)[0])
    finally:
        start_again(appliance, everything)
    visitor.sign_in()
    # Brought in at this start, unless the system has forgotten it meanwhile.
    appliance.run("zpool", "import", "-d", "/dev/disk/by-id", "other", check=False)
    alerting.over(appliance, visitor, "pool.missing", timeout=600)
    wait_for("the mail that it is over", lambda: post.about(f"resolved: {MISSING}"), timeout=240)
    assert len(post.about(MISSING)) == 2, post.subjects()
    assert appliance.run("cat", "/other/file") == "here\n"
