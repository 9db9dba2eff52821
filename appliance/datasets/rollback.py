"""Roll a dataset back to one of its snapshots, after a checkpoint of the pool where it can take one.

A snapshot taken just before would be newer than the target, and rollback destroys newer snapshots (zfs-rollback(8)).
Only a checkpoint makes it possible to undo a rollback. It is kept until somebody discards it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from appliance import schedule
from appliance.datasets import reasons
from appliance.datasets.access_note import read_note, rewrite_note
from appliance.errors import Failed, Reason
from appliance.facts.box import Facts
from appliance.facts.copy_mark import is_continued, parse_copy_mark
from appliance.facts.datasets import Dataset, Snapshot
from appliance.facts.sharing import Share
from appliance.formatting import moment_text, names_text, size_text
from appliance.message import Message, join_messages
from appliance.operation import Loss, Plan, Step, Work, always
from appliance.pools.checkpoint import COSTS, TakeCheckpoint
from appliance.shares import teardown
from appliance.shares.iscsi.part import place_of
from appliance.snapshots.destroy import describe_blocks, list_names
from appliance.snapshots.hold_clone import SnapshotOperation
from appliance.snapshots.take import is_volume
from appliance.zfs import libzfs, list_snapshots, status, system_datasets

SHOWN = 20
NOTHING_DESTROYED = Message("Nothing was destroyed, and everything is as it was")


class RollBack(SnapshotOperation, tag="roll-back"):
    """Return a dataset to the state of a snapshot. Newer snapshots and everything written since are lost."""

    needs_proof = always

    way_back: bool = True  # take a checkpoint of the pool first

    @property
    def title(self) -> str:
        return Message(
            "Roll {dataset} back to {partition}", dataset=self.dataset, partition=self.snapshot.partition("@")[2]
        )

    def locks(self) -> tuple[str, ...]:
        return (self.dataset.split("/", 1)[0], "shares")

    def files_taken(self) -> tuple[str, ...]:
        return (self.dataset,)

    def newer_snapshots(self, facts: Facts) -> list[Snapshot]:
        found = self.find_snapshot(facts)
        return [snapshot for snapshot in facts.snapshots_of(self.dataset) if found and snapshot.txg > found.txg]

    def newer_bookmarks(self, facts: Facts) -> list[str]:
        """The short names of the newer bookmarks that the facts know."""
        found = self.find_snapshot(facts)
        return [one.short for one in facts.bookmarks if found and one.dataset == self.dataset and one.txg > found.txg]

    def checkpoint_operation(self, facts: Facts) -> TakeCheckpoint | None:
        pool = facts.pool(self.dataset.split("/", 1)[0])
        return TakeCheckpoint(pool=pool.name, guid=pool.guid) if pool else None

    def served_shares(self, facts: Facts) -> list[Share]:
        dataset = facts.dataset(self.dataset)
        return teardown.shares_at(facts, [dataset]) if dataset else []

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if self.find_snapshot(facts) is None:
            return
        dataset = facts.dataset(self.dataset)
        if dataset and is_continued(dataset.copy_of):
            yield from self.copy_reasons(facts)
        elif dataset and dataset.readonly:
            yield reasons.dataset_read_only(self.dataset)
        if dataset and (refusal := system_datasets.reason_against(dataset, facts.datasets)):
            yield refusal
        for text in describe_blocks(self.newer_snapshots(facts)):
            yield Reason(
                "newer-snapshot-needed",
                "{why}. It is newer, so it would be destroyed. Release it first, or make the clone independent.",
                why=text,
            )
        yield from self.room_reasons(facts)
        taking = self.checkpoint_operation(facts)
        if self.way_back and taking:
            for reason in taking.check(facts):
                yield Reason(
                    "rollback-without-checkpoint",
                    "The pool cannot take a checkpoint first: {why}",
                    field="way_back",
                    why=reason.message,
                )

    def copy_reasons(self, facts: Facts) -> Iterator[Reason]:
        """A copy is read-only and may have been written to all the same. What it has by snapshots stays."""
        if self.newer_snapshots(facts):
            yield Reason(
                "rollback-of-copy",
                "{dataset} is the copy of a backup, so it can only be put back to its newest snapshot.",
                dataset=self.dataset,
            )

    def room_reasons(self, facts: Facts) -> Iterator[Reason]:
        """Yield what ZFS would refuse only after the newer snapshots are destroyed (dsl_dataset_rollback_check)."""
        dataset, found = facts.dataset(self.dataset), self.find_snapshot(facts)
        if dataset is None or found is None:
            return
        limit, kept = (
            status.parse_whole(getattr(dataset.properties.get(one), "value", 0))
            for one in ("refquota", "refreservation")
        )
        if limit and found.referenced > limit:
            yield Reason(
                "rollback-above-limit",
                "{dataset} used {used} then and may now use {limit}. Raise its limit first.",
                dataset=self.dataset,
                used=size_text(found.referenced),
                limit=size_text(limit),
            )
        if (needed := min(kept, dataset.written)) > dataset.available:
            yield Reason(
                "rollback-without-room",
                "Its reservation needs {needed} of free space meanwhile, and {free} are free. Free some "
                "space first, or lower its reservation.",
                needed=size_text(needed),
                free=size_text(dataset.available),
            )

    def plan(self, facts: Facts) -> Plan:
        newer, shares = self.newer_snapshots(facts), self.served_shares(facts)
        dataset, found = facts.dataset(self.dataset), self.find_snapshot(facts)
        moment = moment_text(found.created.astimezone(schedule.box_zone())) if found else ""
        # Data that is in none of the remaining snapshots: written since the newest one, and unique to those destroyed.
        volume = is_volume(self.dataset, facts)
        written = (dataset.written if dataset else 0) + sum(snapshot.written for snapshot in newer)
        return Plan(
            summary=Message(
                "{dataset} becomes what it was on {moment}. Folders below it that have snapshots of their "
                "own stay as they are.",
                dataset=self.dataset,
                moment=moment,
            )
            if not volume
            else Message("{dataset} becomes what it was on {moment}.", dataset=self.dataset, moment=moment),
            steps=(self.rollback_step(newer, facts),),
            identity={
                **self.plan_identity(),
                "newer": sorted(snapshot.guid for snapshot in newer),
                "dataset": dataset.guid if dataset else 0,
                **teardown.connected_computers(shares),
            },
            losses=tuple(self.list_losses(newer, moment)),
            warnings=tuple(self.list_warnings(facts, shares)),
            undo=Message("The pool keeps a checkpoint of the moment before. Going back to it puts the whole pool back.")
            if self.way_back
            else Message("It cannot be undone."),
            type_to_confirm=self.dataset,
            details={
                Message("Written since"): Message("about {written}", written=size_text(written))
                if volume
                else Message("about {written}, deleted files not counted", written=size_text(written)),
                Message("Newer snapshots"): str(len(newer)),
                **teardown.review_facts(facts, shares),
            },
        )

    def list_losses(self, newer: list[Snapshot], moment: str) -> Iterator[Loss]:
        yield Loss(Message("everything written to {dataset} after {moment}", dataset=self.dataset, moment=moment))
        if newer:
            yield Loss(join_messages([self.dataset, list_names([snapshot.short for snapshot in newer])], ": "))

    def list_warnings(self, facts: Facts, shares: list[Share]) -> Iterator[str]:
        volume = is_volume(self.dataset, facts)
        if shares and volume:
            yield Message("It is not served meanwhile: computers that use it as a disk are disconnected.")
            yield from teardown.disk_warnings(shares)
        elif shares:
            yield Message(
                "Its shares pause meanwhile. Clients that have a file of it open are disconnected. Save open "
                "files elsewhere first."
            )
            yield from teardown.disk_warnings(shares)
        if later := self.newer_bookmarks(facts):
            # No loss of the review, which the agent compares with its own: pages know
            # bookmarks only some minutes later.
            yield Message(
                "Bookmarks that are newer go too: {names}. No backup can continue from them.",
                names=names_text(later, SHOWN),
            )
        dataset = facts.dataset(self.dataset)
        if dataset and read_note(dataset):
            yield Message(
                "Access to its files also returns to what it was then. Check it afterwards, and set it again "
                "if it has changed since."
            )
        if self.way_back:
            yield Message(
                "A checkpoint of the whole pool is taken first. {costs} Discard it on the pool's page when "
                "all is well.",
                costs=COSTS,
            )
        yield self.gentler_way(dataset, facts)

    @staticmethod
    def gentler_way(dataset: Dataset | None, facts: Facts) -> str:
        """What to do instead. Nothing can be made from the snapshots of a copy beside it, and its
        files go into the original."""
        mark = parse_copy_mark(dataset.copy_of) if dataset else None
        if dataset and dataset.kind == "volume":
            return (
                Message("To keep both, choose “Restore this volume” on the page of the copy.")
                if mark
                else Message("To keep both, make a volume from the snapshot.")
            )
        if mark is None:
            return Message(
                "To restore only some files, open the snapshot and restore them from there. To keep both, "
                "make a folder from the snapshot."
            )
        if facts.dataset_of(mark.guid):
            return Message(
                "To restore only some files, open the snapshot and restore them from there. To keep both, "
                "choose “Restore this folder” on the page of the copy."
            )
        return Message("To keep both, choose “Restore this folder” on the page of the copy.")

    def rollback_step(self, newer: list[Snapshot], facts: Facts) -> Step:
        """The only step, so that the job cannot be stopped while the shares are paused."""
        shares = self.served_shares(facts)
        pool = self.dataset.split("/", 1)[0]
        shown = [
            *([teardown.close_commands(shares)] if shares else []),
            *([shlex.join(["zpool", "checkpoint", pool])] if self.way_back else []),
            *(shlex.join(["zfs", "destroy", "--", snapshot.name]) for snapshot in newer[:SHOWN]),
            *(["…"] if len(newer) > SHOWN else []),
            shlex.join(["zfs", "rollback", "--", self.snapshot]),
            *(teardown.publish_commands() if shares else []),
        ]
        return Step(
            "rollback",
            Message(
                "Put {dataset} back to {partition}", dataset=self.dataset, partition=self.snapshot.partition("@")[2]
            ),
            "\n".join(shown),
            lambda work: self.roll_back(work, newer, facts),
            (self.dataset,),
        )

    def shares_left_paused(self, facts: Facts) -> bool:
        """Whether approved shares are not served, because an earlier run was interrupted
        before it served them again."""
        dataset = facts.dataset(self.dataset)
        return dataset is not None and not teardown.all_served(facts, [dataset])

    def roll_back(self, work: Work, newer: list[Snapshot], facts: Facts) -> None:
        shares = self.served_shares(facts)
        paused = {share.path for share in shares}
        again = bool(shares) or self.shares_left_paused(facts)
        try:
            if shares:
                work.progress(5, Message("Pausing its shares"))
                teardown.serve_datasets(
                    (one for one in status.read_datasets() if place_of(one) not in paused), work.note
                )
                teardown.close_shares(shares)
            if self.way_back:
                work.progress(20, Message("Taking a checkpoint of the pool"))
                libzfs.take_checkpoint(self.dataset.split("/", 1)[0])
                work.note(Message("The pool keeps a checkpoint of the moment before"))
            self.restore_snapshot(work, newer)
        finally:
            if again:
                work.progress(90, Message("Serving its shares again"))
                teardown.serve_datasets(status.read_datasets(), work.note)

    def restore_snapshot(self, work: Work, newer: list[Snapshot]) -> None:
        """Check everything that could make the rollback fail before the newer snapshots are destroyed."""
        bookmarks = self.check_newer(newer)
        if len(newer) == 1:
            work.progress(40, Message("Destroying 1 newer snapshot"))
        elif newer:
            work.progress(40, Message("Destroying {count} newer snapshots", count=len(newer)))
        # All or none: one that is in use would otherwise cost the others, and the rollback would fail all the same.
        if left := libzfs.destroy_all_or_none([snapshot.name for snapshot in newer]):
            raise Failed(
                Message("A newer snapshot cannot be destroyed. {nothing}", nothing=NOTHING_DESTROYED),
                libzfs.explain_left(left),
            )
        if newer:
            names = list_names([snapshot.short for snapshot in newer])
            work.note(Message("Newer snapshots destroyed: {names}", names=names))
        for name in bookmarks:
            libzfs.destroy_bookmark(name)
            work.note(Message("The bookmark {name} was newer and is gone", name=name))
        libzfs.rollback_to(self.dataset, self.snapshot)
        dataset = next((dataset for dataset in status.read_datasets() if dataset.name == self.dataset), None)
        if dataset and (said := read_note(dataset)):
            # The files may have older rights than the note says.
            rewrite_note(dataset, msgspec.structs.replace(said, done=False), work)
        work.note(Message("{dataset} is as {snapshot} is", dataset=self.dataset, snapshot=self.snapshot))

    def check_newer(self, newer: list[Snapshot]) -> list[str]:
        """Return the newer bookmarks. Raises Failed if the snapshot is gone, or a newer one
        appeared or cannot be destroyed."""
        every = list(list_snapshots.list_snapshots([self.dataset]))
        found = next((snapshot for snapshot in every if snapshot.guid == self.guid), None)
        if found is None:
            raise Failed(
                Message(
                    "The snapshot {snapshot} is no longer there. {nothing}",
                    snapshot=self.snapshot,
                    nothing=NOTHING_DESTROYED,
                )
            )
        now = [snapshot for snapshot in every if snapshot.txg > found.txg]
        known = {snapshot.guid for snapshot in newer}
        if more := [snapshot.name for snapshot in now if snapshot.guid not in known]:
            raise Failed(
                Message(
                    "{more} was taken meanwhile. {nothing}. Look at what would be lost, and roll back again",
                    more=more[0],
                    nothing=NOTHING_DESTROYED,
                )
            )
        if said := describe_blocks(now):
            raise Failed(
                Message("A newer snapshot cannot be destroyed. {nothing}", nothing=NOTHING_DESTROYED),
                names_text(said, 5, "; "),
            )
        return libzfs.newer_bookmarks(self.dataset, found.txg)

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.dataset)
        return (
            self.find_snapshot(facts) is not None
            and not self.newer_snapshots(facts)
            and dataset is not None
            and dataset.written == 0
            and teardown.all_served(facts, [dataset])
        )

    def recovery_hint(self, step: str, facts: Facts) -> str:
        shares = (
            Message(" Its shares may be paused: look at the folder, and switch them on there.")
            if self.shares_left_paused(facts)
            else ""
        )
        if self.newer_snapshots(facts):
            return Message(
                "{dataset} was not put back; it is as it was before.{shares} Roll it back again, or leave it as it is.",
                dataset=self.dataset,
                shares=shares,
            )
        return Message(
            "The newer snapshots are gone. If the content is not as it was then, roll back again.{shares}",
            shares=shares,
        )
