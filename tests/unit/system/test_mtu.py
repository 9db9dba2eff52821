"""The MTU of a port: who manages it, the trial with its timer, and keeping it."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

from appliance import command
from appliance.errors import Failed, Refused
from appliance.operation import checked_plan
from appliance.system import full_frames, mtu, paths, service_start
from appliance.system.set_mtu import KeepMtu, TryMtu
from tests.reasons import codes, expect_refusal
from tests.unit.made import box
from tests.unit.pools.test_create import Working

TRY = TryMtu(port="eth0", mtu=9000, former=1500)
KEEP = KeepMtu(port="eth0", mtu=9000, former=1500)
HOOK = Path(__file__).parents[3] / "deploy/ifupdown/larder-mtu"


@pytest.fixture(autouse=True)
def port(tmp_path, monkeypatch) -> Path:
    """A port eth0 that ifupdown manages; the file with its MTU."""
    place = tmp_path / "net/eth0"
    (place / "device").mkdir(parents=True)
    (place / "mtu").write_text("1500\n")
    (tmp_path / "interfaces").write_text("auto lo\niface lo inet loopback\nauto eth0\niface eth0 inet dhcp\n")
    (tmp_path / "hook").touch()
    for name, path in {"PORTS": "net", "INTERFACES": "interfaces", "HOOK": "hook"}.items():
        monkeypatch.setattr(mtu, name, tmp_path / path)
    monkeypatch.setattr(paths, "RUN", tmp_path)
    monkeypatch.setattr(paths, "AGENT_STATE", tmp_path / "agent")
    (tmp_path / "agent").mkdir()
    monkeypatch.setattr(service_start, "SYSTEMD", tmp_path)
    monkeypatch.setattr(full_frames, "list_clients", lambda: ["192.168.1.20", "192.168.1.21"])
    monkeypatch.setattr(full_frames, "reaches", lambda address, _size: address.endswith("20"))
    return place / "mtu"


@pytest.fixture
def ran(port, monkeypatch) -> list[tuple[str, ...]]:
    """The commands, of which ip sets the MTU."""
    told: list[tuple[str, ...]] = []

    def run(argv, **_more):
        told.append(tuple(argv))
        if argv[0] == "ip":
            port.write_text(f"{argv[-1]}\n")
        return command.Result(tuple(argv), 0, "", "", 0.0)

    monkeypatch.setattr(command, "run", run)
    return told


def do(operation, *names: str) -> Working:
    work = Working()
    for step in checked_plan(operation, box()).steps:
        if not names or step.name in names:
            step.run(work)
    return work


# --- who manages it -----------------------------------------------------------------------------------------------
def test_port_of_ifupdown_can_be_changed():
    assert mtu.read_status("eth0") == mtu.MtuStatus(1500)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("auto lo\niface lo inet loopback\n", "something else manages it"),
        ("iface eth0 inet static\n  address 10.0.0.1/24\n  mtu 9000\n", "name an MTU"),
        ("iface eth0 inet manual\n  bond-master bond0\n", "a bond"),
        ("# iface eth0 inet dhcp\n", "something else manages it"),
    ],
)
def test_port_that_others_manage_is_refused_with_a_sentence(tmp_path, ran, text, word):
    (tmp_path / "interfaces").write_text(text)
    assert word in mtu.read_status("eth0").refusal
    with expect_refusal("mtu-not-managed"):
        do(TRY, "arm")
    assert ran == []


def test_mtu_of_another_ports_lines_does_not_count(tmp_path):
    (tmp_path / "interfaces").write_text("iface eth0 inet dhcp\niface eth1 inet static\n  mtu 9000\n")
    assert mtu.read_status("eth0").refusal == ""


def test_port_in_a_file_of_the_folder_is_found(tmp_path):
    (tmp_path / "interfaces").write_text("source interfaces.d/*\n")
    (tmp_path / "interfaces.d").mkdir()
    (tmp_path / "interfaces.d/lan").write_text("iface eth0 inet dhcp\n")
    assert mtu.read_status("eth0").refusal == ""


def test_bridge_is_refused(tmp_path):
    (tmp_path / "net/eth0/device").rmdir()
    assert "depends on its members" in mtu.read_status("eth0").refusal


@pytest.mark.parametrize(("field", "value"), [("mtu", 1279), ("mtu", 9217), ("former", 68), ("port", "../eth0"), ("port", ""), ("port", "-a"), ("port", "a" * 16), ("port", "eth0\n")])  # fmt: skip
def test_hostile_fields_are_refused(field, value):
    with pytest.raises(Refused):
        TryMtu(**{"port": "eth0", "mtu": 9000, "former": 1500, field: value})


# --- the trial ------------------------------------------------------------------------------------------------------
def test_timer_is_armed_before_the_change(ran):
    do(TRY)
    back = ("ip", "link", "set", "dev", "eth0", "mtu", "1500")
    assert ran[0] == ("systemd-run", "--quiet", "--collect", "--unit=larder-mtu-back-eth0", "--on-active=90s", "--timer-property=AccuracySec=1s", *back)  # fmt: skip
    assert ran[1] == ("ip", "link", "set", "dev", "eth0", "mtu", "9000")


def test_nothing_changes_where_the_timer_cannot_be_armed(port, monkeypatch):
    def run(argv, **_more):
        raise Failed("systemd-run is not installed")

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(Failed):
        do(TRY, "arm")
    assert port.read_text() == "1500\n"
    assert mtu.read_trial("eth0") is None


def test_trial_is_told_with_who_cannot_follow(ran):
    work = do(TRY)
    trial = mtu.read_status("eth0").trial
    assert trial is not None
    assert (trial.mtu, trial.former, trial.tested, trial.deaf) == (9000, 1500, True, ("192.168.1.21",))
    assert 80 <= trial.seconds_left <= mtu.SECONDS
    assert any("192.168.1.21" in line for line in work.notes)


def test_trial_is_over_once_the_former_value_is_back_or_the_time_is(ran, port, monkeypatch):
    do(TRY)
    port.write_text("1500\n")
    assert mtu.read_trial("eth0") is None
    port.write_text("9000\n")
    assert mtu.read_trial("eth0") is not None
    later = mtu.now() + mtu.SECONDS + 1
    monkeypatch.setattr(mtu, "now", lambda: later)
    assert mtu.read_trial("eth0") is None


def test_port_that_does_not_take_it_is_as_before(ran, port, monkeypatch):
    do(TRY, "arm")

    def run(argv, **_more):
        ran.append(tuple(argv))
        if argv[-1] == "9000":
            raise Failed("RTNETLINK answers: Invalid argument")
        return command.Result(tuple(argv), 0, "", "", 0.0)

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(Failed):
        do(TRY, "change")
    assert ("systemctl", "stop", "larder-mtu-back-eth0.timer") in ran
    assert not mtu.trial_file("eth0").exists()


def test_second_trial_waits_for_the_first(ran):
    do(TRY)
    with expect_refusal("mtu-trial-runs"):
        do(TryMtu(port="eth0", mtu=4000, former=9000), "arm")


def test_value_that_changed_since_the_page_is_refused(ran, port):
    port.write_text("1400\n")
    with expect_refusal("mtu-changed-since"):
        do(TRY, "arm")
    assert ran == []


def test_same_value_is_refused():
    assert codes(TryMtu(port="eth0", mtu=1500, former=1500).check(box())) == ["mtu-same"]


def test_probe_says_what_is_there(ran):
    assert not any(TRY.probe(step, box()) for step in ("arm", "change", "ask"))
    do(TRY)
    assert TRY.probe("change", box())


# --- keeping it -----------------------------------------------------------------------------------------------------
def test_kept_value_is_stored_after_the_timer_was_stopped(ran, tmp_path):
    do(TRY)
    ran.clear()
    assert not KEEP.probe("keep", box())
    do(KEEP)
    assert ran == [("systemctl", "stop", "larder-mtu-back-eth0.timer")]
    assert (tmp_path / "agent/mtu/eth0").read_text() == "9000\n"
    assert mtu.read_trial("eth0") is None
    assert KEEP.probe("keep", box())


def test_nothing_is_stored_where_the_former_value_is_back(ran, port, tmp_path, monkeypatch):
    with expect_refusal("mtu-trial-over"):
        do(KEEP)
    do(TRY)

    def run(argv, **_more):  # the timer acts at the same moment
        port.write_text("1500\n")
        return command.Result(tuple(argv), 0, "", "", 0.0)

    monkeypatch.setattr(command, "run", run)
    with expect_refusal("mtu-trial-over"):
        do(KEEP)
    assert not (tmp_path / "agent/mtu/eth0").exists()


def test_usual_value_is_kept_by_storing_none(ran, port, tmp_path):
    do(TRY)
    do(KEEP)
    keep = KeepMtu(port="eth0", mtu=1500, former=9000)
    do(TryMtu(port="eth0", mtu=1500, former=9000))
    do(keep)
    assert not (tmp_path / "agent/mtu/eth0").exists()
    assert keep.probe("keep", box())


@pytest.mark.parametrize(("text", "expected"), [("9000\n", "9000"), ("9000;id\n", "9000"), ("99999", ""), ("", ""), ("100", ""), (None, "")])  # fmt: skip
def test_hook_sets_only_a_number_in_bounds(tmp_path, text, expected):
    state, tools = tmp_path / "mtu", tmp_path / "bin"
    state.mkdir()
    tools.mkdir()
    (tools / "ip").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/said\n')
    (tools / "ip").chmod(0o755)
    if text is not None:
        (state / "eth0").write_text(text)
    script = tmp_path / "script"
    script.write_text(HOOK.read_text().replace("/var/lib/larder-agent/mtu", str(state)))
    subprocess.run(["sh", str(script)], env={"IFACE": "eth0", "PATH": f"{tools}:{os.environ['PATH']}"}, check=True)
    said = (tmp_path / "said").read_text().strip() if (tmp_path / "said").exists() else ""
    assert said == (f"link set dev eth0 mtu {expected}" if expected else "")


# --- full frames ----------------------------------------------------------------------------------------------------
# `ss -Hnt` of iproute2 6.15; the last line is a client over IPv6, which is not asked.
SS = """0 0 192.168.1.5:445 192.168.1.20:51234
0 0 [::ffff:192.168.1.5]:2049 [::ffff:192.168.1.21]:870
0 0 127.0.0.1:445 127.0.0.1:40000
0 0 [fe80::1]:445 [fe80::2]:50000
"""


def test_clients_are_those_with_a_connection_now(monkeypatch):
    monkeypatch.undo()
    asked = []

    def run(argv, **_more):
        asked.append(argv[-1])
        return command.Result(tuple(argv), 0, SS, "", 0.0)

    monkeypatch.setattr(command, "run", run)
    assert full_frames.list_clients() == ["192.168.1.20", "192.168.1.21"]
    assert all(f"sport = :{port} " in asked[0] for port in (445, 2049, 548, 3260, 443))


def test_echo_request_has_the_size_and_a_right_checksum():
    packet = full_frames.echo_request(0x1234, 1, 9000 - full_frames.HEADERS)
    assert len(packet) == 9000 - 20
    assert full_frames.checksum(packet) == 0
    assert struct.unpack_from("!BB", packet) == (8, 0)
