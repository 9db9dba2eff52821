"""The system page tells what is so; the box restarts and goes off by it, and comes back with its pool."""

from __future__ import annotations

import json
import re

from deploy.image.machine import Machine, wait_for
from tests.visitor import Visitor, create_pool, disk_paths

BOOT = "/proc/sys/kernel/random/boot_id"


def boot_of(appliance: Machine) -> str:
    return appliance.run("cat", BOOT, check=False, timeout=20).strip()


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, text
    return float(found[1])


def confirm_power(visitor: Visitor, act: str) -> str:
    visitor.wait_until("/system/", "Memory and load", timeout=90)
    return visitor.confirm(visitor.get(f"/system/power/{act}/"))


def test_system_page_tells_what_is_so(appliance, visitor):
    kernel = appliance.run("uname", "-r").strip()
    module = appliance.run("cat", "/sys/module/zfs/version").strip()
    total = number(r"MemTotal:\s+(\d+)", appliance.run("cat", "/proc/meminfo")) / 2**20
    links = json.loads(appliance.run("ip", "-j", "-4", "address", "show", "up"))
    address = next(one["local"] for link in links if link["ifname"] != "lo" for one in link["addr_info"])
    page = visitor.wait_until("/system/", "Memory and load", kernel, module, address, timeout=90)
    assert abs(number(r"of (\d+(?:\.\d+)?) GiB used by programs", page.words) - total) < 0.1


def test_restart_brings_the_box_back_with_its_pool(appliance, visitor):
    create_pool(appliance, "tank", "mirror", *disk_paths(appliance, 1, 2))
    appliance.shell("echo kept > /tank/file; zpool sync tank")
    before = boot_of(appliance)
    job = confirm_power(visitor, "restart")
    appliance.close_ssh()
    wait_for("another start", lambda: boot_of(appliance) not in {"", before}, timeout=240, every=2)
    appliance.wait_ready()
    visitor.sign_in()
    assert visitor.ended(job).startswith("Done.")
    visitor.wait_until("/pools/", "tank", timeout=90)
    assert appliance.run("cat", "/tank/file").strip() == "kept"


def test_shut_down_switches_the_box_off(appliance, visitor):
    job = confirm_power(visitor, "shut-down")
    appliance.close_ssh()
    wait_for("the machine to be off", lambda: not appliance.running(), timeout=180, every=1)
    appliance.cut_power()  # which forgets the ended QEMU
    appliance.power_on()
    visitor.sign_in()
    assert visitor.ended(job, timeout=120).startswith("Done.")
    assert appliance.run("cat", "/tank/file").strip() == "kept"
