"""Rename a dataset, or move it within its pool."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from appliance import command, names
from appliance.datasets import reasons
from appliance.datasets.base import DatasetOperation
from appliance.datasets.mount import unmount_argv
from appliance.errors import LarderError, Reason, Refused, explain_error
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Share
from appliance.message import Message, message_template
from appliance.operation import Plan, Step, Work
from appliance.shares import inheritance, teardown
from appliance.shares.settings import lays_open
from appliance.snapshots import policy, retention
from appliance.zfs import mount as zfs_mount
from appliance.zfs import mountpoints, status, system_datasets

SUMMARIES = {  # by how many datasets move
    1: message_template("{dataset} becomes {target}, with its snapshots and settings."),
    2: message_template("{dataset} becomes {target}, with the one below it, its snapshots and settings."),
}


class DatasetMove(msgspec.Struct, frozen=True):
    """Rename a dataset with everything below it: unmount, rename, mount at the new place.

    ZFS would mount it itself, but follow symbolic links on the way.
    """

    name: str
    target: str
    family: tuple[Dataset, ...]
    place: str  # the new mountpoint; empty if there is none or it stays

    @property
    def mounted_family(self) -> list[Dataset]:
        """The datasets that have to be unmounted, parents first."""
        return sorted((found for found in self.family if found.mounted), key=lambda found: found.mountpoint.count("/"))

    def rename_argv(self, *, back: bool = False) -> list[str]:
        name, target = (self.target, self.name) if back else (self.name, self.target)
        kind = ["-u"] if self.family[0].kind == "filesystem" else []
        return ["zfs", "rename", *kind, "--", name, target]

    def command_text(self) -> str:
        unmount = [shlex.join(unmount_argv(dataset.name)) for dataset in reversed(self.mounted_family)]
        mount = [zfs_mount.mount_text(self.new_name_of(dataset.name)) for dataset in self.mounted_family]
        return "\n".join([*unmount, shlex.join(self.rename_argv()), *mount])

    def new_name_of(self, name: str) -> str:
        return self.target + name.removeprefix(self.name)

    def move_dataset(self, work: Work) -> None:
        if self.place:
            mountpoints.refuse_taken(self.place)
        try:
            for dataset in reversed(self.mounted_family):
                teardown.run_unmounting(
                    unmount_argv(dataset.name),
                    self.name,
                    [found.mountpoint for found in self.mounted_family],
                    serve_again=True,
                )
            command.run(self.rename_argv(), timeout=600)
        except LarderError:
            self.mount_back(work)
            raise
        try:
            self.mount_family(work)
        except LarderError:
            self.undo_rename(work)
            raise
        for dataset in reversed(self.mounted_family):
            if self.place:
                mountpoints.remove_folder(dataset.mountpoint)
        work.note(Message("{name} is {target} now", name=self.name, target=self.target))

    def mount_family(self, work: Work) -> None:
        for dataset in self.mounted_family:
            zfs_mount.mount_dataset(
                self.new_name_of(dataset.name), work, new=bool(self.place) and dataset.name == self.name
            )

    def mount_back(self, work: Work) -> None:
        """Mount everything where it was, as far as possible, and serve its shares."""
        for dataset in self.mounted_family:
            try:
                zfs_mount.mount_dataset(dataset.name, work)
            except LarderError as error:
                work.note(
                    Message(
                        "{dataset} was not mounted again: {error}", dataset=dataset.name, error=explain_error(error)
                    )
                )
        with suppress(LarderError):
            teardown.serve_datasets(status.read_datasets(), work.note)

    def undo_rename(self, work: Work) -> None:
        """Rename it back, since it could not be mounted under the new name."""
        for dataset in reversed(self.mounted_family):
            command.run(unmount_argv(self.new_name_of(dataset.name)), timeout=600, accept=range(256))
        command.run(self.rename_argv(back=True), timeout=600)
        work.note(Message("It is called {name} again", name=self.name))
        self.mount_back(work)


class RenameDataset(DatasetOperation, tag="rename-dataset"):
    """Give a dataset another name or another parent in its pool, with everything below it."""

    parent: str
    name: str

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        """Whether the snapshot schedule of the new parent retains less, or its share lays everything open."""
        dataset = self.find_dataset(facts)
        shared = self.share_move(facts)
        if shared and any(lays_open(part) for _protocol, part in shared.changed_parts()):
            return True
        if dataset is None or dataset.policy_source in policy.OWN:
            return dataset is None
        then = policy.parent_policy(facts.dataset(self.parent))
        return retention.may_lose([dataset, *policy.inheriting_datasets(dataset, facts.datasets)], then)

    def __post_init__(self) -> None:
        super().__post_init__()
        names.existing_dataset(self.parent, field="parent")
        names.check_folder_name(self.name)
        if len(self.target) > names.LONGEST_DATASET:
            raise Refused(reasons.name_too_long())

    @property
    def target(self) -> str:
        return f"{self.parent}/{self.name}"

    @property
    def title(self) -> str:
        return Message("Rename {dataset} to {target}", dataset=self.dataset, target=self.target)

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), "shares")

    def files_taken(self) -> tuple[str, ...]:
        return (self.dataset, self.target)

    def lasts(self) -> bool:
        # Everything below is unmounted and mounted again.
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset, parent = self.find_dataset(facts), facts.dataset(self.parent)
        if dataset is None:
            return
        if self.is_pool:
            yield Reason(
                "pool-not-renamed", "This is the pool itself. To rename a pool, export it and import it again."
            )
            return
        if self.target == self.dataset:
            yield Reason("dataset-name-unchanged", "It already has that name, in that folder.", field="name")
            return
        if parent is None or parent.kind != "filesystem":
            yield reasons.dataset_missing(self.parent).with_field("parent")
            return
        if refused := next(
            filter(
                None, (system_datasets.reason_against(dataset, facts.datasets) for dataset in facts.below(self.dataset))
            ),
            None,
        ):
            yield refused
        if copied := next((one for one in facts.below(self.dataset) if one.copy_of), None):
            # At another place a backup that keeps fewer snapshots would find it by its mark, and prune it.
            yield Reason(
                "copy-not-renamed",
                "{dataset} belongs to the copies that backups made, so it keeps its name and its place.",
                dataset=copied.name,
            )
        place = self.new_mountpoint(dataset, parent)
        if place and (against := zfs_mount.reason_against(self.target, place, facts.datasets)):
            yield against.with_field("parent")
        yield from self.check_place(dataset, parent)
        for other in facts.datasets:
            if other.name.lower() == self.target.lower() and other.guid != self.guid:
                yield reasons.dataset_exists(other.name)
        longest = max(len(dataset.name) for dataset in facts.below(self.dataset)) - len(self.dataset) + len(self.target)
        if longest > names.LONGEST_DATASET:
            yield Reason(
                "name-below-too-long",
                "The full name of a folder below it would be too long for ZFS. Choose a shorter name.",
                field="name",
            )

    def new_mountpoint(self, dataset: Dataset, parent: Dataset) -> str:
        """Its future mountpoint; empty if it has none, or one of its own that stays."""
        above = self.dataset.rpartition("/")[2]
        follows = dataset.mountpoint.endswith(f"/{above}") and dataset.can_mount
        if not follows or not parent.mountpoint.startswith("/"):
            return ""
        return f"{parent.mountpoint.rstrip('/')}/{self.name}"

    def check_place(self, dataset: Dataset, parent: Dataset) -> Iterator[Reason]:
        if parent.pool != dataset.pool:
            yield Reason(
                "parent-in-other-pool",
                "{parent} is in another pool. A folder can only move within its pool. Copy its files instead.",
                field="parent",
                parent=self.parent,
            )
        elif f"{self.parent}/".startswith(f"{self.dataset}/"):
            yield Reason(
                "dataset-into-itself", "A folder cannot be moved into itself. Choose another folder.", field="parent"
            )
        if parent.locked:
            yield reasons.dataset_locked(self.parent).with_field("parent")
        own = dataset.encryption_root == dataset.name
        if dataset.encryption != "off" and not own and parent.encryption_root != dataset.encryption_root:
            yield Reason(
                "key-of-other-parent",
                "It is encrypted with the key of {root} and has to stay below it. Give it a key of its own first.",
                field="parent",
                root=dataset.encryption_root,
            )
        if dataset.encryption == "off" and parent.encryption != "off":
            yield Reason(
                "parent-encrypted",
                "{parent} is encrypted and {dataset} is not. Create a new folder there and copy the files.",
                field="parent",
                parent=self.parent,
                dataset=self.dataset,
            )

    def plan(self, facts: Facts) -> Plan:
        family = facts.below(self.dataset)
        shares = teardown.shares_at(facts, family)
        dataset, parent = self.find_dataset(facts), facts.dataset(self.parent)
        shared = self.share_move(facts)
        move = DatasetMove(
            self.dataset, self.target, family, self.new_mountpoint(dataset, parent) if dataset and parent else ""
        )
        moved = Step(
            "rename",
            Message("Rename it to {target}", target=self.target),
            move.command_text(),
            move.move_dataset,
            tuple(dataset.name for dataset in family),
            Message("Rename it back"),
        )
        return Plan(
            summary=Message(
                SUMMARIES.get(
                    len(family),
                    message_template("{dataset} becomes {target}, with {number} below it, its snapshots and settings."),
                ),
                dataset=self.dataset,
                target=self.target,
                number=len(family) - 1,
            ),
            steps=(*teardown.close_step(shares), moved, *self.serve_steps(shares, shared)),
            identity={
                **self.plan_identity(),
                "below": sorted(dataset.guid for dataset in family),
                **teardown.connected_computers(shares),
                **({"shared": shared.then.text()} if shared and shared.gains_parts else {}),
            },
            warnings=tuple(self.list_warnings(facts, shares, shared)),
            undo=Message("It can be renamed back at any time."),
            details=teardown.review_facts(facts, shares),
        )

    def share_move(self, facts: Facts) -> inheritance.ShareMove | None:
        """What it changes about the shares that come from the folder above."""
        dataset = self.find_dataset(facts)
        return inheritance.find_move(dataset, facts.dataset(self.parent), self.target, facts) if dataset else None

    def serve_steps(self, shares: list[Share], shared: inheritance.ShareMove | None) -> list[Step]:
        gains = shared is not None and shared.then.anything
        ends = shared is not None and not gains and {share.path for share in shares} <= shared.places
        return [teardown.serve_step(stays=not ends)] if shares or gains else []

    def list_warnings(self, facts: Facts, shares: list[Share], shared: inheritance.ShareMove | None) -> Iterator[str]:
        if shares:
            yield Message("Clients that have a file of it open are disconnected.")
            yield from teardown.disk_warnings(shares)
        dataset, parent = self.find_dataset(facts), facts.dataset(self.parent)
        if dataset is None or parent is None:
            return
        own = shared is None or not shared.now_in_use
        if own and any(share.protocol != "nfs" for share in shares):
            yield Message("The shares keep their names.")
        exported = any(share.protocol == "nfs" for share in shares) and not (shared and "nfs" in shared.lost)
        if exported and (place := self.new_mountpoint(dataset, parent)):
            yield Message("Its NFS path becomes {place}. Change it on the computers that mount it.", place=place)
        if shared:
            yield from shared.describe()
        yield from policy.describe_move(dataset, parent)

    def probe(self, step: str, facts: Facts) -> bool:
        now = facts.dataset_of(self.guid)
        if now is None or now.name != self.target or (now.can_mount and not now.locked and not now.mounted):
            return False
        return step != "serve" or teardown.all_served(facts, facts.below(self.target))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        now = facts.dataset_of(self.guid)
        if now is None:
            return Message("{dataset} is no longer there.", dataset=self.dataset)
        shares = Message(" Check whether its shares are on.") if step != "rename" else ""
        mounted = "" if now.mounted or not now.can_mount else Message(" It is not mounted: mount it.")
        return Message("It is called {now} now.{mounted}{shares}", now=now.name, mounted=mounted, shares=shares)
