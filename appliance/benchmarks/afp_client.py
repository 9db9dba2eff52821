"""A small AFP client: writes, reads and removes files as a guest, one request after the other.

A session is one TCP connection with DSI: a header of sixteen bytes before every request and reply. In between, the
server may ask whether the client is still there. Sources of the numbers: "Apple Filing Protocol Reference", netatalk's
``afp.h``, ``dsi.h``. Every error of the server raises Failed, and every reply has a timeout.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
from collections.abc import Iterator

from appliance.errors import Failed
from appliance.layout.geometry import KIB, MIB
from appliance.message import Message

REQUEST = MIB  # most bytes of a read or write, if the server allows as much: netatalk's own quantum (afp.conf(5))
SECONDS = 900  # timeout of a reply; a flush waits until the pool has written its data
VERSION, GUEST = "AFP3.4", "No User Authent"
# Flags, command, request number; offset of the data in a request, or the result; length of the rest; reserved.
HEADER = struct.Struct(">BBHiII")
ASKED, REPLIED = 0, 1
CLOSE, COMMAND, OPEN, TICKLE, WRITE, ATTENTION = 1, 2, 4, 5, 6, 8
ATTENTION_QUANTUM = bytes((1, 4)) + struct.pack(">I", KIB)
SERVER_QUANTUM = 0
CLOSE_FORK, CREATE_FILE, DELETE, FLUSH_FORK, LOGIN, LOGOUT, OPEN_VOLUME, OPEN_FORK, READ, WRITE_EXT = (
    4,
    7,
    8,
    11,
    18,
    20,
    24,
    26,
    60,
    61,
)
HARD = 0x80  # creating a file replaces an existing one
ROOT = 2  # number of a volume's top folder
VOLUME_ID = 0x20  # bit for the volume's number in a bitmap of requested facts
READING, WRITING = 1, 2
UTF8, ENCODING = 3, 0x08000103  # type of a name, and the Mac's number for UTF-8
END_OF_FILE = -5009
REFUSALS = {
    -5000: Message("access is denied"),
    -5003: Message("it does not speak this version"),
    -5004: Message("it lets no guests in"),
    -5008: Message("the disk is full"),
    -5012: Message("there is no such thing"),
    -5014: Message("something went wrong in it"),
    -5018: Message("there is no such file or volume"),
    -5019: Message("it does not understand the request"),
    -5022: Message("the session is over"),
    -5023: Message("nobody is signed in"),
    -5026: Message("too many files are open"),
    -5031: Message("the volume may only be read"),
}


def encode_path(name: str) -> bytes:
    """A name in a volume's top folder, as AFP wants it."""
    text = name.encode()
    return struct.pack(">BIH", UTF8, ENCODING, len(text)) + text


def encode_string(text: str) -> bytes:
    """A string after its length byte."""
    return bytes((len(text),)) + text.encode("ascii")


class AfpSession:
    """A guest's session with one open volume. ``most`` is the most bytes that one request may read or write."""

    def __init__(self, line: socket.socket) -> None:
        self.line, self.numbers = line, itertools.cycle(range(1, 0x10000))
        self.most, self.volume = REQUEST, 0
        self.room = memoryview(bytearray(REQUEST + KIB))

    def sign_in(self, volume: str) -> None:
        """Sign in as a guest and open a volume. Raises Failed."""
        reply = self.send_request(Message("begin a session"), OPEN, ATTENTION_QUANTUM)
        self.most = min(REQUEST, find_quantum(bytes(reply)) or REQUEST)
        self.send_request(
            Message("let a guest in"), COMMAND, bytes((LOGIN,)) + encode_string(VERSION) + encode_string(GUEST)
        )
        reply = self.send_request(
            Message("open the volume"), COMMAND, struct.pack(">BxH", OPEN_VOLUME, VOLUME_ID) + encode_string(volume)
        )
        _bitmap, self.volume = unpack_reply(">HH", reply)

    def sign_out(self) -> None:
        """Sign out. Raises Failed."""
        self.send_request(Message("end the session"), COMMAND, struct.pack(">Bx", LOGOUT))
        with contextlib.suppress(OSError):  # the server may have gone first
            self.send_packet(CLOSE, next(self.numbers))

    def create_file(self, name: str) -> None:
        self.send_request(
            Message("make a file"),
            COMMAND,
            struct.pack(">BBHI", CREATE_FILE, HARD, self.volume, ROOT) + encode_path(name),
        )

    def remove_file(self, name: str) -> None:
        self.send_request(
            Message("remove a file"), COMMAND, struct.pack(">BxHI", DELETE, self.volume, ROOT) + encode_path(name)
        )

    def open_fork(self, name: str, mode: int) -> int:
        """Open a file for ``READING`` or ``WRITING``. Returns the number of its fork."""
        request = struct.pack(">BxHIHH", OPEN_FORK, self.volume, ROOT, 0, mode) + encode_path(name)
        return unpack_reply(">HH", self.send_request(Message("open a file"), COMMAND, request))[1]

    def write_fork(self, fork: int, at: int, data: bytes | memoryview) -> None:
        request = struct.pack(">BxHQQ", WRITE_EXT, fork, at, len(data))
        (end,) = unpack_reply(">Q", self.send_request("write", WRITE, request, data))
        if end != at + len(data):
            raise Failed(Message("The AFP server wrote less than it was given"))

    def read_fork(self, fork: int, at: int, count: int) -> memoryview:
        """At most ``count`` bytes from offset ``at``; valid until the next request."""
        return self.send_request("read", COMMAND, struct.pack(">BxHQQ", READ, fork, at, count), accept=END_OF_FILE)

    def flush_fork(self, fork: int) -> None:
        """Wait until written data is on the disks (afpd: ``fsync``)."""
        self.send_request(Message("have a file on disk"), COMMAND, struct.pack(">BxH", FLUSH_FORK, fork))

    def close_fork(self, fork: int) -> None:
        self.send_request(Message("close a file"), COMMAND, struct.pack(">BxH", CLOSE_FORK, fork))

    def send_request(
        self, doing: str, command: int, request: bytes, data: bytes | memoryview = b"", accept: int = 0
    ) -> memoryview:
        """Send a request and return its reply. ``accept`` is an error code that is allowed. Raises Failed."""
        number = next(self.numbers)
        try:
            self.send_packet(command, number, request, data)
            code, reply = self.receive_reply(number)
        except TimeoutError as error:
            raise Failed(
                Message(
                    "The AFP server gave no answer within {seconds} seconds when it was to {doing}",
                    seconds=SECONDS,
                    doing=doing,
                )
            ) from error
        except OSError as error:
            raise Failed(Message("The AFP server went away when it was to {doing}", doing=doing), str(error)) from error
        if code not in {0, accept}:
            raise Failed(
                Message("The AFP server did not {doing}", doing=doing),
                Message("{reason} ({code})", reason=REFUSALS.get(code, Message("error")), code=code),
            )
        return reply

    def send_packet(self, command: int, number: int, request: bytes = b"", data: bytes | memoryview = b"") -> None:
        offset = len(request) if command == WRITE else 0
        self.line.sendall(HEADER.pack(ASKED, command, number, offset, len(request) + len(data), 0) + request)
        if data:
            self.line.sendall(data)

    def receive_reply(self, number: int) -> tuple[int, memoryview]:
        """Result code and reply. Answers the server's own requests meanwhile. Raises Failed, OSError."""
        while True:
            flags, command, which, code, length, _nothing = HEADER.unpack(self.receive_bytes(HEADER.size))
            reply = self.receive_bytes(length)
            if flags == REPLIED and which == number:
                return code, reply
            if flags == ASKED and command == CLOSE:
                raise Failed(Message("The AFP server ended the session"))
            if flags == ASKED and command == TICKLE:
                self.send_packet(TICKLE, next(self.numbers))

    def receive_bytes(self, length: int) -> memoryview:
        if length > len(self.room):
            raise Failed(
                Message("The AFP server said more than was asked for"), Message("{length} bytes", length=length)
            )
        have, part = 0, self.room[:length]
        while have < length:
            found = self.line.recv_into(part[have:])
            if not found:
                raise ConnectionResetError("the connection was closed")
            have += found
        return part


def unpack_reply(shape: str, reply: memoryview) -> tuple[int, ...]:
    """Unpack the numbers at the beginning of a reply. Raises Failed."""
    try:
        return struct.unpack_from(shape, reply)
    except struct.error as error:
        raise Failed(Message("The AFP server said less than was asked for")) from error


def find_quantum(reply: bytes) -> int:
    """The most bytes that a server takes in one request, from its reply to a new session; 0 if it does not say."""
    while len(reply) >= 2:
        kind, length = reply[0], reply[1]
        if kind == SERVER_QUANTUM and length == 4 and len(reply) >= 6:
            return int.from_bytes(reply[2:6], "big")
        reply = reply[2 + length :]
    return 0


@contextlib.contextmanager
def open_session(host: str, port: int, volume: str) -> Iterator[AfpSession]:
    """Open a guest's session with that volume. Raises Failed."""
    try:
        line = socket.create_connection((host, port), SECONDS)
    except OSError as error:
        raise Failed(Message("The AFP server does not answer"), str(error)) from error
    with line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        afp = AfpSession(line)
        afp.sign_in(volume)
        yield afp
        afp.sign_out()
