"""Remove a pairing: the other Larder is let in no more, at once. Its copies stay."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance.backups.pairing import pending, receivers
from appliance.backups.pairing.base import ReceiverOperation
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.operation import Plan, Step, Work, command_step, never


class RemoveReceiver(ReceiverOperation, tag="remove-receiver"):
    """End the access of another Larder. It takes nothing away that could not be given again, so it never waits."""

    needs_proof = never

    @property
    def title(self) -> str:
        return "Remove another Larder"

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.receiver(self.receiver) is None:
            yield receivers.receiver_missing()

    def plan(self, facts: Facts) -> Plan:
        found = facts.receiver(self.receiver)
        root = found.root if found else ""
        folder = facts.dataset(root)
        unallow = ["zfs", "unallow", "-u", receivers.USER, root]
        words = f"rm {receivers.receiver_file(self.receiver)}"
        return Plan(
            title=f"Remove {found.name}" if found else self.title,
            summary=f"The other Larder can no longer sign in, and what it is sending now ends. The copies in {root} stay, with all their snapshots.",
            steps=(
                Step("end", "End its access", words, self.end),
                *([command_step("rights", "Take back the rights in its folder", unallow, affects=[root])] if folder else []),
            ),
            identity={"operation": msgspec.to_builtins(self), "root": root, "key": found.public_key if found else ""},
            undo=f"Pair it again, with the same folder: the backups go on from the copies in {root}.",
        )  # fmt: skip

    def end(self, work: Work) -> None:
        found = receivers.find_receiver(self.receiver)
        pending.withdraw_code(found.id)
        receivers.end_access(found)
        work.note(f"{found.name} is no longer let in.")

    def probe(self, step: str, facts: Facts) -> bool:
        return step == "end" and facts.receiver(self.receiver) is None

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.receiver(self.receiver) is None:
            return f"The other Larder is no longer let in. {receivers.USER} may still have rights in the folder, which let nobody in."
        return "Remove it again."
