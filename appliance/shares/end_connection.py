"""End one client's connection. The client may reconnect at once: to keep a user out, remove the user from the
share or disable the user."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance import names
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.shares import connections, disconnect
from appliance.shares.connections import Connection
from appliance.shares.settings import SPOKEN, Protocol


class EndConnection(Operation, tag="end-connection"):
    """``id`` is the server's name for it; ``who`` and ``machine`` are what the person saw, since
    numbers come round again."""

    needs_proof = never

    protocol: Protocol
    id: str
    who: str
    machine: str

    def __post_init__(self) -> None:
        if not (self.id.isascii() and self.id.isdigit() and len(self.id) <= 20):
            raise Refused(Reason("session-unknown", "That is not a connected client."))
        for field in ("who", "machine"):
            names.refuse_invisible_characters(getattr(self, field), field)

    @property
    def title(self) -> str:
        return Message("Disconnect {who} from {spoken}", who=self.who or self.machine, spoken=SPOKEN[self.protocol])

    @property
    def subject(self) -> str:
        return self.who or self.machine or self.id

    def locks(self) -> tuple[str, ...]:
        return ("shares",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from ()

    def plan(self, facts: Facts) -> Plan:
        text = disconnect.describe_end(self.protocol, self.id)
        return Plan(
            summary=Message("What it was just writing may be incomplete. It can connect again at once."),
            steps=(Step("end", Message("End the connection"), text, self.end),),
            identity={"operation": msgspec.to_builtins(self)},
            undo=Message("The other computer connects again when it needs a file."),
        )

    def found(self) -> Connection | None:
        """The very connection that was looked at; None where it has ended, or its number is another's now."""
        meant = Connection(self.protocol, self.id, self.who, self.machine).identity
        return next((one for one in connections.read_connections([self.protocol]) if one.identity == meant), None)

    def end(self, work: Work) -> None:
        one = self.found()
        if one is None:
            work.note(Message("It had ended already"))
            return
        disconnect.end_connections([one])
        work.note(Message("It is disconnected"))

    def probe(self, step: str, facts: Facts) -> bool:
        return self.found() is None

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The Connected clients page shows who is still connected.")
