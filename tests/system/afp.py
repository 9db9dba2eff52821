"""A small AFP client for tests: what an older Mac does with a server, and no more.

The sessions are DSI over TCP, the login is DHX2 (a Diffie-Hellman exchange, then CAST-128, which openssl
does here), and files are read and written by fork. Sources: Apple's "Apple Filing Protocol Reference",
netatalk's ``uams_dhx2_pam.c``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import socket
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from deploy.image.machine import Machine

# DSI commands and AFP functions.
CLOSE, COMMAND, STATUS, OPEN, TICKLE, WRITE, ATTENTION = 1, 2, 3, 4, 5, 6, 8
CLOSE_FORK, CREATE_FILE, GET_SERVER, LOGIN, LOGIN_MORE, LOGOUT, OPEN_VOLUME, OPEN_FORK = 4, 7, 16, 18, 19, 20, 24, 26
SET_FILE, GET_BOTH, READ, WRITE_FORK, DELETE = 30, 34, 60, 61, 8
ROOT = 2  # the directory id of a volume's top
UTF8, DATA, RESOURCE = 3, 0, 0x80
FINDER_INFO = 0x20
GO_ON = -5001  # AFPERR_AUTHCONT: the login wants another step
TO_SERVER, TO_CLIENT = b"LWallace", b"CJalbert"
CHUNK = 512 * 1024


class AfpError(RuntimeError):
    """The server answered with an error; ``code`` as in Apple's list (-5023: not authenticated)."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"AFP error {code}")


@contextlib.contextmanager
def tunnel(appliance: Machine, inside: int = 548) -> Iterator[int]:
    """A local port that leads to a port of the appliance, through the ssh connection that is there anyway."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    appliance.run("true")
    *ssh, host = appliance.ssh_argv()
    forward = ["-L", f"127.0.0.1:{port}:127.0.0.1:{inside}", host]
    subprocess.run([*ssh, "-O", "forward", *forward], check=True, capture_output=True)
    try:
        yield port
    finally:
        subprocess.run([*ssh, "-O", "cancel", *forward], check=False, capture_output=True)


def pascal(text: str) -> bytes:
    return bytes([len(text.encode())]) + text.encode()


def place(name: str) -> bytes:
    """A path below a volume's top in the form of AFP 3: its parts divided by NUL."""
    path = name.replace("/", "\0").encode()
    return struct.pack(">BIH", UTF8, 0x08000103, len(path)) + path


def cast5(way: str, key: bytes, start: bytes, text: bytes) -> bytes:
    """CAST-128 in CBC mode; ``way`` is -e or -d."""
    argv = ["openssl", "enc", way, "-cast5-cbc", "-nopad", "-K", key.hex(), "-iv", start.hex()]
    return subprocess.run(
        [*argv, "-provider", "legacy", "-provider", "default"], input=text, capture_output=True, check=True
    ).stdout


@dataclass
class Client:
    """One session. ``host`` and ``port`` of the server."""

    host: str
    port: int
    timeout: float = 120

    def __post_init__(self) -> None:
        self.line = socket.create_connection((self.host, self.port), self.timeout)
        self.number = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_raised: object) -> None:
        with contextlib.suppress(OSError):
            self.line.sendall(struct.pack(">BBHIII", 0, CLOSE, 0, 0, 0, 0))
        self.line.close()

    # --- the frames -------------------------------------------------------------------------------------------

    def receive(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self.line.recv(count - len(found))
            if not part:
                raise ConnectionError("the server has closed the session")
            found += part
        return found

    def exchange(self, command: int, body: bytes, offset: int = 0) -> tuple[int, bytes]:
        """Send one request; the server's code and answer. What it says unasked (tickles) is passed over."""
        self.number = self.number % 0xFFFF + 1
        self.line.sendall(struct.pack(">BBHIII", 0, command, self.number, offset, len(body), 0) + body)
        while True:
            kind, said, number, code, length, _ = struct.unpack(">BBHiII", self.receive(16))
            answer = self.receive(length)
            if kind == 1 and number == self.number and said == command:
                return code, answer

    def call(self, body: bytes, *, data: bytes | None = None) -> bytes:
        """One AFP call. Raises AfpError."""
        if data is None:
            code, answer = self.exchange(COMMAND, body)
        else:
            code, answer = self.exchange(WRITE, body + data, len(body))
        if code:
            raise AfpError(code)
        return answer

    # --- what a Mac does --------------------------------------------------------------------------------------

    def methods(self) -> list[str]:
        """How the server lets people in, as it tells anyone who asks (FPGetSrvrInfo)."""
        _code, said = self.exchange(STATUS, b"")
        at = struct.unpack(">H", said[4:6])[0]
        count, at, found = said[at], at + 1, []
        for _ in range(count):
            found.append(said[at + 1 : at + 1 + said[at]].decode())
            at += 1 + said[at]
        return found

    def log_in(self, user: str, password: str) -> None:
        """Open a session and log in by DHX2. Raises AfpError."""
        self.exchange(OPEN, b"\x01\x04\x00\x10\x00\x00")
        first = bytes([LOGIN]) + pascal("AFP3.4") + pascal("DHX2") + pascal(user)
        code, said = self.exchange(COMMAND, first + b"\0" * (len(first) % 2))
        if code != GO_ON:
            raise AfpError(code)
        session, base, size = struct.unpack(">HIH", said[:8])
        prime = int.from_bytes(said[8 : 8 + size])
        theirs = int.from_bytes(said[8 + size : 8 + 2 * size])
        own = secrets.randbits(size * 8 - 1)
        key = hashlib.md5(pow(theirs, own, prime).to_bytes(size), usedforsecurity=False).digest()
        sealed = cast5("-e", key, TO_SERVER, os.urandom(16))
        second = struct.pack(">BxH", LOGIN_MORE, session) + pow(base, own, prime).to_bytes(size) + sealed
        code, said = self.exchange(COMMAND, second)
        if code != GO_ON:
            raise AfpError(code)
        nonce = int.from_bytes(cast5("-d", key, TO_CLIENT, said[2:34])[16:]) + 1
        proof = (nonce % 2**128).to_bytes(16) + password.encode().ljust(256, b"\0")
        self.call(
            struct.pack(">BxH", LOGIN_MORE, struct.unpack(">H", said[:2])[0]) + cast5("-e", key, TO_SERVER, proof)
        )

    def volumes(self) -> list[str]:
        """The volumes that this person sees (FPGetSrvrParms)."""
        said = self.call(struct.pack(">Bx", GET_SERVER))
        count, at, found = said[4], 5, []
        for _ in range(count):
            size = said[at + 1]
            found.append(said[at + 2 : at + 2 + size].decode())
            at += 2 + size
        return found

    def open(self, volume: str) -> int:
        """Open a volume; the number that later calls name it by."""
        body = struct.pack(">BxH", OPEN_VOLUME, 0x20) + pascal(volume)
        return int(struct.unpack(">H", self.call(body + b"\0" * (len(body) % 2))[2:4])[0])

    def create(self, volume: int, name: str) -> None:
        self.call(struct.pack(">BBHI", CREATE_FILE, 0x80, volume, ROOT) + place(name))

    def delete(self, volume: int, name: str) -> None:
        self.call(struct.pack(">BxHI", DELETE, volume, ROOT) + place(name))

    def fork(self, volume: int, name: str, which: int, access: int) -> int:
        said = self.call(struct.pack(">BBHIHH", OPEN_FORK, which, volume, ROOT, 0, access) + place(name))
        return int(struct.unpack(">H", said[2:4])[0])

    def write(self, volume: int, name: str, content: bytes, which: int = DATA) -> None:
        """Replace the beginning of one of the file's forks by this."""
        fork = self.fork(volume, name, which, 0x03)
        for at in range(0, len(content), CHUNK):
            part = content[at : at + CHUNK]
            self.call(struct.pack(">BBHQQ", WRITE_FORK, 0, fork, at, len(part)), data=part)
        self.call(struct.pack(">BxH", CLOSE_FORK, fork))

    def read(self, volume: int, name: str, which: int = DATA) -> bytes:
        """All of one of the file's forks."""
        fork, found = self.fork(volume, name, which, 0x01), b""
        pieces: list[bytes] = []
        while True:
            code, part = self.exchange(COMMAND, struct.pack(">BxHQQ", READ, fork, sum(map(len, pieces)), CHUNK))
            if code not in (0, -5009):  # -5009: the end of the file
                raise AfpError(code)
            pieces.append(part)
            if code or not part:
                break
        self.call(struct.pack(">BxH", CLOSE_FORK, fork))
        return found.join(pieces)

    def set_finder_info(self, volume: int, name: str, info: bytes) -> None:
        body = struct.pack(">BxHIH", SET_FILE, volume, ROOT, FINDER_INFO) + place(name)
        self.call(body + b"\0" * (len(body) % 2) + info)

    def finder_info(self, volume: int, name: str) -> bytes:
        body = struct.pack(">BxHIHH", GET_BOTH, volume, ROOT, FINDER_INFO, 0)
        return self.call(body + place(name))[6:38]
