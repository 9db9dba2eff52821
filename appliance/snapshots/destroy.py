"""Destroying snapshots: those that a person chose, and those that a policy no longer keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Self

import msgspec

from appliance import names, schedule
from appliance.errors import Failed, Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Snapshot
from appliance.operation import Loss, Plan, Step, Work, always, never
from appliance.snapshots import expiry, policy, space
from appliance.snapshots.take import SnapshotsOperation
from appliance.zfs import libzfs

MOST = 3000  # with names of the longest, what fits into a request to the agent
NAMED = 20
QUICK = 100  # so many are destroyed within seconds, also on slow disks


class Chosen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A snapshot by both its name and its guid: a new one of the same name is another."""

    name: str
    guid: int

    def __post_init__(self) -> None:
        names.existing_snapshot(self.name)


class DestroySnapshots(SnapshotsOperation, tag="destroy-snapshots"):
    """Destroy the chosen snapshots of one pool. Held and cloned ones stay and are named; what has gone already is fine."""

    needs_proof = always

    snapshots: tuple[Chosen, ...]

    def __post_init__(self) -> None:
        if not self.snapshots:
            raise names.refuse("Choose at least one snapshot.", "snapshots")
        if len(self.snapshots) > MOST:
            raise names.refuse(f"At most {MOST} snapshots at once. Choose fewer.", "snapshots")
        if len({self.pool_of(one.name) for one in self.snapshots}) != 1:
            raise names.refuse("Snapshots of one pool at a time. Choose those of one.", "snapshots")

    @staticmethod
    def pool_of(name: str) -> str:
        return name.partition("@")[0].split("/", 1)[0]

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(sorted({one.name.partition("@")[0] for one in self.snapshots}))

    @property
    def title(self) -> str:
        if len(self.snapshots) == 1:
            return f"Destroy the snapshot {self.snapshots[0].name}"
        return f"Destroy {len(self.snapshots)} snapshots of {self.subject}"

    @property
    def subject(self) -> str:
        return self.datasets[0] if len(self.datasets) == 1 else self.pool_of(self.snapshots[0].name)

    def snapshot_datasets(self) -> tuple[str, ...]:
        return self.datasets

    def lasts(self) -> bool:
        return len(self.snapshots) > QUICK

    def there(self, facts: Facts) -> list[Snapshot]:
        """Those chosen that are there and are the same ones, oldest first in each dataset."""
        known = {(one.name, one.guid): one for one in facts.snapshots}
        found = [known[key] for one in self.snapshots if (key := (one.name, one.guid)) in known]
        return sorted(found, key=lambda one: (one.dataset, one.txg))

    def free_to_go(self, facts: Facts) -> list[Snapshot]:
        return [one for one in self.there(facts) if not one.holds and not one.clones]

    def runs(self, facts: Facts) -> list[list[Snapshot]]:
        """Those that go, by their runs without a gap."""
        return space.neighbours(self.free_to_go(facts), facts.snapshots)

    def load_extra_facts(self, facts: Facts) -> Facts:
        found = super().load_extra_facts(facts)
        pairs = space.ends(self.runs(found))
        return replace(found, spans=space.spans(pairs, space.measure(pairs).ranges))

    def freed(self, facts: Facts) -> space.Freed:
        """What comes back, as far as it was measured."""
        return space.freed(self.runs(facts), facts.spans)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from self.stopped(facts)
        there = self.there(facts)
        if not there:
            yield Reason("", "None of these snapshots is there any more.")
        elif not self.free_to_go(facts):
            yield Reason("", "Each of these is held, or a clone is made from it: " + "; ".join(blocked(there)))

    def plan(self, facts: Facts) -> Plan:
        there = self.there(facts)
        stay = blocked(there)
        going = self.free_to_go(facts)
        freed = self.freed(facts)
        return Plan(
            summary=f"{counted(going)} will go{f', of {len(there)} chosen' if stay else ''}. The files in your folders stay as they are now.",
            steps=(
                Step(
                    "destroy",
                    f"Destroy {counted(going)}",
                    "\n".join(f"zfs destroy -- '{one.name}'" for one in going[:NAMED]) + ("\n…" if len(going) > NAMED else ""),
                    lambda work: self.act(work, going, freed, stay),
                    self.datasets,
                ),
            ),
            identity={"snapshots": sorted([one.name, one.guid] for one in self.snapshots)},
            losses=self.losses(there),
            warnings=tuple(staying(stay)),
            undo="What only these snapshots hold cannot be had back.",
            type_to_confirm=self.subject if len(going) > NAMED else "",
            facts={"Space that comes back": freed.text},
            title=self.title_for(going) if stay else "",
        )  # fmt: skip

    def title_for(self, going: Sequence[Snapshot]) -> str:
        """A heading that counts what really goes."""
        if len(going) == 1:
            return f"Destroy the snapshot {going[0].name}"
        return f"Destroy {len(going)} snapshots of {self.subject}"

    def losses(self, there: Sequence[Snapshot]) -> tuple[Loss, ...]:
        """What was chosen and does not stay: what went by itself meanwhile is no reason to refuse the rest.

        One that stays by the review and is released before the job runs is another plan: nobody was shown that it goes.
        """
        stay = {one.name for one in there if one.holds or one.clones}
        going = sorted(one.name for one in self.snapshots if one.name not in stay)
        by_dataset = groupby(going, lambda name: name.partition("@")[0])
        return tuple(
            Loss(f"{dataset}: {told([name.partition('@')[2] for name in found])}") for dataset, found in by_dataset
        )

    def act(self, work: Work, going: Sequence[Snapshot], freed: space.Freed, stay: Sequence[str] = ()) -> None:
        total = len(going)
        for text in staying(stay):
            work.note(text)  # also what was held or cloned only after the plan was shown

        def before(done: int) -> None:
            work.progress(done * 100 // max(total, 1), f"{done} of {total} are gone")
            work.stop_if_asked()

        left = libzfs.destroy_snapshots([one.name for one in going], before)
        for one in left:
            work.note(f"{one.name} stays: {one.why}")
        work.note(f"{total - len(left)} of {total} are gone.")
        if not left:
            work.note(f"What comes back: {freed.text}. ZFS gives it back in the background.")
        if len(left) == total:
            raise Failed("None of the snapshots was destroyed", f"{left[0].name}: {left[0].why}")

    def probe(self, step: str, facts: Facts) -> bool:
        return not self.free_to_go(facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        left = len(self.free_to_go(facts))
        return f"{left} of them are still there. Destroy them again."

    @classmethod
    def of(cls, chosen: Iterable[tuple[str, int]]) -> Self:
        return cls(snapshots=tuple(Chosen(name, guid) for name, guid in chosen))


class PruneSnapshots(DestroySnapshots, tag="prune-snapshots"):
    """Destroy what a policy made and no longer keeps. Never one that no policy made, and never the last of a dataset."""

    needs_proof = never

    @property
    def subject(self) -> str:
        return self.pool_of(self.snapshots[0].name)

    @property
    def title(self) -> str:
        return f"Destroy {len(self.snapshots)} snapshots that the policies of {self.subject} no longer keep"

    def there(self, facts: Facts) -> list[Snapshot]:
        """Those that the folder's policy, as the agent sees it, no longer keeps; of a dataset that would be left with none,
        the newest stays. So no proof is asked for, and no more goes without one."""
        rules = {one.name: policy.policy_of(one) for one in facts.datasets}
        now, zone = datetime.now(UTC), schedule.box_zone()
        found = [
            one
            for one in super().there(facts)
            if expiry.may_go(one, rules.get(one.dataset), facts.snapshots_of(one.dataset), now, zone)
        ]
        going = {one.guid for one in found}
        last = {
            known[-1].guid
            for dataset in self.datasets
            if (known := facts.snapshots_of(dataset)) and all(one.guid in going for one in known)
        }
        return [one for one in found if one.guid not in last]

    def losses(self, there: Sequence[Snapshot]) -> tuple[Loss, ...]:
        """All that were asked for: nobody looks at them before, and one that is held meanwhile just stays."""
        return super().losses(())


def blocked(found: Iterable[Snapshot]) -> list[str]:
    """What keeps snapshots from being destroyed, one sentence each."""
    said = []
    for one in found:
        if one.clones:
            said.append(f"{one.name}: the folder {one.clones[0]} is a clone of it")
        elif one.holds:
            said.append(f"{one.name}: it is held")
    return said


def staying(found: Sequence[str]) -> Iterator[str]:
    """What ``blocked`` said, as lines for a plan and for a job's log: all where they are few."""
    yield from (f"It stays: {text}" for text in found[:NAMED])
    if len(found) > NAMED:
        yield f"{len(found) - NAMED} more stay, held or cloned."


def counted(found: Sequence[Snapshot]) -> str:
    return f"The snapshot {found[0].name}" if len(found) == 1 else f"{len(found)} snapshots"


def told(found: Sequence[str]) -> str:
    """Snapshots of one dataset as a line: all where they are few, else how many and some of them."""
    if len(found) <= NAMED:
        return ", ".join(found)
    return f"{len(found)} snapshots: {', '.join(found[:NAMED])} and {len(found) - NAMED} more"
