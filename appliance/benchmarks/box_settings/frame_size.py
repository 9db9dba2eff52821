"""Larger frames (MTU) at the port of the default route.

Each computer connected through it is asked as soon as they are set: where they do not arrive, or that is not known,
they are not tried. An MTU is kept from the page of the system, after a trial of its own (``system/set_mtu.py``).
"""

from __future__ import annotations

import json
import re

from appliance import command
from appliance.benchmarks.box_settings.catalogue_entry import BoxSetting
from appliance.benchmarks.box_settings.port_settings import PORT, find_port, match, wait_for_link
from appliance.errors import Failed, Reason, Refused
from appliance.message import Message
from appliance.system import full_frames, mtu
from appliance.system.set_mtu import set_argv

TAG = "mtu"
TRIED = 9000  # what most devices with jumbo frames carry
VALUE = re.compile(PORT + r" mtu (\d{2,5}) of (\d{2,5})")
SECONDS_TO_ANSWER = 15.0  # after the link is back: until DHCP has answered again


def read_size() -> str:
    port = find_port()
    if refusal := mtu.describe_manager(port):
        raise Refused(Reason("mtu-not-managed", "The MTU of {port} stays as it is. {why}", port=port, why=refusal))
    if mtu.read_trial(port):
        raise Refused(Reason("mtu-trial-runs", "Another MTU is being tried. Wait until it has been kept or put back."))
    return f"{port} mtu {mtu.read_mtu(port)} of {read_largest(port)}"


def read_largest(port: str) -> int:
    """What the driver takes at most (ip-link(8)), and what is set here at most."""
    try:
        told = command.run(("ip", "-json", "-details", "link", "show", "dev", port), timeout=30).stdout
        return min(int(json.loads(told)[0].get("max_mtu") or mtu.MOST), mtu.MOST)
    except (Failed, ValueError, LookupError) as error:
        raise Refused(
            Reason(
                "setting-port-silent", "The driver of the network port {port} does not have this setting.", port=port
            )
        ) from error


def propose_size(value: str) -> str:
    port, now, largest = match(VALUE, value).groups()
    if int(now) >= TRIED:
        raise Refused(
            Reason("mtu-large-already", "The network port {port} has an MTU of {mtu} already.", port=port, mtu=int(now))
        )
    if int(largest) <= int(now):
        raise Refused(
            Reason(
                "mtu-largest-already",
                "The network port {port} takes no larger frames than {mtu} bytes.",
                port=port,
                mtu=int(now),
            )
        )
    return f"{port} mtu {min(TRIED, int(largest))} of {largest}"


def show_size(value: str) -> str:
    return Message("an MTU of {mtu} at {port}", mtu=mtu_of(value), port=port_of(value))


def port_of(value: str) -> str:
    return match(VALUE, value)[1]


def mtu_of(value: str) -> int:
    return int(match(VALUE, value)[2])


def settle_size(value: str) -> None:
    """Wait for the link; of what is tried, find out whether it arrives. Raises Failed, Refused."""
    wait_for_link(value)
    if mtu_of(value) == min(TRIED, int(match(VALUE, value)[3])):
        refuse_lost_frames(port_of(value), mtu_of(value))


def refuse_lost_frames(port: str, size: int) -> None:
    clients = full_frames.list_clients(port)
    if not clients:
        raise Refused(
            Reason(
                "frames-nobody-connected",
                "It cannot be tried here: no computer is connected through {port}, so it is not known where "
                "larger frames arrive.",
                port=port,
            )
        )
    try:
        answers = full_frames.ask_clients(clients, size, patience=SECONDS_TO_ANSWER)
    except OSError as error:
        raise Failed(Message("The computers that are connected could not be asked"), str(error)) from error
    if answers.deaf:
        raise Refused(
            Reason(
                "frames-lost",
                "It cannot be tried here: frames of {mtu} bytes do not reach {names}. Set an MTU of {mtu} "
                "there and on every switch between, then measure again.",
                mtu=size,
                names=", ".join(answers.deaf),
            )
        )
    if answers.silent:
        raise Refused(
            Reason(
                "frames-not-answered",
                "It cannot be tried here: no ping is answered by {names}, so it is not known whether frames "
                "of {mtu} bytes arrive there. Allow pings in the firewall there, then measure again.",
                mtu=size,
                names=", ".join(answers.silent),
            )
        )


FRAME_SIZE = BoxSetting(
    name=Message("Larger frames (MTU)"),
    meaning=Message(
        "How much the box sends at once. Larger frames spare the processors of both computers, but the other "
        "computer and every switch between have to take them."
    ),
    warning=Message(
        "Each switch can cut all connections of this box for some seconds. It is not tried where larger "
        "frames do not reach a computer that is connected."
    ),
    protocols=("smb", "nfs"),
    form=VALUE,
    read=read_size,
    propose=propose_size,
    show=show_size,
    argv=lambda value: set_argv(port_of(value), mtu_of(value)),
    settle=settle_size,
    seconds=mtu.SECONDS,
)
