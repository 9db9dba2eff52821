"""Whether a full frame reaches another computer undivided: an ICMP echo request of the size of the MTU, not to be fragmented.

As ``ping -M do -s`` does it, which is not installed everywhere. IPv4 only; needs root.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import time
from collections.abc import Iterator

from appliance import command

IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3  # linux/in.h: never fragment, and do not go by what was learned before
HEADERS = 28  # bytes of IP and ICMP
ECHO_REQUEST, ECHO_REPLY = 8, 0
TRIES, SECONDS_FOR_ANSWER = 2, 1.0
MOST_CLIENTS = 20
SERVED = (445, 2049, 548, 3260, 443)  # SMB, NFS, AFP, iSCSI and these pages
PEER = re.compile(r"(?:\[::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})\]?:\d+$")


def list_clients() -> list[str]:
    """IPv4 addresses of computers that are connected now, but not this box itself. Raises Failed."""
    ports = " or ".join(f"sport = :{port}" for port in SERVED)
    listed = command.run(["ss", "-Hnt", "state", "established", f"( {ports} )"], timeout=20).stdout
    found = {match[1] for line in listed.splitlines() if (match := PEER.search(line.strip()))}
    return sorted(address for address in found if not address.startswith("127."))[:MOST_CLIENTS]


def reaches(address: str, size: int) -> bool:
    """Whether an echo request of ``size`` bytes, with its headers, is answered. Raises OSError without the right to ask."""
    mark = os.getpid() & 0xFFFF
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sender:
        sender.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
        for number in range(TRIES):
            try:
                sender.sendto(echo_request(mark, number, size - HEADERS), (address, 0))
            except OSError:
                return False  # it does not even leave the box
            if any(answer == (mark, number) for answer in answers(sender, address)):
                return True
    return False


def answers(sender: socket.socket, address: str) -> Iterator[tuple[int, int]]:
    """Mark and number of each answer from an address within the time."""
    ends = time.monotonic() + SECONDS_FOR_ANSWER
    while (left := ends - time.monotonic()) > 0:
        sender.settimeout(left)
        try:
            packet, (source, _port) = sender.recvfrom(65535)
        except OSError:
            return
        start = (packet[0] & 0x0F) * 4 if packet else 0
        if source == address and len(packet) >= start + 8 and packet[start] == ECHO_REPLY:
            yield struct.unpack_from("!HH", packet, start + 4)


def echo_request(mark: int, number: int, size: int) -> bytes:
    """An echo request with ``size`` bytes after its header (RFC 792)."""
    rest = struct.pack("!HH", mark, number) + bytes(size)
    return struct.pack("!BBH", ECHO_REQUEST, 0, checksum(struct.pack("!BBH", ECHO_REQUEST, 0, 0) + rest)) + rest


def checksum(data: bytes) -> int:
    """The internet's checksum (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
