"""Where a dataset is: rename or move it, make a clone independent, mount and unmount it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from appliance import command, names
from appliance.datasets import reasons
from appliance.datasets.base import DatasetOperation
from appliance.errors import LarderError, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Share
from appliance.operation import Plan, Step, Work, never
from appliance.shares import dataset_teardown, pool_teardown, publish
from appliance.snapshots import expiry, policy
from appliance.zfs import mount as zfs_mount
from appliance.zfs import mountpoints, status, system_datasets


@dataclass(frozen=True)
class Moving:
    """Renaming a dataset with all below it: unmounted, renamed, and mounted where it is then. ZFS by itself would follow
    links on the way there."""

    name: str
    target: str
    family: tuple[Dataset, ...]
    place: str  # where it will be; empty where it has no place or keeps its own

    @property
    def mounted(self) -> list[Dataset]:
        """What has to be unmounted, parents first."""
        return sorted((one for one in self.family if one.mounted), key=lambda one: one.mountpoint.count("/"))

    def argv(self, *, back: bool = False) -> list[str]:
        name, target = (self.target, self.name) if back else (self.name, self.target)
        kind = ["-u"] if self.family[0].kind == "filesystem" else []
        return ["zfs", "rename", *kind, "--", name, target]

    def shown(self) -> str:
        unmount = [shlex.join(["zfs", "unmount", "--", one.name]) for one in reversed(self.mounted)]
        mount = [shlex.join(["mount", "-t", "zfs", self.renamed(one.name)]) for one in self.mounted]
        return "\n".join([*unmount, shlex.join(self.argv()), *mount])

    def renamed(self, name: str) -> str:
        return self.target + name.removeprefix(self.name)

    def act(self, work: Work) -> None:
        if self.place:
            mountpoints.refuse_taken(self.place)
        try:
            for one in reversed(self.mounted):
                dataset_teardown.let_go(
                    ["zfs", "unmount", "--", one.name], self.name, [found.mountpoint for found in self.mounted]
                )
            command.run(self.argv(), timeout=600)
        except LarderError:
            self.mount_again(work)
            raise
        try:
            self.mount(work)
        except LarderError:
            self.go_back(work)
            raise
        for one in reversed(self.mounted):
            if self.place:
                mountpoints.remove_folder(one.mountpoint)
        work.note(f"{self.name} is {self.target} now")

    def mount(self, work: Work) -> None:
        for one in self.mounted:
            zfs_mount.mount(self.renamed(one.name), work, new=bool(self.place) and one.name == self.name)

    def mount_again(self, work: Work) -> None:
        """Everything where it was, as far as that goes, with its shares."""
        for one in self.mounted:
            try:
                zfs_mount.mount(one.name, work)
            except LarderError as error:
                work.note(f"{one.name} was not mounted again: {error}")
        with suppress(LarderError):
            pool_teardown.serve(status.read_datasets(), work.note)

    def go_back(self, work: Work) -> None:
        """The name that it had, since it cannot be mounted under the other one."""
        for one in reversed(self.mounted):
            command.run(["zfs", "unmount", "--", self.renamed(one.name)], timeout=600, accept=range(256))
        command.run(self.argv(back=True), timeout=600)
        work.note(f"It is called {self.name} again")
        self.mount_again(work)


class RenameDataset(DatasetOperation, tag="rename-dataset"):
    """Give a dataset another name or another parent in its pool; everything below goes along."""

    parent: str
    name: str

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        """Where the policy of the new place keeps less."""
        dataset = self.there(facts)
        if dataset is None or dataset.policy_source in policy.OWN:
            return dataset is None
        then = policy.parent_policy(facts.dataset(self.parent))
        return expiry.may_lose(facts.below(self.dataset), policy.policy_of(dataset), then)

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
        return f"Rename {self.dataset} to {self.target}"

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), "shares")

    def files_taken(self) -> tuple[str, ...]:
        return (self.dataset, self.target)

    def lasts(self) -> bool:
        # Everything below is unmounted and mounted again.
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset, parent = self.there(facts), facts.dataset(self.parent)
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
            filter(None, (system_datasets.reason_against(one, facts.datasets) for one in facts.below(self.dataset))),
            None,
        ):
            yield refused
        place = self.place(dataset, parent)
        if place and (against := zfs_mount.reason_against(self.target, place, facts.datasets)):
            yield against.with_field("parent")
        yield from self.check_place(dataset, parent)
        for other in facts.datasets:
            if other.name.lower() == self.target.lower() and other.guid != self.guid:
                yield reasons.dataset_exists(other.name)
        longest = max(len(one.name) for one in facts.below(self.dataset)) - len(self.dataset) + len(self.target)
        if longest > names.LONGEST_DATASET:
            yield Reason(
                "name-below-too-long",
                "The full name of a folder below it would be too long for ZFS. Choose a shorter name.",
                field="name",
            )

    def place(self, dataset: Dataset, parent: Dataset) -> str:
        """Where its files will be; empty where it has no place, or one of its own that stays."""
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
        shares = dataset_teardown.shares_at(facts, family)
        dataset, parent = self.there(facts), facts.dataset(self.parent)
        moving = Moving(self.dataset, self.target, family, self.place(dataset, parent) if dataset and parent else "")
        moved = Step(
            "rename",
            f"Rename it to {self.target}",
            moving.shown(),
            moving.act,
            tuple(one.name for one in family),
            "Rename it back",
        )
        return Plan(
            summary=f"{self.dataset} becomes {self.target}, with {len(family) - 1} below it, its snapshots and settings.",
            steps=(*dataset_teardown.close_step(shares), moved, *dataset_teardown.serve_step(shares)),
            identity={**self.identity(), "below": sorted(one.guid for one in family)},
            warnings=tuple(self.warnings(facts, shares)),
            undo="It can be renamed back at any time.",
            facts=dataset_teardown.told(facts, shares),
        )

    def warnings(self, facts: Facts, shares: list[Share]) -> Iterator[str]:
        if shares:
            yield "Whoever has a file of it open loses the connection. The shares keep their names."
        if dataset := self.there(facts):
            yield from policy.describe_move(dataset, facts.dataset(self.parent))

    def probe(self, step: str, facts: Facts) -> bool:
        now = facts.dataset_of(self.guid)
        if now is None or now.name != self.target or (now.can_mount and not now.locked and not now.mounted):
            return False
        return step != "serve" or dataset_teardown.all_served(facts, facts.below(self.target))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        now = facts.dataset_of(self.guid)
        if now is None:
            return f"{self.dataset} is no longer there."
        shares = " Look whether its shares are on." if step != "rename" else ""
        mounted = "" if now.mounted or not now.can_mount else " It is not mounted: mount it."
        return f"It is called {now.name} now.{mounted}{shares}"


class PromoteDataset(DatasetOperation, tag="promote-dataset"):
    """Make a clone independent: the snapshots that both share become its own, and the original depends on it instead."""

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        """Where the policy of the clone keeps less than that of the folder whose snapshots it gets."""
        dataset = self.there(facts)
        origin = facts.dataset(dataset.origin.partition("@")[0]) if dataset else None
        if dataset is None or origin is None:
            return True
        return expiry.keeps_less(policy.policy_of(origin), policy.policy_of(dataset))

    @property
    def title(self) -> str:
        return f"Make {self.dataset} independent"

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.there(facts)
        if dataset and not dataset.origin:
            yield Reason("dataset-not-clone", "{dataset} does not depend on another folder.", dataset=self.dataset)

    def plan(self, facts: Facts) -> Plan:
        dataset = self.there(facts)
        origin, _at, snapshot = (dataset.origin if dataset else "").partition("@")
        argv = ["zfs", "promote", self.dataset]  # it takes no “--” (2.3.9: "invalid option '-'")

        def act(work: Work) -> None:
            command.run(argv, timeout=300)
            work.note(f"{self.dataset} is independent")

        return Plan(
            summary=f"{self.dataset} was made from {origin} as of {snapshot}. It takes over that snapshot and all before it; {origin} then depends on {self.dataset}, and can be destroyed without it.",
            steps=(Step("promote", "Exchange who depends on whom", " ".join(argv), act, (self.dataset, origin), f"Make {origin} independent again"),),
            identity={**self.identity(), "origin": dataset.origin if dataset else ""},
            undo=f"Make {origin} independent again, which gives the snapshots back.",
        )  # fmt: skip

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = self.there(facts)
        return dataset is not None and not dataset.origin

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "Nothing was changed. A snapshot of the same name in both is a common reason: rename one of them."


class MountDataset(DatasetOperation, tag="mount-dataset"):
    """Make a file system's files reachable at its place."""

    needs_proof = never

    @property
    def title(self) -> str:
        return f"Mount {self.dataset}"

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), "shares")

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.there(facts)
        if dataset is None:
            return
        if dataset.mounted:
            yield Reason("dataset-mounted", "{dataset} is already mounted.", dataset=self.dataset)
        elif dataset.locked:
            yield reasons.dataset_locked(self.dataset)
        elif dataset.kind != "filesystem" or dataset.canmount == "off" or not dataset.mountpoint.startswith("/"):
            yield Reason("dataset-without-mountpoint", "{dataset} has no mountpoint on this box.", dataset=self.dataset)
        elif against := zfs_mount.reason_against(self.dataset, dataset.mountpoint, facts.datasets):
            yield against

    def plan(self, facts: Facts) -> Plan:
        dataset = self.there(facts)
        place = dataset.mountpoint if dataset else ""
        # Left so where a link was at its place, or where making it was cut short: no start of the box would mount it.
        noauto = dataset is not None and dataset.canmount == "noauto"
        later = ["zfs", "set", "-u", "canmount=on", self.dataset] if noauto else []

        def act(work: Work) -> None:
            zfs_mount.mount(self.dataset, work)
            if later:
                command.run(later, timeout=60)
            publish.republish_quietly(work)

        step = zfs_mount.mount_step(self.dataset, place)
        step = replace(step, act=act, shown="\n".join([step.shown, *([shlex.join(later)] if later else [])]))
        return Plan(
            summary=f"The files of {self.dataset} can be reached at {place}"
            + (", from now on after each start of the box too." if noauto else "."),
            steps=(step,),
            identity={**self.identity(), "place": place},
            undo="It can be unmounted at any time.",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = self.there(facts)
        return dataset is not None and dataset.mounted

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "It is not mounted. Look whether something else is at its place."


class UnmountDataset(DatasetOperation, tag="unmount-dataset"):
    """Put a file system and all that is mounted in it out of reach until it is mounted again."""

    needs_proof = never

    @property
    def title(self) -> str:
        return f"Unmount {self.dataset}"

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), "shares")

    def files_taken(self) -> tuple[str, ...]:
        return (self.dataset,)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.there(facts)
        if dataset and not dataset.mounted:
            yield Reason("dataset-unmounted", "{dataset} is not mounted.", dataset=self.dataset)
        if dataset and (refusal := system_datasets.reason_against(dataset, facts.datasets)):
            yield refusal

    def plan(self, facts: Facts) -> Plan:
        mounted = [one for one in facts.below(self.dataset) if one.mounted]
        shares = dataset_teardown.shares_at(facts, mounted)
        argv = ["zfs", "unmount", "--", self.dataset]

        def act(work: Work) -> None:
            dataset_teardown.let_go(argv, self.dataset, [one.mountpoint for one in mounted])
            work.note(f"{self.dataset} is unmounted")
            if shares:
                publish.tell_network(work.note)

        return Plan(
            summary=f"The files of {self.dataset} and of {len(mounted) - 1} mounted below it cannot be reached until it is mounted again. Nothing is erased.",
            steps=(*dataset_teardown.close_step(shares), Step("unmount", "Unmount it", " ".join(argv), act, tuple(one.name for one in mounted), "Mount it again")),
            identity={**self.identity(), "mounted": sorted(one.guid for one in mounted)},
            warnings=("Its shares answer nobody meanwhile.",) if shares else (),
            undo="Mount it again at any time. The next start of the box mounts it by itself.",
            facts=dataset_teardown.told(facts, shares),
        )  # fmt: skip

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = self.there(facts)
        return dataset is not None and not dataset.mounted

    def recovery_hint(self, step: str, facts: Facts) -> str:
        dataset = self.there(facts)
        return f"{self.dataset} is {'still' if dataset and dataset.mounted else 'not'} mounted."
