"""Whether the clock is set from the network, and choosing the servers for it."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from appliance import command
from appliance.errors import Refused
from appliance.operation import checked_plan
from appliance.system import service_start, time_servers, time_sync
from appliance.system.time_servers import SetTimeServers
from appliance.system.time_sync import TimeSync, parse_offset, parse_properties, read_last, read_time_sync, time_sync_of
from tests.reasons import codes, expect_refusal
from tests.unit.made import box
from tests.unit.pools.test_create import Working

# Made up after timedatectl(1).
CLOCK = (
    "Timezone=Etc/UTC\nLocalRTC=no\nCanNTP=yes\nNTP=yes\nNTPSynchronized=yes\nTimeUSec=Mon 2026-11-23 14:00:00 UTC\n"
)
SERVICE = """\
SystemNTPServers=fritz.box
FallbackNTPServers=0.debian.pool.ntp.org 1.debian.pool.ntp.org
ServerName=fritz.box
ServerAddress=192.168.178.1
RootDistanceMaxUSec=5s
NTPMessage={ Leap=0, Version=4, Mode=4, Stratum=3, Ignored=no, PacketCount=7, Jitter=2.1ms }
"""
STATUS = (
    "       Server: 192.168.178.1 (fritz.box)\nPoll interval: 34min 8s (min: 32s; max 34min 8s)\n      Offset: "
    "-12.5ms\n       Delay: 1.1ms\n"
)
NOW = datetime(2026, 11, 23, 14, tzinfo=UTC)
ROUTER = SetTimeServers(servers=("fritz.box", "192.168.178.1"))


@pytest.fixture(autouse=True)
def etc(tmp_path, monkeypatch):
    monkeypatch.setattr(service_start, "SYSTEMD", tmp_path)
    monkeypatch.setattr(time_servers, "FILE", tmp_path / "timesyncd.conf.d/larder.conf")
    monkeypatch.setattr(time_servers, "PROGRAM", tmp_path)
    return tmp_path


# --- reading ------------------------------------------------------------------------------------------------------
def test_state_server_and_offset_are_read():
    found = time_sync_of(parse_properties(CLOCK), parse_properties(SERVICE), STATUS, NOW)
    assert found == TimeSync(
        on=True,
        synced=True,
        by_timesyncd=True,
        server="fritz.box",
        address="192.168.178.1",
        offset=-0.0125,
        last=NOW,
        servers=("fritz.box",),
        fallback=("0.debian.pool.ntp.org", "1.debian.pool.ntp.org"),
    )
    assert not found.set_elsewhere


def test_another_time_service_is_seen_by_a_clock_that_is_set_without_timesyncd():
    found = time_sync_of(parse_properties(CLOCK), {}, "", NOW)
    assert (found.set_elsewhere, found.synced, found.last) == (True, True, None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("+23us", 23e-6),
        ("-1.5s", -1.5),
        ("+1min 2.5s", 62.5),
        ("0", 0.0),
        ("+2h 3min", 7380.0),
        ("-1w 2d", -777600.0),
        ("+1month 3w", 4444200.0),
        ("+2y 1month", 65745000.0),
        ("soon", None),
        ("+2lustra 3s", None),
    ],
)
def test_offset_is_read_in_each_unit(text, seconds):
    assert parse_offset(f"Offset: {text}\n") == (None if seconds is None else pytest.approx(seconds))


def test_before_the_first_answer_there_is_no_offset():
    assert parse_offset("       Server: n/a (fritz.box)\n Packet count: 0\n") is None


@pytest.mark.parametrize(
    ("offset", "words"),
    [(None, ""), (-2e-5, "less than a millisecond"), (0.0125, "12 ms"), (-62.51, "62.5 seconds")],
)
def test_offset_in_words(offset, words):
    assert TimeSync(offset=offset).off_by == words


def test_moment_of_the_last_setting_is_that_of_its_file(tmp_path):
    assert read_last(tmp_path / "missing") is None
    (tmp_path / "synchronized").touch()
    os.utime(tmp_path / "synchronized", (NOW.timestamp(), NOW.timestamp()))
    assert read_last(tmp_path / "synchronized") == NOW


def test_box_without_systemd_says_nothing(monkeypatch):
    def missing(argv, **_more):
        raise command.CommandMissing("timedatectl is not there")

    monkeypatch.setattr(command, "run", missing)
    assert read_time_sync() is None


def test_time_service_that_is_off_is_told(commands):
    commands.answers["timedatectl"] = CLOCK.replace("NTP=yes", "NTP=no").replace(
        "NTPSynchronized=yes", "NTPSynchronized=no"
    )
    found = read_time_sync()
    assert found is not None
    assert (found.on, found.synced) == (False, False)


# --- setting ------------------------------------------------------------------------------------------------------
def steps(operation: SetTimeServers):
    return {step.name: step for step in checked_plan(operation, box()).steps}


def test_servers_are_written_for_timesyncd_to_read(etc):
    steps(ROUTER)["servers"].run(Working())
    file = etc / "timesyncd.conf.d/larder.conf"
    assert file.read_text().endswith("[Time]\nNTP=\nNTP=fritz.box 192.168.178.1\n")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o644, 0o755)
    assert ROUTER.probe("servers", box())
    assert not SetTimeServers().probe("servers", box())


def test_no_servers_removes_the_file_and_again_without_harm(etc):
    steps(ROUTER)["servers"].run(Working())
    for _ in range(2):
        steps(SetTimeServers())["servers"].run(Working())
        assert not (etc / "timesyncd.conf.d/larder.conf").exists()
    assert SetTimeServers().probe("servers", box())


def test_box_with_another_time_service_is_left_alone(etc, monkeypatch):
    monkeypatch.setattr(time_servers, "PROGRAM", etc / "missing")
    with pytest.raises(Refused) as caught:
        steps(ROUTER)["servers"].run(Working())
    assert codes(caught.value.reasons) == ["time-service-other"]
    assert not (etc / "timesyncd.conf.d").exists()


def test_service_is_switched_on_and_restarted_by_the_commands_that_are_shown(commands):
    for name in ("service", "restart"):
        steps(ROUTER)[name].run(Working())
    assert commands.ran == [["timedatectl", "set-ntp", "true"], ["systemctl", "restart", "systemd-timesyncd.service"]]


@pytest.mark.parametrize(("line", "done"), [("NTP=yes", True), ("NTP=no", False)])
def test_service_is_on_when_timedated_says_so(commands, line, done):
    commands.answers["timedatectl"] = f"{line}\n"
    assert ROUTER.probe("service", box()) is done


@pytest.mark.parametrize(("started", "done"), [(999, False), (1001, True)])
def test_restart_is_done_when_the_service_is_younger_than_the_file(etc, commands, started, done):
    steps(ROUTER)["servers"].run(Working())
    os.utime(etc / "timesyncd.conf.d", (1000, 1000))
    commands.answers["systemctl"] = (
        f"Id=systemd-timesyncd.service\nActiveState=active\nActiveEnterTimestamp=@{started}\n"
    )
    assert ROUTER.probe("restart", box()) is done


@pytest.mark.parametrize(
    "server",
    ["", "-h", "a b", "a\nNTP=x", "a=b", "1.2.3", "300.1.1.1", "fe80::1%eth0", "a..b", "#", "x" * 64, "é.example"],
)
def test_server_has_its_grammar(server):
    with expect_refusal("time-server-malformed"):
        SetTimeServers(servers=(server,))


@pytest.mark.parametrize("server", ["fritz.box", "192.168.1.1", "fd00::1", "0.debian.pool.ntp.org", "router"])
def test_names_and_addresses_are_servers(server):
    assert SetTimeServers(servers=(server,)).servers == (server,)


def test_too_many_servers_and_one_named_twice_are_refused():
    with expect_refusal("time-servers-too-many"):
        SetTimeServers(servers=tuple(f"s{number}" for number in range(9)))
    assert codes(SetTimeServers(servers=("a", "a")).check(box())) == ["time-server-twice"]


def test_file_for_any_servers_has_one_section_and_its_lines(etc):
    lines = ROUTER.text().splitlines()
    assert [line for line in lines if line.startswith("NTP=")] == ["NTP=", "NTP=fritz.box 192.168.178.1"]
    assert time_sync.parse_properties("\n".join(lines))["NTP"] == "fritz.box 192.168.178.1"
