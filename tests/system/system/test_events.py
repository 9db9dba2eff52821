"""Events of ZED and smartd come through the spool, also when nobody is there to hear them."""

from __future__ import annotations

import json

import pytest

from deploy.image.machine import wait_for
from tests.visitor import create_pool, disk_paths

SPOOL = "/var/spool/larder/events"
QUERY = (
    "import sqlite3, json; "
    "print(json.dumps(sqlite3.connect('/run/larder/inventory/inventory.sqlite3').execute('select source, kind, "
    "subject from inventory_event').fetchall()))"
)


@pytest.fixture(scope="module", autouse=True)
def other(appliance, visitor) -> None:
    """A pool whose events are to be heard."""
    create_pool(appliance, "-f", "other", disk_paths(appliance, 6)[0])


def heard(appliance) -> list[list[str]]:
    return json.loads(appliance.run("python3", "-c", QUERY))


def waiting(appliance) -> list[str]:
    return appliance.shell(f"ls {SPOOL}").split()


def test_a_pool_event_of_zed_is_taken_in_once(appliance, visitor):
    wait_for("ZED's event", lambda: ["zed", "sysevent.fs.zfs.pool_create", "other"] in heard(appliance), timeout=180)
    wait_for("an empty spool", lambda: not waiting(appliance), timeout=90)
    assert heard(appliance).count(["zed", "sysevent.fs.zfs.pool_create", "other"]) == 1


def test_smartds_own_test_event_arrives(appliance, visitor):
    config = appliance.run("cat", "/etc/larder/smartd.conf").strip().splitlines()[-1]
    appliance.put("/tmp/smartd.conf", f"{config} -M test\n")
    appliance.run("smartd", "-c", "/tmp/smartd.conf", "-q", "onecheck", timeout=120)
    wait_for(
        "smartd's event",
        lambda: any(source == "smartd" and kind == "EmailTest" for source, kind, _ in heard(appliance)),
        timeout=60,
    )


def test_the_running_smartd_reads_larders_own_file(appliance):
    assert appliance.run("systemctl", "is-active", "smartmontools").strip() == "active"
    assert "-c\0/etc/larder/smartd.conf" in appliance.shell("cat /proc/$(pidof smartd)/cmdline")


def test_an_event_survives_a_stopped_worker_and_a_stopped_redis(appliance, visitor):
    appliance.run("systemctl", "stop", "larder-worker", "redis-server@larder")
    appliance.run("zfs", "create", "other/later")
    wait_for("an event in the spool", lambda: any(name.endswith(".json") for name in waiting(appliance)), timeout=30)
    appliance.run("systemctl", "start", "redis-server@larder", "larder-worker")
    wait_for("an empty spool", lambda: not waiting(appliance), timeout=90)
    assert any(kind == "sysevent.fs.zfs.history_event" for _, kind, _ in heard(appliance))


def test_what_is_no_event_is_put_aside_and_stops_nothing(appliance, visitor):
    appliance.put(f"{SPOOL}/0-half.json", '{"source":"zed","fie')
    appliance.shell(f"ln -s /etc/shadow {SPOOL}/1-link.json; head -c 100000 /dev/zero > {SPOOL}/2-huge.json")
    appliance.run("zfs", "create", "other/after")
    wait_for("an empty spool", lambda: not [name for name in waiting(appliance) if name.endswith(".json")], timeout=60)
    assert "root:" in appliance.run("cat", "/etc/shadow")


def test_zeds_scripts_give_way_to_pages_and_worker(appliance):
    """After a thousand snapshots it runs a thousand scripts, 16 at a time."""
    weights = {
        unit: int(appliance.run("cat", f"/sys/fs/cgroup/system.slice/{unit}.service/cpu.weight"))
        for unit in ("zfs-zed", "larder-web", "larder-worker")
    }
    assert weights == {"zfs-zed": 20, "larder-web": 500, "larder-worker": 100}


def test_one_script_runs_for_each_change_and_the_systems_log_has_what_it_had(appliance, visitor):
    """Debian's two scripts that do nothing with history events are out of ZED's folder; other
    events are logged as before."""
    scripts = appliance.run("ls", "/etc/zfs/zed.d").split()
    assert [name for name in scripts if name.startswith(("all-", "history_event-"))] == ["all-larder.sh"]
    logged = appliance.shell("journalctl --no-pager -o cat -t zed")
    assert "class=pool_create pool='other'" in logged and "history_event" not in logged
