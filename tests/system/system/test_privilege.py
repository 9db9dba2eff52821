"""The line between the pages and root: what the web process cannot reach, and where a passphrase is never found."""

from __future__ import annotations

import json
import re

import pytest

from deploy.image.machine import wait_for
from tests.system import canary
from tests.visitor import disk_paths

CANARY = "canary-passphrase-7f3k"

# Runs in the web unit's own sandbox in the web server's place; tries each thing and says how it went.
PROBE = r"""
import json, os, socket, subprocess
tried = {}

def attempt(name, act):
    try:
        tried[name] = f"succeeded: {act()!r}"[:200]
    except BaseException as error:
        tried[name] = f"refused: {type(error).__name__}: {error}"[:200]

def ask(line):
    with socket.socket(socket.AF_UNIX) as agent:
        agent.settimeout(60)
        agent.connect("/run/larder/agent.sock")
        agent.sendall(line + b"\n")
        return agent.makefile().read()

attempt("run zpool", lambda: subprocess.run(["/usr/sbin/zpool", "list"], capture_output=True, check=True).stdout)
attempt("run a shell", lambda: subprocess.run(["/bin/sh", "-c", "id"], capture_output=True, check=True).stdout)
attempt("open /dev/zfs", lambda: os.open("/dev/zfs", os.O_RDWR))
attempt("open /dev/sda", lambda: os.open("/dev/sda", os.O_RDONLY))
attempt("open /dev/vda", lambda: os.open("/dev/vda", os.O_RDONLY))
attempt("write below /etc", lambda: open("/etc/larder-was-here", "w"))
attempt("write its own code", lambda: open("/opt/larder/app/web/urls.py", "a"))
attempt("read /etc/shadow", lambda: open("/etc/shadow").read())
attempt("read the agent's journal", lambda: os.listdir("/var/lib/larder-agent"))
attempt("write the agent's locks", lambda: open("/run/larder/locks/x", "w"))
attempt("replace the agent's socket", lambda: os.rename("/run/larder/agent.sock", "/run/larder/gone.sock"))
attempt("write the spool", lambda: open("/var/spool/larder/events/x.json", "w"))
attempt("reach the network", lambda: socket.create_connection(("127.0.0.1", 22), 5))
attempt("become root", lambda: os.setuid(0))
attempt("see root's processes", lambda: open("/proc/1/environ").read())
attempt("mount", lambda: os.listdir("/proc/1/root"))
for verb in ("exec", "shell", "write-file", "destroy", ""):
    attempt(f"agent verb {verb!r}", lambda: ask(json.dumps({"verb": verb, "argv": ["id"]}).encode()))
attempt("agent operation that is not registered", lambda: ask(json.dumps({"verb": "run", "job": "8c7f4f3e-3a43-4a59-9d0e-2f0b4a1a7b11", "digest": "", "operation": {"kind": "RunCommand", "argv": ["id"]}}).encode()))
open("/var/lib/larder/probe.json", "w").write(json.dumps(tried))
"""


@pytest.fixture(scope="module")
def tried(appliance) -> dict[str, str]:
    """What the probe reports from a unit that is the web unit but for the program it starts."""
    unit = appliance.run("systemctl", "cat", "larder-web.service")
    assert "PrivateDevices=yes" in unit
    lines = [
        line for line in unit.splitlines() if not re.match(r"(Type|Restart|RestartSec|Requires|After|ExecStart)=", line)
    ]
    own = "\n".join(lines).replace(
        "[Service]", "[Service]\nType=oneshot\nExecStart=/opt/larder/venv/bin/python /opt/larder/app/probe.py", 1
    )
    appliance.put("/opt/larder/app/probe.py", PROBE)
    appliance.put("/etc/systemd/system/larder-probe.service", own)
    appliance.run("systemctl", "daemon-reload")
    appliance.run("systemctl", "start", "larder-probe.service", timeout=240)
    return json.loads(appliance.run("cat", "/var/lib/larder/probe.json"))


OUT_OF_REACH = (
    "run zpool",
    "run a shell",
    "open /dev/zfs",
    "open /dev/sda",
    "open /dev/vda",
    "write below /etc",
    "write its own code",
    "read /etc/shadow",
    "read the agent's journal",
    "write the agent's locks",
    "replace the agent's socket",
    "write the spool",
    "reach the network",
    "become root",
    "see root's processes",
    "mount",
)


@pytest.mark.parametrize("what", OUT_OF_REACH)
def test_from_inside_the_web_unit_it_is_out_of_reach_to(tried, what):
    assert tried[what].startswith("refused: "), tried[what]


def test_from_inside_the_web_unit_the_agent_refuses_what_is_not_registered(tried):
    asked = {name: said for name, said in tried.items() if name.startswith("agent ")}
    assert len(asked) == 6
    for name, said in asked.items():
        assert '"refused"' in said, (name, said)
        assert "uid=" not in said


def test_the_agent_takes_no_connection_from_another_user(appliance):
    ask = "import socket; s=socket.socket(socket.AF_UNIX); s.connect('/run/larder/agent.sock'); print('in')"
    assert "in" not in appliance.run("setpriv", "--reuid=nobody", "--clear-groups", "python3", "-c", ask, check=False)


def test_no_process_of_larders_is_root_when_nothing_is_asked(appliance):
    def nobody_is_root() -> bool:
        ours = [line for line in appliance.run("ps", "-eo", "user:20,args").splitlines() if "/opt/larder" in line]
        assert ours
        return not [line for line in ours if line.startswith("root")]

    # Temperatures are asked for now and then: that process ends when it has answered.
    wait_for("the agent to have answered", nobody_is_root, timeout=120, every=0.2)


def test_a_passphrase_is_found_nowhere(appliance, visitor):
    """While an encrypted pool is made, and afterwards: argv, environment, journal, databases, Redis, job files."""
    review = visitor.review_pool("vault", disk_paths(appliance, 4, 5), "mirror-1", encrypted="on")
    with canary.nowhere(appliance, CANARY, argv="zpool create"):
        job = visitor.confirm(review, secret=CANARY, again=CANARY)
        assert visitor.ended(job).startswith("Done."), visitor.ended(job)
    assert job in appliance.run("cat", canary.REDIS), "the monitor saw the job's id"
    assert appliance.run("zfs", "get", "-H", "-o", "value", "keystatus", "vault").strip() == "available"
