"""Long work is followed through crashes and power cuts, to exactly one true report."""

from __future__ import annotations

import pytest

from deploy.image.machine import wait_for
from tests.system.care import PARAMETERS, held, reported, reports, scan_of
from tests.system.moving import guid_of
from tests.visitor import Visitor, create_pool, disk_paths, run_zpool

# Two minutes each, the power cuts five and more under emulation.


@pytest.fixture(scope="module")
def tank(appliance, visitor) -> str:
    """A mirror with some data; the address of its page."""
    create_pool(appliance, "-O", "compression=off", "tank", "mirror", *disk_paths(appliance, 1, 2))
    appliance.shell("head -c 48M /dev/urandom > /tank/data.bin; zpool sync tank")
    page = f"/pools/{guid_of(appliance, 'tank')}/"
    visitor.wait_until(page, "Scrub now", timeout=60)
    return page


def restart_larder(appliance, visitor) -> None:
    """As after a crash of all of it at once, and with nothing left of what it knew in memory."""
    units = ("larder-web", "larder-worker")
    appliance.run("systemctl", "kill", "-s", "KILL", *units)
    appliance.run("systemctl", "stop", "larder-web.socket", *units)
    appliance.shell("rm -f /run/larder/inventory/inventory.sqlite3*")
    appliance.run("systemctl", "restart", "larder-prepare", "redis-server@larder")
    appliance.run("systemctl", "start", "larder-web.socket", *units)
    wait_for("the web page", appliance.serves, timeout=180, every=1)
    visitor.wait_until("/", without=("worker is not running", "queue (Redis) is not running"), timeout=120)


def test_a_scrub_goes_on_through_a_crash_of_larder_and_has_one_report(appliance, visitor, tank):
    with held(appliance):
        appliance.run("zpool", "scrub", "tank")
        visitor.wait_until(tank, "Scrubbing tank", timeout=60)
        restart_larder(appliance, visitor)
        visitor.wait_until(tank, "Scrubbing tank", timeout=90)
    report = reported(appliance, visitor, "tank", "scrub", 1)
    assert (report["outcome"], report["errors"]) == ("finished", 0)


def test_a_scrub_that_ends_while_larder_is_away_has_one_report(appliance, visitor, tank):
    with held(appliance):
        appliance.run("zpool", "scrub", "tank")
        visitor.wait_until(tank, "Scrubbing tank", timeout=60)
        appliance.run("systemctl", "stop", "larder-worker")
    appliance.run("zpool", "wait", "-t", "scrub", "tank", timeout=180)
    appliance.run("systemctl", "start", "larder-worker")
    assert reported(appliance, visitor, "tank", "scrub", 2)["outcome"] == "finished"
    visitor.wait_until(tank, "Everything was read and nothing was wrong.", without=("Scrubbing tank",), timeout=60)


def test_a_rebuilding_is_followed_and_has_one_report(appliance, visitor, tank):
    old, new = disk_paths(appliance, 2, 3)
    with held(appliance):
        run_zpool(appliance, "replace", "tank", old, new)
        visitor.wait_until("/", "Rebuilding tank", timeout=60)
        words = visitor.wait_until(tank, "Rebuilding tank", timeout=60).words
        assert "Scrub now" not in words
        restart_larder(appliance, visitor)
        visitor.wait_until(tank, "Rebuilding tank", timeout=90)
    report = reported(appliance, visitor, "tank", "resilver", 1, timeout=180)
    assert (report["outcome"], report["errors"]) == ("finished", 0)
    assert report["repaired"] >= 48 * 2**20
    visitor.wait_until(tank, "the disk is part of the pool again", timeout=60)


# --- power cuts: a boot under emulation takes more than a minute ------------------------------------------------
def cut_and_return(appliance, visitor: Visitor) -> None:
    appliance.shell("zpool sync tank; sync")
    appliance.cut_power()
    appliance.power_on()
    visitor.sign_in()
    wait_for("the pool", lambda: "tank" in appliance.run("zpool", "list", "-H", "-o", "name").split(), timeout=120)


def test_a_scrub_survives_a_power_cut_and_has_one_true_report(appliance, visitor, tank):
    before = len(reports(appliance, "tank", "scrub"))
    appliance.shell(f"echo 1 > {PARAMETERS}/zfs_scan_suspend_progress")
    appliance.run("zpool", "scrub", "tank")
    visitor.wait_until(tank, "Scrubbing tank", timeout=60)
    began = scan_of(appliance, "tank")["start_time"]
    cut_and_return(appliance, visitor)
    report = reported(appliance, visitor, "tank", "scrub", before + 1, timeout=240)
    assert (report["outcome"], report["errors"]) == ("finished", 0)
    scan = scan_of(appliance, "tank")
    assert (scan["state"], scan["start_time"]) == ("FINISHED", began)
    visitor.wait_until(tank, "Everything was read and nothing was wrong.", timeout=90)


def test_a_paused_scrub_stays_paused_through_a_power_cut(appliance, visitor, tank):
    before = len(reports(appliance, "tank", "scrub"))
    appliance.shell(f"echo 1 > {PARAMETERS}/zfs_scan_suspend_progress")
    appliance.run("zpool", "scrub", "tank")
    appliance.run("zpool", "scrub", "-p", "tank")
    cut_and_return(appliance, visitor)
    visitor.wait_until(tank, "paused", "Resume the scrub", timeout=120)
    assert len(reports(appliance, "tank", "scrub")) == before
    appliance.run("zpool", "scrub", "tank")
    assert reported(appliance, visitor, "tank", "scrub", before + 1, timeout=240)["outcome"] == "finished"


def test_a_rebuilding_survives_a_power_cut_and_has_one_true_report(appliance, visitor, tank):
    before = len(reports(appliance, "tank", "resilver"))
    used = appliance.run("zpool", "status", "-P", "tank")
    members = [path for path in disk_paths(appliance, 1, 2, 3) if path in used]
    spare = next(path for path in disk_paths(appliance, 1, 2, 3) if path not in used)
    appliance.shell(f"echo 1 > {PARAMETERS}/zfs_scan_suspend_progress")
    run_zpool(appliance, "replace", "-f", "tank", members[-1], spare)
    visitor.wait_until(tank, "Rebuilding tank", timeout=60)
    cut_and_return(appliance, visitor)
    report = reported(appliance, visitor, "tank", "resilver", before + 1, timeout=240)
    assert (report["outcome"], report["errors"]) == ("finished", 0)
    assert "replacing" not in appliance.run("zpool", "status", "tank")


def test_a_growing_raidz_survives_a_power_cut_and_has_one_true_report(appliance, visitor, tank):
    appliance.run("zpool", "destroy", "tank")
    *three, fourth = disk_paths(appliance, 3, 4, 5, 6)
    create_pool(appliance, "-f", "-O", "compression=off", "tank", "raidz1", *three)
    appliance.shell("head -c 64M /dev/urandom > /tank/data.bin; sha256sum /tank/data.bin > /root/sum; zpool sync tank")
    page = f"/pools/{guid_of(appliance, 'tank')}/"
    visitor.wait_until(page, "Scrub now", timeout=60)
    appliance.shell(f"echo {8 * 2**20} > {PARAMETERS}/raidz_expand_max_reflow_bytes")
    run_zpool(appliance, "attach", "-f", "tank", "raidz1-0", fourth)
    visitor.wait_until(page, "Growing tank by a disk", timeout=60)
    cut_and_return(appliance, visitor)
    report = reported(appliance, visitor, "tank", "expand", 1, timeout=300)
    assert report["outcome"] == "finished"
    # ZFS checks the pool by itself afterwards.
    assert reported(appliance, visitor, "tank", "scrub", 1, timeout=240)["errors"] == 0
    appliance.run("sha256sum", "-c", "/root/sum")
    visitor.wait_until(page, "The new disk is in use", timeout=60)
