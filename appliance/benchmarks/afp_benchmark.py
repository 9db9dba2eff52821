"""The program that benchmarks a folder over AFP: it serves the folder, reads or writes it, and prints figures.

Debian has no client that mounts AFP, so requests here replace fio: one after the other, without read-ahead or caching.
The program runs in its own namespaces (``workload_command.APART``, unshare(1)). There the server answers on a separate
loopback, keeps its file numbers (CNIDs) in memory, and ends with this program, which is the first process of the
namespace. The netatalk that serves users is not touched, nor its ports and files.

Prints one JSON object: ``Figures``, or ``{"error": "why"}`` with status 1.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import itertools
import json
import os
import pwd
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from appliance import command
from appliance.benchmarks import afp_client
from appliance.benchmarks.afp_client import READING, WRITING, AfpSession
from appliance.benchmarks.case import OVER_AFP
from appliance.benchmarks.parse_results import Figures
from appliance.benchmarks.workloads import DATA, FILE_SIZE, FILES
from appliance.errors import Failed, LarderError, explain_error
from appliance.layout.geometry import MIB
from appliance.message import Message
from appliance.shares import afp

STATE = Path("/var/lib/netatalk")  # netatalk's compiled-in state folder; a tmpfs of this program covers it
HOST, VOLUME = "127.0.0.1", "sweep"
ACCOUNT = "nobody"  # account of guests; afpd does not allow root
SECONDS_TO_START = 30
TIMEOUT = 60
# The server sends a tickle every 30 seconds. The timeout allows many unanswered ones, because a flush blocks replies.
SETTINGS = """\
[Global]
afp listen = 127.0.0.1
cnid listen = 127.0.0.1:4700
uam list = uams_guest.so
guest account = {account}
valid shellcheck = no
zeroconf = no
spotlight = no
timeout = 120
log file = {state}/log

[{volume}]
path = {folder}
ea = samba
"""
POOL = 32 * MIB  # random bytes that data is taken from; larger than any record, so that none compresses or repeats
SHIFT = 997  # offset in bytes at each reuse of the pool
CHUNK = 512  # bytes; with compressible data, a part of each chunk is zeros
SIOCSIFFLAGS, UP = 0x8914, 1  # netdevice(7)


# --- serving ----------------------------------------------------------------------------------------------------
def serve_folder(folder: Path) -> str:
    """Serve the folder to guests. Returns the server's name. Raises Failed."""
    if not STATE.is_dir():
        raise Failed(Message("netatalk is not installed on this system"))
    raise_loopback()
    command.run(["mount", "-t", "tmpfs", "-o", "mode=755", "larder", str(STATE)], timeout=TIMEOUT)
    seen, conf = STATE / VOLUME, STATE / "sweep.conf"
    seen.mkdir()
    seen.with_name("CNID").mkdir()
    # Guests cannot reach the folder by its own path.
    command.run(["mount", "--bind", str(folder), str(seen)], timeout=TIMEOUT)
    give_to_guest(seen)
    conf.write_text(SETTINGS.format(account=ACCOUNT, state=STATE, volume=VOLUME, folder=seen))
    for server in ("cnid_metad", "afpd"):
        command.run([server, "-F", str(conf)], timeout=TIMEOUT)
    until = time.monotonic() + SECONDS_TO_START
    while not (told := afp.server_information(HOST)):
        if time.monotonic() > until:
            raise Failed(Message("netatalk was started and does not answer"), read_log_end())
        time.sleep(0.1)
    return afp.machine_in(told)


def raise_loopback() -> None:
    """Switch the loopback on, which is down in a new network namespace."""
    try:
        with socket.socket() as line:
            fcntl.ioctl(line, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", UP))
    except OSError as error:
        raise Failed(Message("The loopback of the measurement could not be switched on"), str(error)) from error


def give_to_guest(folder: Path) -> None:
    """Make the guest account the owner of the scratch folder and its files."""
    try:
        guest = pwd.getpwnam(ACCOUNT)
        for path in (folder, *folder.iterdir()):
            os.chown(path, guest.pw_uid, guest.pw_gid, follow_symlinks=False)
    except (KeyError, OSError) as error:
        raise Failed(Message("The scratch folder could not be given to guests"), str(error)) from error


def read_log_end() -> str:
    """The end of the servers' log; empty if there is none."""
    try:
        return " ".join((STATE / "log").read_text(errors="replace").splitlines()[-3:])[-600:]
    except OSError:
        return ""


# --- measuring --------------------------------------------------------------------------------------------------
class Tally(msgspec.Struct):
    """Bytes of one session; ``waits`` has the seconds of each read or write request."""

    moved: int = 0
    waits: list[float] = msgspec.field(default_factory=list)

    def add_request(self, began: float, length: int) -> None:
        self.waits.append(time.perf_counter() - began)
        self.moved += length


def random_bytes(compressible: int) -> memoryview:
    """Random bytes with ``compressible`` per cent of zeros. The beginning repeats at the end, for slices across it."""
    zeros = bytes(CHUNK * compressible // 100)
    made = b"".join(os.urandom(CHUNK - len(zeros)) + zeros for _ in range(POOL // CHUNK)) if zeros else os.urandom(POOL)
    return memoryview(made + made[: afp_client.REQUEST])


def data_at(pool: memoryview, at: int, length: int) -> memoryview:
    """Data for offset ``at`` of a file, which does not repeat."""
    start = (at + at // POOL * SHIFT) % POOL
    return pool[start : start + length]


def request_ranges(size: int, request: int) -> Iterator[tuple[int, int]]:
    """Offset and length of each request for a file of ``size`` bytes."""
    for at in range(0, size, request):
        yield at, min(request, size - at)


def write_large(line: AfpSession, size: int, pool: memoryview) -> Tally:
    tally = Tally()
    line.create_file(DATA)
    fork = line.open_fork(DATA, WRITING)
    for at, length in request_ranges(size, line.most):
        began = time.perf_counter()
        line.write_fork(fork, at, data_at(pool, at, length))
        tally.add_request(began, length)
    line.flush_fork(fork)
    line.close_fork(fork)
    return tally


def read_large(line: AfpSession, size: int) -> Tally:
    tally = Tally()
    fork = line.open_fork(DATA, READING)
    for at, length in request_ranges(size, line.most):
        began = time.perf_counter()
        found = len(line.read_fork(fork, at, length))
        tally.add_request(began, found)
        if found != length:
            raise Failed(
                Message("The AFP server read less than there is"),
                Message("{found} of {length} bytes at {at}", found=found, length=length, at=at),
            )
    line.close_fork(fork)
    return tally


def write_small(line: AfpSession, names: Sequence[str], pool: memoryview) -> Tally:
    """Write many files, each flushed to disk before the next."""
    tally = Tally()
    for number, name in enumerate(names):
        line.create_file(name)
        fork = line.open_fork(name, WRITING)
        began = time.perf_counter()
        line.write_fork(fork, 0, data_at(pool, number * FILE_SIZE, FILE_SIZE))
        tally.add_request(began, FILE_SIZE)
        line.flush_fork(fork)
        line.close_fork(fork)
    return tally


def run_workload(asked: argparse.Namespace, port: int = afp.PORT) -> Figures:
    """Run the workload against the server on the loopback. Raises Failed."""
    small, reads = asked.workload == "small-files", asked.workload == "seq-read"
    pool = memoryview(b"") if reads else random_bytes(asked.compressible)
    writers = range(asked.writers if small else 1)
    names = [[f"larder.{writer}.{number}" for number in range(FILES)] for writer in writers]
    with contextlib.ExitStack() as open_lines:
        lines = [open_lines.enter_context(afp_client.open_session(HOST, port, VOLUME)) for _ in names]
        began = time.perf_counter()
        if small:
            with ThreadPoolExecutor(len(lines)) as threads:
                tallies = list(threads.map(write_small, lines, names, itertools.repeat(pool)))
        elif reads:
            tallies = [read_large(lines[0], asked.size)]
        else:
            tallies = [write_large(lines[0], asked.size, pool)]
        seconds = time.perf_counter() - began
        if small:
            for line, own in zip(lines, names, strict=True):
                for name in own:
                    line.remove_file(name)
    return summarize_tallies(tallies, seconds, reads=reads)


def summarize_tallies(tallies: Sequence[Tally], seconds: float, *, reads: bool) -> Figures:
    waits = sorted(itertools.chain.from_iterable(tally.waits for tally in tallies))
    moved = sum(tally.moved for tally in tallies)
    return Figures(
        rate=moved / seconds,
        operations=len(waits) / seconds,
        seconds=seconds,
        latency=sum(waits) / len(waits),
        latency99=waits[len(waits) * 99 // 100],
        read=moved if reads else 0,
        written=0 if reads else moved,
    )


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure a folder over AFP.")
    parser.add_argument("workload", choices=OVER_AFP)
    parser.add_argument("folder", type=Path)
    for name, default in (("size", MIB), ("writers", 1), ("compressible", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    asked = argument_parser().parse_args(argv)
    # The first process of a namespace receives only signals that it handles.
    signal.signal(signal.SIGTERM, lambda *_which: os._exit(128 + signal.SIGTERM))
    try:
        server = serve_folder(asked.folder)
        found = msgspec.structs.replace(run_workload(asked), tool=server[:40])
    except LarderError as error:
        sys.stdout.write(json.dumps({"error": explain_error(error)}))
        return 1
    sys.stdout.write(msgspec.json.encode(found).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
