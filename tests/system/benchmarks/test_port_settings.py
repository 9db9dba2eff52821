"""Settings of a real driver's port (QEMU's Intel 82574, e1000e): tried, put back by the timer, kept
for when it appears again."""

from __future__ import annotations

import json

import pytest

from deploy.image.machine import wait_for
from tests.system import protocols, sharing
from tests.system.measuring import armed_timers

STATE = "pool"
ADDRESS = "52:54:00:12:34:99"
NETWORK = "10.0.9"
LETTERS = {"ring-sizes": "-g", "flow-control": "-a", "interrupts": "-c"}
SAID = {
    "ring-sizes": "room for 4096 received frames",
    "flow-control": "off at {port}",
    "interrupts": "100 µs at {port}",
}
SWITCH = """
from appliance.benchmarks.box_settings.switch import SwitchSetting
print(SwitchSetting(setting={tag!r}, on={on}).read().value)
"""
KEEP = """
from appliance.benchmarks.box_settings.keep import KeepSetting
from appliance.benchmarks.box_settings.catalogue import read_setting
one = read_setting({tag!r})
KeepSetting(setting=one.tag, value=one.tried, former=one.value).keep(None)
"""
BACK = """
from appliance.benchmarks.box_settings.keep import PutSettingBack
from appliance.benchmarks.box_settings.catalogue import read_setting
one = read_setting({tag!r})
PutSettingBack(setting=one.tag, value=one.kept, former=one.value).back(None)
"""


def run_as_root(appliance, code: str, **words: object) -> str:
    return str(appliance.run("/opt/larder/venv/bin/python", "-I", "-c", code.format(**words))).strip()


def find_port(appliance) -> str:
    """The kernel's name of the port with the address; empty where there is none."""
    return next(
        (one["ifname"] for one in json.loads(appliance.run("ip", "-j", "link")) if one.get("address") == ADDRESS), ""
    )


def plug(appliance) -> str:
    """Plug the port in and have the way to other networks lead through it. Returns its name."""
    add = f"device_add e1000e,netdev=second,id=second,mac={ADDRESS},romfile="
    # QEMU keeps the name of a device for a moment after the system has let go of it.
    wait_for("QEMU to take the port", lambda: not appliance.monitor(add).strip(), timeout=60)
    wait_for("the port", lambda: find_port(appliance), timeout=60)
    appliance.run("udevadm", "settle")
    port = find_port(appliance)
    appliance.shell(
        f"ip addr add {NETWORK}.15/24 dev {port}; ip link set {port} up; ip route replace default via "
        f"{NETWORK}.2 dev {port}"
    )
    return port


def unplug(appliance) -> None:
    appliance.monitor("device_del second")
    wait_for("the port to be gone", lambda: not find_port(appliance), timeout=60)


@pytest.fixture(scope="module")
def port(appliance, visitor) -> str:
    """A second port, through which the way to other networks leads; a folder that could be measured is shared."""
    sharing.make_pool(appliance, "tank", "photos")
    sharing.make_person(visitor, "anna")
    protocols.share(appliance, visitor, "tank/photos", smb={"name": "photos", "write": ["anna"]})
    said = appliance.monitor(f"netdev_add user,id=second,net={NETWORK}.0/24")
    assert not said.strip(), said
    return plug(appliance)


def shown(appliance, tag: str, port: str) -> dict[str, object]:
    return dict(json.loads(appliance.run("ethtool", "--json", LETTERS[tag], port))[0])


@pytest.mark.parametrize("tag", list(LETTERS))
def test_setting_of_a_port_is_offered_switched_and_put_back_by_its_timer(appliance, visitor, port, tag):
    visitor.wait_until("/benchmarks/client/", SAID[tag].format(port=port), timeout=120)
    before = shown(appliance, tag, port)
    tried = run_as_root(appliance, SWITCH, tag=tag, on=True)
    assert tried.startswith(f"{port} ")
    assert shown(appliance, tag, port) != before
    # The timer is systemd's; its half hour is cut short, what it runs is not.
    (unit,) = armed_timers(appliance)
    appliance.run("systemctl", "start", f"{unit}.service")
    wait_for("the former value", lambda: shown(appliance, tag, port) == before, timeout=60)
    run_as_root(appliance, SWITCH, tag=tag, on=False)


def test_kept_settings_are_set_when_the_port_appears_again_and_can_be_put_back(appliance, port):
    before = {tag: shown(appliance, tag, port) for tag in LETTERS}
    for tag in LETTERS:
        run_as_root(appliance, KEEP, tag=tag)
    kept = {tag: shown(appliance, tag, port) for tag in LETTERS}
    assert all(kept[tag] != before[tag] for tag in LETTERS)
    unplug(appliance)
    plug(appliance)
    assert {tag: shown(appliance, tag, port) for tag in LETTERS} == kept
    for tag in LETTERS:
        run_as_root(appliance, BACK, tag=tag)
    assert {tag: shown(appliance, tag, port) for tag in LETTERS} == before
    assert not appliance.run("find", "/etc/udev/rules.d", "-name", "90-larder-*").strip()
