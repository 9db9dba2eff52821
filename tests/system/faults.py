"""What the fault run makes fail, hang and answer nonsense: tools, daemons, files and databases from outside, and every
part of the background work from inside (``faulty_worker.py``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deploy.image.machine import Machine

WORKER = Path(__file__).with_name("faulty_worker.py")  # runs inside: it imports the worker
FOLDER = "/run/larder-faults"
RUN = "/run/larder/inventory"
DROP_IN = "/run/systemd/system/larder-worker.service.d/faulty.conf"
SCRIPT = f"{FOLDER}/worker.py"
IN_ITS_PLACE = f"""
[Service]
Environment=PYTHONPATH=/opt/larder/app
ExecStart=
ExecStart=/opt/larder/venv/bin/python {SCRIPT}
"""
# So that nobody waits five minutes for each part that hangs; what works has to have ended a tick within.
QUICK_WATCHDOG = "WatchdogSec=40\nTimeoutAbortSec=5\n"

# --- parts of the background work -----------------------------------------------------------------------------------
# Each of these is made to fail: a few at a time that have nothing to do with each other, each of which has to be told.
# The others have a fault of their own below, or elsewhere:
ELSEWHERE = {
    "zfs": "test_troubles: without_the_zfs_module",
    "pools-before": "is asked for only where pools cannot be read, and then reads the database alone",
    "run-burn-in-readings": "runs only while a disk is in burn-in",
    "run-straight-mail": "runs only where the settings cannot be used: the settings are locked, and the read-only disk",
}
GROUPS = (
    ("pools", "bays", "addresses", "temperatures", "tick-scrubs", "tick-imports", "upkeep-copy"),
    ("activities", "properties", "accounts", "sleep", "targets", "tick-sweeps", "upkeep-jobs"),
    ("datasets", "disks", "groups", "latency", "remotes", "receivers", "tick-policies", "upkeep-sessions"),
    ("snapshots", "services", "edits", "caching", "imports", "tick-backups", "tick-burn-ins"),
    ("shares", "smb-policy", "reports", "alerts", "disk-alerts", "tick-self-tests", "new-disks"),
    ("tick-facts", "tick-jobs", "run-temperatures"),
    ("run-facts", "tick-temperatures", "tick-housekeeping", "tick-received"),
    ("tick-events", "run-alerts", "tick-mail", "run-housekeeping"),
    ("tick-alerts", "run-mail"),
)
PARTS = tuple(name for group in GROUPS for name in group)
UPKEEP = ("upkeep-copy", "upkeep-jobs", "upkeep-sessions")
# What has its own limit of time: stages, which hold up the clock, and the threads that it starts.
# Mail has a test of its own.
THAT_MAY_HANG = tuple(name for name in PARTS if name.startswith(("tick-", "run-")) and name != "run-mail")
# What is read again and again, and what is not read while a part fails.
READINGS = {
    "pools",
    "activities",
    "properties",
    "datasets",
    "snapshots",
    "disks",
    "bays",
    "services",
    "shares",
    "accounts",
    "groups",
    "edits",
    "smb-policy",
    "addresses",
    "reports",
    "remotes",
    "receivers",
    "imports",
    "targets",
}
SMART = {"temperatures", "sleep", "latency", "caching"}
HOLDS_UP = {
    "pools": {"activities", "reports"},
    "datasets": {"snapshots"},
    "tick-facts": READINGS,
    "run-facts": READINGS,
    "tick-temperatures": SMART,
    "run-temperatures": SMART,
}


def alert_of(name: str) -> tuple[str, str]:
    """Kind and subject of the alert that says that a part fails."""
    return ("upkeep.failed", name.removeprefix("upkeep-")) if name in UPKEEP else ("source.stopped", name)


def going_on(group: Iterable[str]) -> set[str]:
    """What has to be read while these parts fail."""
    return (READINGS | SMART | {"alerts"}) - set(group).union(*(HOLDS_UP.get(name, set()) for name in group))


# What shows that the rest goes on: a pool that loses a disk, smartd that ends where pools cannot be read, and where
# nothing can be stored, what is told afterwards.
Proof = Literal["pool", "smartd", "afterwards"]


# --- what surrounds Larder ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Fault:
    """``begin`` and ``end`` are scripts inside; ``kind`` and ``subject`` the one alert that
    comes of it, empty for none."""

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


def subcommand(path: str, words: str, script: str) -> tuple[str, str]:
    """The same for one of a command's subcommands; the others work."""
    return tool(path, f'case "$*" in {words}) {script};; *) exec {path}.real "$@";; esac')


def signal(unit: str) -> tuple[str, str]:
    """A daemon that hangs: it is there and answers nothing."""
    return (
        f"systemctl start {unit} && systemctl kill --kill-whom=main -s STOP {unit}",
        f"systemctl kill --kill-whom=main -s CONT {unit}",
    )


def service(unit: str) -> tuple[str, str]:
    return f"systemctl stop {unit}", f"systemctl start {unit}"


def locked(path: str) -> tuple[str, str]:
    """A database that somebody else keeps to himself: whoever asks it waits."""
    hold = f'import sqlite3, time; base = sqlite3.connect("{path}"); base.execute("begin exclusive"); time.sleep(3600)'
    return f"systemd-run -q --unit=keeper python3 -c '{hold}' && sleep 1", "systemctl stop keeper"


def somebody_else(unit: str, path: str) -> tuple[str, str]:
    """Another daemon in the place of one that listens on a socket, which answers something that nobody understands."""
    answer = 'lambda self: self.request.sendall(self.request.recv(9999) and b"nonsense\\r\\n")'
    serve = (
        f'import socketserver; odd = type("Odd", (socketserver.BaseRequestHandler,), {{"handle": {answer}}});'
        f' socketserver.ThreadingUnixStreamServer("{path}", odd).serve_forever()'
    )
    folder = path.rpartition("/")[0]
    begin = (
        f"systemctl stop {unit} && mkdir -p {folder} && chmod 755 {folder} && rm -f {path}"
        f" && systemd-run -q --unit=somebody-else -p UMask=0 python3 -c '{serve}'"
        f" && timeout 60 sh -c 'until test -S {path}; do sleep 0.2; done'"
    )
    return begin, f"systemctl stop somebody-else; rm -rf {folder}; systemctl start {unit}"


MODES = {"fails": "exit 1", "answers nonsense": "echo nonsense", "hangs": "exec sleep 1000"}
TOOLS = {
    "lsblk": ("/usr/bin/lsblk", "*", "disks"),
    "ip": ("/usr/sbin/ip", "*", "addresses"),
    "systemctl": ("/usr/bin/systemctl", "show*smartmontools*", "services"),
    "zpool status": ("/usr/sbin/zpool", "status*", "pools"),
    "zpool get": ("/usr/sbin/zpool", "get*", "properties"),
    "zfs list": ("/usr/sbin/zfs", "list*filesystem*", "datasets"),
}


def odd(called: str, mode: str) -> Fault:
    """A command that fails, answers nonsense, or hangs: what it tells of cannot be read."""
    path, words, subject = TOOLS[called]
    return Fault(f"{called} {mode}", *subcommand(path, words, MODES[mode]), "source.stopped", subject)


# Every page of it, also those that stand in the write-ahead log alone.
DAMAGE = (
    f"cp -a {RUN} /run/kept; for file in {RUN}/inventory.sqlite3 {RUN}/inventory.sqlite3-wal; do"
    " dd if=/dev/urandom of=$file bs=4096 count=$(($(stat -c %s $file) / 4096)) conv=notrunc status=none; done"
)
MEND = (
    f"systemctl stop larder-worker larder-web; rm -f {RUN}/inventory.sqlite3*; cp -a "
    f"/run/kept/inventory.sqlite3* {RUN}/;"
    " rm -rf /run/kept; systemctl start larder-worker larder-web"
)
SPOOL = "/var/spool/larder/events"
REDIS, AGENT = ("source.stopped", "tick-jobs"), ("source.stopped", "temperatures")
# A few at a time that have nothing to do with each other, and what shows meanwhile that the rest goes on.
FAULTS: tuple[tuple[Proof, tuple[Fault, ...]], ...] = (
    (
        "pool",
        (
            odd("lsblk", "fails"),
            odd("ip", "answers nonsense"),
            odd("systemctl", "hangs"),
            odd("zpool get", "fails"),
            odd("zfs list", "answers nonsense"),
        ),
    ),
    (
        "pool",
        (
            Fault("smartd ends", *service("smartmontools"), "service.smartd", "smartmontools.service"),
            Fault("ZED ends", *service("zfs-zed"), "service.zed", "zfs-zed.service"),
            Fault("Samba ends", *service("smbd"), "service.shares", "smbd.service"),
            Fault("the NFS server ends", *service("nfs-server"), "service.shares", "nfs-server.service"),
            Fault("nginx ends", *service("nginx"), "service.pages", "nginx.service"),
            Fault("the pages' process ends", "systemctl kill -s KILL larder-web || true", "true"),
        ),
    ),
    (
        "smartd",
        (
            odd("zpool status", "fails"),
            Fault("Redis ends", *service("redis-server@larder"), *REDIS),
            Fault(
                "the spool cannot be read", f"chmod 000 {SPOOL}", f"chmod 770 {SPOOL}", "source.stopped", "tick-events"
            ),
        ),
    ),
    (
        "pool",
        (
            odd("lsblk", "answers nonsense"),
            odd("ip", "hangs"),
            odd("systemctl", "fails"),
            odd("zpool get", "answers nonsense"),
            odd("zfs list", "hangs"),
            Fault("the agent is away", *service("larder-agent.socket larder-agent.service"), *AGENT),
        ),
    ),
    (
        "smartd",
        (
            odd("zpool status", "hangs"),
            Fault("Redis hangs", *signal("redis-server@larder"), *REDIS),
            Fault(
                "an event is nonsense",
                f"echo nonsense > {SPOOL}/nonsense.json; chown larder: {SPOOL}/nonsense.json",
                "true",
            ),
        ),
    ),
    (
        "pool",
        (
            odd("lsblk", "hangs"),
            odd("ip", "fails"),
            odd("systemctl", "answers nonsense"),
            odd("zpool get", "hangs"),
            odd("zfs list", "fails"),
            Fault("the agent hangs", *signal("larder-agent.service"), *AGENT),
        ),
    ),
    (
        "smartd",
        (
            odd("zpool status", "answers nonsense"),
            Fault(
                "Redis answers nonsense", *somebody_else("redis-server@larder", "/run/redis-larder/redis.sock"), *REDIS
            ),
        ),
    ),
    ("afterwards", (Fault("the inventory is damaged", DAMAGE, MEND, "records.failing", "inventory"),)),
    (
        "afterwards",
        (Fault("the inventory is locked", *locked(f"{RUN}/inventory.sqlite3"), "records.failing", "inventory"),),
    ),
)


@contextmanager
def faults_there(appliance: Machine, some: Iterable[Fault]) -> Iterator[None]:
    with ExitStack() as stack:
        for one in some:
            stack.callback(appliance.shell, one.end)
            appliance.shell(one.begin)
        yield


@contextmanager
def spoiled(appliance: Machine, how: str, *names: str) -> Iterator[None]:
    """While the body runs, these parts of the worker fail or hang."""
    for name in names:
        appliance.put(f"{FOLDER}/{name}", how)
    try:
        yield
    finally:
        appliance.run("rm", "-f", *(f"{FOLDER}/{name}" for name in names))


def restarts(appliance: Machine) -> int:
    """How often systemd has restarted the worker since the box started."""
    return int(appliance.run("systemctl", "show", "-P", "NRestarts", "larder-worker").strip())


@contextmanager
def worker_replaced(appliance: Machine, more: str = "") -> Iterator[None]:
    """While the body runs, the worker is the one whose parts can be spoiled; ``more`` lines of its unit."""
    appliance.run("rm", "-rf", FOLDER)
    appliance.run("mkdir", "-p", FOLDER, DROP_IN.rpartition("/")[0])
    appliance.put(SCRIPT, WORKER.read_text())
    appliance.put(DROP_IN, IN_ITS_PLACE + more)
    appliance.shell("systemctl daemon-reload && systemctl restart larder-worker")
    try:
        yield
    finally:
        appliance.shell(f"rm -rf {FOLDER} {DROP_IN} && systemctl daemon-reload && systemctl restart larder-worker")
