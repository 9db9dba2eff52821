"""What happens to pools is told: errors, repairs, a disk taken offline, a pool that fills up, ZED that has stopped."""

from __future__ import annotations

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.system.mailbox import Mailbox
from tests.visitor import Visitor, create_pool, disk_paths

# Open: not yet seen to pass in an appliance, so none of it stands in the normal run.
pytestmark = pytest.mark.soak
FILE, MIB = "/root/small-pool", 2**20


@pytest.fixture(scope="module", autouse=True)
def told(appliance: Machine, visitor: Visitor, post: Mailbox) -> None:
    """A raidz2 with something in it, a small pool in a file, and somebody who is told."""
    alerting.tell(visitor, post)
    alerting.make_tank(appliance)
    appliance.run("truncate", "-s", "1G", FILE)
    create_pool(appliance, "-O", "compression=off", "small", FILE)
    visitor.wait_until("/pools/", "small", timeout=180)


def guid_of(appliance: Machine, bay: int) -> str:
    """The guid of the vdev in a bay of tank."""
    link = disk_paths(appliance, bay)[0]
    return appliance.run("zpool", "get", "-H", "-o", "value", "guid", "tank", link).strip()


def test_damage_on_one_disk_is_a_warning_and_its_repair_no_alarm(appliance, visitor, post):
    post.mails.clear()
    third = disk_paths(appliance, 3)[0]
    appliance.shell(f"dd if=/dev/urandom of={third}-part1 bs=1M seek=8 count=400 conv=notrunc,fsync status=none")
    appliance.run("zpool", "scrub", "-w", "tank", timeout=600)
    alerting.raised(appliance, visitor, "pool.errors")
    alerting.arrived(post, "made errors")
    found = alerting.alerts(appliance, "pool.repaired")
    assert len(found) == 1
    assert "repaired itself" in found[0][2]
    assert post.about("repaired itself") == []  # a notice: with the day's news
    assert alerting.alerts(appliance, "pool.damaged") == []
    appliance.run("zpool", "clear", "tank")
    alerting.over(appliance, visitor, "pool.errors")
    alerting.arrived(post, "Over: tank")


def test_a_disk_that_was_taken_offline_is_told_as_that(appliance, visitor, post):
    post.mails.clear()
    appliance.run("zpool", "offline", "tank", guid_of(appliance, 4))
    summary = alerting.raised(appliance, visitor, "pool.offline")
    assert "taken offline" in summary
    alerting.arrived(post, "taken offline")
    assert [row for row in alerting.alerts(appliance, "pool.weakened") if row[1] == "open"] == []
    appliance.run("zpool", "online", "tank", guid_of(appliance, 4))
    alerting.over(appliance, visitor, "pool.offline")
    alerting.arrived(post, "Over: tank")


def test_a_pool_that_fills_up_has_one_alert_at_a_time(appliance, visitor, post):
    """Filled with zeros, which are stored as they are without compression; usage as ZFS reckons it, reserve and all."""
    used, available = (int(word) for word in appliance.run("zfs", "get", "-Hp", "-o", "value", "used,available", "small").split())  # fmt: skip
    total = used + available
    for percent, kind in ((82, "pool.full80"), (92, "pool.full90"), (97, "pool.full96")):
        appliance.shell(f"dd if=/dev/zero of=/small/{percent} bs=1M count={max((total * percent // 100 - used) // MIB, 1)} status=none; zpool sync small", check=False)  # fmt: skip
        used = int(appliance.run("zfs", "get", "-Hp", "-o", "value", "used", "small"))
        summary = alerting.raised(appliance, visitor, kind)
        assert "% full" in summary
        for other in {"pool.full80", "pool.full90", "pool.full96"} - {kind}:
            assert [row for row in alerting.alerts(appliance, other) if row[1] == "open"] == []
    appliance.shell("rm /small/*; zpool sync small")
    alerting.over(appliance, visitor, "pool.full96")


def test_zed_stopped_is_told_and_its_return_too_while_the_mail_server_hangs_at_first(appliance, visitor, post):
    post.mails.clear()
    post.mode = "hang"
    before = post.tries
    appliance.run("systemctl", "stop", "zfs-zed")
    try:
        alerting.raised(appliance, visitor, "service.zed")
        wait_for("a try to send it", lambda: post.tries > before, timeout=180)
    finally:
        appliance.run("systemctl", "start", "zfs-zed")
    post.mode = "take"
    alerting.over(appliance, visitor, "service.zed")
    wait_for("both mails", lambda: len(post.mails) >= 2 or alerting.hasten(appliance), timeout=300, every=5)
    assert sorted(str(mail["Subject"])[:15] for mail in post.mails) == ["[larder] Events", "[larder] Over: "]


def test_a_slow_disk_is_named_while_those_beside_it_are_not(appliance, visitor, post):
    post.mails.clear()
    appliance.slow(2, 50)
    appliance.shell("nohup sh -c 'for turn in $(seq 60); do dd if=/dev/urandom of=/tank/load bs=128k count=200 oflag=sync status=none; done' >/dev/null 2>&1 &")  # fmt: skip
    try:
        summary = alerting.raised(appliance, visitor, "disk.slow", disks=True, timeout=1500)
        assert "bay 2" in summary
        assert len(alerting.alerts(appliance, "disk.slow")) == 1
    finally:
        appliance.slow(2, 0)
