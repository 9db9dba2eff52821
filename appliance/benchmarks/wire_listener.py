"""The process that a client benchmark measures the bare network against: counts what arrives, or sends without end.

``larder-wire.service`` starts it for one measurement, as a user that exists only meanwhile, with neither files nor
devices. It answers only who sends its key first, one connection at a time, and ends after a minute or a number of
bytes. A connection begins with the key and a letter: after ``S`` it counts what is sent until the other side ends, and
answers with the count in 20 digits; after ``R`` it sends until the other side goes away.
"""

from __future__ import annotations

import errno
import hmac
import os
import socket
import time
from pathlib import Path

PORT = 5208  # one port, so that a firewall can let it through
SECONDS = 60.0  # that it lives
SECONDS_OF_ONE = 2.0  # that the client measures each way; it may take three times as long
SECONDS_TO_ASK = 3.0
MOST_BYTES = 64 * 2**30
MOST_CONNECTIONS = 200  # right or wrong
KEY_BYTES = 32
BLOCK = 2**20
SEND, RECEIVE = b"S", b"R"


def listen(port: int = PORT) -> socket.socket:
    """A socket that listens on all addresses. Raises OSError where the port is taken."""
    try:
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4)
    except OSError as error:
        if error.errno not in {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}:
            raise
        return socket.create_server(("", port), backlog=4)  # a box without IPv6


def serve(listener: socket.socket, key: bytes, *, seconds: float = SECONDS, most: int = MOST_BYTES) -> int:
    """Answer connections until the time or the bytes are used up; the bytes that were moved."""
    ends, moved = time.monotonic() + seconds, 0
    for _ in range(MOST_CONNECTIONS):
        left = ends - time.monotonic()
        if left <= 0 or moved >= most:
            break
        listener.settimeout(left)
        try:
            connection, _address = listener.accept()
        except OSError:
            break
        with connection:
            try:
                moved += answer(connection, key, min(time.monotonic() + 3 * SECONDS_OF_ONE, ends), most - moved)
            except OSError:
                continue  # whoever it was has gone, or was too slow
    return moved


def answer(connection: socket.socket, key: bytes, ends: float, most: int) -> int:
    """Serve one connection; the bytes that were moved. Raises OSError."""
    connection.settimeout(SECONDS_TO_ASK)
    asked = receive_exactly(connection, KEY_BYTES + 1, time.monotonic() + SECONDS_TO_ASK)
    if not hmac.compare_digest(asked[:KEY_BYTES], key) or asked[KEY_BYTES:] not in {SEND, RECEIVE}:
        return 0
    block = os.urandom(BLOCK)  # before the other side starts its clock
    connection.sendall(b"+")
    return count(connection, ends, most) if asked[KEY_BYTES:] == SEND else pour(connection, ends, most, block)


def receive_exactly(connection: socket.socket, size: int, ends: float) -> bytes:
    """So many bytes, or fewer where the other side ends early. Raises OSError."""
    found = b""
    while len(found) < size and (left := ends - time.monotonic()) > 0:
        connection.settimeout(left)
        if not (part := connection.recv(size - len(found))):
            break
        found += part
    return found


def count(connection: socket.socket, ends: float, most: int) -> int:
    """Take what comes, say how much it was, and return it. Raises OSError."""
    buffer, got = bytearray(BLOCK), 0
    while got < most and (left := ends - time.monotonic()) > 0:
        connection.settimeout(left)
        if not (part := connection.recv_into(buffer)):
            break
        got += part
    connection.settimeout(SECONDS_TO_ASK)
    connection.sendall(b"%020d" % got)
    return got


def pour(connection: socket.socket, ends: float, most: int, block: bytes) -> int:
    """Send the block again and again until the other side has had enough; the bytes that it was sent."""
    sent = 0
    try:
        while sent < most and (left := ends - time.monotonic()) > 0:
            connection.settimeout(left)
            sent += connection.send(block)
    except OSError:
        pass  # it ends by going away
    return sent


def tell_systemd(text: str) -> None:
    """sd_notify(3): the unit counts as started once the port is open."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(text.encode(), f"\0{address[1:]}" if address.startswith("@") else address)


def main() -> None:
    key = bytes.fromhex(Path(os.environ["CREDENTIALS_DIRECTORY"], "key").read_text().strip())
    if len(key) != KEY_BYTES:
        raise SystemExit(2)
    with listen() as listener:
        tell_systemd("READY=1")
        serve(listener, key)


if __name__ == "__main__":
    main()
