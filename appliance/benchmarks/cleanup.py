"""The operation that clears away what a case has left after it failed, was stopped, or went down with the box."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance.benchmarks import scratch, scratch_claim
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.operation import Operation, Plan, Step, never


class CleanUpBenchmark(Operation, tag="clean-up-benchmark"):
    """Clear away what a case has left. It goes by what was noted before it was made, whoever asks."""

    needs_proof = never

    token: str
    disks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        scratch_claim.checked_token(self.token)

    @property
    def title(self) -> str:
        return "Clear away what a measurement left"

    @property
    def subject(self) -> str:
        return scratch_claim.scratch_name(self.token)

    def locks(self) -> tuple[str, ...]:
        return (self.subject, *self.disks)

    def check(self, facts: Facts) -> Iterator[Reason]:
        return iter(())

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary="The scratch pool or folder goes, and its disks hold nothing again. Nothing else is touched.",
            steps=(
                Step("clear", "Clear everything away", f"zpool destroy, zfs destroy or wipefs, of {self.subject} alone", lambda work: scratch.clear_case(self.token, work)),
            ),
            identity={"operation": msgspec.to_builtins(self)},
        )  # fmt: skip

    def probe(self, step: str, facts: Facts) -> bool:
        traces = any(use.pool == self.subject for disk in facts.disks for use in disk.uses)
        # A folder in a pool that is in use is no fact by itself; its note goes when it has gone.
        return facts.pool(self.subject) is None and not traces and scratch_claim.read_claim(self.token) is None

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "Something of it may still be there. Larder tries again."
