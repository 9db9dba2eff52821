"""The agent's server under systemd: a control group for each request, and nothing of root's when nobody asks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

from deploy.image.machine import Machine, wait_for
from tests.system.agent_groups import GROUPS, requests_running
from tests.visitor import disk_paths

ASK = """
import socket, sys
with socket.socket(socket.AF_UNIX) as agent:
    agent.settimeout(300)
    agent.connect("/run/larder/agent.sock")
    agent.sendall(sys.argv[1].encode() + b"\\n")
    for line in agent.makefile():
        print(line, end="", flush=True)
"""
UNKNOWN = {"verb": "follow", "job": "11111111-2222-4333-8444-555555555555"}


def ask(appliance: Machine, request: Mapping[str, object]) -> str:
    return appliance.run("python3", "-c", ASK, json.dumps(request), timeout=120)


def main_pid(appliance: Machine) -> str:
    return appliance.run("systemctl", "show", "-P", "MainPID", "larder-agent").strip()


def test_each_request_is_in_a_group_with_limits_and_what_it_left_ends_with_it(appliance):
    ask(appliance, UNKNOWN)
    appliance.run("systemctl", "stop", "larder-worker")  # it asks every few seconds, and here one request runs alone
    wait_for("the end of other requests", lambda: not requests_running(appliance), timeout=60)
    request = json.dumps({"verb": "locate", "disk": disk_paths(appliance, 1)[0]})
    appliance.put("/tmp/ask.py", ASK)
    asking = subprocess.Popen([*appliance.ssh_argv(), f"python3 /tmp/ask.py '{request}'"], stdout=subprocess.PIPE)
    try:
        assert asking.stdout is not None
        assert json.loads(asking.stdout.readline())["facts"]  # it makes the disk's light blink, for half a minute
        server = main_pid(appliance)
        (group,) = requests_running(appliance)
        folder = f"{GROUPS}/{group}"
        assert appliance.run("cat", f"{folder}/memory.max", f"{folder}/pids.max").split() == ["1073741824", "1024"]
        # Something that it has started, which would outlive it.
        appliance.shell(f"setsid sleep 1000 < /dev/null > /dev/null 2>&1 & echo $! > {folder}/cgroup.procs")
        left = set(appliance.run("cat", f"{folder}/cgroup.procs").split()) - {group}
        assert left
        appliance.run("kill", "-9", group)
        wait_for("the end of the group", lambda: group not in requests_running(appliance), timeout=60)
        assert not left & set(appliance.run("ps", "-eo", "pid=").split())
    finally:
        asking.kill()
        asking.wait()
        appliance.run("systemctl", "start", "larder-worker")
    assert "unknown" in ask(appliance, UNKNOWN)
    assert main_pid(appliance) == server


def test_one_that_takes_too_much_memory_ends_alone(appliance):
    """The kernel ends one request; the server and its unit go on."""
    ask(appliance, UNKNOWN)
    server = main_pid(appliance)
    group = f"{GROUPS}/999999999"
    script = f"mkdir {group}; echo 16M > {group}/memory.max; echo $$ > {group}/cgroup.procs; exec "
    appliance.put("/tmp/greedy", script + """python3 -c "b'x' * 2**28" """)
    assert appliance.shell("sh /tmp/greedy > /dev/null 2>&1 || echo ended: $?").strip() == "ended: 137"
    appliance.run("rmdir", group)
    assert "unknown" in ask(appliance, UNKNOWN)
    assert main_pid(appliance) == server


def test_nothing_of_roots_runs_when_nobody_asks(appliance):
    ask(appliance, UNKNOWN)

    def state() -> bool:
        return appliance.run("systemctl", "is-active", "larder-agent.service", check=False).strip() == "inactive"

    wait_for("the end of the agent", state, timeout=300, every=1)
    assert "appliance.agent" not in appliance.run("ps", "-eo", "args")
