"""Parts of Larder fail, hang and answer nonsense, one after the other: the rest goes on, and each fault is reported once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.system.crash import stopped
from tests.system.mailbox import Mailbox, mailbox
from tests.visitor import Visitor

RUN = "/run/larder/inventory"
# A short watchdog, so that nobody waits five minutes for it.
QUICK = "[Service]\nWatchdogSec=45\nTimeoutAbortSec=5\n"
DROP_IN = "/run/systemd/system/larder-worker.service.d/quick.conf"
# A benchmark of another version of Larder: its next case cannot be understood.
ODD_SWEEP = "insert into sweeps_sweeprow (id, title, preset, spec, state, text, versions, created, created_by) values ('00000000000040008000000000000001', 'Odd', '', '{}', 'running', '', '', '2026-01-01 00:00:00', 'admin')"  # fmt: skip
ODD_CASE = "insert into sweeps_caserow (sweep_id, number, spec, state, token, ended, attempts, text) values ('00000000000040008000000000000001', 1, '{\"where\":\"tape\"}', 'waiting', '', '', 0, '')"  # fmt: skip


@pytest.fixture(scope="module")
def post() -> Iterator[Mailbox]:
    with mailbox() as box:
        yield box


@pytest.fixture(scope="module", autouse=True)
def told(appliance: Machine, visitor: Visitor, post: Mailbox) -> None:
    alerting.tell(visitor, post)


def pid_of(appliance: Machine, unit: str) -> str:
    return appliance.run("systemctl", "show", "-P", "MainPID", unit).strip()


def restarts(appliance: Machine) -> int:
    return int(appliance.run("systemctl", "show", "-P", "NRestarts", "larder-worker").strip())


def long_enough(appliance: Machine) -> None:
    """Faults that wait to become alerts have waited for long."""
    script = f"""
import json, pathlib
path = pathlib.Path("{RUN}/waits-faults.json")
found = json.loads(path.read_text()) if path.exists() else {{}}
path.write_text(json.dumps({{key: -10000.0 for key in found}}))
"""
    appliance.run("python3", "-c", script)
    appliance.run("systemctl", "restart", "larder-worker")


def test_a_worker_that_hangs_is_restarted_and_says_so(appliance, visitor, post):
    since = alerting.begin(appliance, post)
    appliance.run("mkdir", "-p", DROP_IN.rpartition("/")[0])
    appliance.put(DROP_IN, QUICK)
    appliance.shell("systemctl daemon-reload && systemctl restart larder-worker")
    wait_for("a tick", lambda: appliance.run("cat", f"{RUN}/at-work.json", check=False), timeout=120)
    before, pid = restarts(appliance), pid_of(appliance, "larder-worker")
    appliance.run("kill", "-STOP", pid)
    wait_for("another worker", lambda: restarts(appliance) > before, timeout=180, every=2)
    assert pid_of(appliance, "larder-worker") != pid
    assert "hung and was restarted" in alerting.raised(appliance, visitor, "worker.restarted")
    alerting.arrived(post, "background worker hung and was restarted")
    assert alerting.kinds_since(appliance, since) == ["worker.restarted"]
    appliance.run("rm", DROP_IN)
    appliance.shell("systemctl daemon-reload && systemctl restart larder-worker")


def test_a_worker_that_works_is_left_alone_by_the_watchdog(appliance):
    assert appliance.run("systemctl", "show", "-P", "WatchdogUSec", "larder-worker").strip() == "5min"
    before = restarts(appliance)
    told = appliance.run("systemctl", "show", "-P", "WatchdogTimestampMonotonic", "larder-worker")
    wait_for("word of a finished tick", lambda: appliance.run("systemctl", "show", "-P", "WatchdogTimestampMonotonic", "larder-worker") != told, timeout=120)  # fmt: skip
    assert restarts(appliance) == before


def test_a_benchmark_that_cannot_be_understood_stops_nothing(appliance, visitor, post):
    alerting.begin(appliance, post)
    for row in (ODD_SWEEP, ODD_CASE):
        appliance.run("python3", "-c", alerting.DO, alerting.SETTINGS, row)
    rows = wait_for("the benchmark to be held", lambda: alerting.ask(appliance, "select text from sweeps_sweeprow where title = 'Odd' and state = 'paused'"), timeout=120)  # fmt: skip
    assert rows[0][0].startswith("Larder cannot continue this benchmark")
    alerting.make_tank(appliance)
    appliance.run("zpool", "offline", "tank", alerting.guid_of(appliance, 4))
    # Nobody looks at a page: the clock alone has to see it and send it.
    alerting.arrived(post, "taken offline")
    appliance.run("zpool", "online", "tank", alerting.guid_of(appliance, 4))
    alerting.over(appliance, visitor, "pool.offline")


# --- the fault run ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Fault:
    """``begin`` and ``end`` are scripts inside; ``kind`` and ``subject`` the one alert that comes of it, empty for none."""

    name: str
    begin: str
    end: str
    kind: str = ""
    subject: str = ""


def tool(path: str, script: str) -> tuple[str, str]:
    """Put something else in the place of a command, and take it away again."""
    return (
        f"mv {path} {path}.real && printf '%s\\n' '#!/bin/sh' '{script}' > {path} && chmod 755 {path}",
        f"mv -f {path}.real {path}",
    )


def signal(unit: str) -> tuple[str, str]:
    """A daemon that hangs: it is there and answers nothing."""
    return (
        f"systemctl kill --kill-whom=main -s STOP {unit}",
        f"systemctl kill --kill-whom=main -s CONT {unit}",
    )


FAULTS = [
    Fault("lsblk fails", *tool("/usr/bin/lsblk", "exit 1"), "source.stopped", "disks"),
    Fault("lsblk answers nonsense", *tool("/usr/bin/lsblk", "echo nonsense"), "source.stopped", "disks"),
    Fault("lsblk hangs", *tool("/usr/bin/lsblk", "exec sleep 1000"), "source.stopped", "disks"),
    Fault("ip fails", *tool("/usr/sbin/ip", "exit 1"), "source.stopped", "addresses"),
    Fault("ip answers nonsense", *tool("/usr/sbin/ip", "echo {"), "source.stopped", "addresses"),
    Fault("systemctl answers nonsense", *tool("/usr/bin/systemctl", "echo nonsense"), "", ""),
    Fault("Redis ends", "systemctl stop redis-server@larder", "systemctl start redis-server@larder", "source.stopped", "tick-jobs"),
    Fault("Redis hangs", *signal("redis-server@larder"), "source.stopped", "tick-jobs"),
    Fault("the agent is away", "systemctl stop larder-agent.socket larder-agent.service", "systemctl start larder-agent.socket", "source.stopped", "temperatures"),
    Fault("smartd ends", "systemctl stop smartmontools", "systemctl start smartmontools", "service.smartd", "smartmontools.service"),
    Fault("ZED ends", "systemctl stop zfs-zed", "systemctl start zfs-zed", "service.zed", "zfs-zed.service"),
    Fault("the spool cannot be read", "chmod 000 /var/spool/larder/events", "chmod 770 /var/spool/larder/events", "source.stopped", "tick-events"),
    Fault("an event is nonsense", "echo nonsense > /var/spool/larder/events/nonsense.json; chown larder: /var/spool/larder/events/nonsense.json", "true"),
    Fault("the inventory is damaged", f"cp -a {RUN} /run/kept; dd if=/dev/urandom of={RUN}/inventory.sqlite3 bs=4096 count=4 conv=notrunc status=none", f"systemctl stop larder-worker larder-web; rm -f {RUN}/inventory.sqlite3*; cp -a /run/kept/inventory.sqlite3* {RUN}/; rm -rf /run/kept; systemctl start larder-worker larder-web", "records.failing", "inventory"),
]  # fmt: skip


@contextmanager
def fault(appliance: Machine, one: Fault) -> Iterator[None]:
    appliance.shell(one.begin)
    try:
        yield
    finally:
        appliance.shell(one.end)


def open_now(appliance: Machine) -> list[list[str]]:
    return alerting.ask(appliance, "select kind, subject from larder_alerts_alert where state = 'open' and severity != 'notice' order by id")  # fmt: skip


@pytest.mark.parametrize("one", FAULTS, ids=lambda one: one.name.replace(" ", "-"))
def test_everything_else_goes_on_and_the_fault_is_reported_once(appliance, visitor, post, one):
    since = alerting.begin(appliance, post)
    with fault(appliance, one):
        if one.kind:
            wait_for("the fault to be noticed", lambda: waiting_for(appliance, one) or [one.kind, one.subject] in open_now(appliance), timeout=300, every=5)  # fmt: skip
            if [one.kind, one.subject] not in open_now(appliance):
                long_enough(appliance)
            wait_for("its alert", lambda: [one.kind, one.subject] in open_now(appliance), timeout=300, every=5)
        # Something else breaks meanwhile, and is told.
        appliance.run("zpool", "offline", "tank", alerting.guid_of(appliance, 4))
        wait_for("the alert of the pool", lambda: "pool.offline" in kinds(appliance, since), timeout=300, every=5)
        alerting.arrived(post, "taken offline")
        appliance.run("zpool", "online", "tank", alerting.guid_of(appliance, 4))
    assert sorted(kinds(appliance, since)) == sorted(filter(None, [one.kind, "pool.offline"]))
    wait_for("the end of all of it", lambda: alerting.hasten(appliance) or not open_since(appliance, since), timeout=400, every=5)  # fmt: skip


def waiting_for(appliance: Machine, one: Fault) -> bool:
    found = appliance.run("cat", f"{RUN}/waits-faults.json", check=False) or "{}"
    return json.dumps([one.kind, one.subject]) in json.loads(found)


def kinds(appliance: Machine, since: int) -> list[str]:
    return alerting.kinds_since(appliance, since)


def open_since(appliance: Machine, since: int) -> list[list[str]]:
    return alerting.ask(appliance, f"select kind from larder_alerts_alert where id > {since} and state != 'cleared' and severity != 'notice'")  # fmt: skip


@pytest.mark.parametrize("mode", ["refuse", "greylist", "hang", "drop"])
def test_a_mail_server_that_fails_or_hangs_stops_nothing_and_what_waits_is_sent_later(appliance, visitor, post, mode):
    since = alerting.begin(appliance, post)
    post.mode = mode
    try:
        appliance.run("zpool", "offline", "tank", alerting.guid_of(appliance, 4))
        wait_for("the alert of the pool", lambda: "pool.offline" in kinds(appliance, since), timeout=300, every=5)
        wait_for("a try", lambda: post.tries, timeout=180)
    finally:
        post.mode = "take"
    post.dropped.clear()
    alerting.hasten(appliance)
    wait_for("the mail", lambda: alerting.hasten(appliance) or post.about("taken offline"), timeout=400, every=5)
    appliance.run("zpool", "online", "tank", alerting.guid_of(appliance, 4))
    alerting.over(appliance, visitor, "pool.offline")


def test_with_redis_away_a_fault_is_told(appliance, visitor, post):
    alerting.begin(appliance, post)
    with stopped(appliance, "redis-server@larder"):
        appliance.run("zpool", "offline", "tank", alerting.guid_of(appliance, 4))
        alerting.arrived(post, "taken offline")
    appliance.run("zpool", "online", "tank", alerting.guid_of(appliance, 4))
    alerting.over(appliance, visitor, "pool.offline")


def test_a_system_disk_that_takes_no_writes_is_told_by_mail_once(appliance, visitor, post):
    """The last test here: what follows is a restart of the box."""
    alerting.begin(appliance, post)
    visitor.get("/alerts/")
    appliance.shell("sync; echo u > /proc/sysrq-trigger")
    try:
        wait_for("a disk that takes no writes", lambda: appliance.shell("findmnt -no OPTIONS -T /var/lib/larder").startswith("ro"), timeout=60)  # fmt: skip
        alerting.arrived(post, "takes no writes")
        assert appliance.run("systemctl", "is-active", "larder-worker").strip() == "active"
    finally:
        appliance.cut_power()
        appliance.power_on()
    visitor.sign_in()
    visitor.wait_until("/pools/", "tank", timeout=180)
