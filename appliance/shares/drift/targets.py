"""iSCSI targets that somebody changed by hand: read how they differ, and have the kernel serve them as set again.

They are no file: nothing of a manual change can be kept, and it ends with the next start of the box.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Share
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.request import Request
from appliance.shares import publish, teardown
from appliance.shares.iscsi import chap, configfs, divergence, serve
from appliance.shares.iscsi.differences import explain_difference
from appliance.shares.iscsi.targets import wanted_targets, wanted_volumes
from appliance.shares.settings import ISCSI

SECONDS_TO_WAIT = 10.0  # who reads everything else asks for this too


class ReadTargetEdits(Request, tag="read-target-edits"):
    """Which of Larder's targets were changed by hand, and how they differ from their settings."""

    def read(self) -> object:
        return list(divergence.read_edits(publish.agreed_facts(), patience=SECONDS_TO_WAIT).values())


class OverwriteTarget(Operation, tag="overwrite-target"):
    """Have the kernel serve a target as its volume's settings say. ``seen`` is the fingerprint of its manual change."""

    needs_proof = never

    target: str
    seen: str

    def __post_init__(self) -> None:
        if not divergence.is_plain(self.target):
            raise Refused(Reason("target-not-larders", "That is not one of Larder's targets."))
        if len(self.seen) != 64 or not set(self.seen) <= set("0123456789abcdef"):
            raise Refused(Reason("manual-change-not-named", "Choose which manual change is meant."))

    @property
    def title(self) -> str:
        return Message("Write Larder's version of {owned_path}", owned_path=self.target)

    @property
    def subject(self) -> str:
        return self.target

    def locks(self) -> tuple[str, ...]:
        return ("shares",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from ()

    def volume(self, facts: Facts) -> Dataset | None:
        return next((volume for volume, part in wanted_volumes(facts) if part.iqn == self.target), None)

    def shares(self, facts: Facts) -> list[Share]:
        return [one for one in facts.shares if one.protocol == ISCSI and one.name == self.target]

    def plan(self, facts: Facts) -> Plan:
        volume, shares = self.volume(facts), self.shares(facts)
        return Plan(
            summary=Message(
                "{dataset} is served again as its settings say. What was changed by hand no longer applies.",
                dataset=volume.name,
            )
            if volume
            else Message("No volume asks for {target}, so it is removed.", target=self.target),
            steps=(
                Step(
                    "serve",
                    Message("Serve it as set and check that it works") if volume else Message("Stop serving it"),
                    f"write {configfs.ROOT}",
                    self.serve,
                    (self.target,),
                ),
            ),
            identity={
                "operation": msgspec.to_builtins(self),
                "volume": volume.guid if volume else 0,
                **teardown.connected_computers(shares),
            },
            warnings=teardown.disk_warnings(shares),
            undo=Message("What was changed by hand is not kept. The job's log says how it differed."),
            details={Message("Connected now"): ", ".join(found)} if (found := teardown.open_targets(shares)) else {},
        )

    def serve(self, work: Work) -> None:
        facts = publish.agreed_facts()
        edit = divergence.read_edits(facts).get(self.target)
        if edit is None or edit.seen != self.seen:
            raise divergence.changed_again()
        for one in edit.differences:
            work.note(explain_difference(one))
        wanted, _left = wanted_targets(facts, chap.read_secrets)
        devices = {one.device for one in wanted if one.iqn == self.target}
        serve.serve_volumes(facts, changed=devices, over=self.seen, note=work.note)

    def probe(self, step: str, facts: Facts) -> bool:
        """Whether it is as set; ``facts`` do not say that."""
        agreed = publish.agreed_facts()
        wanted, _left = wanted_targets(agreed, chap.read_secrets)
        device = next((one.device for one in wanted if one.iqn == self.target), "")
        return (
            serve.is_served(self.target, device)
            if device
            else f"iscsi/{self.target}" not in configfs.read_tree().folders
        ) and self.target not in divergence.read_edits(agreed)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Open the Manual changes page and decide again.")
