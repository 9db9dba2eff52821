"""A setting of the box that is tried by a benchmark from another computer: switched, put back, kept across a restart."""

from __future__ import annotations

import re
import signal
import subprocess

import pytest

from deploy.image.machine import wait_for
from tests.system import sharing
from tests.system.benchmarks.test_client_run import (  # noqa: F401  # fixtures
    argv_of,
    ended,
    forwarded,
    new_code,
    script,
    shared,
)

STATE = "pool"
USUAL, TRIED = "16", "32"  # threads of the NFS server of Debian 13, and twice as many
FILE = "/etc/nfs.conf.d/90-larder-threads.conf"
TIMER = "larder-setting-back.timer"


def threads(appliance) -> str:
    return appliance.run("cat", "/proc/fs/nfsd/threads").strip()


def timer(appliance) -> str:
    return appliance.run("systemctl", "is-active", TIMER, check=False).strip()


@pytest.fixture
def begin(appliance, visitor, shared, forwarded, script):  # noqa: F811
    """Start the script over NFS with a setting; the process, and the address of its result."""

    def start(size: str) -> tuple[subprocess.Popen[str], str]:
        wait_for("the port to be free", lambda: ended(appliance), timeout=120)
        page = new_code(visitor, shared, "nfs", size, setting="nfs-threads", runs="3")
        argv = argv_of(page, appliance, forwarded, script, "nfs")
        # Whoever runs the tests in the background may ignore SIGINT, and a child inherits that: with a handler it does not.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            running = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        finally:
            signal.signal(signal.SIGINT, before)
        found = re.search(r"/benchmarks/client/([0-9a-f-]{36})/", page.text)
        assert found
        return running, f"/benchmarks/client/{found[1]}/"

    return start


def test_setting_is_switched_in_turns_and_put_back_and_the_result_says_whether_it_helps(appliance, visitor, begin):
    assert threads(appliance) == USUAL
    running, result = begin("16 MiB")
    wait_for("the setting to be switched", lambda: threads(appliance) == TRIED, timeout=300, every=0.2)
    assert timer(appliance) == "active", "what puts it back stands ready while it is switched"
    said, _ = running.communicate(timeout=900)
    assert running.returncode == 0, said
    assert "3 of 3, with the setting" in said
    assert threads(appliance) == USUAL
    assert timer(appliance) == "inactive"
    page = visitor.get(result)
    assert "More threads of the NFS server: 32 threads instead of 16 threads" in page.words
    verdicts = ("It helps here.", "It makes no difference here.", "It makes it slower here.", "one thing faster and another")  # fmt: skip
    assert [one for one in verdicts if one in page.words], page.words
    # Whatever this emulated box says, no other than what helped can be kept.
    if "Keep this setting" not in page.words:
        refused = visitor.post(f"{result}keep/", result)
        assert "Only a setting that helped" in refused.words


def test_setting_of_a_script_that_was_killed_is_put_back_by_its_timer(appliance, begin):
    running, _result = begin("256 MiB")
    try:
        wait_for("the setting to be switched", lambda: threads(appliance) == TRIED, timeout=300, every=0.2)
    finally:
        running.kill()
        running.communicate(timeout=60)
    # All of Larder is gone, too: the timer is systemd's. Its half hour is cut short, what it runs is not.
    appliance.shell("systemctl stop 'larder-agent*' 'larder-web*' larder-worker.service")
    assert timer(appliance) == "active"
    appliance.run("systemctl", "start", TIMER.replace(".timer", ".service"))
    assert threads(appliance) == USUAL
    appliance.shell(
        "systemctl stop larder-setting-back.timer;"
        " systemctl start larder-agent.socket larder-web.socket larder-web.service larder-worker.service"
    )


def test_kept_setting_outlives_a_restart_and_is_put_back_from_its_page(appliance, visitor, shared):  # noqa: F811
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
    "told": json.dumps(figures), "text": "", "created": "2026-11-27 00:00:00", "created_by": "admin",
    "begun": "2026-11-27 00:00:00", "finished": "2026-11-27 00:00:00",
}
import glob
for path in glob.glob("/var/lib/larder/*.sqlite3"):
    with sqlite3.connect(path, timeout=30) as base:
        if base.execute("select 1 from sqlite_master where name = 'sweeps_clientrunrow'").fetchone():
            names = ", ".join(row)
            base.execute(f"insert into sweeps_clientrunrow ({names}) values ({', '.join('?' * len(row))})", [*row.values()])
"""
