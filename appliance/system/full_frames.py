"""Which computers full frames reach undivided, there and back: an ICMP echo request of the size
of the MTU, never fragmented.

As ``ping -M probe -s`` does it, which is not installed everywhere. The answer has the size of the request, so it
tells the way back as well, but only where it came in one piece: a computer with a smaller MTU may send it in several.
With each full request goes a small one, so that a computer that gets no full frames differs from one that answers
nothing, or not yet. Needs root.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import select
import socket
import struct
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from itertools import count

import msgspec

from appliance import command
from appliance.errors import Reason, Refused

# linux/in.h and linux/in6.h: never fragment, and go by the port's MTU, not by what was learned before or by the
# route's; and say of what arrives in pieces how large the largest was.
PROBE = {
    socket.AF_INET: (socket.IPPROTO_ICMP, socket.IPPROTO_IP, ((10, 3), (25, 1))),
    socket.AF_INET6: (socket.IPPROTO_ICMPV6, socket.IPPROTO_IPV6, ((23, 3), (62, 1), (77, 1))),
}
FRAGMENT_SIZE = {(socket.IPPROTO_IP, 25), (socket.IPPROTO_IPV6, 77)}
ECHO = {socket.AF_INET: (8, 0, 20), socket.AF_INET6: (128, 129, 40)}  # types of request and reply, bytes of IP's header
ECHO_HEADER = 8  # bytes
SMALL = 100  # bytes with all headers; every network carries that
TRIES, SECONDS_BETWEEN = 3, 1.0
MOST_CLIENTS = 100
SERVED = (445, 2049, 548, 3260, 443)  # SMB, NFS, AFP, iSCSI and these pages
PLACE = re.compile(r"\[?(?:::ffff:)?([0-9a-f.:]+)\]?(?:%(\S+))?:\d+")  # of one end of a connection, as ss has it


class FrameAnswers(msgspec.Struct, frozen=True):
    """Addresses of computers: those that a full frame ``reached`` and left undivided, those that answer only small ones
    (``deaf``), and those that answer nothing."""

    reached: tuple[str, ...] = ()
    deaf: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


def check_addresses(addresses: Collection[str]) -> None:
    """Raises Refused."""
    try:
        for address in addresses:
            ipaddress.ip_address(address)
        if len(addresses) > MOST_CLIENTS:
            raise ValueError("too many")
    except ValueError as error:
        raise Refused(Reason("client-addresses-invalid", "These are not addresses of computers.")) from error


# --- who is connected -----------------------------------------------------------------------------------------------
def list_clients(port: str) -> tuple[str, ...]:
    """Addresses of computers that are connected through a port, or were in the last minute;
    IPv6 with its zone where it needs one. Raises Failed."""
    served = " or ".join(f"sport = :{number}" for number in SERVED)
    argv = ["ss", "-Hnt", "state", "established", "state", "time-wait", f"( {served} )"]
    found = {address for line in command.run(argv, timeout=20).stdout.splitlines() if (address := peer_of(line, port))}
    ours = sorted(address for address in found if "%" in address or is_sent_through(address, port))
    return tuple(ours[:MOST_CLIENTS])


def peer_of(line: str, port: str) -> str:
    """The other end of a connection in a line of ss; empty where that is at another port, or cannot be understood."""
    ours, theirs = (PLACE.fullmatch(word) for word in ["", "", *line.split()][-2:])
    if not ours or not theirs:
        return ""
    if not ipaddress.ip_address(theirs[1]).is_link_local or ":" not in theirs[1]:
        return theirs[1]
    return f"{theirs[1]}%{port}" if (ours[2] or port) == port else ""


def is_sent_through(address: str, port: str) -> bool:
    """Whether frames to an address leave by a port, or may: while that has no link there can be no route."""
    told = command.run(["ip", "-json", "route", "get", address], timeout=20, accept=range(256)).stdout
    with suppress(ValueError, LookupError):
        return bool(json.loads(told)[0]["dev"] == port)
    return True


# --- what reaches them ----------------------------------------------------------------------------------------------
def ask_clients(addresses: Collection[str], size: int, *, patience: float = 0.0) -> FrameAnswers:
    """Send each a full request, of ``size`` bytes with all headers, and a small one each second
    until it is clear what it gets.

    ``patience``: seconds that are waited for those that answer nothing, as the port may have lost its link for a
    moment. Raises OSError without the right to ask.
    """
    small: dict[str, set[int]] = {address: set() for address in addresses}
    reached: set[str] = set()
    ends = time.monotonic() + patience
    with ExitStack() as stack:
        sockets = {family: stack.enter_context(open_socket(family)) for family in {*map(family_of, small)}}
        for number in count():
            left = [address for address in small if address not in reached and len(small[address]) < TRIES]
            if not left or (number >= TRIES and time.monotonic() > ends):
                break
            for address in left:
                send_request(sockets[family_of(address)], address, 2 * number, SMALL)
                send_request(sockets[family_of(address)], address, 2 * number + 1, size)
            for address, sequence, length in hear(sockets.values(), left):
                if sequence % 2 == 0:
                    small[address].add(sequence)
                elif length == size:
                    reached.add(address)
                if reached.issuperset(left):
                    break
    rest = [address for address in small if address not in reached]
    return FrameAnswers(
        reached=tuple(address for address in small if address in reached),
        deaf=tuple(address for address in rest if small[address]),
        silent=tuple(address for address in rest if not small[address]),
    )


def family_of(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def open_socket(family: socket.AddressFamily) -> socket.socket:
    """Raises OSError without the right to it."""
    protocol, level, options = PROBE[family]
    opened = socket.socket(family, socket.SOCK_RAW, protocol)
    for option, value in options:
        opened.setsockopt(level, option, value)
    return opened


def send_request(sender: socket.socket, address: str, sequence: int, size: int) -> None:
    """What cannot be sent now, as the port has no link or takes no such frame, is as if it had been lost."""
    family = family_of(address)
    packet = echo_request(family, mark(), sequence & 0xFFFF, size - ECHO_HEADER - ECHO[family][2])
    host, _, zone = address.partition("%")
    with suppress(OSError):
        sender.sendto(packet, (host, 0, 0, socket.if_nametoindex(zone) if zone else 0) if ":" in host else (host, 0))


def hear(sockets: Collection[socket.socket], addresses: Collection[str]) -> Iterator[tuple[str, int, int]]:
    """Each answer of these addresses within the time: whose, to which number, and the bytes of the packet with all
    headers, or of its largest piece where it came in several."""
    asked = {address.partition("%")[0]: address for address in addresses}
    ends = time.monotonic() + SECONDS_BETWEEN
    while (left := ends - time.monotonic()) > 0:
        for ready in select.select(sockets, [], [], left)[0]:
            with suppress(OSError):
                packet, told, _flags, source = ready.recvmsg(65535, 256)
                address = asked.get(source[0].partition("%")[0], "")
                if address and (answer := read_answer(ready.family, packet)):
                    pieces = [struct.unpack("i", data)[0] for *kind, data in told if tuple(kind) in FRAGMENT_SIZE]
                    yield address, answer[0], min([answer[1], *pieces])


def read_answer(family: int, packet: bytes) -> tuple[int, int] | None:
    """The number of an answer to us, and its bytes with all headers; None where the packet is none.
    IPv4 hands its header over."""
    _request, reply, header = ECHO[socket.AddressFamily(family)]
    start = (packet[0] & 0x0F) * 4 if family == socket.AF_INET and packet else 0
    if len(packet) < start + ECHO_HEADER or packet[start] != reply:
        return None
    whose, sequence = struct.unpack_from("!HH", packet, start + 4)
    return (sequence, len(packet) + (0 if start else header)) if whose == mark() else None


def mark() -> int:
    """What tells our requests from those of other programs."""
    return os.getpid() & 0xFFFF


def echo_request(family: int, whose: int, sequence: int, size: int) -> bytes:
    """An echo request with ``size`` bytes after its header (RFC 792, RFC 4443).
    The checksum of IPv6 is the kernel's to fill in."""
    kind = ECHO[socket.AddressFamily(family)][0]
    rest = struct.pack("!HH", whose, sequence) + bytes(size)
    total = checksum(struct.pack("!BBH", kind, 0, 0) + rest) if family == socket.AF_INET else 0
    return struct.pack("!BBH", kind, 0, total) + rest


def checksum(data: bytes) -> int:
    """The internet's checksum (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
