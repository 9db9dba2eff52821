"""A shared folder measured from another computer: the script runs outside the appliance, over SMB and NFS."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.image.machine import free_port, wait_for
from tests.system import protocols, sharing
from tests.system.measuring import complete, review
from tests.system.protocols import NETWORKS
from tests.visitor import Answer

STATE = "pool"
WIRE = 5208


@pytest.fixture(scope="module")
def shared(appliance, visitor) -> dict[str, str]:
    """tank/photos over SMB and tank/films over NFS; their guids by protocol."""
    sharing.make_pool(appliance, "tank", "photos", "films")
    sharing.make_person(visitor, "anna")
    smb = {"name": "photos", "write": ["anna"]}
    return {
        "smb": protocols.share(appliance, visitor, "tank/photos", smb=smb),
        "nfs": protocols.share(appliance, visitor, "tank/films", nfs={"hosts": list(NETWORKS)}),
    }


@pytest.fixture(scope="module")
def forwarded(appliance, shared) -> dict[str, int]:
    """Ports outside that lead to those that the script needs, besides SMB, NFS and the pages."""
    listed = [line.split() for line in appliance.run("rpcinfo", "-p").splitlines()]
    inside = {"wire": WIRE, "mount": int(next(line[3] for line in listed if line[:3] == ["100005", "3", "tcp"]))}
    found = {name: free_port() for name in inside}
    for name, port in found.items():
        assert not appliance.monitor(f"hostfwd_add tcp:127.0.0.1:{port}-:{inside[name]}").strip()
    return found


@pytest.fixture(scope="module")
def script(appliance, tmp_path_factory) -> Path:
    """As curl fetches it, without signing in."""
    path = tmp_path_factory.mktemp("client") / "larder-client.py"
    subprocess.run(["curl", "-ksf", "-o", str(path), f"{appliance.address}/larder-client.py"], check=True, timeout=120)
    return path


def new_code(visitor, shared: dict[str, str], protocol: str, size: str, **more: str) -> Answer:
    """The page with the code."""
    offered = {"smb": "tank/photos over SMB", "nfs": "tank/films over NFS"}
    page = visitor.wait_until("/benchmarks/client/", offered[protocol], timeout=120)
    answers = {"share": f"{protocol}-{shared[protocol]}", "size": size, "runs": "1", **more}
    answer = visitor.send("/benchmarks/client/", {**page.hidden(), **answers})
    assert "works once" in answer.words, answer.words
    return answer


def argv_of(answer: Answer, appliance, forwarded, script: Path, protocol: str) -> list[str]:
    """The command of the page, with the ports of this test's network."""
    code = re.search(r"--code ([A-Z2-9-]+)", answer.text)
    fingerprint = re.search(r"--fingerprint ([0-9a-f]{64})", answer.text)
    assert code
    assert fingerprint, answer.text
    argv = [sys.executable, str(script), "--box", appliance.address, "--code", code[1], "--fingerprint", fingerprint[1]]
    argv += ["--server", "127.0.0.1", "--wire-port", str(forwarded["wire"])]
    if protocol == "smb":
        return [*argv, "--smb-port", str(appliance.ports["smb"]), "--user", "anna"]
    who = "".join(f"&{key}={appliance.run('id', flag, 'anna').strip()}" for key, flag in (("uid", "-u"), ("gid", "-g")))
    ways = f"version=3&nfsport={appliance.ports['nfs']}&mountport={forwarded['mount']}{who}"
    return [*argv, "--nfs-options", ways]


def measure(visitor, appliance, shared, forwarded, script, protocol, *, size="16 MiB", slow="") -> tuple[str, Answer]:  # fmt: skip
    """Run the script; what it said, and the page of the result."""
    page = new_code(visitor, shared, protocol, size)
    argv = argv_of(page, appliance, forwarded, script, protocol)
    environment = {**os.environ, "LARDER_PASSWORD": sharing.PASSWORD, **({"LARDER_CLIENT_SLOW": slow} if slow else {})}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=900, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Done." in done.stdout
    link = re.search(r"/benchmarks/client/([0-9a-f-]{36})/", page.text)
    assert link
    return done.stdout, visitor.get(f"/benchmarks/client/{link[1]}/")


def ended(appliance) -> bool:
    """Whether the port has been closed again, with nothing left of it."""
    state = appliance.run("systemctl", "show", "-P", "ActiveState", "larder-wire.service").strip()
    return state == "inactive" and f":{WIRE}" not in appliance.run("ss", "-Hltn")


@pytest.mark.parametrize("protocol", ["smb", "nfs"])
def test_folder_is_measured_from_outside(appliance, visitor, shared, forwarded, script, protocol):
    wait_for("the port to be free", lambda: ended(appliance), timeout=120)
    said, page = measure(visitor, appliance, shared, forwarded, script, protocol)
    assert "to the box" in said, said
    assert "from the box" in said, said
    assert "Writing:" in page.words
    assert "Reading:" in page.words
    # Marked where it is the limit, which the emulated network may be.
    assert re.search(r"Network alone (\(the limit\) )?[0-9.,]+ [kMG]B/s", page.words), page.words
    assert "not be removed" not in page.words
    folder = {"smb": "/tank/photos", "nfs": "/tank/films"}[protocol]
    assert appliance.run("ls", "-A", folder).split() == []
    # The port is one of a user of its own without rights, and closes by itself.
    show = appliance.run("systemctl", "show", "larder-wire.service")
    assert "DynamicUser=yes" in show
    wait_for("the port to be closed", lambda: ended(appliance), timeout=120)
    assert not appliance.shell("ls /run/larder/wire-key 2>/dev/null || true").strip()
    assert "larder-wire" not in appliance.run("systemctl", "--failed", "--no-legend")


def test_stopped_script_removes_what_it_wrote(appliance, visitor, shared, forwarded, script):
    page = new_code(visitor, shared, "smb", "512 MiB")
    argv = argv_of(page, appliance, forwarded, script, "smb")
    environment = {**os.environ, "LARDER_PASSWORD": sharing.PASSWORD}
    # Whoever runs the tests in the background may ignore SIGINT, and a child inherits that: with a handler here it does not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        running = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        wait_for("a file in the share", lambda: "large-0" in appliance.run("find", "/tank/photos"), timeout=300)
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=300)
    finally:
        running.kill()
    assert running.returncode == 1, said
    assert appliance.run("ls", "-A", "/tank/photos").split() == []
    link = re.search(r"/benchmarks/client/([0-9a-f-]{36})/", page.text)
    assert link
    assert "It was stopped on the other computer" in visitor.get(f"/benchmarks/client/{link[1]}/").words


def test_slow_computer_is_named(appliance, visitor, shared, forwarded, script):
    wait_for("the port to be free", lambda: ended(appliance), timeout=120)
    said, page = measure(visitor, appliance, shared, forwarded, script, "smb", slow="1.5")
    assert "Writing: the other computer is the limit" in page.words, said


def test_throttled_network_is_named(appliance, visitor, shared, forwarded, script):
    """The queue of the box's port lets through less than everything else can do: what it sends, and so what is read."""
    wait_for("the port to be free", lambda: ended(appliance), timeout=120)
    port = appliance.shell("ip -o route get 10.0.2.2").split("dev ")[1].split()[0]
    appliance.run("tc", "qdisc", "add", "dev", port, "root", "tbf", "rate", "8mbit", "burst", "64kb", "latency", "400ms")  # fmt: skip
    try:
        said, page = measure(visitor, appliance, shared, forwarded, script, "smb")
    finally:
        appliance.run("tc", "qdisc", "del", "dev", port, "root")
    assert "Reading: the network is the limit" in page.words, said


def test_throttled_pool_is_named(appliance, visitor, shared, forwarded, script):
    """The disks take less than network and protocol carry, in the box itself too."""
    wait_for("the port to be free", lambda: ended(appliance), timeout=120)
    dirty = "/sys/module/zfs/parameters/zfs_dirty_data_max"
    usual = appliance.run("cat", dirty).strip()
    # Of what is written, memory keeps little, so that a short run shows the disks.
    appliance.shell(f"echo {8 * 2**20} > {dirty}")
    throttle(appliance, 1_500_000)
    try:
        measure_in_box(visitor, appliance)
        said, page = measure(visitor, appliance, shared, forwarded, script, "smb", size="64 MiB")
    finally:
        throttle(appliance, 0)
        appliance.shell(f"echo {usual} > {dirty}")
    assert "Writing: the pool is the limit" in page.words, said + page.words


def throttle(appliance, rate: int) -> None:
    """Limit the disks of the pool to bytes a second; 0: no limit."""
    for bay in (1, 2):
        assert not appliance.monitor(f"block_set_io_throttle d{bay} {rate} 0 0 0 0 0").strip()


def measure_in_box(visitor, appliance) -> None:
    """The benchmark of pool and protocol without a network."""
    guid = appliance.run("zpool", "get", "-Hp", "-o", "value", "guid", "tank").strip()
    settings = {"pool": guid, "protocols": ["none", "smb"], "workloads": ["seq-write"], "size": "64 MiB", "repeats": 1}
    complete(visitor, review(visitor, "protocols", [], **settings))
