"""Destroy snapshots: those that a user chose, and those that a snapshot schedule no longer keeps."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Self

import msgspec
from msgspec.structs import replace

from appliance import names, schedule
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Snapshot
from appliance.formatting import names_text
from appliance.message import Message, join_messages
from appliance.operation import Loss, Plan, Step, Work, always, never
from appliance.snapshots import policy, retention, space
from appliance.snapshots.take import SnapshotsOperation, is_volume
from appliance.zfs import libzfs

MOST = 3000  # as many as fit into a request to the agent with the longest names
NAMED = 20
QUICK = 100  # destroyed within seconds, even on slow disks


class Chosen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A snapshot by name and guid: a new one of the same name is another snapshot."""

    name: str
    guid: int

    def __post_init__(self) -> None:
        names.existing_snapshot(self.name)


class DestroySnapshots(SnapshotsOperation, tag="destroy-snapshots"):
    """Destroy selected snapshots of one pool. Held and cloned ones stay and are named; missing ones are skipped."""

    needs_proof = always

    snapshots: tuple[Chosen, ...]

    def __post_init__(self) -> None:
        if not self.snapshots:
            raise Refused(Reason("snapshot-not-chosen", "Choose at least one snapshot.", field="snapshots"))
        if len(self.snapshots) > MOST:
            raise Refused(
                Reason("snapshots-too-many", "Choose at most {count} snapshots.", field="snapshots", count=MOST)
            )
        if len({self.pool_of(chosen.name) for chosen in self.snapshots}) != 1:
            raise Refused(Reason("snapshots-of-several-pools", "Choose snapshots of only one pool.", field="snapshots"))

    @staticmethod
    def pool_of(name: str) -> str:
        return name.partition("@")[0].split("/", 1)[0]

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(sorted({chosen.name.partition("@")[0] for chosen in self.snapshots}))

    @property
    def title(self) -> str:
        if len(self.snapshots) == 1:
            return Message("Destroy the snapshot {name}", name=self.snapshots[0].name)
        return Message("Destroy {count} snapshots of {subject}", count=len(self.snapshots), subject=self.subject)

    @property
    def subject(self) -> str:
        return self.datasets[0] if len(self.datasets) == 1 else self.pool_of(self.snapshots[0].name)

    def snapshot_datasets(self) -> tuple[str, ...]:
        return self.datasets

    def lasts(self) -> bool:
        return len(self.snapshots) > QUICK

    def find_chosen(self, facts: Facts) -> list[Snapshot]:
        """The chosen snapshots that still exist, oldest first in each dataset."""
        known = {(snapshot.name, snapshot.guid): snapshot for snapshot in facts.snapshots}
        keys = ((chosen.name, chosen.guid) for chosen in self.snapshots)
        found = [known[key] for key in keys if key in known]
        return sorted(found, key=lambda snapshot: (snapshot.dataset, snapshot.txg))

    def find_destroyable(self, facts: Facts) -> list[Snapshot]:
        """Of those, the snapshots that nothing holds and no clone depends on."""
        return [snapshot for snapshot in self.find_chosen(facts) if not snapshot.holds and not snapshot.clones]

    def find_runs(self, facts: Facts) -> list[list[Snapshot]]:
        """The snapshots to destroy, grouped into runs of neighbours."""
        return space.group_neighbours(self.find_destroyable(facts), facts.snapshots)

    def load_extra_facts(self, facts: Facts) -> Facts:
        loaded = super().load_extra_facts(facts)
        pairs = space.run_ends(self.find_runs(loaded))
        return replace(loaded, spans=space.build_spans(pairs, space.measure_space(pairs).ranges))

    def freed_space(self, facts: Facts) -> space.Freed:
        """The space that destroying them frees, as far as it was measured."""
        return space.sum_freed(self.find_runs(facts), facts.spans)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from self.check_pool(facts)
        chosen = self.find_chosen(facts)
        if not chosen:
            yield Reason("snapshots-missing", "None of these snapshots is there any more.")
        elif not self.find_destroyable(facts):
            yield Reason(
                "snapshots-blocked",
                "None of these snapshots can be destroyed. {snapshots}. Release protected ones, and destroy "
                "clones first.",
                snapshots="; ".join(describe_blocks(chosen)),
            )

    def plan(self, facts: Facts) -> Plan:
        chosen = self.find_chosen(facts)
        stay = describe_blocks(chosen)
        going = self.find_destroyable(facts)
        freed = self.freed_space(facts)
        volumes = all(is_volume(name, facts) for name in self.datasets)
        commands = [shlex.join(["zfs", "destroy", "--", snapshot.name]) for snapshot in going[:NAMED]]
        of_chosen = Message(", of {count} chosen", count=len(chosen)) if stay else ""
        return Plan(
            summary=Message(
                "{count_snapshots} will be destroyed{of_chosen}. {stays}",
                count_snapshots=count_snapshots(going),
                of_chosen=of_chosen,
                stays=Message("What is on your volumes now does not change.")
                if volumes
                else Message("The files in your folders do not change."),
            ),
            steps=(
                Step(
                    "destroy",
                    Message("Destroy the snapshot {name}", name=going[0].name)
                    if len(going) == 1
                    else Message("Destroy {count_snapshots}", count_snapshots=count_snapshots(going)),
                    "\n".join([*commands, *(["…"] if len(going) > NAMED else [])]),
                    lambda work: self.destroy_all(work, going, freed, stay),
                    self.datasets,
                ),
            ),
            identity={"snapshots": sorted([chosen.name, chosen.guid] for chosen in self.snapshots)},
            losses=self.list_losses(chosen),
            warnings=tuple(staying_notes(stay)),
            undo=Message("Data that is only in these snapshots is lost for good.")
            if volumes
            else Message("Files that are only in these snapshots are lost for good."),
            type_to_confirm=self.subject if len(going) > NAMED else "",
            details={Message("Space freed"): freed.text},
            title=self.title_for(going) if stay else "",
        )

    def title_for(self, going: Sequence[Snapshot]) -> str:
        """A heading that counts only what will really be destroyed."""
        if len(going) == 1:
            return Message("Destroy the snapshot {name}", name=going[0].name)
        return Message("Destroy {count} snapshots of {subject}", count=len(going), subject=self.subject)

    def list_losses(self, chosen: Sequence[Snapshot]) -> tuple[Loss, ...]:
        """The chosen snapshots that do not stay, including those already gone, which are no reason to refuse the rest.

        A snapshot that stays by the review and is released before the job runs changes the plan, because no user saw
        that it would be destroyed.
        """
        stay = {snapshot.name for snapshot in chosen if snapshot.holds or snapshot.clones}
        going = sorted(chosen.name for chosen in self.snapshots if chosen.name not in stay)
        by_dataset = groupby(going, lambda name: name.partition("@")[0])
        return tuple(
            Loss(
                Message(
                    "{dataset}: {list_names}",
                    dataset=dataset,
                    list_names=list_names([name.partition("@")[2] for name in names_]),
                )
            )
            for dataset, names_ in by_dataset
        )

    def destroy_all(self, work: Work, going: Sequence[Snapshot], freed: space.Freed, stay: Sequence[str] = ()) -> None:
        total = len(going)
        for text in staying_notes(stay):
            work.note(text)  # includes what was held or cloned only after the review

        def before(done: int) -> None:
            work.progress(done * 100 // max(total, 1), Message("{done} of {total} destroyed", done=done, total=total))
            work.stop_if_asked()

        left = libzfs.destroy_snapshots([snapshot.name for snapshot in going], before)
        for failure in left:
            work.note(Message("{failure} stays: {why}", failure=failure.name, why=failure.why))
        work.note(Message("{total} of {total_2} destroyed.", total=total - len(left), total_2=total))
        if not left:
            work.note(Message("Space freed: {freed_text}. ZFS frees it in the background.", freed_text=freed.text))
        if len(left) == total:
            raise Failed(
                Message("None of the snapshots was destroyed"), join_messages([left[0].name, left[0].why], ": ")
            )

    def probe(self, step: str, facts: Facts) -> bool:
        return not self.find_destroyable(facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        left = len(self.find_destroyable(facts))
        if left == 1:
            return Message("1 of them still exists. Destroy it again.")
        return Message("{left} of them still exist. Destroy them again.", left=left)

    @classmethod
    def for_pairs(cls, chosen: Iterable[tuple[str, int]]) -> Self:
        """The operation for snapshots given by name and guid."""
        return cls(snapshots=tuple(Chosen(name, guid) for name, guid in chosen))


class PruneSnapshots(DestroySnapshots, tag="prune-snapshots"):
    """Destroy what a schedule took and no longer keeps: never another snapshot, and never the last one of a dataset."""

    needs_proof = never

    @property
    def subject(self) -> str:
        return self.pool_of(self.snapshots[0].name)

    @property
    def title(self) -> str:
        if len(self.snapshots) == 1:
            return Message("Destroy 1 snapshot that the schedules of {subject} no longer keep", subject=self.subject)
        return Message(
            "Destroy {count} snapshots that the schedules of {subject} no longer keep",
            count=len(self.snapshots),
            subject=self.subject,
        )

    def find_chosen(self, facts: Facts) -> list[Snapshot]:
        """The snapshots that the folder's schedule, as the agent reads it, no longer keeps.

        The newest snapshot of a dataset that would be left with none stays. This is why no proof is needed.
        """
        policies = {dataset.name: policy.policy_of(dataset) for dataset in facts.datasets}
        now, zone = datetime.now(UTC), schedule.box_zone()
        prunable = {
            dataset: retention.prunable_guids(policies.get(dataset), facts.snapshots_of(dataset), now, zone)
            for dataset in self.datasets
        }
        found = [snapshot for snapshot in super().find_chosen(facts) if snapshot.guid in prunable[snapshot.dataset]]
        going = {snapshot.guid for snapshot in found}
        last = {
            known[-1].guid
            for dataset in self.datasets
            if (known := facts.snapshots_of(dataset)) and all(snapshot.guid in going for snapshot in known)
        }
        return [snapshot for snapshot in found if snapshot.guid not in last]

    def list_losses(self, chosen: Sequence[Snapshot]) -> tuple[Loss, ...]:
        """All that were requested: nobody reviews them, and one that is held meanwhile just stays."""
        return super().list_losses(())


def describe_blocks(snapshots: Iterable[Snapshot]) -> list[str]:
    """What keeps snapshots from being destroyed, one clause each."""
    found: list[str] = []
    for snapshot in snapshots:
        if snapshot.clones:
            found.append(
                Message(
                    "{snapshot}: the folder {clone} is a clone of it",
                    snapshot=snapshot.name,
                    clone=snapshot.clones[0],
                )
            )
        elif snapshot.holds:
            found.append(Message("{snapshot}: it is protected", snapshot=snapshot.name))
    return found


def staying_notes(blocks: Sequence[str]) -> Iterator[str]:
    """The clauses of ``describe_blocks`` as lines for a plan and a job's log: all if they are few, else the first."""
    yield from (Message("It stays: {reason}", reason=text) for text in blocks[:NAMED])
    if len(blocks) == NAMED + 1:
        yield Message("1 more stays, because it is protected or cloned.")
    elif len(blocks) > NAMED:
        yield Message("{number} more stay, because they are protected or cloned.", number=len(blocks) - NAMED)


def count_snapshots(snapshots: Sequence[Snapshot]) -> str:
    return (
        Message("The snapshot {name}", name=snapshots[0].name)
        if len(snapshots) == 1
        else Message("{count} snapshots", count=len(snapshots))
    )


def list_names(short_names: Sequence[str]) -> str:
    """Snapshots of one dataset on one line: all if they are few, else their number and the first."""
    if len(short_names) <= NAMED:
        return ", ".join(short_names)
    return Message(
        "{count} snapshots: {names}",
        count=len(short_names),
        names=names_text(short_names, NAMED),
    )
