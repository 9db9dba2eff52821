"""Letting a pool go: export it, so that its disks can move, or destroy it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec.structs import replace

from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.formatting import count_content, size_text
from appliance.message import Message
from appliance.operation import Loss, Plan, Step, Work, always, never
from appliance.pools import features
from appliance.pools.base import PoolOperation
from appliance.shares import teardown
from appliance.shares.settings import setting_of
from appliance.zfs import status, system_datasets
from appliance.zfs.dataset_losses import list_dataset_losses, split_kinds


def shares_step(pool: str, facts: Facts, *, forget: bool) -> list[Step]:
    """The step that stops a pool's shares, where it has any."""
    shares = teardown.shares_of_pool(facts, pool)
    asked = any((setting := setting_of(one)) and setting.anything for one in facts.datasets if one.pool == pool)
    return [teardown.stop_pool_step(pool, shares, forget=forget)] if shares or asked else []


def connection_facts(pool: str, facts: Facts) -> dict[str, str]:
    """For a review page: the shares that stop, and who is connected to them now."""
    return teardown.review_facts(facts, teardown.shares_of_pool(facts, pool), label=Message("Shares that stop"))


def run_unmounting(argv: list[str], pool: str) -> None:
    """Run a command that needs every folder of the pool unmounted. Raises Failed, with who uses it where it is busy."""
    folders = [one.mountpoint for one in status.read_datasets() if one.pool == pool and one.mounted]
    teardown.run_unmounting(argv, pool, folders, serve_again=False)


def export_step(pool: str) -> Step:
    argv = ["zpool", "export", "--", pool]

    def act(work: Work) -> None:
        run_unmounting(argv, pool)
        work.note(Message("{pool} is exported: every disk of it may be taken out", pool=pool))

    return Step(
        "export",
        Message("Unmount and export {pool}", pool=pool),
        shlex.join(argv),
        act,
        (pool,),
        Message("Import {pool} again", pool=pool),
    )


class ExportPool(PoolOperation, tag="export-pool"):
    """Stop using a pool in an orderly way, so that its disks can go to another system."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Export {pool}", pool=self.pool)

    def locks(self) -> tuple[str, ...]:
        return (self.pool, str(self.guid), "shares")

    def files_taken(self) -> tuple[str, ...]:
        return (self.pool,)

    def plan(self, facts: Facts) -> Plan:
        folders, volumes = split_kinds([one for one in facts.datasets if one.pool == self.pool])
        below = len(folders) - 1  # the first is the pool's own
        shares = teardown.shares_of_pool(facts, self.pool)
        return Plan(
            summary=Message(
                "{pool} and its {content} are no longer reachable on this box. Nothing is erased; the disks "
                "can then be taken out.",
                pool=self.pool,
                content=count_content(len(folders) if below > 0 else 0, len(volumes)),
            )
            if below > 0 or volumes
            else Message(
                "{pool} is no longer reachable on this box. Nothing is erased; the disks can then be taken out.",
                pool=self.pool,
            ),
            steps=(*shares_step(self.pool, facts, forget=True), export_step(self.pool)),
            identity={
                **self.identity(),
                "shares": sorted(share.name for share in shares),
                **teardown.connected_computers(shares),
            },
            warnings=(
                Message("Users with open files in this pool lose their connection. Ask them to save their work first."),
                *teardown.disk_warnings(shares),
            )
            if shares
            else (),
            undo=Message(
                "Import it again at any time, here or on another system. Its shares are then offered, not switched on."
            ),
            details=connection_facts(self.pool, facts),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        gone = facts.pool_of(self.guid) is None
        return gone or (step == "shares" and not teardown.shares_of_pool(facts, self.pool))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.pool_of(self.guid) is None:
            return Message("{pool} is exported.", pool=self.pool)
        stopped = (
            ""
            if teardown.shares_of_pool(facts, self.pool)
            else Message(" Its shares are off: switch them on at their folders if it stays.")
        )
        return Message("{pool} is still in use here.{stopped}", pool=self.pool, stopped=stopped)


class DestroyPool(PoolOperation, tag="destroy-pool"):
    """Give up a pool and all that is in it."""

    needs_proof = always

    @property
    def title(self) -> str:
        return Message("Destroy {pool}", pool=self.pool)

    def locks(self) -> tuple[str, ...]:
        return (self.pool, str(self.guid), "shares")

    def files_taken(self) -> tuple[str, ...]:
        return (self.pool,)

    def load_extra_facts(self, facts: Facts) -> Facts:
        pool = self.find_pool(facts)
        return replace(facts, details=(features.read_pool_detail(pool),)) if pool else facts

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if system_datasets.carries_system(self.pool, facts.datasets):
            yield Reason(
                "pool-of-system", "This box's own system is on {pool}. Larder does not destroy it.", pool=self.pool
            )
        # ZFS would export it, write nothing to its disks, and report success (spa_export_common).
        if (detail := facts.detail(self.guid)) and detail.read_only:
            yield Reason(
                "pool-imported-read-only",
                "{pool} was imported read-only, so it cannot be destroyed. Export it instead.",
                pool=self.pool,
            )

    def plan(self, facts: Facts) -> Plan:
        argv = ["zpool", "destroy", "--", self.pool]

        def act(work: Work) -> None:
            run_unmounting(argv, self.pool)
            work.note(
                Message(
                    "{pool} is destroyed; its disks still hold it until something else is written to them",
                    pool=self.pool,
                )
            )

        detail, shares = facts.detail(self.guid), teardown.shares_of_pool(facts, self.pool)
        datasets = [one for one in facts.datasets if one.pool == self.pool]
        folders, volumes = split_kinds(datasets)
        kept = sum(one.used_by_snapshots for one in datasets)
        held = Message("holding {kept}", kept=size_text(kept))
        counted = Message("{count}, {held}", count=detail.snapshots, held=held) if detail else held
        without = detail is not None and not detail.snapshots
        if without:
            counted = Message("none")
        told: dict[str, str] = {Message("Folders"): str(len(folders))}
        if volumes:
            told[Message("Volumes")] = str(len(volumes))
        told |= {Message("Snapshots"): counted, **connection_facts(self.pool, facts)}
        return Plan(
            summary=Message(
                "{pool} and everything in it will be destroyed. Its disks can then be used for something else.",
                pool=self.pool,
            ),
            steps=(
                *shares_step(self.pool, facts, forget=True),
                Step(
                    "destroy",
                    Message("Unmount and destroy {pool}", pool=self.pool),
                    shlex.join(argv),
                    act,
                    (self.pool,),
                    Message("Bring it back while its disks are untouched"),
                ),
            ),
            identity={
                **self.identity(),
                "datasets": sorted(one.guid for one in datasets),
                **teardown.connected_computers(shares),
            },
            losses=tuple(self.losses(facts)),
            warnings=(
                *(() if without else (Message("Its snapshots are destroyed too: they are no backup."),)),
                *teardown.disk_warnings(shares),
            ),
            undo=Message(
                "It can be recovered with “Import a pool”, as long as nothing is written to its disks. A new "
                "pool on one of them ends that."
            ),
            type_to_confirm=self.pool,
            details=told,
        )

    def losses(self, facts: Facts) -> Iterator[Loss]:
        yield from list_dataset_losses([one for one in facts.datasets if one.pool == self.pool])
        for share in teardown.shares_of_pool(facts, self.pool):
            yield Loss(Message("the share {share}", share=share.name))

    def probe(self, step: str, facts: Facts) -> bool:
        gone = facts.pool_of(self.guid) is None
        return gone or (step == "shares" and not teardown.shares_of_pool(facts, self.pool))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.pool_of(self.guid) is None:
            return Message("{pool} is destroyed. It can be recovered while its disks are untouched.", pool=self.pool)
        stopped = (
            ""
            if teardown.shares_of_pool(facts, self.pool)
            else Message(" Its shares are off: switch them on at their folders if it stays.")
        )
        return Message("{pool} is still there, with everything in it.{stopped}", pool=self.pool, stopped=stopped)
