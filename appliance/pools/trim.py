"""Trim: tell the disks which blocks are free, all at once; and end that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from appliance.errors import Reason
from appliance.facts.box import Facts, Pool
from appliance.message import Message
from appliance.operation import Plan, command_step, never
from appliance.pools.progress import unix_time
from appliance.pools.scrub import MaintenanceOperation, check_pool, work_of


class StartTrim(MaintenanceOperation, tag="start-trim"):
    """Trim all free space of a pool, or go on with what is paused. ``before`` is when the trim before it ended."""

    needs_proof = never

    before: int = 0
    verb: ClassVar[str] = Message("Trim")

    @classmethod
    def of(cls, pool: Pool) -> StartTrim:
        work = work_of(pool, "trim")
        return cls(pool=pool.name, before=unix_time(work.ended) if work else 0)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from check_pool(self.pool, facts)
        pool = facts.pool(self.pool)
        if pool is None:
            return
        if not pool.can_trim:
            yield Reason(
                "trim-not-possible", "No disk of {pool} can be trimmed. Hard disks do not need it.", pool=self.pool
            )
        work = work_of(pool, "trim")
        if work and work.state == "running":
            yield Reason("trim-running", "{pool} is being trimmed already.", pool=self.pool)

    def plan(self, facts: Facts) -> Plan:
        step = command_step(
            "start",
            Message("Trim the free space of {pool}", pool=self.pool),
            ["zpool", "trim", "--", self.pool],
            affects=[self.pool],
            undo=Message("It can be stopped at any time."),
        )
        return Plan(
            summary=Message(
                "The disks of {pool} learn which of their blocks are free, which keeps solid-state disks "
                "fast. Files are not touched.",
                pool=self.pool,
            ),
            steps=(step,),
            identity=self.identity(facts),
            undo=Message("It can be stopped at any time."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        work = work_of(facts.pool(self.pool), "trim")
        return bool(work and (work.state == "running" or unix_time(work.ended) not in {0, self.before}))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if self.probe(step, facts):
            return Message("{pool} is being trimmed. Nothing is missing.", pool=self.pool)
        return Message("{pool} is not being trimmed. Start it again when you like.", pool=self.pool)


class StopTrim(MaintenanceOperation, tag="stop-trim"):
    """End the trimming of a pool; what was told to the disks stays told."""

    needs_proof = never

    verb: ClassVar[str] = Message("Stop trimming")

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from check_pool(self.pool, facts)
        work = work_of(facts.pool(self.pool), "trim")
        if facts.pool(self.pool) and (work is None or not work.under_way):
            yield Reason("trim-not-running", "{pool} is not being trimmed at the moment.", pool=self.pool)

    def plan(self, facts: Facts) -> Plan:
        step = command_step(
            "stop", Message("Stop trimming"), ["zpool", "trim", "-c", "--", self.pool], affects=[self.pool]
        )
        return Plan(
            summary=Message("The trimming of {pool} ends before it is done. Nothing is lost by that.", pool=self.pool),
            steps=(step,),
            identity=self.identity(facts),
            undo=Message("It can be started again at any time."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        work = work_of(facts.pool(self.pool), "trim")
        return work is None or not work.under_way

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Look at the page of {pool}: it says whether it is still being trimmed.", pool=self.pool)
