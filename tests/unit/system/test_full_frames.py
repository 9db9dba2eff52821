"""Who is connected through a port, and which of those computers full frames reach undivided."""

from __future__ import annotations

import json
import socket
import struct
from types import SimpleNamespace

import pytest

from appliance import command
from appliance.errors import Refused
from appliance.system import full_frames
from appliance.system.full_frames import FrameAnswers

# `ss -Hnt state established state time-wait` of iproute2 6.1: over IPv4, over IPv6 of the link, over IPv6, in itself,
# and two through another port.
SS = """ESTAB     0      0                  [::ffff:10.9.0.1]:445           [::ffff:10.9.0.2]:52896
TIME-WAIT 0      0                           10.9.0.1:443                    10.9.0.3:51477
ESTAB     0      0      [fe80::5849:c8ff:fe0f:873]%eth0:445 [fe80::f875:e1ff:fe87:b46e]:55710
ESTAB     0      0                        [fd00::1]:2049                    [fd00::2]:870
ESTAB     0      0                          127.0.0.1:443                   127.0.0.1:40000
ESTAB     0      0                           10.8.0.1:445                    10.8.0.2:40000
ESTAB     0      0      [fe80::5849:c8ff:fe0f:874]%eth1:445 [fe80::f875:e1ff:fe87:b46f]:55710
"""
# `ip -json route get 10.9.0.2` of iproute2 6.1, and of what no route leads to, with status 2.
ROUTE = '[{"dst":"10.9.0.2","dev":"eth0","prefsrc":"10.9.0.1","flags":[],"uid":0,"cache":[]}]'
LINK_ADDRESS = "fe80::f875:e1ff:fe87:b46e%eth0"
PORTS = {"127.0.0.1": "lo", "10.8.0.2": "eth1", "10.9.0.3": "", "fd00::2": "eth0", "10.9.0.2": "eth0"}


class Network:
    """Computers in place of the sockets: what each does with a request. A clock that moves where nothing comes."""

    def __init__(self) -> None:
        self.computers: dict[str, str] = {}
        self.now, self.sent = 1000.0, 0
        self.back = 0.0  # until then the port has no link

    def select(self, sockets, _write, _error, seconds):
        ready = [one for one in sockets if one.queue]
        self.now += 0.0 if ready else seconds
        return ready, [], []


class Wire:
    """A raw socket of the network."""

    def __init__(self, network: Network, family: int) -> None:
        self.network, self.family = network, family
        self.queue: list[tuple[bytes, list[tuple[int, int, bytes]], int, tuple[str, int]]] = []

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_words: object) -> None:
        self.queue.clear()

    def sendto(self, packet: bytes, place: tuple[object, ...]) -> None:
        self.network.sent += 1
        if self.network.now < self.network.back:
            raise OSError("Network is unreachable")
        address = str(place[0])
        kind, header = self.network.computers.get(address, "silent"), 20 if self.family == socket.AF_INET else 40
        size = len(packet) + header
        told: list[tuple[int, int, bytes]] = []
        if kind == "silent" or (kind == "deaf" and size > 1500):
            return
        if kind == "in pieces" and size > 1500:
            level, option = (socket.IPPROTO_IP, 25) if header == 20 else (socket.IPPROTO_IPV6, 77)
            told = [(level, option, struct.pack("i", 1500))]
        whose = struct.pack("!H", 0x1111) if kind == "another program" else packet[4:6]
        answer = struct.pack("!BBH", 0 if header == 20 else 129, 0, 0) + whose + packet[6:]
        if kind == "cuts it short":
            answer = answer[: 1500 - header]
        self.queue.append((bytes([0x45, *bytes(19)]) * (header == 20) + answer, told, 0, (address, 0)))

    def recvmsg(self, _size: int, _told: int) -> tuple[bytes, list[tuple[int, int, bytes]], int, tuple[str, int]]:
        return self.queue.pop(0)


@pytest.fixture
def network(monkeypatch) -> Network:
    found = Network()
    monkeypatch.setattr(full_frames, "open_socket", lambda family: Wire(found, family))
    monkeypatch.setattr(full_frames, "select", SimpleNamespace(select=found.select))
    monkeypatch.setattr(full_frames, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


# --- who is connected -----------------------------------------------------------------------------------------------
def run(argv, **_more) -> command.Result:
    if argv[0] == "ss":
        assert all(f"sport = :{port} " in argv[-1] for port in (445, 2049, 548, 3260, 443))
        return command.Result(tuple(argv), 0, SS, "", 0.0)
    dev = PORTS[argv[-1]]
    told = json.dumps([{**json.loads(ROUTE)[0], "dst": argv[-1], "dev": dev}]) if dev else ""
    return command.Result(tuple(argv), 0 if dev else 2, told, "RTNETLINK answers: Network is unreachable", 0.0)


def test_clients_are_those_connected_through_the_port_now_or_a_moment_ago(monkeypatch):
    monkeypatch.setattr(command, "run", run)
    # No route leads to 10.9.0.3 now, so it may be one of this port.
    assert full_frames.list_clients("eth0") == ("10.9.0.2", "10.9.0.3", "fd00::2", LINK_ADDRESS)
    assert full_frames.list_clients("eth1") == ("10.8.0.2", "10.9.0.3", "fe80::f875:e1ff:fe87:b46f%eth1")


@pytest.mark.parametrize("line", ["", "ESTAB 0 0", "x y", "ESTAB 0 0 *:445 *:*"])
def test_line_that_is_not_understood_names_nobody(line):
    assert full_frames.peer_of(line, "eth0") == ""


@pytest.mark.parametrize("addresses", [["10.0.0.1; id"], [""], ["10.0.0.1"] * (full_frames.MOST_CLIENTS + 1)])
def test_other_words_are_no_addresses(addresses):
    full_frames.check_addresses(["10.0.0.1", "fd00::2", LINK_ADDRESS])
    with pytest.raises(Refused):
        full_frames.check_addresses(addresses)


# --- what reaches them ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("address", ["10.9.0.2", "fd00::2"])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("follows", "reached"),
        ("deaf", "deaf"),
        ("in pieces", "deaf"),
        ("cuts it short", "deaf"),
        ("silent", "silent"),
        ("another program", "silent"),
    ],
)
def test_computer_that_full_frames_reach_differs_from_one_that_answers_small_ones_or_none(
    network, address, kind, expected
):
    network.computers = {address: kind}
    assert full_frames.ask_clients([address], 9000) == FrameAnswers(**{expected: (address,)})


def test_all_are_asked_at_once(network):
    network.computers = {f"10.9.0.{at}": ("follows", "deaf", "silent")[at % 3] for at in range(30)}
    found = full_frames.ask_clients(network.computers, 9000)
    assert [len(one) for one in (found.reached, found.deaf, found.silent)] == [10, 10, 10]
    assert network.now - 1000.0 == full_frames.TRIES


def test_nobody_waits_where_all_answer(network):
    network.computers = {"10.9.0.2": "follows"}
    full_frames.ask_clients(["10.9.0.2"], 9000, patience=20)
    assert (network.now, network.sent) == (1000.0, 2)


@pytest.mark.parametrize("kind", ["reached", "deaf"])
def test_port_that_loses_its_link_for_a_moment_is_waited_for(network, kind):
    network.computers = {"10.9.0.2": "follows" if kind == "reached" else "deaf"}
    network.back = 1006.0
    assert full_frames.ask_clients(["10.9.0.2"], 9000, patience=20) == FrameAnswers(**{kind: ("10.9.0.2",)})
    assert network.now < 1012


def test_waiting_ends(network):
    assert full_frames.ask_clients(["10.9.0.2"], 9000, patience=20).silent == ("10.9.0.2",)
    assert network.now == pytest.approx(1021)


def test_without_clients_nothing_is_opened(monkeypatch):
    monkeypatch.setattr(full_frames, "open_socket", lambda _family: pytest.fail("opened"))
    assert full_frames.ask_clients([], 9000) == FrameAnswers()


def test_echo_request_has_the_size_and_a_right_checksum():
    packet = full_frames.echo_request(socket.AF_INET, 0x1234, 1, 9000 - 28)
    assert len(packet) == 9000 - 20
    assert full_frames.checksum(packet) == 0
    assert struct.unpack_from("!BB", packet) == (8, 0)
    assert full_frames.echo_request(socket.AF_INET6, 0x1234, 1, 4) == bytes(
        [128, 0, 0, 0, 0x12, 0x34, 0, 1, 0, 0, 0, 0]
    )
