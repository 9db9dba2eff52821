"""The server of the pages: it answers, ends when idle, loses no visitor, and keeps what nginx says of him."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from web.__main__ import LastRequest, serve


def listening(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(8)
    return server


def ask(path: Path, *headers: str) -> bytes:
    """The whole answer to one request."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(path))
        client.sendall("\r\n".join(["GET /x HTTP/1.1", "Host: box", "Connection: close", *headers, "", ""]).encode())
        found = b""
        while part := client.recv(65536):
            found += part
    return found


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ.get('HTTP_X_FORWARDED_PROTO')} {environ.get('HTTP_X_REAL_IP')}".encode()]


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("web.__main__.SECONDS_BETWEEN_LOOKS", 0.05)


def test_server_ends_when_nobody_asks_and_the_socket_takes_the_next_visitor(tmp_path, impatient):
    path = tmp_path / "web.sock"
    server = listening(path)
    first = threading.Thread(target=serve, args=(application, server), kwargs={"idle_seconds": 0.3})
    first.start()
    assert ask(path).endswith(b"None None")
    first.join(20)
    assert not first.is_alive()
    # Nobody serves now; the visitor waits in the socket until the next process takes him.
    again = listening_again(path, server)
    answers: list[bytes] = []
    visitor = threading.Thread(target=lambda: answers.append(ask(path)))
    visitor.start()
    second = threading.Thread(target=serve, args=(application, again), kwargs={"idle_seconds": 0.3})
    second.start()
    visitor.join(20)
    second.join(20)
    assert answers and b"200 OK" in answers[0]


def listening_again(path: Path, closed: socket.socket) -> socket.socket:
    """systemd hands the same socket over again; here it is made anew where the server has closed it."""
    path.unlink()
    return listening(path)


def test_server_does_not_end_while_a_visitor_is_being_answered(tmp_path, impatient):
    go_on, path = threading.Event(), tmp_path / "web.sock"

    def slow(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        yield b"begun "
        go_on.wait(20)
        yield b"whole"

    running = threading.Thread(target=serve, args=(slow, listening(path)), kwargs={"idle_seconds": 0.0})
    answers: list[bytes] = []
    visitor = threading.Thread(target=lambda: answers.append(ask(path)))
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(str(path))  # connected before the server looks for the first time
        visitor.start()
        running.start()
        waiting.sendall(b"GET / HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n")
        waiting.settimeout(20)
        assert waiting.recv(10)
        assert running.is_alive()
        go_on.set()
        visitor.join(20)
    running.join(20)
    assert not running.is_alive()
    assert b"whole" in answers[0]


def test_server_gives_memory_back_once_after_its_visitors_are_gone(tmp_path, impatient, monkeypatch):
    given: list[int] = []
    monkeypatch.setattr("web.__main__.memory.give_back", lambda: given.append(1))
    path = tmp_path / "web.sock"
    running = threading.Thread(target=serve, args=(application, listening(path)), kwargs={"idle_seconds": 1.0})
    running.start()
    ask(path)
    running.join(20)
    assert given == [1]


def test_server_keeps_what_nginx_says_of_the_visitor(tmp_path, impatient):
    path = tmp_path / "web.sock"
    running = threading.Thread(target=serve, args=(application, listening(path)), kwargs={"idle_seconds": 0.3})
    running.start()
    assert ask(path, "X-Forwarded-Proto: https", "X-Real-IP: 192.168.1.7").endswith(b"https 192.168.1.7")
    running.join(20)


def test_activity_counts_from_the_last_request():
    now = [100.0]
    seen = LastRequest(application, clock=lambda: now[0])
    now[0] = 650
    assert seen.idle_for(550)
    seen({}, lambda *_: None)
    assert not seen.idle_for(1)
    now[0] = 660
    assert seen.idle_for(10)


def test_server_ends_at_sigterm_with_status_0(tmp_path):
    path = tmp_path / "web.sock"
    child = os.fork()
    if child == 0:
        from web.__main__ import stop

        signal.signal(signal.SIGTERM, stop)
        code = 1
        try:
            serve(application, listening(path), idle_seconds=None)
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            os._exit(code)
    while not path.exists():
        time.sleep(0.01)
    assert b"200 OK" in ask(path)
    os.kill(child, signal.SIGTERM)
    _pid, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
