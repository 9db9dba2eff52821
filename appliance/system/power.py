"""Restarting the box and switching it off, by systemd, which ends programs in their order.

Pools stay imported, as ZFS means it: an exported pool leaves the cache file and would not come back at the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from appliance import command
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts, Pool
from appliance.message import Message, message_template
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.system.clock import boot_id

BOOT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Of the kernel's work, which carries on by itself once its pool is imported at the start.
UNFINISHED = {
    "scrub": message_template("A scrub of {working} is not finished. It continues after the start."),
    "resilver": message_template("A rebuild of {working} is not finished. It continues after the start."),
    "trim": message_template("A trim of {working} is not finished. It continues after the start."),
    "expand": message_template("The expansion of {working} is not finished. It continues after the start."),
    "remove": message_template("The removal of a device from {working} is not finished. It continues after the start."),
    "initialize": message_template(
        "Writing through the free space of {working} is not finished. It continues after the start."
    ),
}
OTHER_WORK = message_template("Work on {working} is not finished. It continues after the start.")
STOPPED = message_template(
    "{pool} has stopped. The box does not wait for it: what {pool} has not written yet is lost, as in a power cut."
)
# The job ends, and its page says so, before the box does.
IN_A_MOMENT = ("systemd-run", "--quiet", "--on-active=3s", "--timer-property=AccuracySec=100ms")


def warn_unfinished(pools: Iterable[Pool]) -> Iterator[Message]:
    """What is not finished, with its pools; one sentence for each kind. Paused work stays paused and is left out."""
    found: dict[str, dict[str, None]] = {}
    for pool in pools:
        for work in pool.work:
            if work.under_way and work.state != "paused":
                found.setdefault(UNFINISHED.get(work.kind, OTHER_WORK), {})[pool.name] = None
    yield from (Message(text, working=", ".join(names)) for text, names in found.items())


def warn_stopped(pools: Iterable[Pool]) -> Iterator[Message]:
    """What the end of this start costs a pool that waits for its disks;
    ``appliance.pools.sync_at_shutdown`` goes on without it."""
    yield from (Message(STOPPED, pool=pool.name) for pool in pools if pool.state == "SUSPENDED")


class PowerOperation(Operation):
    """``boot``: the boot id of the start that is to end, so that an old request cannot end another start."""

    needs_proof = never  # nothing is lost: what is written is written, and every pool comes back

    boot: str
    verb: ClassVar[str] = ""
    argv: ClassVar[tuple[str, ...]] = ()
    meaning: ClassVar[str] = ""
    ending: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not BOOT_ID.fullmatch(self.boot):
            raise Refused(Reason("boot-id-malformed", "That is not the id of a start of a box."))

    @property
    def title(self) -> str:
        return Message("{verb} the box", verb=self.verb)

    @property
    def subject(self) -> str:
        return "the box"

    def locks(self) -> tuple[str, ...]:
        return ("power",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from ()  # it is asked for exactly when something is wrong, so nothing speaks against it

    def plan(self, facts: Facts) -> Plan:
        step = Step(
            "power",
            Message("End all programs in order, unmount the folders, and {ending}", ending=self.ending),
            " ".join(self.argv),
            self.ask_systemd,
        )
        return Plan(
            summary=self.meaning,
            steps=(step,),
            identity={"kind": self.argv[-1], "boot": self.boot},
            undo=Message("No. Once it has begun it cannot be stopped."),
            warnings=(*warn_stopped(facts.pools), *warn_unfinished(facts.pools)),
        )

    def ask_systemd(self, work: Work) -> None:
        """Ask systemd to do it in a moment: the worker ends before the agent, and would wait
        for a job that waits for it."""
        if self.boot != boot_id():
            raise Refused(
                Reason("box-restarted-since", "The box has been restarted since you opened the page. Open it again.")
            )
        for line in command.run(self.argv, timeout=60).stderr.splitlines():
            work.note(line)

    def probe(self, step: str, facts: Facts) -> bool:
        return boot_id() != self.boot

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The box was not restarted: it still runs. Try again.")


class RestartBox(PowerOperation, tag="restart-box"):
    """Restart the box."""

    settled: ClassVar[str] = Message("The box has gone down and was started again.")
    needs_proof = never
    verb: ClassVar[str] = Message("Restart")
    argv: ClassVar[tuple[str, ...]] = (*IN_A_MOMENT, "systemctl", "reboot")
    meaning: ClassVar[str] = Message("Shares and these pages go away for a few minutes and come back after the start.")
    ending: ClassVar[str] = Message("restart")


class ShutDownBox(PowerOperation, tag="shut-down-box"):
    """Switch the box off."""

    settled: ClassVar[str] = Message("The box has gone down, and was started again since.")
    needs_proof = never
    verb: ClassVar[str] = Message("Shut down")
    argv: ClassVar[tuple[str, ...]] = (*IN_A_MOMENT, "systemctl", "poweroff")
    meaning: ClassVar[str] = Message("Shares and these pages go away. To start the box again, press its power button.")
    ending: ClassVar[str] = Message("switch off")
