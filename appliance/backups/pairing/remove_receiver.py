"""Remove a pairing: the other Larder is let in no more, at once. Its copies stay."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance.backups.pairing import pending, receivers
from appliance.backups.pairing.base import ReceiverOperation
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Plan, Step, Work, command_step, never


class RemoveReceiver(ReceiverOperation, tag="remove-receiver"):
    """End the access of another Larder. It takes nothing away that could not be given again, so it never waits."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Remove another Larder")

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.receiver(self.receiver) is None:
            yield receivers.receiver_missing()

    def plan(self, facts: Facts) -> Plan:
        found = facts.receiver(self.receiver)
        root = found.root if found else ""
        folder = facts.dataset(root)
        unallow = ["zfs", "unallow", "-u", receivers.USER, root]
        words = f"mv {receivers.receiver_file(self.receiver)} {receivers.removing_file(self.receiver)}"
        return Plan(
            title=Message("Remove {found}", found=found.name) if found else self.title,
            summary=Message(
                "The other Larder can no longer sign in, and what it is sending now ends. The copies in "
                "{root} stay, with all their snapshots.",
                root=root,
            ),
            steps=(
                Step("end", Message("End its access"), words, self.end),
                *(
                    [command_step("rights", Message("Take back the rights in its folder"), unallow, affects=[root])]
                    if folder
                    else []
                ),
                Step(
                    "forget", Message("Forget the pairing"), f"rm {receivers.removing_file(self.receiver)}", self.forget
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "root": root, "key": found.public_key if found else ""},
            undo=Message(
                "Pair it again, with the same folder: the backups go on from the copies in {root}.", root=root
            ),
        )

    def end(self, work: Work) -> None:
        found = receivers.find_known(self.receiver)
        pending.withdraw_code(found.id)
        receivers.end_access(found)
        work.note(Message("{found} is no longer let in.", found=found.name))

    def forget(self, _work: Work) -> None:
        receivers.forget_receiver(self.receiver)

    def probe(self, step: str, facts: Facts) -> bool:
        return facts.receiver(self.receiver) is None  # the last step, so the others have come to their end

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.receiver(self.receiver) is None:
            return Message("The other Larder is no longer let in.")
        return Message("Remove it again.")
