from __future__ import annotations

from typing import Any

import pytest

from appliance import command
from appliance.agent import protocol
from appliance.agent.request_registry import decode_request
from appliance.disks import disk_request, standby
from appliance.errors import Failed, Refused
from tests.reasons import expect_refusal
from tests.unit.made import path_of

ASLEEP = '{"smartctl": {"exit_status": 2, "messages": [{"string": "Device is in STANDBY mode, exit(2)"}]}}'


def answering(monkeypatch: pytest.MonkeyPatch, status: int, out: str = "{}") -> list[list[str]]:
    asked: list[list[str]] = []

    def run(argv: list[str], **_more: object) -> command.Result:
        asked.append(argv)
        return command.Result(tuple(argv), status, out, "", 0)

    monkeypatch.setattr(command, "run", run)
    return asked


@pytest.mark.parametrize(("minutes", "value"), [(0, 0), (10, 120), (20, 240), (30, 241), (60, 242), (120, 244)])
def test_the_timer_counts_in_steps_of_the_standard(minutes, value):
    assert standby.timer_value(minutes) == value


@pytest.mark.parametrize("minutes", [-1, 1, 21, 45, 255, 10**9])
def test_other_times_are_refused(minutes):
    with expect_refusal("standby-time-unknown"):
        standby.timer_value(minutes)


def test_a_disk_is_told_by_one_command_that_wakes_none(monkeypatch):
    asked = answering(monkeypatch, 0)
    assert standby.set_timer(path_of(1), 20) == standby.TOLD
    assert standby.set_timer(path_of(1), 0) == standby.TOLD
    assert asked[0] == ["smartctl", "--json", "-n", "standby", "-s", "standby,240", "--", path_of(1)]
    assert asked[1][5] == "standby,off"


def test_a_sleeping_disk_is_left_alone(monkeypatch):
    answering(monkeypatch, 2, ASLEEP)
    assert standby.set_timer(path_of(1), 20) == standby.ASLEEP


@pytest.mark.parametrize("status", [1, 2, 4])
def test_a_disk_that_does_not_take_it_is_told_of(monkeypatch, status):
    answering(monkeypatch, status, "half {")
    assert "did not take" in standby.set_timer(path_of(1), 20)


def test_an_old_error_in_the_disks_log_is_no_refusal(monkeypatch):
    answering(monkeypatch, 64)
    assert standby.set_timer(path_of(1), 20) == standby.TOLD


def test_a_disk_that_hangs_is_told_of_and_does_not_hide_the_others(monkeypatch):
    def run(argv: list[str], **_more: object) -> command.Result:
        if argv[-1] == path_of(1):
            raise Failed("smartctl took too long")
        return command.Result(tuple(argv), 0, "{}", "", 0)

    monkeypatch.setattr(command, "run", run)
    answers: list[dict[str, Any]] = []
    request = f'{{"verb": "let-sleep", "disks": {{"{path_of(1)}": 20, "{path_of(2)}": 0}}}}'
    protocol.answer_request(request.encode(), answers.append)
    assert "took too long" in answers[-1]["facts"][path_of(1)]
    assert answers[-1]["facts"][path_of(2)] == standby.TOLD


@pytest.mark.parametrize(
    "disks", ['{"/etc/passwd": 20}', '{"/dev/disk/by-id/ata-X": 7}', '{"/dev/disk/by-id/../sda": 20}']
)
def test_the_agent_takes_only_disks_and_times_that_can_be(disks):
    with pytest.raises(Refused):
        decode_request(f'{{"verb": "let-sleep", "disks": {disks}}}'.encode())


def test_what_a_disk_was_told_counts_until_it_may_have_lost_power(monkeypatch, tmp_path):
    (tmp_path / "sda").mkdir()
    (tmp_path / "boot").write_text("1f3a\n")
    (tmp_path / "sda/diskseq").write_text("7\n")
    monkeypatch.setattr(standby, "BOOT", tmp_path / "boot")
    monkeypatch.setattr(standby, "BLOCK", tmp_path)
    assert standby.power_token("sda") == "1f3a 7"
    (tmp_path / "sda/diskseq").write_text("9\n")
    assert standby.power_token("sda") == "1f3a 9"
    assert standby.power_token("gone") == "1f3a"


@pytest.mark.parametrize(("says", "asked"), [("0", []), ("1", ["-n", "standby"]), (None, ["-n", "standby"])])
def test_only_what_can_sleep_is_left_asleep(monkeypatch, tmp_path, says, asked):
    """Some solid-state disks say all the time that they are in standby; nothing would ever be known of them."""
    monkeypatch.setattr(standby, "BLOCK", tmp_path)
    if says:
        (tmp_path / "ata-X/queue").mkdir(parents=True)
        (tmp_path / "ata-X/queue/rotational").write_text(f"{says}\n")
    argv = answering(monkeypatch, 0)
    disk_request.query_smart("/dev/disk/by-id/ata-X")
    assert argv == [["smartctl", "--json=o", *asked, "-a", "/dev/disk/by-id/ata-X"]]


def test_a_disk_that_is_about_to_fall_asleep_is_not_asked():
    assert standby.should_leave_alone(20, idle=True, since=20 * 60)
    assert not standby.should_leave_alone(20, idle=True, since=21 * 60)
    assert not standby.should_leave_alone(20, idle=False, since=300)
    assert not standby.should_leave_alone(0, idle=True, since=300)
    assert not standby.should_leave_alone(None, idle=True, since=300)
