"""A pool's checkpoint: one remembered moment of everything in it, to go back to after a risky act."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec.structs import replace

from appliance import command, schedule
from appliance.errors import Failed, Reason
from appliance.facts.box import Facts, Pool
from appliance.formatting import moment_text, size_text
from appliance.message import Message
from appliance.operation import Loss, Plan, Step, Work, always, never
from appliance.pools import discover
from appliance.pools.base import PoolOperation
from appliance.pools.export_destroy import connection_facts, export_step, shares_step
from appliance.pools.import_pool import CACHE
from appliance.shares import teardown
from appliance.zfs import libzfs, status
from appliance.zfs import mount as zfs_mount
from appliance.zfs.foreign_settings import Unsafe

COSTS = Message(
    "While it is kept, no disk can be added to or taken from a mirror or removed from the pool, and what you "
    "delete frees no space."
)


def taken_at(pool: Pool) -> str:
    """When the checkpoint was taken, in the box's time zone, for identities and sentences."""
    kept = pool.checkpoint
    if kept and kept.taken:
        return moment_text(kept.taken.astimezone(schedule.box_zone()))
    return Message("an unknown time")


class TakeCheckpoint(PoolOperation, tag="take-checkpoint"):
    """Remember the pool as it is now."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Take a checkpoint of {pool}", pool=self.pool)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        pool = self.find_pool(facts)
        if pool is None:
            return
        if pool.checkpoint and pool.checkpoint.state == "exists":
            yield Reason(
                "checkpoint-exists",
                "{pool} already has a checkpoint, taken on {moment}. Discard it first. A pool keeps only one.",
                pool=self.pool,
                moment=taken_at(pool),
            )
        elif pool.checkpoint:
            yield Reason(
                "checkpoint-being-discarded",
                "{pool} is still discarding its last checkpoint. Wait until that has ended.",
                pool=self.pool,
            )

    def plan(self, facts: Facts) -> Plan:
        def act(_work: Work) -> None:
            libzfs.take_checkpoint(self.pool)

        return Plan(
            summary=Message(
                "The checkpoint records {pool} as it is now: every folder, every snapshot, every setting. "
                "You can return to it until you discard it.",
                pool=self.pool,
            ),
            steps=(
                Step(
                    "take",
                    Message("Take a checkpoint of {pool}", pool=self.pool),
                    shlex.join(["zpool", "checkpoint", self.pool]),
                    act,
                    (self.pool,),
                    Message("Discard it"),
                ),
            ),
            identity=self.identity(),
            warnings=(COSTS,),
            undo=Message("Discard it once the risky change has gone well."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        pool = facts.pool_of(self.guid)
        return bool(pool and pool.checkpoint and pool.checkpoint.state == "exists")

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("{pool} has no checkpoint. Take it again.", pool=self.pool)


class DiscardCheckpoint(PoolOperation, tag="discard-checkpoint"):
    """Forget the remembered moment, and get its space back."""

    needs_proof = always

    @property
    def title(self) -> str:
        return Message("Discard the checkpoint of {pool}", pool=self.pool)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        pool = self.find_pool(facts)
        if pool and (pool.checkpoint is None or pool.checkpoint.state != "exists"):
            yield Reason("checkpoint-missing", "{pool} has no checkpoint.", pool=self.pool)

    def plan(self, facts: Facts) -> Plan:
        pool = self.find_pool(facts)
        assert pool is not None  # noqa: S101  # check said so
        kept = pool.checkpoint

        def act(work: Work) -> None:
            libzfs.discard_checkpoint(self.pool)
            work.note(Message("ZFS frees its space in the background"))

        return Plan(
            summary=Message(
                "{pool} stays as it is now. Going back to {taken_at} is no longer possible.",
                pool=self.pool,
                taken_at=taken_at(pool),
            ),
            steps=(
                Step(
                    "discard",
                    Message("Discard the checkpoint"),
                    shlex.join(["zpool", "checkpoint", "--discard", self.pool]),
                    act,
                    (self.pool,),
                ),
            ),
            identity={**self.identity(), "taken": taken_at(pool)},
            undo=Message("A discarded checkpoint cannot be recovered."),
            details={Message("Space freed"): size_text(kept.size)} if kept else {},
        )

    def probe(self, step: str, facts: Facts) -> bool:
        pool = facts.pool_of(self.guid)
        return pool is not None and (pool.checkpoint is None or pool.checkpoint.state == "discarding")

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The checkpoint of {pool} is still there. Discard it again.", pool=self.pool)


class RewindCheckpoint(PoolOperation, tag="rewind-checkpoint"):
    """Put the whole pool back to its checkpoint. The pool is let go and brought in again at that moment."""

    needs_proof = always

    @property
    def title(self) -> str:
        return Message("Put {pool} back to its checkpoint", pool=self.pool)

    def locks(self) -> tuple[str, ...]:
        return (self.pool, str(self.guid), "shares")

    def files_taken(self) -> tuple[str, ...]:
        return (self.pool,)

    def disks_found(self, facts: Facts) -> tuple[str, ...]:
        # While it is let go of, its disks look as if nobody used them.
        return discover.pool_disks(self.guid, facts)

    def load_extra_facts(self, facts: Facts) -> Facts:
        # Interrupted between letting go and bringing in, it goes on from there.
        return facts if facts.pool_of(self.guid) else replace(facts, importable=discover.discover_pools(self.guid))

    def check(self, facts: Facts) -> Iterator[Reason]:
        pool = self.find_pool(facts)
        if pool is None and (found := facts.found(self.guid)) and found.name == self.pool and found.usable:
            if found.other_host or found.destroyed:
                yield Reason(
                    "pool-used-elsewhere",
                    "{pool} has been used elsewhere or destroyed since. Import it first.",
                    pool=self.pool,
                )
            return
        yield from super().check(facts)
        if pool and (pool.checkpoint is None or pool.checkpoint.state != "exists"):
            yield Reason("checkpoint-missing", "{pool} has no checkpoint.", pool=self.pool)

    def argv(self) -> list[str]:
        flags = ["--rewind-to-checkpoint", "-N", "-o", "cachefile=none"]
        return ["zpool", "import", *flags, "-d", discover.BY_ID, str(self.guid), self.pool]

    def plan(self, facts: Facts) -> Plan:
        pool = self.find_pool(facts)
        moment = taken_at(pool) if pool else Message("its checkpoint")
        # Where its folders are now they may be again; a pool from elsewhere may have had other places then.
        also = frozenset(one.mountpoint for one in facts.datasets if one.pool == self.pool and one.mounted)
        steps = [*shares_step(self.pool, facts, forget=False), export_step(self.pool)] if pool else []
        left, unsafe = list[str](), Unsafe()  # left: what could not be mounted
        return Plan(
            summary=Message(
                "Everything in {pool} becomes as it was on {moment}: files, folders, snapshots, settings.",
                pool=self.pool,
                moment=moment,
            ),
            steps=(
                *steps,
                Step(
                    "rewind",
                    Message("Import {pool} as it was then", pool=self.pool),
                    shlex.join(self.argv()),
                    self.rewind,
                    (self.pool,),
                ),
                Step(
                    "mount",
                    Message("Mount its folders where they are now"),
                    f"{zfs_mount.QUIET_TEXT}, for each folder that says "
                    f"otherwise\n{zfs_mount.mount_text('DATASET')}, for each "
                    f"folder\n{shlex.join(self.remember_argv())}",
                    lambda work: self.mount(work, also, left, unsafe),
                ),
                Step(
                    "serve",
                    Message("Serve its shares again"),
                    "\n".join(teardown.publish_commands()),
                    lambda work: self.serve(work, left, unsafe),
                ),
            ),
            identity={**self.identity(), "taken": moment},
            losses=(
                Loss(
                    Message(
                        "everything written to {pool} after {moment}, in every folder, with every snapshot taken since",
                        pool=self.pool,
                        moment=moment,
                    )
                ),
            ),
            warnings=(
                Message("Nobody can reach it meanwhile. Encrypted folders ask for their passphrase again afterwards."),
            ),
            undo=Message("It cannot be undone, and it uses up the checkpoint."),
            type_to_confirm=self.pool,
            details=connection_facts(self.pool, facts),
        )

    def rewind(self, work: Work) -> None:
        try:
            command.run(self.argv(), timeout=900)
        except command.CommandFailed as failed:
            if "checkpoint does not exist" in failed.said:  # planned again after a power cut that came after it
                what = Message("{pool} has no checkpoint: it was put back already", pool=self.pool)
            else:
                what = Message("{pool} could not be put back", pool=self.pool)
            raise Failed(what, failed.said) from failed

    def remember_argv(self) -> list[str]:
        return ["zpool", "set", f"cachefile={CACHE}", self.pool]

    def mount(self, work: Work, also: frozenset[str], left: list[str], unsafe: Unsafe) -> None:
        """Mount its folders, and import it at each start from now on; ``left`` gets those that could not be mounted."""
        unsafe.run_each(zfs_mount.neutralise_properties(zfs_mount.foreign_properties(self.pool), self.pool, also), work)
        found = unsafe.leave_out(zfs_mount.foreign_properties(self.pool), self.pool, work, also)
        left += zfs_mount.mount_all(found, self.pool, read_only=False, work=work, also=also)
        if not unsafe.left:
            command.run(self.remember_argv(), timeout=120)

    def serve(self, work: Work, left: list[str], unsafe: Unsafe) -> None:
        teardown.serve_datasets(status.read_datasets(), work.note)
        zfs_mount.note_left(left, work)
        unsafe.refuse_left(self.pool)

    def probe(self, step: str, facts: Facts) -> bool:
        pool = facts.pool_of(self.guid)
        if step == "shares":
            return pool is None or not teardown.shares_of_pool(facts, self.pool)
        if step == "export":
            return pool is None or pool.checkpoint is None
        return (
            pool is not None
            and pool.checkpoint is None
            and (
                step != "mount"
                or all(one.mounted or one.locked for one in facts.datasets if one.pool == self.pool and one.can_mount)
            )
        )

    def recovery_hint(self, step: str, facts: Facts) -> str:
        pool = facts.pool_of(self.guid)
        if pool is None:
            # ZFS goes back for good while it imports, and after a power cut nothing imports it by itself.
            return Message(
                "{pool} is not in use, and only an import shows whether it was put back. Import it: without "
                "a checkpoint, it was put back. With one, plan this again.",
                pool=self.pool,
            )
        if pool.checkpoint:
            return Message(
                "{pool} is as it was, with its checkpoint; its shares may be off. Plan this again, or switch "
                "its shares on at their folders.",
                pool=self.pool,
            )
        return Message(
            "{pool} was put back to its checkpoint. Check whether its folders are mounted and its shares are on.",
            pool=self.pool,
        )
