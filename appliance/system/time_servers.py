"""Choosing the servers that the clock is set from: a file of Larder's for systemd-timesyncd (timesyncd.conf(5))."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path

from appliance import command
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.formatting import names_text
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, always, command_step
from appliance.system import atomic_file, service_start, time_sync

FILE = Path("/etc/systemd/timesyncd.conf.d/larder.conf")
PROGRAM = Path("/usr/lib/systemd/systemd-timesyncd")
SERVICE = "systemd-timesyncd.service"
LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
NAME = re.compile(rf"{LABEL}(\.{LABEL})*")
MOST, LONGEST = 8, 253


def is_server(text: str) -> bool:
    """Whether it is the name or the address of a computer."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return len(text) <= LONGEST and bool(NAME.fullmatch(text)) and not re.fullmatch(r"[\d.]+", text)
    return "%" not in text


class SetTimeServers(Operation, tag="set-time-servers"):
    """Set the clock from these servers, by name or address; from Debian's where there are none."""

    # Who sets the clock can make a month pass in a minute, and schedules take and delete snapshots by the clock.
    needs_proof = always

    servers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for server in self.servers:
            if not is_server(server):
                raise Refused(
                    Reason(
                        "time-server-malformed",
                        "{server} is not a name or an address of a computer. Type one per line, for example "
                        "fritz.box or 192.168.1.1.",
                        field="servers",
                        server=server[:60],
                    )
                )
        if len(self.servers) > MOST:
            raise Refused(
                Reason("time-servers-too-many", "Name at most {most} time servers.", field="servers", most=MOST)
            )

    @property
    def title(self) -> str:
        return (
            Message("Set the clock from {servers}", servers=names_text(self.servers, 3))
            if self.servers
            else Message("Set the clock from Debian's servers")
        )

    @property
    def subject(self) -> str:
        return "the box"

    def locks(self) -> tuple[str, ...]:
        return ("clock",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if len(set(self.servers)) < len(self.servers):
            yield Reason("time-server-twice", "A time server is named twice. Name each of them once.", field="servers")

    def plan(self, facts: Facts) -> Plan:
        if self.servers:
            summary = Message(
                "The box asks {servers} for the time. If none of them answers, the clock drifts by some "
                "seconds a week.",
                servers=", ".join(self.servers),
            )
        else:
            summary = Message("The box asks Debian's time servers on the internet, or those that the router names.")
        return Plan(
            summary=summary,
            steps=(
                Step(
                    "servers",
                    Message("Store the servers") if self.servers else Message("Remove Larder's list of servers"),
                    f"write {FILE}" if self.servers else f"rm {FILE}",
                    self.store,
                    (str(FILE),),
                ),
                command_step(
                    "service",
                    Message("Have the clock set from the network"),
                    ("timedatectl", "set-ntp", "true"),
                    timeout=60,
                ),
                command_step("restart", Message("Ask the servers now"), ("systemctl", "restart", SERVICE), timeout=60),
            ),
            identity={"kind": "set-time-servers", "servers": list(self.servers)},
            warnings=(
                Message(
                    "If the clock is wrong now, it jumps to the right time. Schedules use the right time from then on."
                ),
            ),
            undo=Message("You can set the earlier servers again at any time."),
        )

    def text(self) -> str:
        """The file for timesyncd. The empty line first drops what other files name."""
        return f"# Written by Larder (System page).\n[Time]\nNTP=\nNTP={' '.join(self.servers)}\n"

    def store(self, work: Work) -> None:
        service_start.refuse_container()
        if not PROGRAM.exists():
            raise Refused(
                Reason(
                    "time-service-other",
                    "This box does not have systemd-timesyncd. If another time service such as chrony sets "
                    "its clock, name the servers in the settings of that service.",
                )
            )
        FILE.parent.mkdir(mode=0o755, exist_ok=True)
        FILE.parent.chmod(0o755)  # for timesyncd, which is not root; the agent makes folders for itself alone
        if self.servers:
            atomic_file.write_atomically(FILE, self.text().encode(), mode=0o644)
        elif FILE.exists():
            FILE.unlink()
            atomic_file.sync_folder(FILE.parent)

    def probe(self, step: str, facts: Facts) -> bool:
        if step == "servers":
            return (FILE.read_text() if FILE.exists() else "") == (self.text() if self.servers else "")
        if step == "service":
            said = command.run(["timedatectl", "show"], timeout=20).stdout
            return time_sync.parse_properties(said).get("NTP") == "yes"
        return FILE.parent.exists() and not service_start.services_before((SERVICE,), FILE.parent)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message(
            "The System page shows which servers are set and whether one answers. Set them again if "
            "something is missing."
        )
