"""Set how long the copies of another Larder stay on this box, and after how many silent days that is an alert."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec
from msgspec.structs import replace

from appliance.backups.pairing import receivers
from appliance.backups.pairing.base import ReceiverOperation
from appliance.backups.retention import TOLERANCE
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.kept_copies import Keep
from appliance.facts.receiver import DAYS, Receiver
from appliance.message import Message, join_messages
from appliance.operation import Loss, Plan, Step, Work

MOST_DAYS = 366


def check_days(days: int) -> None:
    """Raises Refused."""
    if not 0 <= days <= MOST_DAYS:
        raise Refused(
            Reason("silent-days-out-of-range", "Enter a number of days from 0 to {most}.", field="days", most=MOST_DAYS)
        )


def kept_text(keep: Keep | None) -> str:
    if keep is None:
        return Message("Every copy is kept until you destroy it.")
    return Message("{sentence} of each folder are kept. Older ones are destroyed.", sentence=keep.sentence)


def silence_text(days: int) -> str:
    if not days:
        return Message("You get no alert when the other box no longer sends copies.")
    return Message("You are alerted when the other box has not connected for {days} days.", days=days)


class SetReceivedRetention(ReceiverOperation, tag="set-received-retention"):
    """Note the retention of a pairing. ``keep``: None keeps everything.
    It is root's file, which no sender can write."""

    keep: Keep | None = None
    days: int = DAYS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_days(self.days)

    @property
    def title(self) -> str:
        return Message("Set how long received copies are kept")

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        """Whether fewer copies stay, or a box that stays away is noticed later."""
        now = facts.receiver(self.receiver)
        return now is not None and (self.keeps_fewer(now) or is_later(self.days, now.days))

    def keeps_fewer(self, now: Receiver) -> bool:
        return self.keep is not None and self.keep.keeps_fewer(now.keep)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.receiver(self.receiver) is None:
            yield receivers.receiver_missing()

    def plan(self, facts: Facts) -> Plan:
        now = facts.receiver(self.receiver)
        name, root = (now.name, now.root) if now else ("", "")
        lost: tuple[Loss, ...] = ()
        if now and self.keeps_fewer(now):
            lost = (
                Loss(Message("Snapshots of the copies in {root} that are no longer kept, within minutes", root=root)),
            )
        return Plan(
            title=Message("Set how long copies of {name} are kept", name=name) if now else self.title,
            summary=join_messages(
                [
                    kept_text(self.keep),
                    Message(
                        "The newest copy of a folder always stays, and so does what is held or was not made "
                        "by a backup."
                    )
                    if self.keep
                    else "",
                    silence_text(self.days),
                ]
            ),
            steps=(
                Step(
                    "note",
                    Message("Note it with the pairing"),
                    f"write {receivers.receiver_file(self.receiver)}",
                    self.note,
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "before": kept_words(now)},
            losses=lost,
            undo=Message("It can be set again as it was. Copies that were destroyed meanwhile do not come back."),
        )

    def note(self, _work: Work) -> None:
        found = receivers.find_receiver(self.receiver)
        receivers.write_receiver(replace(found, keep=self.keep, days=self.days))

    def probe(self, step: str, facts: Facts) -> bool:
        found = facts.receiver(self.receiver)
        return found is not None and (found.keep, found.days) == (self.keep, self.days)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Nothing was changed. Set it again.")


def is_later(then: int, now: int) -> bool:
    """Whether an alert after ``then`` days comes later than one after ``now`` days; 0: it never comes."""
    return (then or MOST_DAYS + 1) > (now or MOST_DAYS + 1)


def kept_words(now: Receiver | None) -> list[object]:
    return [msgspec.to_builtins(now.keep), now.days, now.root, now.guid] if now else []


def silent_since(one: Receiver, newest: datetime | None, now: datetime) -> datetime | None:
    """When a paired box last was here, as far as that is known: it signed in, brought a copy, or was paired.
    What lies after ``now`` was noted while the clock of this box was wrong, and would silence the alert until then."""
    known = [at for at in (one.seen, newest, one.paired) if at and at - now <= TOLERANCE]
    return max(known) if known and one.public_key else None
