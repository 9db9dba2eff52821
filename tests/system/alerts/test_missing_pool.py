"""Disks that are not in the box when it starts: a pool that lost its only one, and one that goes on without."""

from __future__ import annotations

from deploy.image.disk_models import DiskModel
from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.system.mailbox import text_of
from tests.visitor import create_pool, disk_paths

MISSING = "other is missing"


def start_again(appliance: Machine, disks: tuple[DiskModel, ...]) -> None:
    """Switched off, and on again with these disks in it."""
    appliance.run("sync")
    appliance.shut_down()
    appliance.disks = disks
    appliance.power_on()


# Five minutes, most of it for two starts.
def test_disks_that_were_taken_out_while_the_box_was_off_are_told_and_their_return_too(appliance, visitor, post):
    alerting.tell(visitor, post)
    create_pool(appliance, "-f", "-o", "ashift=12", "other", *disk_paths(appliance, 6))
    create_pool(appliance, "-f", "-o", "ashift=12", "pair", "mirror", *disk_paths(appliance, 4, 5))
    appliance.shell("echo here > /other/file; zpool sync other")
    query = "select name from larder_alerts_poolday where name in ('other', 'pair') and not ended"
    wait_for("the pools to be remembered", lambda: len(alerting.ask(appliance, query)) == 2, timeout=240, every=3)
    guid = appliance.run("zpool", "get", "-H", "-p", "-o", "value", "guid", "pair").strip()
    alerting.begin(appliance, post)
    everything = appliance.disks
    try:
        start_again(appliance, everything[:4])
        visitor.sign_in()
        assert alerting.raised(appliance, visitor, "pool.missing", timeout=600) == f"{MISSING}."
        alerting.arrived(post, MISSING)
        assert "all its disks are in the box" in text_of(post.about(MISSING)[0])
        # ZFS says of a disk that it cannot open another word in its JSON than in its text.
        assert '"CANT_OPEN"' in appliance.run("zpool", "status", "-j", "pair")
        assert alerting.raised(appliance, visitor, "pool.no-redundancy", timeout=300).startswith("pair")
        alerting.arrived(post, "pair")
        assert "does not answer" in text_of(post.about("pair")[0])
        page = visitor.wait_until(f"/pools/{guid}/", "does not answer", timeout=60)
        assert "pair is healthy" not in page.words
    finally:
        start_again(appliance, everything)
    visitor.sign_in()
    # Brought in at this start, unless the system has forgotten it meanwhile.
    appliance.run("zpool", "import", "-d", "/dev/disk/by-id", "other", check=False)
    alerting.over(appliance, visitor, "pool.missing", "pool.no-redundancy", timeout=600)
    wait_for("the mail that it is over", lambda: post.about(f"resolved: {MISSING}"), timeout=240)
    assert len(post.about(MISSING)) == 2, post.subjects()
    assert appliance.run("cat", "/other/file") == "here\n"
