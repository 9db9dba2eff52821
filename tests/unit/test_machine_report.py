"""A failed test with a machine is printed with what the machine says; a machine that is gone hides nothing else."""

from __future__ import annotations

from deploy.image.machine import MachineError
from tests import machine_report


class Answering:
    def shell(self, script: str, *, timeout: float = 300, check: bool = True) -> str:
        return "".join(f"{number} {script}\n" for number in range(100))


class Silent:
    def __init__(self) -> None:
        self.asked = 0

    def shell(self, script: str, *, timeout: float = 300, check: bool = True) -> str:
        self.asked += 1
        raise MachineError("connection refused")


def test_pools_events_and_kernel_are_told_by_their_last_lines():
    said = machine_report.describe_machine(Answering())
    for command, kept in machine_report.ASKED:
        assert f"$ {command}\n" in said
        assert said.count(f" {command} 2>&1") == kept


def test_machine_that_does_not_answer_is_asked_once_and_described():
    machine = Silent()
    assert "no answer: connection refused" in machine_report.describe_machine(machine)
    assert machine.asked == 1
