"""What is done to one snapshot: holding it with a reason, letting go, another name, a clone of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from appliance import names
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Snapshot
from appliance.operation import Plan, Step, Work, always, command_step, never
from appliance.shares.settings import PROPERTY, ShareSetting
from appliance.snapshots.take import SnapshotsOperation
from appliance.zfs import libzfs, mount, mountpoints, system_datasets

# A hold's tag is what ZFS keeps of it; zfs-hold(8) lists tags of others as they are. The tag says who and why.
OURS = re.compile(r"larder:(?P<who>[^:]*):(?P<why>.*)")
LONGEST_TAG = 200


class SnapshotOperation(SnapshotsOperation):
    """Base of what is done to one snapshot, known by its guid."""

    snapshot: str
    guid: int

    def __post_init__(self) -> None:
        names.existing_snapshot(self.snapshot)

    @property
    def dataset(self) -> str:
        return self.snapshot.partition("@")[0]

    @property
    def subject(self) -> str:
        return self.dataset

    def snapshot_datasets(self) -> tuple[str, ...]:
        return (self.dataset,)

    def there(self, facts: Facts) -> Snapshot | None:
        return next((one for one in facts.snapshots if (one.name, one.guid) == (self.snapshot, self.guid)), None)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from self.stopped(facts)
        if self.there(facts) is None:
            yield Reason("", f"The snapshot {self.snapshot} is no longer there.")

    def identity(self) -> dict[str, object]:
        return {"operation": msgspec.to_builtins(self)}


class HoldSnapshot(SnapshotOperation, tag="hold-snapshot"):
    """Keep a snapshot from being destroyed, by anybody, until it is released."""

    needs_proof = never

    who: str
    why: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.check_note(self.why, field="why")
        names.refuse_invisible_characters(self.who, "who")
        if not self.why:
            raise names.refuse("Say why it has to stay. Whoever finds it later will want to know.", "why")
        if len(self.tag.encode()) > LONGEST_TAG:
            raise names.refuse("That is too long. Say it in fewer words.", "why")

    @property
    def tag(self) -> str:
        return f"larder:{self.who.replace(':', ' ')}:{self.why}"

    @property
    def title(self) -> str:
        return f"Hold the snapshot {self.snapshot}"

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary=f"{self.snapshot} stays until it is released. No policy and no other tool can destroy it.",
            steps=(
                Step(
                    "hold",
                    "Hold it",
                    shlex.join(["zfs", "hold", self.tag, self.snapshot]),
                    lambda _work: libzfs.hold(self.snapshot, self.tag),
                    (self.snapshot,),
                    "Release it",
                ),
            ),
            identity=self.identity(),
            undo="It can be released again.",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return self.there(facts) is not None and self.tag in libzfs.holds(self.snapshot)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "It is not held. Hold it again."


class ReleaseSnapshot(SnapshotOperation, tag="release-snapshot"):
    """Let go of every hold of a snapshot, naming each."""

    needs_proof = always

    @property
    def title(self) -> str:
        return f"Release the snapshot {self.snapshot}"

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        found = self.there(facts)
        if found and not found.holds:
            yield Reason("", f"{self.snapshot} is not held.")

    def plan(self, facts: Facts) -> Plan:
        def act(work: Work) -> None:
            for tag in libzfs.holds(self.snapshot):
                libzfs.release(self.snapshot, tag)
                work.note(f"Released: {said(tag)}")

        return Plan(
            summary=f"{self.snapshot} may be destroyed again. Nothing happens to it by this alone.",
            steps=(
                Step("release", "Release all its holds", f"zfs release -- '{self.snapshot}'", act, (self.snapshot,)),
            ),
            identity=self.identity(),
            warnings=("A backup that is under way may have set a hold. It then has to begin anew.",),
            undo="It can be held again.",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        found = self.there(facts)
        return found is None or not found.holds

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "It is still held. Release it again."


def said(tag: str) -> str:
    """A hold as a person reads it: who set it and why, as far as its tag tells."""
    if found := OURS.fullmatch(tag):
        return f"{found['why']} ({found['who'] or 'somebody'})"
    return f"{tag} (set by another tool)"


class RenameSnapshot(SnapshotOperation, tag="rename-snapshot"):
    """Give a snapshot another name. A policy that made it knows it by its guid, but no longer by its run's name."""

    needs_proof = never

    to: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.check_snapshot_name(self.to, field="to")

    @property
    def target(self) -> str:
        return f"{self.dataset}@{self.to}"

    @property
    def title(self) -> str:
        return f"Rename the snapshot {self.snapshot}"

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if any(one.name == self.target for one in facts.snapshots):
            yield Reason("", f"{self.dataset} has a snapshot {self.to} already. Choose another name.", field="to")

    def plan(self, facts: Facts) -> Plan:
        argv = ["zfs", "rename", "--", self.snapshot, self.target]
        return Plan(
            summary=f"The snapshot is called {self.to} from then on.",
            steps=(command_step("rename", "Rename it", argv, touches=[self.snapshot], undo="Rename it back"),),
            identity=self.identity(),
            undo="It can be renamed back.",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return any((one.name, one.guid) == (self.target, self.guid) for one in facts.snapshots)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "It has its old name. Rename it again."


class CloneSnapshot(SnapshotOperation, tag="clone-snapshot"):
    """Make a folder of its own that begins as the snapshot is, and can be written to."""

    needs_proof = never

    name: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.check_folder_name(self.name)
        if len(self.target) > names.LONGEST_DATASET:
            raise names.refuse("The full name would be too long for ZFS. Choose a shorter one.", "name")

    @property
    def target(self) -> str:
        """Beside the folder that it is made from; below it where that is the pool itself."""
        above = self.dataset.rpartition("/")[0] or self.dataset
        return f"{above}/{self.name}"

    @property
    def title(self) -> str:
        return f"Make the folder {self.target} from a snapshot"

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if any(one.name.lower() == self.target.lower() for one in facts.datasets):
            yield Reason("", f"There is already a folder {self.target}. Choose another name.", field="name")
        source = facts.dataset(self.dataset)
        if source and (refusal := system_datasets.reason_against(source, facts.datasets)):
            yield refusal
        place = self.place(facts)
        if place and (against := mount.reason_against(self.target, place, facts.datasets)):
            yield against

    def place(self, facts: Facts) -> str:
        """Where it will be mounted; empty where it will not: a volume, or a folder of a place that has none."""
        source, above = facts.dataset(self.dataset), facts.dataset(self.target.rpartition("/")[0])
        if source is None or source.kind != "filesystem" or source.locked or above is None:
            return ""
        return f"{above.mountpoint.rstrip('/')}/{self.name}" if above.mountpoint.startswith("/") else ""

    def steps(self, place: str, settings: list[str]) -> tuple[Step, ...]:
        later = mount.NOT_YET if place else ()
        argv = ["zfs", "clone", *later, *settings, "--", self.snapshot, self.target]
        clone = command_step("clone", f"Make {self.target}", argv, touches=[self.target], undo="Destroy it")
        if not place:
            return (clone,)

        def act(work: Work) -> None:
            mountpoints.refuse_taken(place)
            clone.act(work)

        return (replace(clone, act=act), mount.mount_step(self.target, place, new=True))

    def plan(self, facts: Facts) -> Plan:
        # What is below a shared folder is shared with it: a copy of what somebody once deleted had better not be.
        above = facts.dataset(self.target.rpartition("/")[0])
        off = ["-o", f"{PROPERTY}={ShareSetting().text()}"] if above and above.share else []
        return Plan(
            summary=f"{self.target} begins as {self.snapshot} is. It takes space only for what is changed in it. It is not shared{', although the folder above it is' if off else ''}.",
            steps=self.steps(self.place(facts), off),
            identity=self.identity(),
            warnings=(f"While it is there, {self.snapshot} cannot be destroyed.",),
            undo="It can be destroyed again.",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        found = facts.dataset(self.target)
        return found is not None and found.origin == self.snapshot and (step != "mount" or found.mounted)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.dataset(self.target):
            return f"{self.target} is there, but not mounted. Look what else is at its place, then mount it."
        return f"{self.target} is not there. Make it again."
