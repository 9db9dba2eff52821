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


def path(name: str) -> bytes:
    """A name in a volume's own folder."""
    text = name.encode()
    return struct.pack(">BIH", UTF8, ENCODING, len(text)) + text


def short(text: str) -> bytes:
    """A string behind its length."""
    return bytes((len(text),)) + text.encode("ascii")


class AfpSession:
    """A guest's session on a connection, with one volume open. ``most`` is what one request may write or read, in bytes."""

    def __init__(self, line: socket.socket) -> None:
        self.line, self.numbers = line, itertools.cycle(range(1, 0x10000))
        self.most, self.volume = REQUEST, 0
        self.room = memoryview(bytearray(REQUEST + KIB))

    def begin(self, volume: str) -> None:
        """Sign in as a guest and open a volume. Raises Failed."""
        told = self.asked("begin a session", OPEN, ATTENTION_QUANTUM)
        self.most = min(REQUEST, quantum_in(bytes(told)) or REQUEST)
        self.asked("let a guest in", COMMAND, bytes((LOGIN,)) + short(VERSION) + short(GUEST))
        told = self.asked("open the volume", COMMAND, struct.pack(">BxH", OPEN_VOLUME, VOLUME_ID) + short(volume))
        _bitmap, self.volume = unpacked(">HH", told)

    def end(self) -> None:
        """Sign out. Raises Failed."""
        self.asked("end the session", COMMAND, struct.pack(">Bx", LOGOUT))
        with contextlib.suppress(OSError):  # the server may have gone first
            self.send(CLOSE, next(self.numbers))

    def create(self, name: str) -> None:
        self.asked("make a file", COMMAND, struct.pack(">BBHI", CREATE_FILE, HARD, self.volume, ROOT) + path(name))

    def remove(self, name: str) -> None:
        self.asked("remove a file", COMMAND, struct.pack(">BxHI", DELETE, self.volume, ROOT) + path(name))

    def open(self, name: str, mode: int) -> int:
        """The number of a file's contents, for ``READING`` or ``WRITING``."""
        request = struct.pack(">BxHIHH", OPEN_FORK, self.volume, ROOT, 0, mode) + path(name)
        return unpacked(">HH", self.asked("open a file", COMMAND, request))[1]

    def write(self, fork: int, at: int, data: bytes | memoryview) -> None:
        request = struct.pack(">BxHQQ", WRITE_EXT, fork, at, len(data))
        (end,) = unpacked(">Q", self.asked("write", WRITE, request, data))
        if end != at + len(data):
            raise Failed("The AFP server wrote less than it was given")

    def read(self, fork: int, at: int, count: int) -> memoryview:
        """What is there, at most ``count`` bytes; good until the next request."""
        return self.asked("read", COMMAND, struct.pack(">BxHQQ", READ, fork, at, count), accept=END_OF_FILE)

    def flush(self, fork: int) -> None:
        """Return when the disks have what was written (afpd: ``fsync``)."""
        self.asked("have a file on disk", COMMAND, struct.pack(">BxH", FLUSH_FORK, fork))

    def close(self, fork: int) -> None:
        self.asked("close a file", COMMAND, struct.pack(">BxH", CLOSE_FORK, fork))

    def asked(self, doing: str, command: int, request: bytes, data: bytes | memoryview = b"", accept: int = 0) -> memoryview:  # fmt: skip
        """The reply to a request, which may end with ``accept`` instead of well. Raises Failed."""
        number = next(self.numbers)
        try:
            self.send(command, number, request, data)
            code, told = self.answer(number)
        except TimeoutError as error:
            raise Failed(f"The AFP server gave no answer within {SECONDS} seconds when it was to {doing}") from error
        except OSError as error:
            raise Failed(f"The AFP server went away when it was to {doing}", str(error)) from error
        if code not in {0, accept}:
            raise Failed(f"The AFP server did not {doing}", f"{REFUSALS.get(code, 'error')} ({code})")
        return told

    def send(self, command: int, number: int, request: bytes = b"", data: bytes | memoryview = b"") -> None:
        offset = len(request) if command == WRITE else 0
        self.line.sendall(HEADER.pack(ASKED, command, number, offset, len(request) + len(data), 0) + request)
        if data:
            self.line.sendall(data)

    def answer(self, number: int) -> tuple[int, memoryview]:
        """How it went, and the reply; what the server says by itself meanwhile is answered. Raises Failed, OSError."""
        while True:
            flags, command, which, code, length, _nothing = HEADER.unpack(self.received(HEADER.size))
            told = self.received(length)
            if flags == REPLIED and which == number:
                return code, told
            if flags == ASKED and command == CLOSE:
                raise Failed("The AFP server ended the session")
            if flags == ASKED and command == TICKLE:
                self.send(TICKLE, next(self.numbers))

    def received(self, length: int) -> memoryview:
        if length > len(self.room):
            raise Failed("The AFP server said more than was asked for", f"{length} bytes")
        have, part = 0, self.room[:length]
        while have < length:
            found = self.line.recv_into(part[have:])
            if not found:
                raise ConnectionResetError("the connection was closed")
            have += found
        return part


def unpacked(shape: str, told: memoryview) -> tuple[int, ...]:
    """The numbers at the beginning of a reply. Raises Failed."""
    try:
        return struct.unpack_from(shape, told)
    except struct.error as error:
        raise Failed("The AFP server said less than was asked for") from error


def quantum_in(told: bytes) -> int:
    """How much a server takes in one request, from its answer to the opening of a session; 0 where it does not say."""
    while len(told) >= 2:
        kind, length = told[0], told[1]
        if kind == SERVER_QUANTUM and length == 4 and len(told) >= 6:
            return int.from_bytes(told[2:6], "big")
        told = told[2 + length :]
    return 0


@contextlib.contextmanager
def session(host: str, port: int, volume: str) -> Iterator[AfpSession]:
    """A guest's session with that volume open. Raises Failed."""
    try:
        line = socket.create_connection((host, port), SECONDS)
    except OSError as error:
        raise Failed("The AFP server does not answer", str(error)) from error
    with line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found = AfpSession(line)
        found.begin(volume)
        yield found
        found.end()
