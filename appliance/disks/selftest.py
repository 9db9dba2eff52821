"""Start a self-test of a disk. The disk runs it beside its work and keeps the result in its own log."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Literal

from appliance import names
from appliance.command import Result
from appliance.disks import power_mode, query, smart, smart_answer
from appliance.disks.inventory import missing_disk
from appliance.errors import Failed, Reason
from appliance.facts.box import Facts
from appliance.formatting import disk_label
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never

TOLD = {
    "short": Message("It checks the electronics and reads a small part of the disk."),
    "long": Message("It reads the whole disk. The disk answers a little slower meanwhile; a restart ends the test."),
}


class StartSelfTest(Operation, tag="start-self-test"):
    """Start a self-test; it changes no data. Only a test that a user starts wakes a sleeping disk."""

    needs_proof = never

    disk: str
    test: Literal["short", "long"] = "short"
    wake: bool = True

    def __post_init__(self) -> None:
        names.by_id(self.disk, field="disk")

    @property
    def title(self) -> str:
        return Message("Start a {test} self-test", test=self.test)

    @property
    def subject(self) -> str:
        return self.disk

    def locks(self) -> tuple[str, ...]:
        return (self.disk,)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.disk(self.disk) is None:
            yield missing_disk(self.disk)

    def plan(self, facts: Facts) -> Plan:
        disk = facts.disk(self.disk)
        label = disk_label(disk) if disk else self.disk
        return Plan(
            summary=Message("{label} tests itself. {told}", label=label, told=TOLD[self.test]),
            steps=(
                Step(
                    "start",
                    Message("Start the {test} self-test", test=self.test),
                    shlex.join(self.argv),
                    self.act,
                    (self.disk,),
                ),
            ),
            identity={"disk": disk.identity if disk else self.disk, "test": self.test, "wake": self.wake},
            undo=Message("Nothing on the disk is changed."),
        )

    @property
    def argv(self) -> list[str]:
        return ["smartctl", "--json", *self.standby_options, "-t", self.test, "--", self.disk]

    @property
    def standby_options(self) -> list[str]:
        """Options that make smartctl leave a spun-down disk alone (smartctl(8))."""
        return [] if self.wake else ["-n", "standby"]

    def act(self, work: Work) -> None:
        """Start the test unless one runs. Bits 1 to 4 of smartctl's exit status say that the disk
        refused it (smartctl(8))."""
        answer = read_selftests(self.disk, wake=self.wake)
        if smart_answer.is_asleep(answer):
            work.note(Message("The disk is sleeping and is not woken. It is tested another night."))
            return
        if smart.is_testing(answer):
            raise Failed(Message("A self-test of this disk is under way already"))
        result = run_smartctl(self.disk, "-t", self.test, wake=self.wake)
        if result.status & 7:
            raise Failed(
                Message("The disk did not take the self-test"),
                result.stderr or Message("its case or controller may not pass it on"),
            )
        work.note(Message("The self-test has started. The disk's page shows its progress."))

    def probe(self, step: str, facts: Facts) -> bool:
        return smart.is_testing(read_selftests(self.disk, wake=self.wake))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Look at the disk's health page: it says whether a test runs, and how the last one ended.")


def read_selftests(path: str, *, wake: bool = True) -> object:
    """The disk's answer about its self-tests; None where it gives none."""
    return smart_answer.parse_json(run_smartctl(path, "-c", "-l", "selftest", wake=wake).stdout)


def run_smartctl(path: str, *options: str, wake: bool) -> Result:
    if not wake:
        return power_mode.query_if_awake(path, [*options, "--", path], timeout=60)
    return query.query_disk(path, ["smartctl", "--json", *options, "--", path], timeout=60)
