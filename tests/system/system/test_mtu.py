"""An MTU that is tried: it comes back by itself without a page, and is kept, also after a restart, once confirmed."""

from __future__ import annotations

from deploy.image.machine import wait_for
from tests.system import sharing

STATE = "pool"
SECONDS = 105  # from the change until the former value is back, as promised


def port_of(appliance) -> str:
    return appliance.shell("ip -o route get 10.0.2.2").split("dev ")[1].split()[0]


def mtu_of(appliance, port: str) -> str:
    return appliance.run("cat", f"/sys/class/net/{port}/mtu").strip()


def try_mtu(visitor, port: str, value: int) -> str:
    """Try a value by the page; what the job says at its end."""
    path = f"/system/ports/{port}/mtu/"
    page = visitor.wait_until(path, "MTU in bytes", timeout=120)
    assert "cannot be changed here" not in page.words
    return visitor.ended(visitor.confirm(visitor.get(f"{path}?mtu={value}")), timeout=60)


def test_mtu_that_the_other_side_cannot_take_is_back_without_a_page(appliance, visitor):
    port = port_of(appliance)
    assert mtu_of(appliance, port) == "1500"
    appliance.shell(
        "nohup sh -c 'while sleep 0.2; do "
        f'echo $(cut -d" " -f1 /proc/uptime) $(cat /sys/class/net/{port}/mtu); done\' >/run/mtus 2>/dev/null </dev/null &'
    )
    said = try_mtu(visitor, port, 9000)
    assert said.startswith("Done."), said
    # The emulator's network takes no frames of 9000 bytes, and the trial says so for the computer that looks.
    wait_for("the former MTU", lambda: mtu_of(appliance, port) == "1500", timeout=600, every=1)
    seen = [line.split() for line in appliance.run("cat", "/run/mtus").splitlines() if len(line.split()) == 2]
    tried = [float(at) for at, value in seen if value == "9000"]
    assert tried, seen[:5]
    assert max(tried) - min(tried) <= SECONDS
    assert not appliance.shell(f"ls /var/lib/larder-agent/mtu/{port} 2>/dev/null || true").strip()


def test_confirmed_mtu_stays_also_when_the_port_comes_up_again(appliance, visitor):
    port = port_of(appliance)
    said = try_mtu(visitor, port, 1400)
    assert said.startswith("Done."), said
    page = visitor.wait_until("/system/", "1400 is being tried", timeout=60)
    answer = visitor.send(f"/system/ports/{port}/mtu/keep/", {**page.hidden(), "mtu": "1400"})
    said = visitor.ended(sharing.job_in(answer))
    assert said.startswith("Done."), said
    assert appliance.run("systemctl", "is-active", f"larder-mtu-back-{port}.timer", check=False).strip() == "inactive"
    assert appliance.run("cat", f"/var/lib/larder-agent/mtu/{port}").strip() == "1400"
    # As after a start: the kernel's own value, and then what ifupdown runs.
    appliance.run("ip", "link", "set", "dev", port, "mtu", "1500")
    appliance.shell(f"IFACE={port} run-parts /etc/network/if-up.d")
    assert mtu_of(appliance, port) == "1400"
