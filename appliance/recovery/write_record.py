"""Write the record of this box to a pool without a backup: by the schedule once something
changed, or by the page Recovery."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance import names
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.pool_reasons import missing_pool
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.recovery import records, refresh
from appliance.zfs import kstat


class WriteRecord(Operation, tag="write-record"):
    """Write the record of this box to ``pool``: users, folders, settings, and the secrets sealed."""

    needs_proof = never
    settled = Message("Larder was interrupted meanwhile. A check afterwards found the record in place.")

    pool: str
    guid: int

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)
        if not 0 < self.guid < 2**64:
            raise Refused(missing_pool(self.pool))

    @classmethod
    def of(cls, pool: Pool) -> WriteRecord:
        return cls(pool=pool.name, guid=pool.guid)

    @property
    def title(self) -> str:
        return Message("Write the record of this box to {pool}", pool=self.pool)

    @property
    def subject(self) -> str:
        return self.pool

    def check(self, facts: Facts) -> Iterator[Reason]:
        pool = facts.pool(self.pool)
        if pool is None or pool.guid != self.guid:
            yield missing_pool(self.pool)
            return
        if facts.properties_of(self.pool).get("readonly") == "on":
            yield records.read_only_pool(self.pool)
        yield from refresh.replaced_reasons((self.pool,), facts)

    def plan(self, facts: Facts) -> Plan:
        failures: list[str] = []
        record = refresh.record_step((self.pool,), facts, failures)

        def write(work: Work) -> None:
            if kstat.is_stopped(self.pool):  # asked for anything, it would keep the job waiting in the kernel
                raise Failed(Message("{pool} has stopped.", pool=self.pool))
            record.run(work)
            if failures:
                raise Failed(failures[0])

        return Plan(
            summary=Message(
                "Users, shares, schedules and Larder's settings are written to {pool}, where nobody sees "
                "them. Passwords and keys only sealed, for the recovery phrase.",
                pool=self.pool,
            ),
            steps=(Step(record.name, record.title, record.command_text, write, record.affects),),
            identity={"operation": msgspec.to_builtins(self)},
            undo=Message("The next record takes its place."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return refresh.is_written((self.pool,), facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The former record is still there, or the new one. Start it again.")
