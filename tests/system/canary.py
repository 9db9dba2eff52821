"""A secret that can be told from everything else: watched for while something is done with it,
and looked for afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.image.machine import Machine, wait_for

ARGV, REDIS = "/tmp/canary-argv.log", "/tmp/canary-redis.log"
SOCKET = "/run/redis-larder/redis.sock"
# One process that only reads sees even short-lived ones, which a shell with a process for each file does not.
# What it has seen often it seldom looks at again, so that a round takes less time than a command.
WATCHER = f"""
import os
seen, rounds, log = set(), dict(), open("{ARGV}", "wb", buffering=0)
while True:
    for process in os.listdir("/proc"):
        if not process.isdigit():
            continue
        rounds[process] = rounds.get(process, 0) + 1
        if rounds[process] > 20 and rounds[process] % 100:
            continue
        for name in ("cmdline", "environ"):
            try:
                with open("/proc/" + process + "/" + name, "rb", buffering=0) as file:
                    text = file.read().replace(b"\\0", b" ")
            except OSError:
                continue
            if text not in seen:
                seen.add(text)
                log.write(text + b"\\n")
"""


@contextmanager
def nowhere(appliance: Machine, secret: str, *, argv: str) -> Iterator[None]:
    """While the block runs no command line, environment or command to Redis may hold the secret, and
    afterwards no journal, database or file of Larder. ``argv`` is a command that must have been seen, to
    show that somebody watched."""
    watchers = [
        subprocess.Popen([*appliance.ssh_argv(), f"exec python3 -c '{WATCHER}'"]),
        subprocess.Popen([*appliance.ssh_argv(), f"exec redis-cli -s {SOCKET} monitor > {REDIS}"]),
    ]
    try:
        wait_for(
            "both to watch",
            lambda: appliance.run("cat", ARGV, check=False) and "OK" in appliance.run("cat", REDIS, check=False),
        )
        yield
    finally:
        appliance.run("pkill", "-f", f"{ARGV}|redis-cli.*monitor", check=False)
        for watcher in watchers:
            watcher.wait(60)
    assert argv in appliance.run("cat", ARGV), "the watcher saw the command itself"
    assert "larder" in appliance.run("cat", REDIS), "the monitor saw what was sent"
    searched = (
        f"grep -c {secret} {ARGV} {REDIS}; journalctl --no-pager -o export | grep -c {secret}; "
        f"grep -rlaF {secret} /var/lib/larder /var/lib/larder-agent /run/larder /var/log /etc /var/lib/redis "
        "/var/lib/samba /var/spool/larder; "
        f"redis-cli -s {SOCKET} --scan | grep -c {secret}"
    )
    found = appliance.run("sh", "-c", f"({searched}) 2>/dev/null; true")
    assert found.split() == [f"{ARGV}:0", f"{REDIS}:0", "0", "0"], found
