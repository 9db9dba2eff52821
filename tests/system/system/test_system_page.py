"""The system page tells what is so; the box restarts and goes off by it, and comes back with its pool and its share."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system.sharing import Client

STATE = "share"


def test_overview_tells_what_goes_on_right_now(appliance, visitor, anna):
    held = anna.held("photos", "ls")
    try:
        page = visitor.wait_until("/", "Right now", "written", "Connected clients anna", timeout=120)
    finally:
        held.communicate(timeout=120)
    assert re.search(r"Network [\d.]+ \w+/s in, [\d.]+ \w+/s out", page.words)


@pytest.fixture(scope="module")
def anna(appliance, tmp_path_factory) -> Client:
    """Anna, who has written a note over SMB."""
    folder = tmp_path_factory.mktemp("anna")
    found, sent = Client(appliance, folder, "anna"), folder / "sent"
    sent.write_text("kept\n")
    found.done("photos", f"put {sent} note")
    return found


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, text
    return float(found[1])


def test_system_page_tells_what_is_so(appliance, visitor):
    kernel = appliance.run("uname", "-r").strip()
    module = appliance.run("cat", "/sys/module/zfs/version").strip()
    total = number(r"MemTotal:\s+(\d+)", appliance.run("cat", "/proc/meminfo")) / 2**20
    links = json.loads(appliance.run("ip", "-j", "-4", "address", "show", "up"))
    address = next(one["local"] for link in links if link["ifname"] != "lo" for one in link["addr_info"])
    page = visitor.wait_until("/system/", "Memory and load", kernel, module, address, timeout=90)
    assert abs(number(r"of (\d+(?:\.\d+)?) GiB used by programs", page.words) - total) < 0.1


def assert_served_again(appliance: Machine, anna: Client, folder: Path) -> None:
    """The pool is complete without anybody's help, and anna reads over SMB what she wrote before."""
    wait_for("the share", lambda: anna.tried("photos", "ls")[0] == 0, timeout=240, every=3)
    received = folder / "received"
    anna.done("photos", f"get note {received}")
    assert received.read_text() == "kept\n"
    assert appliance.run("zpool", "list", "-H", "-o", "health", "tank").strip() == "ONLINE"


def test_restart_brings_the_box_back_with_its_pool_and_its_share(appliance, visitor, anna, tmp_path: Path):
    job = visitor.restart_box()
    assert visitor.ended(job).startswith("Done.")
    visitor.wait_until("/pools/", "tank", timeout=90)
    assert_served_again(appliance, anna, tmp_path)


def test_shut_down_switches_the_box_off_and_its_share_is_back_after_the_start(appliance, visitor, anna, tmp_path: Path):
    visitor.wait_until("/system/", "Memory and load", timeout=90)
    job = visitor.confirm(visitor.get("/system/power/shut-down/"))
    appliance.close_ssh()
    wait_for("the machine to be off", lambda: not appliance.running(), timeout=180, every=1)
    appliance.cut_power()  # which forgets the ended QEMU
    appliance.power_on()
    visitor.sign_in()
    assert visitor.ended(job, timeout=120).startswith("Done.")
    assert_served_again(appliance, anna, tmp_path)
