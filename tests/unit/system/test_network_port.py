"""Links and losses of network ports. Answers of the kernel are generated here, from the
layout in its header ethtool.h."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.alerts import rules
from appliance.alerts.fault import AlertInput
from appliance.alerts.kinds import KINDS
from appliance.system.network_port import (
    GLINKSETTINGS,
    HEADER,
    Counters,
    Link,
    PortStatus,
    PortWatch,
    describe_losses,
    describe_slow,
    is_watched,
    parse_link,
    read_link,
)
from tests.unit.alerts.test_rules import NOW

WORDS = 4
BITS = {10: 1, 100: 3, 1000: 5, 2500: 47, 10000: 12}


def answer(speed: int, *, duplex: int = 1, can: int = 1000, offers: int = 1000, partner: int = 0) -> bytes:
    """Generated: the kernel's answer for a port whose ends have all speeds up to these."""

    def mask(most: int) -> bytes:
        return sum(1 << bit for one, bit in BITS.items() if one <= most).to_bytes(4 * WORDS, "little")

    header = HEADER.pack(GLINKSETTINGS, speed, duplex, 0, 1, 1, 0, 0, 0, WORDS, 0, 0, 0, 0)
    return header + mask(can) + mask(offers) + mask(partner)


def kernel(last: bytes):
    """Answers as the kernel does: first how many words a mask has, then all."""

    def ask(_name: str, request: bytes) -> bytes:
        if HEADER.unpack_from(request)[9] != WORDS:
            return HEADER.pack(GLINKSETTINGS, 0, 0, 0, 0, 0, 0, 0, 0, -WORDS, 0, 0, 0, 0)
        assert len(request) == len(last)
        return last

    return ask


def test_header_is_as_long_as_the_kernels():
    assert HEADER.size == 48


@pytest.mark.parametrize(
    ("given", "slow", "words"),
    [
        ({"speed": 1000, "partner": 1000}, False, ""),
        ({"speed": 100, "partner": 1000}, True, "so the cable or a plug is the likely cause"),
        ({"speed": 100, "partner": 100}, True, "The other end offers no more than 100 Mbit/s."),
        ({"speed": 100}, True, "The other end does not say what it can do."),
        ({"speed": 1000, "can": 2500, "offers": 2500, "partner": 1000}, False, ""),
        ({"speed": 1000, "can": 2500, "offers": 2500}, False, ""),
        ({"speed": 1000, "can": 2500, "offers": 2500, "partner": 2500}, True, "runs at 1 Gbit/s and can do 2.5 Gbit/s"),
        ({"speed": 100, "offers": 100, "partner": 1000}, False, ""),
        ({"speed": 0xFFFFFFFF, "duplex": 255, "can": 0, "offers": 0}, False, ""),
        ({"speed": 0, "duplex": 255}, False, ""),
    ],
)
def test_link_is_slow_only_below_what_both_ends_should_reach(given, slow, words):
    link = read_link("eth0", kernel(answer(**given)))
    assert link is not None
    assert link.is_slow is slow
    assert not slow or words in describe_slow(link)
    assert not link.half_duplex


def test_half_duplex_is_seen():
    link = read_link("eth0", kernel(answer(100, duplex=0, can=100, offers=100)))
    assert link == Link(100, half_duplex=True, supported=100, offered=100)


def test_port_whose_driver_does_not_tell_has_no_link():
    def refuse(_name: str, _request: bytes) -> bytes:
        raise OSError(95, "Operation not supported")

    assert read_link("tun0", refuse) is None


@given(data=st.binary(max_size=500))
def test_no_answer_breaks_the_reading(data):
    link = parse_link(data)
    assert link is None or link.speed >= 0


class Ports:
    """A folder as /sys/class/net, with ports as asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, *, device: bool = True, state: str = "up", **counters: int) -> None:
        (self.folder / name / "statistics").mkdir(parents=True, exist_ok=True)
        (self.folder / name / "operstate").write_text(f"{state}\n")
        (self.folder / name / "type").write_text("1\n")
        if device:
            (self.folder / name / "device").mkdir(exist_ok=True)
        for counter, value in counters.items():
            (self.folder / name / "statistics" / counter).write_text(f"{value}\n")


@pytest.fixture
def ports(tmp_path) -> Ports:
    return Ports(tmp_path)


@pytest.fixture
def watch(ports) -> PortWatch:
    return PortWatch(ports.folder, kernel(answer(1000, partner=1000)))


def test_only_wired_ports_of_the_box_that_are_up_are_watched(ports, watch):
    ports.put("eth0")
    ports.put("eth1", state="down")
    ports.put("br0", device=False)
    ports.put("wlan0")
    (ports.folder / "wlan0" / "phy80211").mkdir()
    assert [one.name for one in watch.look(0)] == ["eth0"]
    assert not is_watched(ports.folder / "gone")


def test_errors_that_rise_are_told_and_old_ones_are_not(ports, watch):
    ports.put("eth0", rx_packets=1_000_000, rx_errors=5_000)
    assert watch.look(0)[0].losses == ""
    ports.put("eth0", rx_packets=1_100_000, rx_errors=5_000)
    assert watch.look(600)[0] == PortStatus("eth0")
    ports.put("eth0", rx_packets=1_200_000, rx_errors=5_240)
    assert watch.look(700)[0].losses == "In 12 minutes 240 frames were damaged; 200000 passed."
    for moment in (1600, 1700, 1800):
        found = watch.look(moment)[0]
    assert found.losses == ""


def test_port_that_was_not_looked_at_for_long_is_unsure(ports, watch):
    ports.put("eth0", rx_packets=10)
    assert watch.look(0)[0].unsure
    assert watch.look(200)[0].unsure
    assert not watch.look(300)[0].unsure


def test_driver_that_begins_anew_loses_nothing(ports, watch):
    ports.put("eth0", rx_packets=1_000_000, rx_errors=5_000)
    watch.look(0)
    ports.put("eth0", rx_packets=10, rx_errors=0)
    assert watch.look(600)[0] == PortStatus("eth0", unsure=True)


def test_port_that_went_away_and_came_back_begins_anew(ports, watch):
    ports.put("eth0", rx_packets=1)
    watch.look(0)
    ports.put("eth0", state="down")
    assert watch.look(400) == ()
    ports.put("eth0")
    assert watch.look(800)[0].unsure


def test_history_is_bounded(ports, watch):
    ports.put("eth0", rx_packets=1)
    for moment in range(0, 36_000, 5):
        watch.look(moment)
    assert len(watch.seen["eth0"]) <= 33


@pytest.mark.parametrize(
    ("passed", "damaged", "dropped", "told"),
    [
        (1_000_000, 19, 0, False),
        (1_000_000, 90, 0, False),
        (1_000_000, 200, 0, True),
        (1000, 20, 0, True),
        (1_000_000, 0, 4_000, False),
        (1_000_000, 0, 6_000, True),
        (100, 0, 400, False),
        (0, 0, 0, False),
    ],
)
def test_a_few_or_a_small_share_is_not_told(passed, damaged, dropped, told):
    assert bool(describe_losses(Counters(0, 0, 0), Counters(passed, damaged, dropped), 600)) is told


def test_frames_for_nobody_here_are_not_lost(ports, watch):
    ports.put("eth0", rx_packets=1)
    watch.look(0)
    ports.put("eth0", rx_packets=10_000, rx_dropped=9_000, rx_nohandler=9_000)
    assert watch.look(600)[0].losses == ""


def faults(*ports: PortStatus, opened: tuple[tuple[str, str], ...] = ()) -> set[tuple[str, str]]:
    found, complete = rules.find_faults(AlertInput(now=NOW, ports=ports, open=frozenset(opened)))
    assert complete
    return {fault.key for fault in found}


def test_rules_make_one_alert_of_a_link_and_one_of_losses():
    assert faults(PortStatus("eth0")) == set()
    assert faults(PortStatus("eth0", slow="It runs at 100 Mbit/s.")) == {("port.slow", "eth0")}
    both = PortStatus("eth0", slow="It runs at 10 Mbit/s.", half_duplex=True, losses="lost")
    assert faults(both) == {("port.half-duplex", "eth0"), ("port.losses", "eth0")}


def test_losses_that_have_an_alert_stay_until_the_port_was_looked_at_for_long_enough():
    told = (("port.losses", "eth0"),)
    assert faults(PortStatus("eth0", unsure=True)) == set()
    assert faults(PortStatus("eth0", unsure=True), opened=told) == set(told)
    assert faults(PortStatus("eth0"), opened=told) == set()


def test_every_kind_of_a_port_waits_before_it_alerts_and_before_it_clears():
    for code in ("port.slow", "port.half-duplex", "port.losses"):
        assert KINDS[code].wait >= 300
        assert KINDS[code].settle >= 300
