"""Faults while Larder itself is down, at the wrong time, a thousand at once, or of a disk that dies:
each one alert, one mail."""

from __future__ import annotations

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.system.crash import stopped
from tests.system.mailbox import Mailbox
from tests.visitor import Visitor, disk_paths, run_zpool

SPOOL = "/var/spool/larder"
EVENT = (
    '{"source": "zed", "received": "2026-11-21T12:00:00Z", "fields": {"ZEVENT_CLASS": "ereport.fs.zfs.checksum", '
    '"ZEVENT_POOL": "tank"}}'
)
# As the hook does it: written beside, and renamed into the folder that the worker reads; but by
# one process, within seconds.
FLOOD = """
import os, sys
for at in range(1000):
    with open(f"{sys.argv[1]}/new/{at}", "w") as file:
        file.write(sys.argv[2])
    os.rename(f"{sys.argv[1]}/new/{at}", f"{sys.argv[1]}/events/test-{at}.json")
"""
OFFLINE = "tank runs without a disk that was taken offline"


@pytest.fixture(scope="module", autouse=True)
def told(appliance: Machine, visitor: Visitor, post: Mailbox) -> None:
    """A raidz2 with something in it, and somebody who is told."""
    alerting.tell(visitor, post)
    alerting.make_tank(appliance)
    visitor.wait_until("/pools/", "tank", timeout=180)


def waiting(appliance: Machine) -> int:
    return len(appliance.shell(f"ls {SPOOL}/events").split())


def test_a_thousand_events_of_nothing_are_no_alert_and_the_spool_is_empty_again(appliance, visitor, post):
    """What an event says is not believed; the pool is read, and nothing is wrong with it."""
    since = alerting.begin(appliance, post)
    appliance.run("python3", "-c", FLOOD, SPOOL, EVENT)
    wait_for("an empty spool", lambda: waiting(appliance) == 0, timeout=900, every=3)
    assert appliance.run("ls", f"{SPOOL}/aside") == ""
    visitor.get("/")
    assert alerting.kinds_since(appliance, since) == []
    assert post.mails == []


def test_a_thousand_events_of_one_fault_are_one_alert_and_what_is_more_is_not_kept(appliance, visitor, post):
    since, guid = alerting.begin(appliance, post), alerting.guid_of(appliance, 4)
    with stopped(appliance, "larder-worker"):
        appliance.run("python3", "-c", FLOOD, SPOOL, EVENT)
        full = waiting(appliance)
        assert full >= 1000
        appliance.run("zpool", "offline", "tank", guid)
        appliance.shell(
            "for _ in $(seq 20); do ZEVENT_CLASS=ereport.fs.zfs.io ZEVENT_POOL=tank /usr/local/lib/larder/spool; done"
        )
        assert waiting(appliance) == full
    assert "tank" in alerting.raised(appliance, visitor, "pool.offline", timeout=600)
    wait_for("an empty spool", lambda: waiting(appliance) == 0, timeout=900, every=3)
    alerting.arrived(post, OFFLINE)
    appliance.run("zpool", "online", "tank", guid)
    alerting.over(appliance, visitor, "pool.offline")
    alerting.each_once(appliance, post, since, "pool.offline")


def test_what_happens_while_worker_and_redis_are_down_is_told_once_they_are_back(appliance, visitor, post):
    since, guid = alerting.begin(appliance, post), alerting.guid_of(appliance, 4)
    with stopped(appliance, "larder-worker", "redis-server@larder"):
        appliance.run("zpool", "offline", "tank", guid)
    assert OFFLINE in alerting.raised(appliance, visitor, "pool.offline")
    alerting.arrived(post, OFFLINE)
    appliance.run("zpool", "online", "tank", guid)
    alerting.over(appliance, visitor, "pool.offline")
    alerting.each_once(appliance, post, since, "pool.offline")


def test_a_fault_after_the_clock_was_set_back_is_told_and_its_end_too(appliance, visitor, post):
    since, guid = alerting.begin(appliance, post), alerting.guid_of(appliance, 4)
    appliance.run("date", "-s", "-3 days")
    try:
        appliance.run("zpool", "offline", "tank", guid)
        assert OFFLINE in alerting.raised(appliance, visitor, "pool.offline")
        alerting.arrived(post, OFFLINE)
        appliance.run("zpool", "online", "tank", guid)
        alerting.over(appliance, visitor, "pool.offline")
    finally:
        appliance.run("date", "-s", "+3 days")
    alerting.each_once(appliance, post, since, "pool.offline")


def test_a_fault_while_the_clock_is_years_ahead_is_told_and_its_end_too(appliance, visitor, post):
    """What should have been done in those years is told too, and over once the clock is right."""
    alerting.begin(appliance, post)
    guid = alerting.guid_of(appliance, 4)
    appliance.run("date", "-s", "+4 years")
    try:
        appliance.run("zpool", "offline", "tank", guid)
        wait_for("the alert", lambda: alerting.are_open(appliance, "pool.offline"), timeout=300, every=5)
    finally:
        appliance.run("date", "-s", "-4 years")
    visitor.sign_in()
    alerting.arrived(post, OFFLINE)
    appliance.run("zpool", "online", "tank", guid)
    alerting.over(appliance, visitor, "pool.offline")
    alerting.arrived(post, f"resolved: {OFFLINE}")


def test_a_disk_that_dies_in_its_slot_is_one_alert_until_another_has_its_place(appliance, visitor, post):
    since, guid = alerting.begin(appliance, post), alerting.guid_of(appliance, 3)
    appliance.kill(3)
    appliance.shell(
        "dd if=/dev/urandom of=/tank/more bs=1M count=64 status=none; zpool sync tank; zpool scrub tank",
        check=False,
        timeout=900,
    )
    assert "tank" in alerting.raised(appliance, visitor, "pool.degraded", timeout=600)
    alerting.arrived(post, "tank is degraded:")
    appliance.shell("zpool scrub -s tank", check=False)
    run_zpool(appliance, "replace", "-f", "tank", guid, disk_paths(appliance, 5)[0])
    appliance.run("zpool", "wait", "-t", "resilver", "tank", timeout=600)
    alerting.over(appliance, visitor, "pool.degraded")
    alerting.each_once(appliance, post, since, "pool.degraded")
    appliance.run("sha256sum", "-c", "/root/sum")
