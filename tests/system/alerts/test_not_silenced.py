"""One broken source never silences another: while a disk hangs, or a pool has stopped, the
faults of others are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import alerting, shapes
from tests.system.mailbox import Mailbox
from tests.visitor import Visitor, create_pool, disk_paths

NVME, HUNG = "LARDER-NVME-1", "scsi_debug"
OFFLINE = "tank runs without a disk that was taken offline"
KNOBS = "/sys/bus/pseudo/drivers/scsi_debug"


@pytest.fixture(scope="module", autouse=True)
def told(appliance: Machine, visitor: Visitor, post: Mailbox) -> None:
    """A raidz2, a disk whose warnings can be set, and somebody who is told."""
    alerting.tell(visitor, post)
    alerting.make_tank(appliance)
    appliance.insert("nvme5", 10**10, serial=NVME, kind="nvme")
    visitor.wait_until("/pools/", "tank", timeout=180)
    visitor.wait_until("/disks/", NVME, timeout=180)


@contextmanager
def hanging(appliance: Machine) -> Iterator[None]:
    """Meanwhile a disk of the kernel's own test driver answers no command at all (scsi_debug: every one is ignored)."""
    appliance.shell(f"echo 1 > {KNOBS}/every_nth; echo 4 > {KNOBS}/opts")
    try:
        yield
    finally:
        appliance.shell(f"echo 0 > {KNOBS}/opts; echo 0 > {KNOBS}/every_nth")


def both_faults(appliance: Machine, visitor: Visitor, post: Mailbox, guid: str) -> None:
    """A disk of tank is taken offline and another begins to fail; each is told."""
    appliance.run("zpool", "offline", "tank", guid)
    appliance.nvme_warning("nvme5", 4)
    alerting.raised(appliance, visitor, "pool.offline", timeout=600)
    alerting.arrived(post, OFFLINE)
    summary = alerting.raised(appliance, visitor, "disk.failing", disks=True, timeout=600)
    assert "unreliable" in summary
    alerting.arrived(post, summary.split(":")[0])


def both_over(appliance: Machine, visitor: Visitor, guid: str) -> None:
    appliance.nvme_warning("nvme5", 0)
    appliance.run("zpool", "online", "tank", guid)
    alerting.over(appliance, visitor, "pool.offline", "disk.failing", disks=True, timeout=900)


def test_a_disk_that_hangs_silences_no_other_disk_and_no_pool(appliance, visitor, post):
    appliance.run("modprobe", "scsi_debug", "dev_size_mb=128", "num_tgts=1")
    visitor.wait_until("/disks/", HUNG, timeout=180)
    disk = shapes.by_id(appliance, device_serial(appliance))
    guid = alerting.guid_of(appliance, 4)
    since = alerting.begin(appliance, post)
    with hanging(appliance):
        # It takes the signal only when its command ends: either way it has not answered in time.
        said = appliance.shell(f"timeout 5 smartctl -i {disk} > /dev/null 2>&1 || echo $?")
        assert said.strip() == "124", "the disk that should hang answers"
        both_faults(appliance, visitor, post, guid)
        both_over(appliance, visitor, guid)
        asking = appliance.shell(f"ps -C smartctl -o args= | grep -e --json | grep -c {disk} || true")
        assert int(asking) <= 1, "questions to the disk that hangs pile up"
    # That it hangs is told too, where it has told something before and that lasts for eleven minutes.
    alerting.over(appliance, visitor, "disk.silent", disks=True)
    kinds = alerting.kinds_since(appliance, since)
    assert sorted({*kinds} - {"disk.silent"}) == ["disk.failing", "pool.offline"]
    alerting.each_once(appliance, post, since, *kinds)


def device_serial(appliance: Machine) -> str:
    """The serial number of the test driver's disk, as the system tells it."""
    name = appliance.shell("lsblk -dno NAME,MODEL | awk '$2 == \"scsi_debug\" { print $1 }'").strip()
    return appliance.run("lsblk", "-dno", "SERIAL", f"/dev/{name}").strip()


# Last: a pool whose only disk died stays stopped until the next start.
def test_a_pool_that_has_stopped_silences_no_other_and_no_disk(appliance, visitor, post):
    create_pool(appliance, "-f", "-o", "ashift=12", "late", *disk_paths(appliance, 6))
    visitor.wait_until("/pools/", "late", timeout=180)
    guid = alerting.guid_of(appliance, 4)
    alerting.begin(appliance, post)
    appliance.kill(6)
    # Something has to be written before ZFS notices; that then waits for ever, so it is left alone.
    appliance.shell(
        "(dd if=/dev/urandom of=/late/x bs=1M count=8 conv=fsync >/dev/null 2>&1 &); (zpool sync late "
        ">/dev/null 2>&1 &); true"
    )
    assert alerting.raised(appliance, visitor, "pool.stopped") == "late has stopped."
    alerting.arrived(post, "late has stopped")
    both_faults(appliance, visitor, post, guid)
    both_over(appliance, visitor, guid)
    wait_for("both ends", lambda: len(post.about("resolved: ")) >= 2, timeout=240)
    assert len(post.about("late has stopped")) == 1
    assert len(alerting.are_open(appliance, "pool.stopped")) == 1
