"""What happens to pools is told: errors, repairs, stalls, a disk taken offline, a pool that fills
up, ZED that has stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.system.care import PARAMETERS
from tests.system.mailbox import Mailbox, text_of
from tests.visitor import Visitor, create_pool, disk_paths

FILE, MIB = "/root/small-pool", 2**20
FULL = ("pool.full80", "pool.full90", "pool.full96")
# Several at once: of one writer that waits for each write, the slow disk would have only a
# request at a time, done in 20 ms.
LOAD = (
    "for one in 1 2 3 4; do (while :; do dd if=/dev/urandom of=/tank/load$one bs=128k count=50 oflag=sync "
    "status=none; done) & done; wait"
)


@pytest.fixture(scope="module", autouse=True)
def told(appliance: Machine, visitor: Visitor, post: Mailbox) -> None:
    """A raidz2 with something in it, a mirror, a small pool in a file, and somebody who is told."""
    alerting.tell(visitor, post)
    alerting.make_tank(appliance)
    create_pool(appliance, "-f", "-o", "ashift=12", "pair", "mirror", *disk_paths(appliance, 5, 6))
    appliance.run("truncate", "-s", "1G", FILE)
    create_pool(appliance, "-O", "compression=off", "small", FILE)
    visitor.wait_until("/pools/", "small", "pair", "tank", timeout=180)


@contextmanager
def injected(appliance: Machine, pool: str, bay: int, error: str, at: str) -> Iterator[None]:
    """Meanwhile each request of that kind to that disk of the pool ends so (zinject(8)); its labels are left alone."""
    disk = disk_paths(appliance, bay)[0].rsplit("/", 1)[-1]
    appliance.run("zinject", "-d", disk, "-e", error, "-T", at, "-f", "100", pool)
    try:
        yield
    finally:
        appliance.run("zinject", "-c", "all")


def spoil(appliance: Machine, bay: int) -> None:
    """Overwrite where one disk of the raidz2 of four has its part of the file: zdb tells the blocks ("0 L0
    0:4c0e000:2d000"), counted over all four disks, behind 4 MiB of labels on each. No more than 4 MiB: each block is an
    event, for which ZED starts a dozen programs."""
    said = appliance.shell("zdb -dddddd tank/ $(stat -c %i /tank/photo)", timeout=300)
    found = re.findall(r"^\s*[0-9a-f]+\s+L0 0:([0-9a-f]+):([0-9a-f]+)", said, re.MULTILINE)
    blocks = [(int(offset, 16), int(size, 16)) for offset, size in found]
    assert blocks, said
    start, end = min(at for at, _size in blocks), max(at + size for at, size in blocks)
    first, count = (start // 4 + 4 * MIB) // 4096, min(end - start, 16 * MIB) // 4 // 4096
    part = f"{disk_paths(appliance, bay)[0]}-part1"
    appliance.shell(f"dd if=/dev/urandom of={part} bs=4096 seek={first} count={count} conv=notrunc,fsync status=none")


def test_damage_on_one_disk_is_a_warning_and_its_repair_no_alarm(appliance, visitor, post):
    since = alerting.begin(appliance, post)
    spoil(appliance, 3)
    appliance.run("zpool", "scrub", "-w", "tank", timeout=600)
    assert "bay 3" in alerting.raised(appliance, visitor, "pool.errors")
    alerting.arrived(post, "made errors")
    assert "repaired itself" in alerting.raised(appliance, visitor, "pool.repaired")
    assert len(alerting.alerts(appliance, "pool.repaired")) == 1
    assert post.about("repaired itself") == []  # a notice: with the day's news
    assert alerting.alerts(appliance, "pool.damaged") == []
    appliance.run("zpool", "clear", "tank")
    alerting.over(appliance, visitor, "pool.errors")
    alerting.each_once(appliance, post, since, "pool.errors")
    alerting.arrived(post, "tank repaired itself")  # now that the day's hour has been made to come
    appliance.run("sha256sum", "-c", "/root/sum")


# In the mirror: of a raidz, ZFS then counts an error or two of the disks beside it too, where a
# block has but one part of data.
def test_what_a_disk_gives_back_wrongly_is_told_with_its_bay(appliance, visitor, post):
    appliance.shell("dd if=/dev/urandom of=/pair/photo bs=1M count=8 status=none; zpool sync pair")
    since = alerting.begin(appliance, post)
    with injected(appliance, "pair", 5, "corrupt", "read"):
        appliance.run("zpool", "scrub", "-w", "pair", timeout=600)
    assert "bay 5" in alerting.raised(appliance, visitor, "pool.errors")
    alerting.arrived(post, "made errors")
    assert "checksum" in text_of(post.mails[0])
    appliance.run("zpool", "clear", "pair")
    alerting.over(appliance, visitor, "pool.errors")
    alerting.each_once(appliance, post, since, "pool.errors")


def test_a_disk_on_which_every_request_fails_is_told_as_what_zfs_makes_of_it(appliance, visitor, post):
    """Whether ZFS gives it up for that, or goes on trying, is its own decision (ZED counts);
    its owner hears of either."""
    since = alerting.begin(appliance, post)
    with injected(appliance, "tank", 2, "io", "all"):
        appliance.shell(
            "dd if=/dev/urandom of=/tank/more bs=1M count=32 status=none; zpool sync tank; zpool scrub tank",
            check=False,
        )
        summary = alerting.raised(appliance, visitor, "pool.degraded", "pool.errors")
    alerting.arrived(post, summary.rstrip("."))
    assert "bay 2" in text_of(post.mails[0])
    appliance.run("zpool", "clear", "tank")
    alerting.over(appliance, visitor, "pool.degraded", "pool.errors")
    kinds = alerting.kinds_since(appliance, since)
    assert set(kinds) <= {"pool.degraded", "pool.errors"}
    alerting.each_once(appliance, post, since, *kinds)
    wait_for("the whole pool", lambda: "ONLINE" in appliance.run("zpool", "list", "-H", "-o", "health", "tank"))
    appliance.run("sha256sum", "-c", "/root/sum")


def test_a_disk_that_takes_very_long_for_single_requests_is_told(appliance, visitor, post):
    """What counts as very long is set to a second meanwhile, from thirty; each request to that disk takes longer."""
    since, disk = alerting.begin(appliance, post), disk_paths(appliance, 2)[0].rsplit("/", 1)[-1]
    limit = f"{PARAMETERS}/zio_slow_io_ms"
    usual = appliance.run("cat", limit).strip()
    appliance.shell(f"echo 1000 > {limit}")
    appliance.run("zinject", "-d", disk, "-D", "1500:8", "tank")
    try:
        appliance.shell("dd if=/dev/urandom of=/tank/stall bs=1M count=16 status=none; zpool sync tank", timeout=600)
        summary = alerting.raised(appliance, visitor, "pool.stalls")
    finally:
        appliance.run("zinject", "-c", "all")
        appliance.shell(f"echo {usual} > {limit}")
    assert "bay 2" in summary
    alerting.arrived(post, "was very slow to answer")
    appliance.run("zpool", "clear", "tank")
    alerting.over(appliance, visitor, "pool.stalls")
    alerting.each_once(appliance, post, since, "pool.stalls")


def test_a_disk_that_was_taken_offline_is_told_as_that(appliance, visitor, post):
    since = alerting.begin(appliance, post)
    guid = alerting.guid_of(appliance, 4)
    appliance.run("zpool", "offline", "tank", guid)
    assert "taken offline" in alerting.raised(appliance, visitor, "pool.offline")
    alerting.arrived(post, "taken offline")
    appliance.run("zpool", "online", "tank", guid)
    alerting.over(appliance, visitor, "pool.offline")
    alerting.each_once(appliance, post, since, "pool.offline")


def test_a_mirror_with_a_disk_given_up_survives_nothing_more_and_says_so(appliance, visitor, post):
    since = alerting.begin(appliance, post)
    appliance.run("zpool", "offline", "-f", "pair", alerting.guid_of(appliance, 5, "pair"))
    assert (
        alerting.raised(appliance, visitor, "pool.no-redundancy")
        == "pair is degraded: one more failed disk would lose data."
    )
    alerting.arrived(post, "pair is degraded: one more failed disk would lose data")
    text = text_of(post.mails[0])
    assert "bay 5" in text
    assert "replace it now" in text
    appliance.run("zpool", "clear", "pair")
    alerting.over(appliance, visitor, "pool.no-redundancy")
    alerting.each_once(appliance, post, since, "pool.no-redundancy")


def test_a_pool_that_fills_up_has_one_alert_at_a_time(appliance, visitor, post):
    """Filled with zeros, which are stored as they are without compression; usage as ZFS reckons it, reserve and all."""
    alerting.begin(appliance, post)
    used, available = (
        int(word) for word in appliance.run("zfs", "get", "-Hp", "-o", "value", "used,available", "small").split()
    )
    total = used + available
    for percent, kind, mails in ((82, "pool.full80", 0), (92, "pool.full90", 1), (97, "pool.full96", 2)):
        appliance.shell(
            f"dd if=/dev/zero of=/small/{percent} bs=1M "
            f"count={max((total * percent // 100 - used) // MIB, 1)} status=none; zpool sync small",
            check=False,
        )
        used = int(appliance.run("zfs", "get", "-Hp", "-o", "value", "used", "small"))
        assert "% full" in alerting.raised(appliance, visitor, kind)
        for other in {*FULL} - {kind}:
            assert alerting.are_open(appliance, other) == []
        alerting.arrived(post, "small is", mails)  # a notice waits for the day's news
    assert [len(alerting.alerts(appliance, kind)) for kind in FULL] == [1, 1, 1]
    appliance.shell("rm /small/*; zpool sync small")
    alerting.over(appliance, visitor, *FULL)
    alerting.arrived(post, "resolved: small is")


def test_zed_stopped_is_told_and_its_return_too_while_the_mail_server_hangs_at_first(appliance, visitor, post):
    since = alerting.begin(appliance, post)
    post.mode = "hang"
    before = post.tries
    appliance.run("systemctl", "stop", "zfs-zed")
    try:
        alerting.raised(appliance, visitor, "service.zed")
        wait_for("a try to send it", lambda: post.tries > before, timeout=180)
    finally:
        post.mode = "take"
        appliance.run("systemctl", "start", "zfs-zed")
    alerting.over(appliance, visitor, "service.zed")
    wait_for("both mails", lambda: len(post.mails) >= 2 or alerting.hasten(appliance), timeout=300, every=5)
    alerting.each_once(appliance, post, since, "service.zed")


# A quarter of an hour: a disk has to be slow for ten minutes before it is called so.
def test_a_slow_disk_is_named_while_those_beside_it_are_not(appliance, visitor, post):
    since = alerting.begin(appliance, post)
    appliance.slow(2, 50)
    appliance.run("systemd-run", "--unit=load", "sh", "-c", LOAD)
    try:
        summary = alerting.raised(appliance, visitor, "disk.slow", disks=True, timeout=1500)
        assert "bay 2" in summary
        alerting.arrived(post, summary.rstrip("."))
        assert "ms per request" in text_of(post.about(summary.rstrip("."))[0])
        appliance.slow(2, 0)
        alerting.over(appliance, visitor, "disk.slow", disks=True, timeout=600)
    finally:
        appliance.slow(2, 0)
        appliance.run("systemctl", "stop", "load", check=False)
    alerting.each_once(appliance, post, since, "disk.slow")
