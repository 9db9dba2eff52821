"""On bad days every page still answers and says what is wrong."""

from __future__ import annotations

from deploy.image.machine import wait_for
from tests.system.crash import stopped
from tests.visitor import Visitor, disk_paths

PAGES = ("/", "/pools/", "/disks/", "/folders/", "/users/", "/jobs/", "/pools/new/", "/account/sessions/")


def check_every_page(visitor: Visitor) -> None:
    for path in PAGES:
        assert visitor.get(path).status == 200, path


def test_with_redis_stopped_check_every_page_and_says_so_and_a_job_waits(appliance, visitor):
    with stopped(appliance, "redis-server@larder"):
        visitor.wait_until("/", "queue (Redis) is not running")
        check_every_page(visitor)
        job = visitor.confirm(visitor.review_pool("late", disk_paths(appliance, 6), "stripe-1"))
        assert "Waiting" in visitor.get(f"/jobs/{job}/").words
    assert visitor.ended(job).startswith("Done."), visitor.ended(job)
    visitor.wait_until("/", "late", without=("queue (Redis) is not running",))


def test_with_the_worker_stopped_check_every_page_and_says_so(appliance, visitor):
    with stopped(appliance, "larder-worker"):
        visitor.wait_until("/", "worker is not running")
        check_every_page(visitor)
    visitor.wait_until("/", without=("worker is not running",), timeout=90)


def test_with_a_suspended_pool_check_every_page_and_says_what_to_do(appliance, visitor):
    guid = appliance.run("zpool", "get", "-H", "-o", "value", "guid", "late").strip()
    appliance.kill(6)
    # Something has to be written before ZFS notices; it then waits for ever, so it is left alone.
    appliance.shell(
        "(dd if=/dev/urandom of=/late/x bs=1M count=8 conv=fsync >/dev/null 2>&1 &) ; (zpool sync late "
        ">/dev/null 2>&1 &) ; true"
    )
    visitor.wait_until("/", "late has stopped", timeout=90)
    check_every_page(visitor)
    page = visitor.get(f"/pools/{guid}/")
    assert page.status == 200
    assert "Bring the disks back" in page.words


def test_without_the_zfs_module_check_every_page_and_says_so(appliance, visitor):
    """As after a kernel update whose module did not build: the box starts without it."""
    appliance.run(
        "sh",
        "-c",
        "printf 'install zfs /bin/false\nblacklist zfs\n' > /etc/modprobe.d/no-zfs.conf; rm -f "
        "/etc/zfs/zpool.cache; sync",
    )
    # A suspended pool lets nobody shut down in order.
    appliance.cut_power()
    appliance.power_on()
    wait_for("the module to be away", lambda: "zfs" not in appliance.run("cat", "/proc/misc").split(), timeout=30)
    visitor.sign_in()
    visitor.wait_until("/", "The ZFS module is not loaded", timeout=90)
    check_every_page(visitor)
    review = visitor.review_pool("none", disk_paths(appliance, 1), "stripe-1")
    assert "not loaded" in review.words
    assert not visitor.get("/jobs/").words.count("Create the pool none")
