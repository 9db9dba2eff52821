"""Scrubs: begin or resume one, pause it, stop it. The work itself is the kernel's; see ``progress``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from appliance import names
from appliance.errors import Reason
from appliance.facts import vdev_state
from appliance.facts.box import Facts, LongWork, Pool
from appliance.facts.pool_reasons import missing_pool
from appliance.message import Message
from appliance.operation import Operation, Plan, command_step, never
from appliance.pools.progress import unix_time


def work_of(pool: Pool | None, *kinds: str) -> LongWork | None:
    """The pool's latest work of these kinds, under way before ended."""
    found = [work for work in pool.work if work.kind in kinds] if pool else []
    return next((work for work in found if work.under_way), found[0] if found else None)


def check_pool(name: str, facts: Facts) -> Iterator[Reason]:
    """What speaks against asking anything of this pool."""
    pool = facts.pool(name)
    if facts.zfs == "missing":
        yield Reason("zfs-not-loaded", "The ZFS module is not loaded on this system, so pools cannot be used.")
    elif pool is None:
        yield missing_pool(name)
    elif pool.state not in vdev_state.WORKING:
        yield Reason(
            "pool-in-bad-state",
            "{pool} is {state} and cannot do this now. Its page says what to do.",
            pool=name,
            state=pool.state.lower(),
        )


class MaintenanceOperation(Operation):
    """Something small that is done to a pool that works."""

    pool: str
    verb: ClassVar[str] = ""

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)

    @property
    def title(self) -> str:
        return Message("{verb} {pool}", verb=self.verb, pool=self.pool)

    @property
    def subject(self) -> str:
        return self.pool

    def identity(self, facts: Facts) -> dict[str, object]:
        pool = facts.pool(self.pool)
        return {"operation": msgspec.to_builtins(self), "pool": pool.guid if pool else 0}


class StartScrub(MaintenanceOperation, tag="start-scrub"):
    """Begin a scrub, or resume one that is paused. ``before`` is when the scan before it began (seconds since 1970)."""

    needs_proof = never

    before: int = 0
    verb: ClassVar[str] = Message("Scrub")

    @classmethod
    def of(cls, pool: Pool) -> StartScrub:
        work = work_of(pool, "scrub", "resilver")
        return cls(pool=pool.name, before=unix_time(work.started) if work else 0)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from check_pool(self.pool, facts)
        work = work_of(facts.pool(self.pool), "scrub", "resilver")
        if work and work.state == "running":
            yield (
                Reason(
                    "scrub-while-rebuilding",
                    "{pool} is being rebuilt. Start the scrub when that has ended.",
                    pool=self.pool,
                )
                if work.kind == "resilver"
                else Reason("scrub-running", "A scrub of {pool} is already running.", pool=self.pool)
            )

    def plan(self, facts: Facts) -> Plan:
        work = work_of(facts.pool(self.pool), "scrub")
        paused = bool(work and work.state == "paused")
        return Plan(
            summary=Message("The scrub of {pool} continues where it was paused.", pool=self.pool)
            if paused
            else Message(
                "Everything in {pool} is read once; what has gone bad on one disk is repaired from the "
                "others. Files stay available.",
                pool=self.pool,
            ),
            steps=(
                command_step(
                    "start",
                    Message("Resume the scrub") if paused else Message("Start the scrub"),
                    ["zpool", "scrub", "--", self.pool],
                    affects=[self.pool],
                    undo=Message("It can be stopped at any time."),
                ),
            ),
            identity=self.identity(facts) | {"paused": paused},
            undo=Message("It can be paused and stopped at any time."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        work = work_of(facts.pool(self.pool), "scrub")
        return bool(work and (work.state == "running" or unix_time(work.started) not in {0, self.before}))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if self.probe(step, facts):
            return Message("A scrub of {pool} is running. Nothing is missing.", pool=self.pool)
        return Message("No scrub of {pool} is running. Start it again when you like.", pool=self.pool)


class PauseScrub(MaintenanceOperation, tag="pause-scrub"):
    """Hold a scrub; it stays paused through restarts until somebody resumes it."""

    needs_proof = never

    verb: ClassVar[str] = Message("Pause the scrub of")

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from check_pool(self.pool, facts)
        work = work_of(facts.pool(self.pool), "scrub")
        if facts.pool(self.pool) and (work is None or work.state != "running"):
            yield Reason("scrub-not-running", "No scrub of {pool} is running.", pool=self.pool)

    def plan(self, facts: Facts) -> Plan:
        step = command_step(
            "pause", Message("Pause the scrub"), ["zpool", "scrub", "-p", "--", self.pool], affects=[self.pool]
        )
        return Plan(
            summary=Message("The scrub of {pool} pauses until you resume it, even after a restart.", pool=self.pool),
            steps=(step,),
            identity=self.identity(facts),
            undo=Message("It can go on at any time, from where it was."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        work = work_of(facts.pool(self.pool), "scrub")
        return work is None or work.state != "running"

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Look at the page of {pool}: it says whether the scrub runs or is paused.", pool=self.pool)


class StopScrub(MaintenanceOperation, tag="stop-scrub"):
    """End a scrub before it is done."""

    needs_proof = never

    verb: ClassVar[str] = Message("Stop the scrub of")

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from check_pool(self.pool, facts)
        work = work_of(facts.pool(self.pool), "scrub")
        if facts.pool(self.pool) and (work is None or not work.under_way):
            yield Reason("scrub-not-running", "No scrub of {pool} is running.", pool=self.pool)

    def plan(self, facts: Facts) -> Plan:
        work = work_of(facts.pool(self.pool), "scrub")
        step = command_step(
            "stop", Message("Stop the scrub"), ["zpool", "scrub", "-s", "--", self.pool], affects=[self.pool]
        )
        return Plan(
            summary=Message(
                "The scrub of {pool} ends before it is done. What was repaired until now stays repaired; the "
                "rest is unchecked. If it is due by its schedule, it starts again in the next hours set "
                "there.",
                pool=self.pool,
            ),
            steps=(step,),
            identity=self.identity(facts) | {"began": unix_time(work.started) if work else 0},
            undo=Message(
                "It can be started again from the beginning. To continue later from where it is, pause it instead."
            ),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        work = work_of(facts.pool(self.pool), "scrub")
        return work is None or not work.under_way

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Look at the page of {pool}: it says whether the scrub still runs.", pool=self.pool)
