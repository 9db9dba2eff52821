"""Kept settings of network ports that are no longer there: another card, or the same one under another name.

A file of udev knows its port by its address, so it goes on to count where only the name changed
(``catalogue_entry.py``). An MTU is kept under the name of its port.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from appliance.benchmarks.box_settings.catalogue import find_setting, list_lost
from appliance.benchmarks.box_settings.frame_size import TAG as MTU
from appliance.benchmarks.box_settings.switch import LOCK
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.system import mtu
from appliance.system.atomic_file import sync_folder
from appliance.system.set_mtu import NETWORK_LOCK


class ForgetPort(Operation, tag="forget-port"):
    """Delete what is kept of ``setting`` for ``port``, which is not there."""

    needs_proof = never  # it does nothing any more, and no data is touched

    setting: str
    port: str

    def __post_init__(self) -> None:
        find_setting(self.setting)
        mtu.check_port(self.port)

    @property
    def record(self) -> Path:
        return mtu.confirmed_file(self.port) if self.setting == MTU else find_setting(self.setting).file

    @property
    def title(self) -> str:
        return Message("Forget a setting of the network port {port}", port=self.port)

    @property
    def subject(self) -> str:
        return self.port

    def locks(self) -> tuple[str, ...]:
        return (LOCK, NETWORK_LOCK)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from ()  # which ports there are is asked where it runs: no reading has it

    def plan(self, facts: Facts) -> Plan:
        record = str(self.record)
        return Plan(
            summary=Message(
                "What is kept for the network port {port} is deleted: {name}. The port is not there, so "
                "nothing else changes.",
                port=self.port,
                name=find_setting(self.setting).name,
            ),
            steps=(Step("forget", Message("Delete its file"), shlex.join(["rm", record]), self.forget, (record,)),),
            identity={"operation": msgspec.to_builtins(self)},
            undo=Message("Measure it again, or set it again for the port that is there."),
        )

    def forget(self, work: Work) -> None:
        if self.port not in list_lost(self.setting):
            raise Refused(
                Reason(
                    "port-not-lost",
                    "Nothing is kept for {port}, or the port is there again. Nothing was changed.",
                    port=self.port,
                )
            )
        self.record.unlink(missing_ok=True)
        sync_folder(self.record.parent)

    def probe(self, step: str, facts: Facts) -> bool:
        return self.port not in list_lost(self.setting)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The page for benchmarks from another computer shows what is kept. Try again if this is there.")
