"""Root's server: fork a process for each connection, end when nobody has asked for half a minute.

systemd hands it the listening socket and starts it at the first connection; in a container ``--listen PATH`` makes the
socket. To load Larder's code takes a quarter of a second on a fast computer and seconds on a small box, so it is loaded
once for a burst of requests. A process of its own for each request stays: what one read or did is not in the memory of
the next, and one that hangs in the kernel (a suspended pool holds even ``zpool clear``) takes nobody hostage. Each is
in a control group of its own with limits of its own, and whatever it has started ends with it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from appliance import log_format
from appliance.agent.protocol import serve_connection
from appliance.message import Message
from appliance.request import LONGEST_REQUEST, as_failure

SECONDS_IDLE = 30
MOST_AT_ONCE = 32
# Writing zeros over a large disk takes a day and more; a search of all earlier states of a pool is given 14 days
# (LONGEST_SEARCH in appliance/pools/import_pool.py), and has to end before this.
LONGEST = 15 * 24 * 3600
# zdb, which reads the labels of pools, starts its threads by the hundred.
LIMITS = {"memory.max": str(2**30), "pids.max": "1024"}
FIRST_GIVEN = 3  # the descriptor of the first socket that systemd gives: sd_listen_fds(3)
CHILDREN = "LARDER_AGENT_CHILDREN"


class Groups:
    """A control group for each request, beneath the one that systemd has delegated (``Delegate=``, its own process in
    ``server``). Without one, as in a container, nothing is grouped."""

    def __init__(self, base: Path | None) -> None:
        self.base = base
        if base is not None:
            (base / "cgroup.subtree_control").write_text("+memory +pids")

    @classmethod
    def delegated(cls, said: str) -> Groups:
        """From the text of ``/proc/self/cgroup``."""
        _hierarchy, _controllers, path = said.splitlines()[-1].split(":", 2)
        server = Path("/sys/fs/cgroup") / path.strip("/")
        return cls(server.parent if server.name == "server" else None)

    def enter(self, pid: int) -> None:
        """Put the calling process, the one of a request, into a group of its own."""
        if self.base is not None:
            group = self.base / str(pid)
            group.mkdir(exist_ok=True)
            for limit, value in LIMITS.items():
                (group / limit).write_text(value)
            (group / "cgroup.procs").write_text("0")

    def end(self, pid: int) -> None:
        """Kill what the process of a request has left running."""
        if self.base is not None and (group := self.base / str(pid)).exists():
            (group / "cgroup.kill").write_text("1")

    def clear(self, living: set[int]) -> bool:
        """Remove the groups of requests that are over; whether one is left, because something hangs in the kernel."""
        left = False
        for group in self.base.iterdir() if self.base is not None else ():
            if group.name.isdigit() and int(group.name) not in living:
                try:
                    group.rmdir()
                except OSError:
                    left = True
        return left


class Server:
    """Forks for each connection on a listening socket. ``children``: requests that a former self has begun."""

    def __init__(self, listener: socket.socket, groups: Groups, children: Iterable[int] = ()) -> None:
        self.listener = listener
        self.groups = groups
        self.children: set[int] = set()
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ, None)
        self.code = version()
        for pid in children:
            self.follow(pid)

    def run(self, idle: float = SECONDS_IDLE) -> None:
        """Serve until nothing has been asked for ``idle`` seconds and nothing runs."""
        asked = time.monotonic()
        while self.children or time.monotonic() < asked + idle:
            for key, _events in self.selector.select(1 if self.groups.clear(self.children) else idle):
                asked = time.monotonic()
                if key.data is None:
                    self.accept()
                else:
                    self.reap(key.fd, key.data)

    def accept(self) -> None:
        """Take one connection and leave it to a process of its own. What fails here must not end the others."""
        if version() not in {self.code, None}:
            self.renew()
        try:
            connection, _address = self.listener.accept()
        except OSError:
            return  # whoever asked has gone
        with connection:
            try:
                if len(self.children) >= MOST_AT_ONCE:
                    raise BlockingIOError(Message("it has {count} requests in hand", count=MOST_AT_ONCE))
                pid = os.fork()
            except OSError as error:
                turn_away(connection, error)
                return
            if pid:
                self.follow(pid)
            else:
                self.request(connection)

    def request(self, connection: socket.socket) -> None:
        """The process of one request. Does not return."""
        status = 1
        try:
            self.selector.close()
            self.listener.close()
            self.groups.enter(os.getpid())
            signal.alarm(LONGEST)
            serve_connection(connection)
            status = 0
        except SystemExit as end:
            sys.stderr.write(f"{end}\n")
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def follow(self, pid: int) -> None:
        """Hear of the end of a process."""
        self.children.add(pid)
        self.selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)

    def reap(self, handle: int, pid: int) -> None:
        """A process has ended: whatever it left running ends too."""
        self.selector.unregister(handle)
        os.close(handle)
        os.waitpid(pid, 0)
        self.children.discard(pid)
        self.groups.end(pid)

    def renew(self) -> None:
        """Larder was updated: become the new code. Requests that run keep theirs, and their parent."""
        os.environ[CHILDREN] = " ".join(map(str, self.children))
        os.dup2(self.listener.fileno(), FIRST_GIVEN)
        try:
            os.execv(sys.orig_argv[0], sys.orig_argv)  # noqa: S606
        except OSError:
            traceback.print_exc()  # the old code still answers


def turn_away(connection: socket.socket, error: OSError) -> None:
    """Say why a request is not taken."""
    connection.setblocking(False)
    try:
        with suppress(BlockingIOError):
            connection.recv(LONGEST_REQUEST)  # a socket closed with something unread takes back what was sent
        why = Message("Larder's agent takes no more requests: {reason}", reason=error.strerror or error.args[0])
        connection.send(json.dumps(as_failure(why)).encode() + b"\n")
    except OSError:
        pass  # whoever asked has gone


def version() -> tuple[int, int, int] | None:
    """What changes when the code on the disk is another one; None where it is not there."""
    try:
        found = Path(__file__).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def listening(path: Path | None) -> socket.socket:
    """The socket that systemd gives, or one made at ``path`` for the group ``larder``."""
    if path is None:
        if os.environ.get("LISTEN_PID") != str(os.getpid()):
            sys.exit("larder-agent is started by systemd, from larder-agent.socket")
        return socket.socket(fileno=FIRST_GIVEN)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    shutil.chown(path, group="larder")
    path.chmod(0o660)
    listener.listen(MOST_AT_ONCE)
    return listener


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m appliance.agent", description="Larder's agent")
    parser.add_argument("--listen", type=Path, metavar="PATH", help="make the socket here, and serve for good")
    path = parser.parse_args().listen
    log_format.log_to_journal()
    children = {int(pid) for pid in os.environ.pop(CHILDREN, "").split()}
    groups = Groups.delegated(Path("/proc/self/cgroup").read_text())
    server = Server(listening(path), groups, children)
    gc.freeze()  # what is loaded stays shared with the processes of requests
    while True:
        server.run()
        if path is None:
            return


if __name__ == "__main__":
    main()
