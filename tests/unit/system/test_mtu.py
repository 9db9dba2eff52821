"""The MTU of a port: who manages it, the trial with its timer, and keeping it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from appliance import command
from appliance.errors import Failed, Refused
from appliance.operation import checked_plan
from appliance.system import full_frames, mtu, paths, service_start, trial_record
from appliance.system.full_frames import FrameAnswers
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
    return place / "mtu"


class Clients:
    """The computers that are connected: those that answer nothing, no full frames, and nothing
    any more after the change."""

    def __init__(self, port: Path) -> None:
        self.port = port
        self.there = ["192.168.1.20", "192.168.1.21"]
        self.deaf, self.silent, self.lost = set[str](), set[str](), set[str]()
        self.asked: list[tuple[list[str], int, str]] = []

    def ask(self, addresses, size, *, patience=0.0) -> FrameAnswers:
        asked, now = list(addresses), self.port.read_text().strip()
        self.asked.append((asked, size, now))
        full = size > full_frames.SMALL
        assert bool(patience) is full
        silent = self.silent | (self.lost if full else set())
        deaf = self.deaf if full else set()
        return FrameAnswers(
            tuple(one for one in asked if one not in silent | deaf),
            tuple(one for one in asked if one in deaf - silent),
            tuple(one for one in asked if one in silent),
        )


@pytest.fixture(autouse=True)
def clients(port, monkeypatch) -> Clients:
    found = Clients(port)
    monkeypatch.setattr(full_frames, "list_clients", lambda _port: tuple(found.there))
    monkeypatch.setattr(full_frames, "ask_clients", found.ask)
    return found


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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("accepted", ("a b",)),
        ("mtu", 1279),
        ("mtu", 9217),
        ("former", 68),
        ("port", "../eth0"),
        ("port", ""),
        ("port", "-a"),
        ("port", "a" * 16),
        ("port", "eth0\n"),
    ],
)
def test_hostile_fields_are_refused(field, value):
    with pytest.raises(Refused):
        TryMtu(**{"port": "eth0", "mtu": 9000, "former": 1500, field: value})


# --- the trial ------------------------------------------------------------------------------------------------------
def test_timer_is_armed_before_the_change(ran):
    do(TRY)
    assert ran[0][:6] == (
        "systemd-run",
        "--quiet",
        "--collect",
        "--unit=larder-mtu-back-eth0",
        "--on-active=90s",
        "--timer-property=AccuracySec=1s",
    )
    assert ran[0][6:8] == ("sh", "-c")
    assert ran[1] == ("ip", "link", "set", "dev", "eth0", "mtu", "9000")


def test_nothing_changes_where_the_timer_cannot_be_armed(port, monkeypatch):
    def run(argv, **_more):
        raise Failed("systemd-run is not installed")

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(Failed):
        do(TRY, "arm")
    assert port.read_text() == "1500\n"
    assert mtu.read_trial("eth0") is None


def test_trial_goes_on_where_everybody_follows(ran, clients):
    do(TRY)
    trial = mtu.read_status("eth0").trial
    assert trial is not None
    assert (trial.mtu, trial.former, trial.tested, trial.deaf, trial.silent) == (9000, 1500, True, (), ())
    assert 80 <= trial.seconds_left <= mtu.SECONDS
    # First, before anything changes, who answers at all; then whether full frames arrive.
    assert clients.asked == [(clients.there, full_frames.SMALL, "1500"), (clients.there, 9000, "9000")]


def test_trial_that_nobody_was_asked_in_does_not_say_that_all_follow(ran, clients):
    clients.there = []
    do(TRY)
    trial = mtu.read_trial("eth0")
    assert trial
    assert not trial.tested


NOT_FOLLOWED = "Frames of 9000 bytes do not reach 192.168.1.21."
NOT_ANSWERED = "It is not known whether frames of 9000 bytes reach 192.168.1.21: no ping is answered there."


@pytest.mark.parametrize(
    ("kind", "code", "sentence"),
    [
        ("deaf", "mtu-not-followed", NOT_FOLLOWED),
        ("lost", "mtu-not-followed", NOT_FOLLOWED),
        ("silent", "mtu-not-answered", NOT_ANSWERED),
    ],
)
def test_computer_that_cannot_follow_is_named_and_the_former_value_is_back_at_once(
    ran, port, clients, kind, code, sentence
):
    getattr(clients, kind).add("192.168.1.21")
    with pytest.raises(Refused) as refused:
        do(TRY)
    assert [one.code for one in refused.value.reasons] == [code, "mtu-back"]
    assert sentence in str(refused.value)
    assert port.read_text() == "1500\n"
    # The value is back before the timer that would put it back is stopped.
    assert ran[-2:] == [
        ("ip", "link", "set", "dev", "eth0", "mtu", "1500"),
        ("systemctl", "stop", "larder-mtu-back-eth0.timer"),
    ]
    status = mtu.read_status("eth0")
    assert status.trial is None
    assert status.unreached
    named = status.unreached.silent if kind == "silent" else status.unreached.deaf
    assert (status.unreached.mtu, named) == (9000, ("192.168.1.21",))


def test_trial_goes_on_where_those_that_cannot_follow_were_accepted(ran, port, clients):
    clients.deaf.add("192.168.1.21")
    clients.silent.add("192.168.1.20")
    accepting = TryMtu(port="eth0", mtu=9000, former=1500, accepted=("192.168.1.20", "192.168.1.21"))
    assert "192.168.1.20, 192.168.1.21" in " ".join(accepting.plan(box()).warnings)
    assert accepting.plan(box()).digest() != TRY.plan(box()).digest()
    do(accepting)
    trial = mtu.read_trial("eth0")
    assert trial
    assert (trial.deaf, trial.silent, trial.tested) == (("192.168.1.21",), ("192.168.1.20",), True)
    assert port.read_text() == "9000\n"


def test_other_computer_than_the_accepted_one_ends_the_trial(ran, port, clients):
    clients.deaf = {"192.168.1.20", "192.168.1.21"}
    with expect_refusal("mtu-not-followed", "mtu-back"):
        do(TryMtu(port="eth0", mtu=9000, former=1500, accepted=("192.168.1.20",)))
    assert port.read_text() == "1500\n"


def test_smaller_frames_reach_everybody_that_larger_ones_did(ran, port, clients):
    clients.silent.add("192.168.1.21")
    do(TryMtu(port="eth0", mtu=1400, former=1500))
    assert port.read_text() == "1400\n"


def test_trial_ends_where_nobody_can_be_asked(ran, port, monkeypatch):
    do(TRY, "arm", "change")

    def ask(*_words, **_more):
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(full_frames, "ask_clients", ask)
    with pytest.raises(Failed, match="could not be asked"):
        do(TRY, "ask")
    assert port.read_text() == "1500\n"
    assert mtu.read_trial("eth0") is None


def test_timer_stands_where_the_former_value_does_not_come_back(ran, port, clients, monkeypatch):
    clients.deaf.add("192.168.1.21")
    do(TRY, "arm", "change")
    ran.clear()

    def run(argv, **_more):
        ran.append(tuple(argv))
        raise Failed("RTNETLINK answers: Device or resource busy")

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(Failed):
        do(TRY, "ask")
    assert not any(argv[0] == "systemctl" for argv in ran)
    assert mtu.read_trial("eth0")


def test_who_cannot_follow_is_forgotten_after_an_hour_and_when_everybody_can(ran, clients, monkeypatch):
    clients.deaf.add("192.168.1.21")
    with pytest.raises(Refused):
        do(TRY)
    now = mtu.now()
    with monkeypatch.context() as patch:
        patch.setattr(mtu, "now", lambda: now + mtu.SECONDS_KNOWN + 1)
        assert mtu.read_unreached("eth0") is None
    assert mtu.read_unreached("eth0")
    clients.deaf.clear()
    do(TRY)
    assert mtu.read_unreached("eth0") is None


def test_nothing_is_tried_while_a_benchmark_tries_a_setting(ran, monkeypatch):
    record = trial_record.SettingTrial(
        setting="mtu", former="eth0 mtu 1500 of 9216", tried="eth0 mtu 9000 of 9216", until=mtu.now() + 60
    )
    trial_record.trial_file().write_bytes(msgspec.json.encode(record))
    with expect_refusal("setting-trial-runs"):
        do(TRY, "arm")
    assert ran == []
    until = record.until
    monkeypatch.setattr(mtu, "now", lambda: until + 1)
    do(TRY, "arm")


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
STOP = ("systemctl", "stop", "larder-mtu-back-eth0.timer", "larder-mtu-back-eth0.service")


def stored(tmp_path: Path) -> str | None:
    kept = tmp_path / "agent/mtu/eth0"
    return kept.read_text() if kept.exists() else None


def act(ran: list[tuple[str, ...]], port: Path, tmp_path: Path) -> None:
    """The timer acts: what it was armed with runs, with an ``ip`` that sets the port of this test."""
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "ip").write_text(f'#!/bin/sh\necho "$6" >{port}\n')
    (tools / "ip").chmod(0o755)
    armed = next(argv for argv in ran if argv[0] == "systemd-run")
    subprocess.run(armed[6:], env={"PATH": f"{tools}:{os.environ['PATH']}"}, check=True)


def test_value_is_stored_before_the_timer_is_stopped(ran, tmp_path, monkeypatch):
    do(TRY)
    ran.clear()
    assert not KEEP.probe("keep", box())
    at_stop: list[str | None] = []
    run = command.run
    monkeypatch.setattr(command, "run", lambda argv, **more: (at_stop.append(stored(tmp_path)), run(argv, **more))[1])
    do(KEEP)
    assert ran == [STOP]
    assert at_stop == ["9000\n"]
    assert stored(tmp_path) == "9000\n"
    assert mtu.read_trial("eth0") is None
    assert KEEP.probe("keep", box())


class Killed(BaseException):
    """Larder ends at this command."""


@pytest.mark.parametrize("before", [None, "1400\n"])
@pytest.mark.parametrize(("value", "former"), [(9000, 1500), (1500, 1400)])
def test_kill_before_the_timer_is_stopped_is_undone_whole_by_the_timer(
    ran, port, tmp_path, monkeypatch, before, value, former
):
    if before:
        (tmp_path / "agent/mtu").mkdir()
        (tmp_path / "agent/mtu/eth0").write_text(before)
    port.write_text(f"{former}\n")
    do(TryMtu(port="eth0", mtu=value, former=former))
    run = command.run

    def kill(argv, **more):
        if argv[:2] == STOP[:2]:
            raise Killed
        return run(argv, **more)

    monkeypatch.setattr(command, "run", kill)
    keep = KeepMtu(port="eth0", mtu=value, former=former)
    with pytest.raises(Killed):
        do(keep)
    assert stored(tmp_path) == (None if value == mtu.USUAL else f"{value}\n")
    assert not keep.probe("keep", box()), "the timer still stands"
    act(ran, port, tmp_path)
    assert (port.read_text(), stored(tmp_path)) == (f"{former}\n", before)
    assert not keep.probe("keep", box())


def test_timer_that_nobody_stopped_leaves_what_was_confirmed(ran, port, tmp_path):
    do(TRY)
    act(ran, port, tmp_path)
    assert (port.read_text(), stored(tmp_path)) == ("1500\n", None)


def test_value_can_be_kept_where_its_timer_is_not_there_any_more(ran, tmp_path, monkeypatch):
    """After a kill that left the record of the trial; and the timer had begun with the file."""
    do(TRY)

    def run(argv, *, accept=(0,), **_more):
        (tmp_path / "agent/mtu/eth0").unlink()
        if 5 not in accept:
            raise Failed("Unit larder-mtu-back-eth0.timer not loaded.")
        return command.Result(tuple(argv), 5, "", "", 0.0)

    monkeypatch.setattr(command, "run", run)
    do(KEEP)
    assert stored(tmp_path) == "9000\n"
    assert KEEP.probe("keep", box())


def test_timer_that_cannot_be_stopped_leaves_nothing_stored(ran, tmp_path, monkeypatch):
    do(TRY)

    def run(argv, **_more):
        raise Failed("systemctl: Connection timed out")

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(Failed):
        do(KEEP)
    assert stored(tmp_path) is None
    assert mtu.read_trial("eth0"), "the timer stands as before"


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


@pytest.mark.parametrize(
    ("text", "expected"), [("9000\n", "9000"), ("9000;id\n", "9000"), ("99999", ""), ("", ""), ("100", ""), (None, "")]
)
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
