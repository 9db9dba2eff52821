from __future__ import annotations

import pytest

from appliance import command
from appliance.disks.selftest import StartSelfTest
from appliance.errors import Failed
from appliance.facts.box import Facts
from appliance.operation import checked_plan
from tests.reasons import expect_refusal
from tests.unit.made import disk, path_of


class Work:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def answering(monkeypatch: pytest.MonkeyPatch, *answers: tuple[int, str]) -> list[list[str]]:
    """smartctl answers these one after the other; what it was asked."""
    asked, left = [], list(answers)

    def run(argv: list[str], **_more: object) -> command.Result:
        asked.append(argv)
        status, out = left.pop(0)
        return command.Result(tuple(argv), status, out, "", 0)

    monkeypatch.setattr(command, "run", run)
    return asked


def test_a_test_is_started_by_one_command_with_nothing_left_to_chance(monkeypatch):
    asked, work = answering(monkeypatch, (0, "{}"), (64, "{}")), Work()
    plan = checked_plan(StartSelfTest(disk=path_of(1), test="long"), Facts(disks=(disk(1),)))
    plan.steps[0].run(work)  # type: ignore[arg-type]
    assert asked[1] == ["smartctl", "--json", "-t", "long", "--", path_of(1)]
    assert work.notes


def test_a_running_test_is_left_alone(monkeypatch):
    running = '{"ata_smart_data": {"self_test": {"status": {"value": 249, "remaining_percent": 90}}}}'
    asked = answering(monkeypatch, (0, running))
    with pytest.raises(Failed, match="under way already"):
        StartSelfTest(disk=path_of(1)).act(Work())  # type: ignore[arg-type]
    assert len(asked) == 1


@pytest.mark.parametrize("status", [1, 2, 4])
def test_a_disk_that_does_not_take_it_is_told(monkeypatch, status):
    answering(monkeypatch, (0, "half {"), (status, ""))
    with pytest.raises(Failed, match="did not take"):
        StartSelfTest(disk=path_of(1)).act(Work())  # type: ignore[arg-type]


def test_a_running_test_of_a_sas_disk_is_not_started_again(monkeypatch):
    answering(monkeypatch, (0, '{"scsi_self_test_0": {"result": {"value": 15}, "self_test_in_progress": true}}'))
    with pytest.raises(Failed, match="under way already"):
        StartSelfTest(disk=path_of(1)).act(Work())  # type: ignore[arg-type]


def test_a_disk_that_is_gone_is_refused():
    with expect_refusal("disk-missing"):
        checked_plan(StartSelfTest(disk=path_of(1)), Facts())


def test_a_sleeping_disk_is_woken_only_where_a_person_asked(monkeypatch):
    sleeps = '{"smartctl": {"exit_status": 2, "messages": [{"string": "Device is in STANDBY mode, exit(2)"}]}}'
    asked, work = answering(monkeypatch, (2, sleeps)), Work()
    StartSelfTest(disk=path_of(1), wake=False).act(work)  # type: ignore[arg-type]
    assert len(asked) == 1
    assert asked[0][2:4] == ["-n", "standby"]
    assert "not woken" in work.notes[0]
    assert "-n" not in StartSelfTest(disk=path_of(1)).argv
    assert StartSelfTest(disk=path_of(1), wake=False).argv[2:4] == ["-n", "standby"]
