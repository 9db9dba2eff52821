"""Larder's AFP client with recorded replies of a real netatalk."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from appliance.benchmarks import afp_client
from appliance.benchmarks.afp_client import READING, WRITING, AfpSession
from appliance.errors import Failed
from appliance.shares import afp
from tests.unit.made import recorded

SAID = recorded("afp-session-netatalk-4.2.3.json")
TALK = [(who, bytes.fromhex(text)) for who, text in SAID["session"]]
WRITTEN = bytes(range(256)) * 2


@contextmanager
def netatalk(talk: list[tuple[str, bytes]]) -> Iterator[tuple[AfpSession, list[bytes]]]:
    """A session with recorded replies, and a list of requests that differ from the recorded ones."""
    ours, theirs = socket.socketpair()
    other: list[bytes] = []

    def answer() -> None:
        for who, text in talk:
            if who == "received":
                theirs.sendall(text)
            elif (asked := theirs.recv(len(text), socket.MSG_WAITALL)) != text:
                other.append(asked)
                break
        theirs.close()

    ours.settimeout(5)
    serving = threading.Thread(target=answer)
    serving.start()
    with ours:
        yield AfpSession(ours), other
    serving.join()


def test_guest_writes_reads_and_removes_a_file():
    with netatalk(TALK) as (line, other):
        line.sign_in("sweep")
        assert line.most == afp_client.REQUEST
        line.create_file("larder.0.0")
        fork = line.open_fork("larder.0.0", WRITING)
        line.write_fork(fork, 0, WRITTEN)
        line.flush_fork(fork)
        line.close_fork(fork)
        fork = line.open_fork("larder.0.0", READING)
        assert bytes(line.read_fork(fork, 0, 512)) == WRITTEN
        assert len(line.read_fork(fork, 512, 512)) == 0
        line.close_fork(fork)
        line.remove_file("larder.0.0")
        with pytest.raises(Failed, match="did not open a file: there is no such file or volume"):
            line.open_fork("larder.0.0", READING)
        line.create_file("larder.0.1")
        line.remove_file("larder.0.1")
        line.sign_out()
    assert other == []


@pytest.mark.parametrize("at", [1, 3, 5])
def test_server_that_closes_the_connection_fails(at):
    with netatalk(TALK[:at]) as (line, _other), pytest.raises(Failed, match="went away when it was to"):
        line.sign_in("sweep")


@pytest.mark.parametrize("kept", [3, 20])
def test_reply_that_is_cut_short_fails(kept):
    cut = [TALK[0], ("received", TALK[1][1][:kept])]
    with netatalk(cut) as (line, _other), pytest.raises(Failed, match="went away when it was to begin a session"):
        line.sign_in("sweep")


def test_requests_of_the_server_are_not_taken_for_replies():
    """After a silent minute netatalk reported a changed volume (recorded). The tickle is made up."""
    talk = [(who, bytes.fromhex(text)) for who, text in SAID["attention"][:2]]
    tickle, back = (bytes((0, afp_client.TICKLE, 0, number, *bytes(12))) for number in (9, 5))
    for said in (talk, [talk[0], ("received", tickle), ("sent", back), talk[1]]):
        with netatalk([*TALK[:6], *said]) as (line, other):
            line.sign_in("sweep")
            line.create_file("larder.0.2")
        assert other == []


def test_missing_reply_times_out():
    ours, theirs = socket.socketpair()
    ours.settimeout(0.05)
    with ours, theirs, pytest.raises(Failed, match="gave no answer within"):
        AfpSession(ours).sign_in("sweep")


def test_reply_longer_than_asked_for_fails():
    large = TALK[1][1][:8] + (2**31).to_bytes(4, "big") + TALK[1][1][12:]
    with netatalk([TALK[0], ("received", large)]) as (line, _other), pytest.raises(Failed, match="more than was asked"):
        line.sign_in("sweep")


def test_reply_shorter_than_asked_for_fails():
    shorter = TALK[5][1][:8] + (2).to_bytes(4, "big") + TALK[5][1][12:18]
    with (
        netatalk([*TALK[:5], ("received", shorter)]) as (line, _other),
        pytest.raises(Failed, match="less than was asked"),
    ):
        line.sign_in("sweep")


@pytest.mark.parametrize(
    ("told", "most"),
    [(b"", 0), (b"\x02\x04\x00\x00\x00\x80", 0), (b"\x00\x04\x00", 0), (b"\x00\x04\x00\x01\x00\x00", 65536)],
)
def test_quantum_of_the_server_is_found(told, most):
    assert afp_client.find_quantum(told) == most


def test_server_that_does_not_listen_fails():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with (
            pytest.raises(Failed, match="does not answer"),
            afp_client.open_session("127.0.0.1", free.getsockname()[1], "sweep"),
        ):
            pass


def test_a_server_says_its_name_and_its_ways_in_before_any_login():
    said = bytes.fromhex(SAID["information"])
    assert afp.machine_in(said) == "Netatalk4.2.3"
    assert afp.methods_in(said) == ("No User Authent",)
    assert afp.machine_in(b"") == afp.machine_in(b"\x00\x40") == ""
