"""End one client's connection. It may come back at once: who shall stay away is taken out of the share, or disabled."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import msgspec

from appliance import command, names
from appliance.errors import Failed, Reason, Refused
from appliance.facts import Facts
from appliance.operation import Operation, Plan, Step, Work
from appliance.shares import connections
from appliance.shares.connections import Connection
from appliance.shares.setting import SPOKEN, Protocol

SECONDS_TO_END = 15.0


class EndConnection(Operation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``id`` is the server's name for it; ``who`` and ``machine`` are what the person saw, since numbers come round again."""

    protocol: Protocol
    id: str
    who: str
    machine: str

    def __post_init__(self) -> None:
        if not (self.id.isascii() and self.id.isdigit() and len(self.id) <= 20):
            raise Refused("That is no connection.")
        for field in ("who", "machine"):
            names.printable(getattr(self, field), field)

    @property
    def title(self) -> str:
        return f"Disconnect {self.who or self.machine} from {SPOKEN[self.protocol]}"

    @property
    def subject(self) -> str:
        return self.who or self.machine or self.id

    def locks(self) -> tuple[str, ...]:
        return ("shares",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from ()

    def plan(self, facts: Facts) -> Plan:
        shown = {
            "smb": f"smbcontrol {self.id} shutdown",
            "nfs": f"echo expire > {connections.NFS_CLIENTS}/{self.id}/ctl",
            "afp": f"kill -TERM {self.id}",
        }[self.protocol]
        return Plan(
            summary="What it was just writing may be incomplete. It can connect again at once.",
            steps=(Step("end", "End the connection", shown, self.end),),
            identity={"operation": msgspec.to_builtins(self)},
        )

    def found(self) -> Connection | None:
        """The very connection that was looked at; None where it has ended, or its number is another's now."""
        for one in connections.read([self.protocol]):
            if (one.protocol, one.id, one.user, one.machine) == (self.protocol, self.id, self.who, self.machine):
                return one
        return None

    def end(self, work: Work) -> None:
        if self.found() is None:
            work.note("It had ended already")
            return
        if self.protocol == "smb":
            command.run(["smbcontrol", self.id, "shutdown"], timeout=60, accept=range(256))
        elif self.protocol == "nfs":
            try:
                (connections.NFS_CLIENTS / self.id / "ctl").write_text("expire\n")
            except FileNotFoundError:
                work.note("It has just ended by itself")
        else:
            try:
                os.kill(int(self.id), signal.SIGTERM)
            except ProcessLookupError:
                work.note("It has just ended by itself")
        until = time.monotonic() + SECONDS_TO_END
        while self.found():
            if time.monotonic() > until:
                raise Failed(f"The connection of {self.who or self.machine} does not end")
            time.sleep(0.2)
        work.note("It is disconnected")

    def happened(self, step: str, facts: Facts) -> bool:
        return self.found() is None

    def way_on(self, step: str, facts: Facts) -> str:
        return "The page of who is connected shows who still is."
