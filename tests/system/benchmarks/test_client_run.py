"""A shared folder measured from another computer: the script runs outside the appliance, over SMB and NFS.
With it a setting of the box is tried: switched, put back, and kept across a restart."""

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
from tests.system.measuring import armed_timers, complete, review
from tests.system.protocols import NETWORKS
from tests.visitor import Answer

STATE = "pool"
WIRE = 5208
USUAL, TRIED = "16", "32"  # threads of the NFS server of Debian 13, and twice as many
FILE = "/etc/nfs.conf.d/90-larder-threads.conf"
VERDICTS = (
    "It helps here.",
    "It makes no difference here.",
    "It makes it slower here.",
    "one thing faster and another",
)


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
    visitor.wait_until("/benchmarks/client/", offered[protocol], timeout=120)
    # A slow box may not say in time what its settings are. The page then says so and offers none.
    chosen = f'<option value="{more.get("setting", "")}"'
    page = visitor.watch("/benchmarks/client/", lambda page: page if chosen in page.text else None, timeout=120)
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


def measure(visitor, appliance, shared, forwarded, script, protocol, *, size="16 MiB", slow="") -> tuple[str, Answer]:
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
    # Whoever runs the tests in the background may ignore SIGINT, and a child inherits that: with
    # a handler here it does not.
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
    appliance.run(
        "tc", "qdisc", "add", "dev", port, "root", "tbf", "rate", "8mbit", "burst", "64kb", "latency", "400ms"
    )
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


# --- a setting that is tried ----------------------------------------------------------------------------------------
def threads(appliance) -> str:
    return appliance.run("cat", "/proc/fs/nfsd/threads").strip()


@pytest.fixture
def begin(appliance, visitor, shared, forwarded, script):
    """Start the script with a setting; the process, and the address of its result."""

    def start(size: str, protocol: str = "nfs", setting: str = "nfs-threads") -> tuple[subprocess.Popen[str], str]:
        wait_for("the port to be free", lambda: ended(appliance), timeout=120)
        page = new_code(visitor, shared, protocol, size, setting=setting, runs="3")
        argv = argv_of(page, appliance, forwarded, script, protocol)
        environment = {**os.environ, "LARDER_PASSWORD": sharing.PASSWORD}
        running = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        found = re.search(r"/benchmarks/client/([0-9a-f-]{36})/", page.text)
        assert found
        return running, f"/benchmarks/client/{found[1]}/"

    return start


def test_setting_is_switched_in_turns_and_put_back_and_the_result_says_whether_it_helps(appliance, visitor, begin):
    assert threads(appliance) == USUAL
    running, result = begin("16 MiB")
    wait_for("the setting to be switched", lambda: threads(appliance) == TRIED, timeout=300, every=0.2)
    assert armed_timers(appliance), "what puts it back stands ready while it is switched"
    said, _ = running.communicate(timeout=900)
    assert running.returncode == 0, said
    assert "3 of 3, with the setting" in said
    assert threads(appliance) == USUAL
    assert armed_timers(appliance) == []
    page = visitor.get(result)
    assert "More threads of the NFS server: 32 threads instead of 16 threads" in page.words
    assert [one for one in VERDICTS if one in page.words], page.words
    # Whatever this emulated box says, no other than what helped can be kept.
    if "Keep this setting" not in page.words:
        refused = visitor.post(f"{result}keep/", result)
        assert "Only a setting that helped" in refused.words


def test_option_of_samba_is_switched_in_turns_and_put_back(appliance, visitor, begin):
    def asked() -> str:
        return str(appliance.run("testparm", "-s", "--parameter-name=aio read size")).strip()

    assert asked() == "1"
    running, result = begin("16 MiB", "smb", "smb-async")
    wait_for("the option to be switched", lambda: asked() == "0", timeout=300, every=0.2)
    assert armed_timers(appliance)
    said, _ = running.communicate(timeout=900)
    assert running.returncode == 0, said
    assert asked() == "1"
    assert armed_timers(appliance) == []
    page = visitor.get(result)
    assert (
        "Reads and writes of Samba (aio read size, aio write size): one after the other instead of in threads"
        in page.words
    )
    assert [one for one in VERDICTS if one in page.words], page.words


def test_script_ends_where_this_computer_does_not_take_larger_frames(appliance, visitor, begin):
    """The emulator's network takes no frames of 9000 bytes."""
    port = appliance.shell("ip -o route get 10.0.2.2").split("dev ")[1].split()[0]
    running, result = begin("16 MiB", "nfs", "mtu")
    said, _ = running.communicate(timeout=900)
    assert running.returncode == 1, said
    assert "Each switch can cut all connections of this box" in said, said
    assert "It cannot be tried here: this computer cannot take frames of 9000 bytes." in said, said
    assert appliance.run("cat", f"/sys/class/net/{port}/mtu").strip() == "1500"
    assert armed_timers(appliance) == []
    assert "this computer cannot take frames of 9000 bytes" in visitor.get(result).words
    assert appliance.run("ls", "-A", "/tank/films").split() == []


def test_setting_of_a_script_that_was_killed_is_put_back_by_its_timer(appliance, begin):
    running, _result = begin("256 MiB")
    try:
        wait_for("the setting to be switched", lambda: threads(appliance) == TRIED, timeout=300, every=0.2)
    finally:
        running.kill()
        running.communicate(timeout=60)
    # All of Larder is gone, too: the timer is systemd's. Its half hour is cut short, what it runs is not.
    appliance.shell("systemctl stop 'larder-agent*' 'larder-web*' larder-worker.service")
    (unit,) = armed_timers(appliance)
    appliance.run("systemctl", "start", f"{unit}.service")
    wait_for("the former value", lambda: threads(appliance) == USUAL, timeout=60)
    appliance.shell(
        "systemctl start larder-agent.socket larder-web.socket larder-web.service larder-worker.service;"
        " rm -r /tank/films/larder-client-*"
    )
    appliance.run("systemctl", "stop", f"{unit}.timer", check=False)  # where it is not gone by itself


def test_kept_setting_outlives_a_restart_and_is_put_back_from_its_page(appliance, visitor, shared):
    """The result is made up, so that it helped: whether it helps on an emulated box is not what is tested here."""
    visitor.wait_until("/benchmarks/client/", "tank/films over NFS", timeout=240)
    appliance.run("python3", "-c", MADE_UP)
    result = "/benchmarks/client/00000000-0000-0000-0000-00000000004a/"
    page = visitor.get(result)
    assert "It helps here." in page.words
    said = visitor.ended(sharing.job_in(visitor.post(f"{result}keep/", result)))
    assert said.startswith("Done."), said
    assert threads(appliance) == TRIED
    assert f"threads={TRIED}" in appliance.run("cat", FILE)

    appliance.cut_power()
    appliance.power_on()
    wait_for("the NFS server", lambda: threads(appliance) == TRIED, timeout=120)
    visitor.sign_in()
    page = visitor.wait_until("/benchmarks/client/", "Settings that you kept", "32 threads", timeout=120)
    back = visitor.post("/benchmarks/client/settings/nfs-threads/back/", "/benchmarks/client/")
    said = visitor.ended(sharing.job_in(back))
    assert said.startswith("Done."), said
    assert threads(appliance) == USUAL
    appliance.run("test", "!", "-e", FILE)
    assert "Settings that you kept" not in visitor.get("/benchmarks/client/").words


MADE_UP = """
import json, sqlite3, uuid
figures = {
    "system": "Linux", "way": "libnfs, so.14", "own": [2e9], "hashing": [4e8], "wire_up": [], "wire_down": [],
    "write": [1e8, 1.01e8, 1.02e8], "read": [1e8, 1.01e8, 1.02e8], "small": [10.0, 10.1, 10.2], "busy_write": 0.1,
    "busy_read": 0.1, "changed_write": [2e8, 2.01e8, 2.02e8], "changed_read": [1e8, 1.01e8, 1.02e8],
    "changed_small": [10.0, 10.1, 10.2],
}
row = {
    "id": uuid.UUID(int=0x4a).hex, "dataset": "tank/films", "dataset_key": "1", "pool": "tank", "protocol": "nfs",
    "share": "/tank/films", "size": 2**24, "runs": 3, "cached": 0, "state": "done", "code_hash": "", "token_hash": "",
    "wires": 0, "address": "", "setting": "nfs-threads", "former": "16", "tried": "32", "switched": 0, "switches": 7,
    "told": json.dumps(figures), "text": "", "said": "{}", "created": "2026-11-27 00:00:00", "created_by": "admin",
    "begun": "2026-11-27 00:00:00", "finished": "2026-11-27 00:00:00",
}
import glob
for path in glob.glob("/var/lib/larder/*.sqlite3"):
    with sqlite3.connect(path, timeout=30) as base:
        if base.execute("select 1 from sqlite_master where name = 'sweeps_clientrunrow'").fetchone():
            names = ", ".join(row)
            base.execute(f"insert into sweeps_clientrunrow ({names}) values ({', '.join('?' * len(row))})", [*row.values()])
"""
