"""The operation that cleans up after a case that failed, was stopped, or ended with a crash of the box."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from appliance.benchmarks import scratch, scratch_claim
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, never


class CleanUpBenchmark(Operation, tag="clean-up-benchmark"):
    """Remove what a case left behind. Only its claim file decides what is removed."""

    needs_proof = never

    token: str
    disks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        scratch_claim.checked_token(self.token)

    @property
    def title(self) -> str:
        return Message("Clean up after a benchmark")

    @property
    def subject(self) -> str:
        return scratch_claim.scratch_name(self.token)

    def locks(self) -> tuple[str, ...]:
        return (self.subject, *self.disks)

    @property
    def commands_text(self) -> str:
        """The command that destroys the scratch pool. The pool of a scratch folder stands only in the claim file."""
        if not self.disks:
            return f"# zfs destroy of the scratch folder {self.subject}, wherever its claim says"
        return shlex.join(scratch.destroy_command(scratch_claim.Claim(token=self.token, disks=self.disks)))

    def check(self, facts: Facts) -> Iterator[Reason]:
        return iter(())

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary=Message(
                "The scratch pool or folder is removed, and its disks are empty again. Nothing else is touched."
            ),
            steps=(
                Step(
                    "clear",
                    Message("Clear everything away"),
                    self.commands_text,
                    lambda work: scratch.clear_case(self.token, work),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self)},
            undo=Message("No. Only what benchmarks have made is removed."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        traces = any(use.pool == self.subject for disk in facts.disks for use in disk.uses)
        # Facts do not list the scratch dataset in a pool in use. Its claim file is deleted after it.
        return facts.pool(self.subject) is None and not traces and scratch_claim.read_claim(self.token) is None

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Something of it may still be there. Larder tries again.")
