"""Larger frames as a setting that is tried: what is offered, who is asked, and that it goes back."""

from __future__ import annotations

import re

import pytest

from appliance.benchmarks.box_settings import frame_size, port_settings, switch
from appliance.benchmarks.box_settings.catalogue import SETTINGS, read_setting
from appliance.benchmarks.box_settings.keep import KeepSetting, PutSettingBack
from appliance.benchmarks.box_settings.switch import SwitchSetting
from appliance.errors import Failed, Refused
from appliance.system import full_frames, mtu
from appliance.system.full_frames import FrameAnswers
from appliance.system.trial_record import read_record
from tests.reasons import expect_refusal
from tests.unit.benchmarks.test_box_settings import STOPPED, machine, ran, settings  # noqa: F401  # fixtures

FORMER, TRIED = "eth0 mtu 1500 of 9216", "eth0 mtu 9000 of 9216"
CLIENT, OTHER = "192.168.1.20", "192.168.1.21"


class Clients:
    """Who is connected, and how they answer; what each was asked, with the MTU that the port had then."""

    def __init__(self, port) -> None:
        self.port, self.there, self.answers = port, (CLIENT,), FrameAnswers(reached=(CLIENT,))
        self.asked: list[tuple[tuple[str, ...], int, str]] = []

    def ask(self, addresses, size, *, patience) -> FrameAnswers:
        assert patience
        self.asked.append((tuple(addresses), size, self.port.read_text().strip()))
        return self.answers


@pytest.fixture(autouse=True)
def clients(settings, monkeypatch) -> Clients:  # noqa: F811
    found = Clients(settings / "net" / "eth0" / "mtu")
    monkeypatch.setattr(full_frames, "list_clients", lambda port: found.there if port == "eth0" else ())
    monkeypatch.setattr(full_frames, "ask_clients", found.ask)
    return found


def switched(*, on: bool) -> switch.SwitchedSetting:
    return SwitchSetting(setting="mtu", on=on).read()


def code_of_refusal() -> str:
    found = read_setting("mtu")
    assert found.tried == ""
    assert found.refusal
    return str(found.refusal["code"])


# --- what is offered ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("largest", "tried"), [(None, 9000), (0, 9000), (65535, 9000), (9194, 9000), (4080, 4080)])
def test_largest_frame_that_the_port_takes_is_offered(machine, largest, tried):  # noqa: F811
    machine.link[0]["max_mtu"] = largest
    found = read_setting("mtu")
    assert (frame_size.port_of(found.tried), frame_size.mtu_of(found.tried)) == ("eth0", tried)
    assert str(SETTINGS["mtu"].show(found.tried)) == f"an MTU of {tried} at eth0"


@pytest.mark.parametrize(
    ("now", "largest", "code"), [("9000", 9216, "mtu-large-already"), ("1500", 1500, "mtu-largest-already")]
)
def test_nothing_is_offered_where_frames_cannot_be_larger(machine, clients, now, largest, code):  # noqa: F811
    clients.port.write_text(f"{now}\n")
    machine.link[0]["max_mtu"] = largest
    assert code_of_refusal() == code


def test_port_that_something_else_manages_is_left_alone(ran, settings):  # noqa: F811
    (settings / "interfaces").write_text("auto lo\n")
    assert code_of_refusal() == "mtu-not-managed"


def test_port_that_says_nothing_is_not_tried(machine):  # noqa: F811
    machine.link = []
    assert code_of_refusal() == "setting-port-silent"


def test_nothing_is_offered_while_an_mtu_is_tried_from_its_page(ran, clients):  # noqa: F811
    clients.port.write_text("4000\n")
    mtu.note_trial(mtu.Trial(port="eth0", mtu=4000, former=1500, until=mtu.now() + 60))
    assert code_of_refusal() == "mtu-trial-runs"


# --- switching ------------------------------------------------------------------------------------------------------
def test_frames_are_switched_after_a_timer_of_90_seconds_and_put_back(ran, clients):  # noqa: F811
    assert switched(on=True) == switch.SwitchedSetting(TRIED, was_switched=False)
    assert clients.port.read_text() == "9000\n"
    armed = next(at for at, argv in enumerate(ran) if argv[0] == "systemd-run")
    assert armed < ran.index(("ip", "link", "set", "dev", "eth0", "mtu", "9000"))
    assert "--on-active=90s" in ran[armed]
    assert ran[armed][-7:] == ("ip", "link", "set", "dev", "eth0", "mtu", "1500")
    assert clients.asked == [((CLIENT,), 9000, "9000")]
    assert switched(on=False) == switch.SwitchedSetting(FORMER, was_switched=True)
    assert clients.port.read_text() == "1500\n"
    assert len(clients.asked) == 1
    assert ran[-1] == STOPPED


def test_time_begins_anew_with_each_part_of_the_measurement(ran, monkeypatch):  # noqa: F811
    switched(on=True)
    now = mtu.now()
    monkeypatch.setattr(mtu, "now", lambda: now + 60)
    ran.clear()
    assert switched(on=True).was_switched
    assert [argv[:2] for argv in ran if argv[0].startswith("system") and argv[1] != "is-active"] == [
        ("systemd-run", "--quiet"),
        ("systemctl", "stop"),
    ]
    trial = read_record()
    assert trial
    assert (trial.former, trial.until) == (FORMER, now + 60 + mtu.SECONDS)


@pytest.mark.parametrize(
    ("there", "answers", "code", "said"),
    [
        ((CLIENT,), FrameAnswers(deaf=(CLIENT,)), "frames-lost", f"frames of 9000 bytes do not reach {CLIENT}."),
        ((CLIENT, OTHER), FrameAnswers(reached=(CLIENT,), deaf=(OTHER,)), "frames-lost", f"do not reach {OTHER}."),
        ((CLIENT,), FrameAnswers(silent=(CLIENT,)), "frames-not-answered", f"no ping is answered by {CLIENT}, so"),
        ((), FrameAnswers(), "frames-nobody-connected", "no computer is connected through eth0"),
    ],
)
def test_frames_that_do_not_arrive_are_not_tried_and_the_former_ones_are_back(ran, clients, there, answers, code, said):  # noqa: F811
    clients.there, clients.answers = there, answers
    with pytest.raises(Refused, match=re.escape(said)) as refused:
        switched(on=True)
    assert [one.code for one in refused.value.reasons] == [code]
    assert clients.port.read_text() == "1500\n"
    assert switch.read_trial() is None
    assert ran[-1] == STOPPED


def test_timer_stands_where_the_link_does_not_come_back(ran, clients, settings, monkeypatch):  # noqa: F811
    monkeypatch.setattr(port_settings, "SECONDS_TO_LINK", 0.0)
    (settings / "net" / "eth0" / "carrier").write_text("0\n")
    with pytest.raises(Failed, match="lost its link"):
        switched(on=True)
    assert clients.asked == []
    assert [argv[0] for argv in ran if argv[0].startswith("system")][-1] == "systemd-run"


def test_put_back_asks_nobody_also_where_larger_frames_were_kept(machine, clients):  # noqa: F811
    clients.port.write_text("4000\n")
    switched(on=True)
    clients.there = ()
    switched(on=False)
    assert clients.port.read_text() == "4000\n"


# --- keeping --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [KeepSetting, PutSettingBack])
def test_mtu_is_kept_only_from_its_own_page(kind):
    with expect_refusal("setting-kept-elsewhere"):
        kind(setting="mtu", value=TRIED, former=FORMER)
    assert SETTINGS["mtu"].read_former() == ""
