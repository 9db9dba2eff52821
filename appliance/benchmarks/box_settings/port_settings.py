"""What a network port does with frames (ethtool(8)): how many wait, who may ask for a pause, how often it interrupts.

The port is the one of the default route. Its name is part of each value, so that what comes back comes back to it.
A port may lose its link for a moment when it is changed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from appliance import command
from appliance.benchmarks.box_settings.catalogue_entry import BoxSetting
from appliance.errors import Failed, Reason, Refused
from appliance.message import Message
from appliance.system.mtu import NAME, PORTS

ROUTES = Path("/proc/net/route")  # proc(5): name, destination and gateway in hexadecimal digits, more
RULES = Path("/etc/udev/rules.d")  # udev(7): read when a port appears
SECONDS_TO_LINK = 30.0  # copper agrees on a gigabit in two to five, then DHCP may have to bring the address back
SECONDS_QUIET = 1.5  # drivers that lose the link do so within a second
LONG_WAIT, SHORT_WAIT = 100, 20  # microseconds
PORT = f"({NAME.pattern})"
RING_VALUE = re.compile(PORT + r" rx (\d{1,6}) of (\d{1,6}), tx (\d{1,6}) of (\d{1,6})")
FLOW_VALUE = re.compile(PORT + r" autoneg (on|off) rx (on|off) tx (on|off)")
INTERRUPT_VALUE = re.compile(PORT + r" (\d{1,5}) us")


def find_port() -> str:
    """The port that leads to other networks: that of the default route with the lowest metric, as the kernel takes it.
    Raises Refused where none does, or where it is no port of its own."""
    rows = [line.split() for line in ROUTES.read_text().splitlines()[1:]]
    ways = sorted((int(row[6]), row[0]) for row in rows if (row[1], row[7]) == ("00000000", "00000000"))
    if not ways:
        raise Refused(
            Reason(
                "setting-port-unknown",
                "This box has no way to other networks over IPv4, so it is not known which port to try.",
            )
        )
    name = ways[0][1]
    if not (PORTS / name / "device").exists():
        raise Refused(
            Reason(
                "setting-port-combined",
                "The connections of this box go through {port}, a bridge, bond or the like. Settings of its "
                "members are not tried.",
                port=name,
            )
        )
    return name


def silent(port: str) -> Refused:
    return Refused(
        Reason("setting-port-silent", "The driver of the network port {port} does not have this setting.", port=port)
    )


def ask(letter: str, port: str) -> dict[str, Any]:
    """What ethtool says of a port; raises Refused where its driver does not tell."""
    try:
        told = command.run(("ethtool", "--json", letter, port), timeout=30).stdout
        found: dict[str, Any] = json.loads(told)[0]
    except (Failed, ValueError, IndexError) as error:
        raise silent(port) from error
    return found


def match(form: re.Pattern[str], value: str) -> re.Match[str]:
    """Raises Refused."""
    found = form.fullmatch(value)
    if not found:
        raise Refused(Reason("tried-value-invalid", "That is no value of this setting."))
    return found


def wait_for_link(value: str) -> None:
    """Until the port of a value has its link and has kept it for a moment, as it may be lost only after ethtool has
    ended, and leads to other networks. Raises Failed."""
    port = PORTS / value.split(" ")[0]
    end, since, changes = time.monotonic() + SECONDS_TO_LINK, time.monotonic(), ""
    while True:
        try:
            link, now = (port / "carrier").read_text().strip(), (port / "carrier_changes").read_text()
        except OSError:
            link, now = "", ""  # as long as a port is down it has no such state
        if link != "1" or now != changes or not is_way(port.name):
            since, changes = time.monotonic(), now
        elif time.monotonic() >= since + SECONDS_QUIET:
            return
        if time.monotonic() > end:
            raise Failed(
                Message("The network port {port} lost its link", port=port.name)
                if link != "1"
                else Message("The network port {port} did not get its address back", port=port.name)
            )
        time.sleep(0.1)


def is_way(port: str) -> bool:
    """Whether the way to other networks leads through a port: a DHCP client takes that away as
    long as there is no link."""
    try:
        return find_port() == port
    except Refused:
        return False


def rule(argv: tuple[str, ...]) -> str:
    """The rule that runs a command for the port named in it, when that appears. The name may not be its final one by
    then, so it is known by its address; only ports of their own have no DEVTYPE."""
    program, letter, port, *words = argv
    try:
        address = (PORTS / port / "address").read_text().strip()
    except OSError as error:
        raise Refused(
            Reason("setting-changed-since", "The setting has changed since it was measured. Measure it again.")
        ) from error
    line = " ".join([f"/usr/sbin/{program}", letter, "$name", *words])
    return f'ACTION=="add", SUBSYSTEM=="net", ENV{{DEVTYPE}}=="", ATTR{{address}}=="{address}", RUN+="{line}"'


# --- how many frames wait ---------------------------------------------------------------------------------------------
def read_rings() -> str:
    port = find_port()
    told = ask("-g", port)
    rx, tx = told.get("rx"), told.get("tx")
    if not isinstance(rx, int) or not isinstance(tx, int):
        raise silent(port)
    return f"{port} rx {rx} of {told.get('rx-max') or rx}, tx {tx} of {told.get('tx-max') or tx}"


def propose_rings(value: str) -> str:
    port, rx, most_rx, tx, most_tx = match(RING_VALUE, value).groups()
    if int(rx) >= int(most_rx) and int(tx) >= int(most_tx):
        raise Refused(
            Reason("port-rings-largest", "The network port {port} lets as many frames wait as it can.", port=port)
        )
    return f"{port} rx {most_rx} of {most_rx}, tx {most_tx} of {most_tx}"


def show_rings(value: str) -> str:
    port, rx, _most, tx, _most_tx = match(RING_VALUE, value).groups()
    return Message(
        "room for {receiving} received frames and {sending} to be sent in {port}",
        port=port,
        receiving=int(rx),
        sending=int(tx),
    )


def ring_argv(value: str) -> tuple[str, ...]:
    port, rx, _most, tx, _most_tx = match(RING_VALUE, value).groups()
    return ("ethtool", "-G", port, "rx", rx, "tx", tx)


# --- who may ask for a pause ------------------------------------------------------------------------------------------
def read_flow() -> str:
    port = find_port()
    told = ask("-a", port)
    agreed, rx, tx = ("on" if told.get(key) else "off" for key in ("autonegotiate", "rx", "tx"))
    return f"{port} autoneg {agreed} rx {rx} tx {tx}"


def propose_flow(value: str) -> str:
    """The other way round, and not what port and switch agree on: they could agree on what there was."""
    port, _agreed, rx, tx = match(FLOW_VALUE, value).groups()
    other = "off" if "on" in {rx, tx} else "on"
    return f"{port} autoneg off rx {other} tx {other}"


def show_flow(value: str) -> str:
    port, _agreed, rx, tx = match(FLOW_VALUE, value).groups()
    if rx == tx:
        return Message("on at {port}", port=port) if rx == "on" else Message("off at {port}", port=port)
    return Message("one way only at {port}", port=port)


def flow_argv(value: str) -> tuple[str, ...]:
    port, agreed, rx, tx = match(FLOW_VALUE, value).groups()
    return ("ethtool", "-A", port, "autoneg", agreed, "rx", rx, "tx", tx)


# --- how often it interrupts ------------------------------------------------------------------------------------------
def read_interrupts() -> str:
    port = find_port()
    told = ask("-c", port)
    if told.get("adaptive-rx"):
        raise Refused(
            Reason(
                "port-interrupts-adapt", "The network port {port} adapts how long it waits to the traffic.", port=port
            )
        )
    wait = told.get("rx-usecs")
    if not isinstance(wait, int):
        raise silent(port)
    return f"{port} {wait} us"


def propose_interrupts(value: str) -> str:
    port, wait = match(INTERRUPT_VALUE, value).groups()
    return f"{port} {LONG_WAIT if int(wait) < LONG_WAIT else SHORT_WAIT} us"


def show_interrupts(value: str) -> str:
    port, wait = match(INTERRUPT_VALUE, value).groups()
    # Intel's drivers read 1 and 3 as two ways to follow the traffic (Documentation/networking/device_drivers, e1000).
    if wait in {"1", "3"}:
        return Message("as its driver chooses at {port} (its setting {wait})", port=port, wait=int(wait))
    return Message("{wait} µs at {port}", port=port, wait=int(wait))


def interrupt_argv(value: str) -> tuple[str, ...]:
    port, wait = match(INTERRUPT_VALUE, value).groups()
    return ("ethtool", "-C", port, "rx-usecs", wait)


def for_port(
    *,
    name: str,
    meaning: str,
    form: re.Pattern[str],
    read: Callable[[], str],
    propose: Callable[[str], str],
    show: Callable[[str], str],
    argv: Callable[[str], tuple[str, ...]],
    rules: str,
) -> BoxSetting:
    """What all settings of the port have in common; ``rules``: the name of the file that keeps this one."""
    return BoxSetting(
        name=name,
        meaning=meaning,
        warning=Message("Each switch can cut all connections of this box for some seconds."),
        protocols=("smb", "nfs"),
        form=form,
        read=read,
        propose=propose,
        show=show,
        argv=argv,
        settle=wait_for_link,
        file=RULES / rules,
        lines=lambda value: rule(argv(value)),
    )


RING_SIZES = for_port(
    name=Message("More room for frames in the network port (ring sizes)"),
    meaning=Message(
        "How many frames may wait in the port until the processor takes them. It can help a slow processor "
        "that loses frames in bursts."
    ),
    form=RING_VALUE,
    read=read_rings,
    propose=propose_rings,
    show=show_rings,
    argv=ring_argv,
    rules="90-larder-rings.rules",
)

FLOW_CONTROL = for_port(
    name=Message("Pauses between switch and box (flow control)"),
    meaning=Message(
        "Whether port and switch may ask each other to wait for a moment. It avoids lost frames, and one "
        "slow computer may hold up others."
    ),
    form=FLOW_VALUE,
    read=read_flow,
    propose=propose_flow,
    show=show_flow,
    argv=flow_argv,
    rules="90-larder-pauses.rules",
)

INTERRUPTS = for_port(
    name=Message("Time between interrupts of the network port (coalescing)"),
    meaning=Message(
        "How long the port collects frames before it calls the processor. Longer spares a slow processor, "
        "shorter answers sooner."
    ),
    form=INTERRUPT_VALUE,
    read=read_interrupts,
    propose=propose_interrupts,
    show=show_interrupts,
    argv=interrupt_argv,
    rules="90-larder-interrupts.rules",
)
