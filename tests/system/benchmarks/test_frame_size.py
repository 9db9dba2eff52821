"""Larger frames between a real driver's port (QEMU's Intel 82574, e1000e) and a computer on the same cable: tried where
they arrive there and back, and not where they do not.

The other computer is a second port of the machine in a network namespace of its own; both hang on a hub of QEMU's,
which carries frames of any size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from deploy.image.machine import wait_for
from tests.system import protocols, sharing
from tests.system.measuring import armed_timers

STATE = "pool"
BOX, CLIENT = "10.0.9.15", "10.0.9.2"
ADDRESSES = {"e1000e": "52:54:00:12:34:98", "virtio-net-pci": "52:54:00:12:34:97"}
SECONDS = 105  # from the change until the former value is back, as promised
SWITCH = """
from appliance.benchmarks.box_settings.switch import SwitchSetting
from appliance.errors import Refused
try:
    print(SwitchSetting(setting="mtu", on={on}).read().value)
except Refused as error:
    print(error)
"""
CONNECT = f"""
import socket, time
while True:
    try:
        with socket.create_connection(("{BOX}", 443), timeout=10):
            time.sleep(20)
    except OSError:
        time.sleep(1)
"""


def switch(appliance, *, on: bool) -> str:
    return str(appliance.run("/opt/larder/venv/bin/python", "-I", "-c", SWITCH.format(on=on))).strip()


def plug(appliance, driver: str) -> str:
    """Plug a port into the hub. Returns its name."""
    address = ADDRESSES[driver]
    said = appliance.monitor(f"netdev_add hubport,id=net-{driver},hubid=9")
    assert not said.strip(), said
    said = appliance.monitor(f"device_add {driver},netdev=net-{driver},id={driver},mac={address},romfile=")
    assert not said.strip(), said

    def find() -> str:
        return next(
            (one["ifname"] for one in json.loads(appliance.run("ip", "-j", "link")) if one.get("address") == address),
            "",
        )

    wait_for("the port", find, timeout=60)
    appliance.run("udevadm", "settle")
    return find()


@pytest.fixture(scope="module")
def ports(appliance, visitor) -> Iterator[tuple[str, str]]:
    """The port of the box, through which its way to other networks leads, and that of the
    computer, which is connected."""
    sharing.make_pool(appliance, "tank", "photos")
    sharing.make_person(visitor, "anna")
    protocols.share(appliance, visitor, "tank/photos", smb={"name": "photos", "write": ["anna"]})
    box, client = plug(appliance, "e1000e"), plug(appliance, "virtio-net-pci")
    appliance.shell(
        f"ip netns add client; ip link set {client} netns client; ip -n client addr add {CLIENT}/24 dev {client};"
        f" ip -n client link set {client} up; ip -n client link set lo up;"
        f" printf 'iface {box} inet static\\n  address {BOX}/24\\n' >/etc/network/interfaces.d/second;"
        f" ip addr add {BOX}/24 dev {box}; ip link set {box} up; ip route replace default via {CLIENT} dev {box}"
    )
    appliance.run("systemd-run", "--quiet", "--unit=outside", "ip", "netns", "exec", "client", "python3", "-c", CONNECT)
    listed = ("ss", "-Hnt", "state", "established", "( sport = :443 )")
    wait_for("the computer to be connected", lambda: CLIENT in appliance.run(*listed), timeout=120)
    yield box, client
    appliance.shell("systemctl stop outside; ip netns del client; rm /etc/network/interfaces.d/second")


def set_client(appliance, client: str, *, mtu: int, of_route: int = 0) -> None:
    more = f" mtu {of_route}" if of_route else ""
    appliance.shell(
        f"ip -n client link set {client} mtu {mtu};"
        f" ip -n client route replace 10.0.9.0/24 dev {client} proto kernel scope link src {CLIENT}{more}"
    )


def mtu_of(appliance, port: str) -> str:
    return str(appliance.run("cat", f"/sys/class/net/{port}/mtu")).strip()


@pytest.mark.parametrize(("mtu", "of_route"), [(1500, 0), (9000, 1500)])
def test_frames_that_do_not_arrive_or_come_back_in_pieces_are_not_tried(appliance, visitor, ports, mtu, of_route):
    box, client = ports
    visitor.wait_until("/benchmarks/client/", f"an MTU of 9000 at {box} instead of an MTU of 1500", timeout=120)
    set_client(appliance, client, mtu=mtu, of_route=of_route)
    said = switch(appliance, on=True)
    assert f"It cannot be tried here: frames of 9000 bytes do not reach {CLIENT}." in said
    assert mtu_of(appliance, box) == "1500"
    assert armed_timers(appliance) == []


def test_frames_that_arrive_are_switched_and_go_back_by_themselves(appliance, ports):
    box, client = ports
    set_client(appliance, client, mtu=9000)
    assert re.fullmatch(rf"{box} mtu 9000 of 92\d\d", switch(appliance, on=True))
    assert mtu_of(appliance, box) == "9000"
    assert switch(appliance, on=False).startswith(f"{box} mtu 1500 of ")
    assert armed_timers(appliance) == []
    assert switch(appliance, on=True).startswith(f"{box} mtu 9000 of ")
    assert armed_timers(appliance)
    # Nobody asks for anything any more: systemd's timer alone puts it back.
    wait_for("the former value", lambda: mtu_of(appliance, box) == "1500", timeout=SECONDS, every=1)
    switch(appliance, on=False)
