"""Larger buffers for connections (tcp(7))."""

from __future__ import annotations

import re
from pathlib import Path

from appliance.benchmarks.box_settings.catalogue_entry import BoxSetting
from appliance.errors import Reason, Refused
from appliance.formatting import size_text
from appliance.message import Message

TCP = Path("/proc/sys/net/ipv4")
FILE = Path("/etc/sysctl.d/90-larder-tcp.conf")  # sysctl.d(5): read at each start
# Least, usual and most bytes of a connection's buffer, for receiving and for sending (tcp(7), tcp_rmem and tcp_wmem).
VALUE = re.compile(r"(\d{3,7} \d{4,8}) (\d{5,9}), (\d{3,7} \d{4,8}) (\d{5,9})")
TRIED = 16 * 2**20  # bytes; enough for 10 Gbit/s and 12 ms


def read_buffers() -> str:
    try:
        both = [" ".join((TCP / name).read_text().split()) for name in ("tcp_rmem", "tcp_wmem")]
    except OSError as error:
        raise Refused(
            Reason("setting-unreadable", "This box does not say how large the buffers of a connection are.")
        ) from error
    return ", ".join(both)


def propose_buffers(value: str) -> str:
    found = VALUE.fullmatch(value)
    if not found or min(int(found[2]), int(found[4])) >= TRIED:
        raise Refused(
            Reason(
                "tcp-buffers-large-already",
                "The buffers may grow to {size} already. Larger ones do not help in a home network.",
                size=size_text(TRIED),
            )
        )
    return f"{found[1]} {max(TRIED, int(found[2]))}, {found[3]} {max(TRIED, int(found[4]))}"


def show_buffers(value: str) -> str:
    found = VALUE.fullmatch(value)
    if not found:
        return value
    return Message(
        "up to {receiving} for receiving, {sending} for sending",
        receiving=size_text(int(found[2])),
        sending=size_text(int(found[4])),
    )


def buffer_words(value: str) -> tuple[str, str]:
    receiving, sending = value.split(", ")
    return f"net.ipv4.tcp_rmem={receiving}", f"net.ipv4.tcp_wmem={sending}"


TCP_BUFFERS = BoxSetting(
    name=Message("Larger buffers for connections (TCP)"),
    meaning=Message(
        "How much may be under way to the other computer at once. It can help on fast networks with delays."
    ),
    protocols=("smb", "nfs"),
    form=VALUE,
    read=read_buffers,
    propose=propose_buffers,
    show=show_buffers,
    argv=lambda value: ("sysctl", "-q", "-w", *buffer_words(value)),
    file=FILE,
    lines=lambda value: "\n".join(buffer_words(value)),
)
