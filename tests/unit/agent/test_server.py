"""The agent's server, as a real process on a real socket."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from appliance import agent_client
from appliance.agent import __main__ as server
from appliance.errors import Failed
from appliance.message import Message, message_of
from appliance.system import paths

FOLLOW = json.dumps({"verb": "follow", "job": "11111111-2222-4333-8444-555555555555"}).encode() + b"\n"
# Answers with the number of the process, and of its parent, instead of what a request asks for; "stay" stays.
ANSWER = """
import os, socket, sys, time
from appliance.agent import __main__ as server
from appliance.message import Message, message_of
def converse(connection):
    line = connection.recv(100)
    connection.sendall(f"{os.getpid()} {os.getppid()}\\n".encode())
    if line == b"stay\\n":
        time.sleep(600)
    if line == b"fail\\n":
        raise RuntimeError("canary")
server.serve_connection = converse
server.MOST_AT_ONCE = 4
server.SECONDS_IDLE = server.Server.run.__defaults__ = (%s,)
server.main()
"""


@contextmanager
def running(socket_path: Path, argv: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server that got its socket as from systemd."""
    surroundings = os.environ | {"LARDER_RUN": str(paths.RUN), "LARDER_AGENT_STATE": str(paths.AGENT_STATE)}
    surroundings["PYTHONPATH"] = str(Path(__file__).parents[3])
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_path))
        listener.listen()
        process = subprocess.Popen(
            ["sh", "-c", 'LISTEN_PID=$$ exec "$@" 3<&0 </dev/null', "sh", sys.executable, *argv],
            stdin=listener.fileno(),
            env=surroundings,
        )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., socket.socket]:
    """Say something to the server; the connection."""

    def say(line: bytes, *, shut: bool = False) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(30)
        connection.connect(str(tmp_path / "agent.sock"))
        with suppress(BrokenPipeError):  # it may have been turned away, with an answer, before
            connection.sendall(line)
            if shut:
                connection.shutdown(socket.SHUT_WR)
        return connection

    return say


def reply(connection: socket.socket) -> bytes:
    with connection, connection.makefile("rb") as file:
        return file.readline()


def pids(connection: socket.socket) -> tuple[int, int]:
    own, parent = reply(connection).split()
    return int(own), int(parent)


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_real_agent_answers_anything_once(ask, tmp_path):
    with running(tmp_path / "agent.sock", ["-m", "appliance.agent"]):
        for line in (b"", b"\n", b"{}\n", b"half a request", b"\xff\xfe\0\n"):
            with ask(line, shut=True) as connection, connection.makefile("rb") as file:
                (answer,) = map(json.loads, file)
            assert set(answer) == {"refused"}
        # It does not wait for more than a line.
        assert json.loads(reply(ask(FOLLOW + b"more")))["outcome"]["state"] == "unknown"


def test_each_request_has_a_process_of_its_own_which_ends_with_it(ask, tmp_path):
    with running(tmp_path / "agent.sock", ["-c", ANSWER % 30]) as process:
        found = [pids(ask(b"go\n")) for _ in range(4)]
        assert {parent for _own, parent in found} == {process.pid}
        assert len({own for own, _parent in found}) == 4
        until = time.monotonic() + 20
        while any(alive(own) for own, _parent in found):
            assert time.monotonic() < until


def test_a_request_that_fails_or_is_killed_ends_no_other(ask, tmp_path):
    with running(tmp_path / "agent.sock", ["-c", ANSWER % 30]) as process:
        staying, _ = pids(ask(b"stay\n"))
        pids(ask(b"fail\n"))
        killed, _ = pids(ask(b"stay\n"))
        os.kill(killed, 9)
        assert pids(ask(b"go\n"))[1] == process.pid
        assert alive(staying)
        os.kill(staying, 9)


def test_one_too_many_is_told_so_and_the_next_is_served_when_there_is_room(ask, tmp_path):
    with running(tmp_path / "agent.sock", ["-c", ANSWER % 30]):
        staying = [pids(ask(b"stay\n"))[0] for _ in range(4)]
        told = json.loads(reply(ask(b"go\n")))
        assert told["failed"] == "Larder's agent takes no more requests: it has 4 requests in hand"
        text = message_of(told["failed"], told["messages"])
        assert isinstance(text, Message) and text.template == "Larder's agent takes no more requests: {reason}"
        os.kill(staying.pop(), 9)
        until = time.monotonic() + 20
        while b"failed" in (answer := reply(ask(b"go\n"))):
            assert time.monotonic() < until
        assert len(answer.split()) == 2
        for pid in staying:
            os.kill(pid, 9)


def test_it_ends_when_nobody_asks_and_nothing_runs(ask, tmp_path):
    with running(tmp_path / "agent.sock", ["-c", ANSWER % 0.2]) as process:
        staying, _ = pids(ask(b"stay\n"))
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)  # a job runs: it stays
        os.kill(staying, 9)
        assert process.wait(20) == 0


def test_an_update_is_taken_up_and_what_runs_goes_on(ask, tmp_path):
    code = tmp_path / "larder_agent.py"
    code.write_text((ANSWER % 30).replace("server.main()", f"server.__file__ = {str(code)!r}\nserver.main()"))
    with running(tmp_path / "agent.sock", [str(code)]) as process:
        staying, _ = pids(ask(b"stay\n"))
        code.write_text(code.read_text().replace('f"{os.getpid()} {os.getppid()}', 'f"new {os.getppid()}'))
        assert reply(ask(b"go\n")) == f"new {process.pid}\n".encode()
        assert alive(staying)
        os.kill(staying, 9)
        until = time.monotonic() + 20
        while alive(staying):  # its parent, the new code, has heard of its end
            reply(ask(b"go\n"))
            assert time.monotonic() < until


def test_code_that_is_away_for_a_moment_does_not_end_it(ask, tmp_path):
    code = tmp_path / "larder_agent.py"
    code.write_text((ANSWER % 30).replace("server.main()", f"server.__file__ = {str(code)!r}\nserver.main()"))
    with running(tmp_path / "agent.sock", [str(code)]) as process:
        pids(ask(b"go\n"))
        code.unlink()
        assert pids(ask(b"go\n"))[1] == process.pid


def test_only_systemd_starts_it():
    done = subprocess.run([sys.executable, "-m", "appliance.agent"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "larder-agent.socket" in done.stderr


# Control groups: what the kernel does with these files is seen in tests/system/system/test_agent_server.py


def test_each_request_is_put_into_a_group_with_limits_that_is_killed_and_removed(tmp_path, monkeypatch):
    groups = server.Groups(tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids"
    groups.enter(4711)
    made = {file.name: file.read_text() for file in (tmp_path / "4711").iterdir()}
    assert made == {"memory.max": "1073741824", "pids.max": "1024", "cgroup.procs": "0"}
    groups.end(4711)
    assert (tmp_path / "4711" / "cgroup.kill").read_text() == "1"
    groups.end(4712)
    gone: list[Any] = []
    monkeypatch.setattr(Path, "rmdir", lambda path: gone.append(path))
    assert not groups.clear({4713})
    assert gone == [tmp_path / "4711"]
    assert not groups.clear({4711})
    assert gone == [tmp_path / "4711"]
    monkeypatch.undo()
    assert groups.clear({4713})  # it is not empty yet


def test_groups_are_made_only_where_systemd_has_delegated_them():
    assert server.Groups.delegated("0::/\n").base is None
    assert server.Groups.delegated("0::/user.slice/session-1.scope\n").base is None


def test_request_turned_away_before_it_was_sent_is_told_why(monkeypatch, tmp_path):
    """The agent has answered and closed before the request is on its way, which breaks the pipe."""
    here = tmp_path / "agent.sock"
    monkeypatch.setattr(paths, "AGENT_SOCKET", here)
    turned_away = threading.Event()

    class Slow(socket.socket):
        def sendall(self, *said):
            assert turned_away.wait(30)
            return super().sendall(*said)

    def answer():
        connection, _address = listener.accept()
        with connection:
            connection.sendall(b'{"failed": "it has 4 requests in hand"}\n')
        turned_away.set()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(here))
        listener.listen()
        threading.Thread(target=answer).start()
        monkeypatch.setattr(agent_client, "socket", SimpleNamespace(socket=Slow, AF_UNIX=socket.AF_UNIX))
        with pytest.raises(Failed, match="it has 4 requests in hand"):
            agent_client.send_request({"verb": "facts"})
