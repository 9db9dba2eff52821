"""A client of AFP: as much as it takes to write, read and remove files as a guest, one request after the other.

A session is one TCP connection that carries DSI: sixteen bytes before every request and reply, among which the server may
ask whether anybody is still there. What the numbers mean: "Apple Filing Protocol Reference", netatalk's ``afp.h``, ``dsi.h``.
Whatever the server does, a session raises Failed: it waits for an answer for so long and no longer.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
from collections.abc import Iterator

from appliance.errors import Failed
from appliance.layout.geometry import KIB, MIB

REQUEST = MIB  # what is written or read at a time, where the server takes as much: netatalk's own quantum (afp.conf(5))
SECONDS = 900  # for one answer: a flush waits until the disks have what the pool holds back
VERSION, GUEST = "AFP3.4", "No User Authent"
# Flags, command, number of the request; where in a request the data begins, or how it went; length of the rest; nothing.
HEADER = struct.Struct(">BBHiII")
ASKED, REPLIED = 0, 1
CLOSE, COMMAND, OPEN, TICKLE, WRITE, ATTENTION = 1, 2, 4, 5, 6, 8
ATTENTION_QUANTUM = bytes((1, 4)) + struct.pack(">I", KIB)
SERVER_QUANTUM = 0
CLOSE_FORK, CREATE_FILE, DELETE, FLUSH_FORK, LOGIN, LOGOUT, OPEN_VOLUME, OPEN_FORK, READ, WRITE_EXT = 4, 7, 8, 11, 18, 20, 24, 26, 60, 61  # fmt: skip
HARD = 0x80  # creating a file that is there makes it anew
ROOT = 2  # the number of a volume's own folder
VOLUME_ID = 0x20  # in a bitmap of what is asked about a volume
READING, WRITING = 1, 2
UTF8, ENCODING = 3, 0x08000103  # kind of name, and the Mac's sign for UTF-8
END_OF_FILE = -5009
REFUSALS = {
    -5000: "access is denied", -5003: "it does not speak this version", -5004: "it lets no guests in", -5008: "the disk is full",
    -5012: "there is no such thing", -5014: "something went wrong in it", -5018: "there is no such file or volume", -5019: "it does not understand the request",
    -5022: "the session is over", -5023: "nobody is signed in", -5026: "too many files are open", -5031: "the volume may only be read",
}  # fmt: skip


def encode_path(name: str) -> bytes:
    """A name in a volume's own folder."""
    text = name.encode()
    return struct.pack(">BIH", UTF8, ENCODING, len(text)) + text


def encode_string(text: str) -> bytes:
    """A string behind its length."""
    return bytes((len(text),)) + text.encode("ascii")


class AfpSession:
    """A guest's session on a connection, with one volume open. ``most`` is what one request may write or read, in bytes."""

    def __init__(self, line: socket.socket) -> None:
        self.line, self.numbers = line, itertools.cycle(range(1, 0x10000))
        self.most, self.volume = REQUEST, 0
        self.room = memoryview(bytearray(REQUEST + KIB))

    def sign_in(self, volume: str) -> None:
        """Sign in as a guest and open a volume. Raises Failed."""
        told = self.send_request("begin a session", OPEN, ATTENTION_QUANTUM)
        self.most = min(REQUEST, find_quantum(bytes(told)) or REQUEST)
        self.send_request("let a guest in", COMMAND, bytes((LOGIN,)) + encode_string(VERSION) + encode_string(GUEST))
        told = self.send_request(
            "open the volume", COMMAND, struct.pack(">BxH", OPEN_VOLUME, VOLUME_ID) + encode_string(volume)
        )
        _bitmap, self.volume = unpack_reply(">HH", told)

    def sign_out(self) -> None:
        """Sign out. Raises Failed."""
        self.send_request("end the session", COMMAND, struct.pack(">Bx", LOGOUT))
        with contextlib.suppress(OSError):  # the server may have gone first
            self.send_packet(CLOSE, next(self.numbers))

    def create_file(self, name: str) -> None:
        self.send_request(
            "make a file", COMMAND, struct.pack(">BBHI", CREATE_FILE, HARD, self.volume, ROOT) + encode_path(name)
        )

    def remove_file(self, name: str) -> None:
        self.send_request("remove a file", COMMAND, struct.pack(">BxHI", DELETE, self.volume, ROOT) + encode_path(name))

    def open_fork(self, name: str, mode: int) -> int:
        """The number of a file's contents, for ``READING`` or ``WRITING``."""
        request = struct.pack(">BxHIHH", OPEN_FORK, self.volume, ROOT, 0, mode) + encode_path(name)
        return unpack_reply(">HH", self.send_request("open a file", COMMAND, request))[1]

    def write_fork(self, fork: int, at: int, data: bytes | memoryview) -> None:
        request = struct.pack(">BxHQQ", WRITE_EXT, fork, at, len(data))
        (end,) = unpack_reply(">Q", self.send_request("write", WRITE, request, data))
        if end != at + len(data):
            raise Failed("The AFP server wrote less than it was given")

    def read_fork(self, fork: int, at: int, count: int) -> memoryview:
        """What is there, at most ``count`` bytes; good until the next request."""
        return self.send_request("read", COMMAND, struct.pack(">BxHQQ", READ, fork, at, count), accept=END_OF_FILE)

    def flush_fork(self, fork: int) -> None:
        """Return when the disks have what was written (afpd: ``fsync``)."""
        self.send_request("have a file on disk", COMMAND, struct.pack(">BxH", FLUSH_FORK, fork))

    def close_fork(self, fork: int) -> None:
        self.send_request("close a file", COMMAND, struct.pack(">BxH", CLOSE_FORK, fork))

    def send_request(self, doing: str, command: int, request: bytes, data: bytes | memoryview = b"", accept: int = 0) -> memoryview:  # fmt: skip
        """The reply to a request, which may end with ``accept`` instead of well. Raises Failed."""
        number = next(self.numbers)
        try:
            self.send_packet(command, number, request, data)
            code, told = self.receive_reply(number)
        except TimeoutError as error:
            raise Failed(f"The AFP server gave no answer within {SECONDS} seconds when it was to {doing}") from error
        except OSError as error:
            raise Failed(f"The AFP server went away when it was to {doing}", str(error)) from error
        if code not in {0, accept}:
            raise Failed(f"The AFP server did not {doing}", f"{REFUSALS.get(code, 'error')} ({code})")
        return told

    def send_packet(self, command: int, number: int, request: bytes = b"", data: bytes | memoryview = b"") -> None:
        offset = len(request) if command == WRITE else 0
        self.line.sendall(HEADER.pack(ASKED, command, number, offset, len(request) + len(data), 0) + request)
        if data:
            self.line.sendall(data)

    def receive_reply(self, number: int) -> tuple[int, memoryview]:
        """How it went, and the reply; what the server says by itself meanwhile is answered. Raises Failed, OSError."""
        while True:
            flags, command, which, code, length, _nothing = HEADER.unpack(self.receive_bytes(HEADER.size))
            told = self.receive_bytes(length)
            if flags == REPLIED and which == number:
                return code, told
            if flags == ASKED and command == CLOSE:
                raise Failed("The AFP server ended the session")
            if flags == ASKED and command == TICKLE:
                self.send_packet(TICKLE, next(self.numbers))

    def receive_bytes(self, length: int) -> memoryview:
        if length > len(self.room):
            raise Failed("The AFP server said more than was asked for", f"{length} bytes")
        have, part = 0, self.room[:length]
        while have < length:
            found = self.line.recv_into(part[have:])
            if not found:
                raise ConnectionResetError("the connection was closed")
            have += found
        return part


def unpack_reply(shape: str, told: memoryview) -> tuple[int, ...]:
    """The numbers at the beginning of a reply. Raises Failed."""
    try:
        return struct.unpack_from(shape, told)
    except struct.error as error:
        raise Failed("The AFP server said less than was asked for") from error


def find_quantum(told: bytes) -> int:
    """How much a server takes in one request, from its answer to the opening of a session; 0 where it does not say."""
    while len(told) >= 2:
        kind, length = told[0], told[1]
        if kind == SERVER_QUANTUM and length == 4 and len(told) >= 6:
            return int.from_bytes(told[2:6], "big")
        told = told[2 + length :]
    return 0


@contextlib.contextmanager
def open_session(host: str, port: int, volume: str) -> Iterator[AfpSession]:
    """A guest's session with that volume open. Raises Failed."""
    try:
        line = socket.create_connection((host, port), SECONDS)
    except OSError as error:
        raise Failed("The AFP server does not answer", str(error)) from error
    with line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found = AfpSession(line)
        found.sign_in(volume)
        yield found
        found.sign_out()
