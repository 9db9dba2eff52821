"""Operations on one snapshot: hold it with a reason, release it, rename it, clone it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from appliance import names
from appliance.errors import Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset, Snapshot
from appliance.message import Message
from appliance.operation import Plan, Step, Work, always, command_step, never
from appliance.shares.settings import ShareSetting, setting_of
from appliance.snapshots.take import SnapshotsOperation, snapshot_exists
from appliance.zfs import libzfs, mount, mountpoints, system_datasets, volmode

# ZFS keeps of a hold only its tag, so the tag says who set it and why. Tags of other tools are shown as they are.
OURS = re.compile(rf"{user_properties.PREFIX}(?P<who>[^:]*):(?P<why>.*)")
LONGEST_TAG = 200


class SnapshotOperation(SnapshotsOperation):
    """Base of operations on one snapshot, identified by its guid."""

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

    def find_snapshot(self, facts: Facts) -> Snapshot | None:
        wanted = (self.snapshot, self.guid)
        return next((snapshot for snapshot in facts.snapshots if (snapshot.name, snapshot.guid) == wanted), None)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from self.check_pool(facts)
        if self.find_snapshot(facts) is None:
            yield Reason("snapshot-missing", "The snapshot {snapshot} is no longer there.", snapshot=self.snapshot)

    def plan_identity(self) -> dict[str, object]:
        return {"operation": msgspec.to_builtins(self)}


class HoldSnapshot(SnapshotOperation, tag="hold-snapshot"):
    """Protect a snapshot from deletion, by anybody, until it is released."""

    needs_proof = never

    who: str
    why: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.check_note(self.why, field="why")
        names.refuse_invisible_characters(self.who, "who")
        if not self.why:
            raise Refused(
                Reason("hold-without-reason", "Enter why the snapshot has to stay. It helps others later.", field="why")
            )
        if len(self.tag.encode()) > LONGEST_TAG:
            raise Refused(Reason("hold-reason-too-long", "The reason is too long. Use fewer words.", field="why"))

    @property
    def tag(self) -> str:
        return f"{user_properties.PREFIX}{self.who.replace(':', ' ')}:{self.why}"

    @property
    def title(self) -> str:
        return Message("Protect the snapshot {snapshot} from deletion", snapshot=self.snapshot)

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary=Message(
                "{snapshot} stays until it is released. No schedule and no other tool can destroy it.",
                snapshot=self.snapshot,
            ),
            steps=(
                Step(
                    "hold",
                    Message("Protect the snapshot from deletion"),
                    shlex.join(["zfs", "hold", self.tag, self.snapshot]),
                    lambda _work: libzfs.hold_snapshot(self.snapshot, self.tag),
                    (self.snapshot,),
                    Message("Release the snapshot"),
                ),
            ),
            identity=self.plan_identity(),
            undo=Message("The snapshot can be released."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return self.find_snapshot(facts) is not None and self.tag in libzfs.read_holds(self.snapshot)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The snapshot is not protected. Protect it again.")


class ReleaseSnapshot(SnapshotOperation, tag="release-snapshot"):
    """Remove every hold of a snapshot and name each in the job's log."""

    needs_proof = always

    @property
    def title(self) -> str:
        return Message("Release the snapshot {snapshot}", snapshot=self.snapshot)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        snapshot = self.find_snapshot(facts)
        if snapshot and not snapshot.holds:
            yield Reason("snapshot-not-held", "{snapshot} is not protected.", snapshot=self.snapshot)

    def plan(self, facts: Facts) -> Plan:
        def act(work: Work) -> None:
            for tag in libzfs.read_holds(self.snapshot):
                libzfs.release_hold(self.snapshot, tag)
                work.note(Message("Released: {hold_text}", hold_text=hold_text(tag)))

        # Only root may list the tags, so the page that shows this cannot name them.
        text = Message(
            "{command}, for the tag of each of its holds",
            command=shlex.join(["zfs", "release", "TAG", self.snapshot]),
        )
        return Plan(
            summary=Message(
                "{snapshot} can be destroyed again. Releasing it does not destroy it.", snapshot=self.snapshot
            ),
            steps=(Step("release", Message("Release all its holds"), text, act, (self.snapshot,)),),
            identity=self.plan_identity(),
            warnings=(Message("A backup in progress may have protected it. If so, that backup has to start over."),),
            undo=Message("The snapshot can be protected again."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        snapshot = self.find_snapshot(facts)
        return snapshot is None or not snapshot.holds

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The snapshot is still protected. Release it again.")


def hold_text(tag: str) -> str:
    """A hold in words: why it was set and by whom, as far as its tag tells."""
    if match := OURS.fullmatch(tag):
        return f"{match['why']} ({match['who'] or 'somebody'})"
    return Message("{tag} (set by another tool)", tag=tag)


class RenameSnapshot(SnapshotOperation, tag="rename-snapshot"):
    """Rename a snapshot. The schedule that made it still knows it by its guid, but no longer by the name of its run."""

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
        return Message("Rename the snapshot {snapshot}", snapshot=self.snapshot)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if any(snapshot.name == self.target for snapshot in facts.snapshots):
            yield snapshot_exists(self.dataset, self.to, field="to")

    def plan(self, facts: Facts) -> Plan:
        argv = ["zfs", "rename", "--", self.snapshot, self.target]
        return Plan(
            summary=Message("The snapshot gets the name {to}.", to=self.to),
            steps=(
                command_step(
                    "rename",
                    Message("Rename the snapshot"),
                    argv,
                    affects=[self.snapshot],
                    undo=Message("Rename it back"),
                ),
            ),
            identity=self.plan_identity(),
            undo=Message("The snapshot can be renamed back."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return any((snapshot.name, snapshot.guid) == (self.target, self.guid) for snapshot in facts.snapshots)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The snapshot still has its old name. Rename it again.")


class CloneSnapshot(SnapshotOperation, tag="clone-snapshot"):
    """Make a new, writable folder that starts with the content of the snapshot."""

    needs_proof = never

    name: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.check_folder_name(self.name)
        if len(self.target) > names.LONGEST_DATASET:
            raise Refused(
                Reason(
                    "dataset-name-too-long", "The full name is too long for ZFS. Choose a shorter name.", field="name"
                )
            )

    @property
    def target(self) -> str:
        """The new dataset: beside the snapshot's dataset, or below it if that is the pool's top."""
        above = self.dataset.rpartition("/")[0] or self.dataset
        return f"{above}/{self.name}"

    @property
    def title(self) -> str:
        return Message("Make {target} from a snapshot", target=self.target)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if any(dataset.name.lower() == self.target.lower() for dataset in facts.datasets):
            yield Reason(
                "dataset-exists", "{dataset} already exists. Choose another name.", field="name", dataset=self.target
            )
        source = facts.dataset(self.dataset)
        if source and parse_copy_mark(source.copy_of):
            # It would lie beside the copy, where nothing is mounted: also beside one that was set aside.
            yield Reason(
                "clone-of-copy",
                "{dataset} belongs to the copies of backups, and what is made there cannot be used. Choose "
                "“{restore}” on the page of the copy.",
                dataset=self.dataset,
                restore=Message("Restore this volume") if source.kind == "volume" else Message("Restore this folder"),
            )
        if source and (refusal := system_datasets.reason_against(source, facts.datasets)):
            yield refusal
        place = self.find_mountpoint(facts)
        if place and (against := mount.reason_against(self.target, place, facts.datasets)):
            yield against

    def find_mountpoint(self, facts: Facts) -> str:
        """Where it will be mounted; empty for a volume, and where the parent has no mountpoint."""
        source, above = facts.dataset(self.dataset), facts.dataset(self.target.rpartition("/")[0])
        if source is None or source.kind != "filesystem" or source.locked or above is None:
            return ""
        return f"{above.mountpoint.rstrip('/')}/{self.name}" if above.mountpoint.startswith("/") else ""

    def plan_steps(self, place: str, settings: list[str]) -> tuple[Step, ...]:
        later = mount.NOT_YET if place else ()
        argv = ["zfs", "clone", *later, *settings, "--", self.snapshot, self.target]
        clone = command_step(
            "clone",
            Message("Make {target}", target=self.target),
            argv,
            affects=[self.target],
            undo=Message("Destroy it"),
        )
        if not place:
            return (clone,)

        def act(work: Work) -> None:
            mountpoints.refuse_taken(place)
            clone.run(work)

        return (replace(clone, run=act), mount.mount_step(self.target, place, new=True))

    def plan(self, facts: Facts) -> Plan:
        # A folder below a shared one is shared with it, but this one may hold files that somebody deleted on purpose.
        above = facts.dataset(self.target.rpartition("/")[0])
        off = ["-o", f"{user_properties.SHARE}={ShareSetting().text()}"] if above and above.share else []
        source = facts.dataset(self.dataset)
        quiet = source is not None and is_of_other_computer(source)
        unshared = (
            Message("It is not shared, although the folder above it is.") if off else Message("It is not shared.")
        )
        return Plan(
            summary=Message(
                "{target} starts with the content of {snapshot}. Only what is changed in it uses space. {unshared}",
                target=self.target,
                snapshot=self.snapshot,
                unshared=unshared,
            ),
            steps=self.plan_steps(self.find_mountpoint(facts), [*off, *(["-o", volmode.UNREAD] if quiet else [])]),
            identity=self.plan_identity(),
            warnings=(
                Message("As long as it exists, {snapshot} cannot be destroyed.", snapshot=self.snapshot),
                *([volmode.unread_text([self.target])] if quiet else []),
            ),
            undo=Message("What was made can be destroyed again."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.target)
        return dataset is not None and dataset.origin == self.snapshot and (step != "mount" or dataset.mounted)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.dataset(self.target):
            return Message(
                "{target} exists, but is not mounted. Check what else is at its mountpoint, then mount it.",
                target=self.target,
            )
        return Message("{target} does not exist. Make it again.", target=self.target)


def is_of_other_computer(dataset: Dataset) -> bool:
    """Whether another computer has written the partitions on a volume: it is shared over iSCSI, or was, which leaves
    ``volmode=dev``."""
    mode, setting = dataset.properties.get("volmode"), setting_of(dataset)
    noted = (mode is not None and mode.value == "dev") or (setting is not None and setting.iscsi is not None)
    return dataset.kind == "volume" and noted
