"""Keys of unlocked datasets: lock, change the key, store it on the box or delete it there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Literal

from appliance import command
from appliance.datasets import reasons
from appliance.datasets.base import DatasetOperation
from appliance.datasets.encryption import key_store
from appliance.datasets.encryption.unlock import KEY_FILES, encode_key, key_step, no_own_key
from appliance.datasets.mount import unmount_argv
from appliance.errors import Failed, Reason
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.copy_mark import is_continued
from appliance.facts.datasets import Dataset
from appliance.message import Message, join_messages
from appliance.operation import Plan, Step, Work, always, never
from appliance.shares import publish, teardown
from appliance.zfs.dataset_losses import name_with_below

FORMATS = {"passphrase": "passphrase", "key file": "hex"}
STORED_KEY_MEANS = Message(
    "This box then unlocks it after each start. Somebody who steals the whole box has the key and the files; "
    "the disks alone, without this box's system disk, stay locked."
)


class LockDataset(DatasetOperation, tag="lock-dataset"):
    """Unmount the datasets that a key unlocks, and unload the key."""

    needs_proof = never

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), "shares")

    def files_taken(self) -> tuple[str, ...]:
        return (self.dataset,)

    @property
    def title(self) -> str:
        return Message("Lock {dataset}", dataset=self.dataset)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        if dataset is None:
            return
        if dataset.encryption_root != self.dataset:
            yield no_own_key(self.dataset)
        elif dataset.locked:
            yield Reason("dataset-locked-already", "{dataset} is already locked.", dataset=self.dataset)

    def mounted_datasets(self, facts: Facts) -> list[Dataset]:
        """The mounted datasets that the key unlocks, and all that are mounted below them."""
        names = {
            one.name
            for root in facts.datasets
            if root.encryption_root == self.dataset
            for one in facts.below(root.name)
        }
        return [dataset for dataset in facts.datasets if dataset.name in names and dataset.mounted]

    def plan(self, facts: Facts) -> Plan:
        mounted = self.mounted_datasets(facts)
        volumes = [one for one in facts.datasets if one.encryption_root == self.dataset and one.kind == "volume"]
        shares = teardown.shares_at(facts, [*mounted, *volumes])
        tops = [
            dataset for dataset in mounted if not any(dataset.name.startswith(f"{other.name}/") for other in mounted)
        ]
        unload = ["zfs", "unload-key", "--", self.dataset]

        def unmount_all(work: Work) -> None:
            for top in tops:
                teardown.run_unmounting(
                    unmount_argv(top.name), top.name, [found.mountpoint for found in mounted], serve_again=True
                )
                work.note(Message("Unmounted {top}", top=top.name))
            if shares:
                publish.tell_network(work.note)

        def unload_key(work: Work) -> None:
            command.run(unload, timeout=120)
            work.note(Message("{dataset} is locked", dataset=self.dataset))

        shown = "\n".join(shlex.join(unmount_argv(top.name)) for top in tops)
        unmount = Step(
            "unmount", Message("Unmount the folders"), shown, unmount_all, tuple(dataset.name for dataset in mounted)
        )
        keeps = key_store.is_marked(dataset) if (dataset := self.find_dataset(facts)) else False
        return Plan(
            summary=Message(
                "{folders} cannot be read until the key is given again. Nothing is erased.",
                folders=name_with_below(self.dataset, [*mounted, *volumes]),
            ),
            steps=(
                *teardown.close_step(shares),
                *([unmount] if mounted else []),
                Step(
                    "unload",
                    Message("Forget the key that is loaded"),
                    shlex.join(unload),
                    unload_key,
                    (self.dataset,),
                    Message("Unlock it again"),
                ),
            ),
            identity={
                **self.plan_identity(),
                "mounted": sorted(dataset.guid for dataset in mounted),
                **teardown.connected_computers(shares),
            },
            warnings=(
                *teardown.disk_warnings(shares),
                *((Message("Its shares answer nobody meanwhile."),) if shares else ()),
                *((Message("This box keeps its key: after the next start it is unlocked again."),) if keeps else ()),
            ),
            undo=Message("Unlock it at any time."),
            details=teardown.review_facts(facts, shares),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = self.find_dataset(facts)
        if dataset is None or dataset.locked:
            return dataset is not None
        return step in {"close", "unmount"} and not self.mounted_datasets(facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        dataset = self.find_dataset(facts)
        if dataset and dataset.locked:
            return Message("{dataset} is locked.", dataset=self.dataset)
        if self.mounted_datasets(facts):
            return Message(
                "{dataset} is still unlocked. Some of its folders may be unmounted: mount them, or lock it again.",
                dataset=self.dataset,
            )
        return Message(
            "Its folders are unmounted, but the key is still loaded. Something uses a volume of it. Stop "
            "that, then lock {dataset} again.",
            dataset=self.dataset,
        )


class EncryptionRootOperation(DatasetOperation):
    """Base of operations on the key of an unlocked encryption root."""

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        if dataset is None:
            return
        if dataset.encryption == "off":
            yield Reason(
                "dataset-not-encrypted",
                "{dataset} is not encrypted. Encryption can only be chosen when a folder is created.",
                dataset=self.dataset,
            )
        elif dataset.locked:
            yield reasons.dataset_locked(self.dataset)


class ChangeKey(EncryptionRootOperation, tag="change-key"):
    """Set a new passphrase or key file; a dataset below an encryption root becomes a root of its own."""

    needs_proof = always

    to: Literal["passphrase", "key file"]

    @property
    def title(self) -> str:
        return Message("Change the key of {dataset}", dataset=self.dataset)

    def wants_secret(self) -> bool:
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        if dataset and is_continued(dataset.copy_of):
            # The next stream brings the original's key for a part of it, and the rest opens with
            # neither (openzfs/zfs#12614).
            yield Reason(
                "key-of-copy",
                "{dataset} is the copy of a backup. Change the key of the original: the next backup brings it here.",
                dataset=self.dataset,
            )

    def is_backed_up(self, facts: Facts) -> bool:
        """Whether the folder, or one that it lies in, has a backup."""
        above = (one for one in facts.datasets if f"{self.dataset}/".startswith(f"{one.name}/"))
        return any(one.own_backup for one in above)

    def plan(self, facts: Facts) -> Plan:
        dataset = self.find_dataset(facts)
        kind = FORMATS[self.to]
        argv = ["zfs", "change-key", "-o", f"keyformat={kind}", "-o", "keylocation=prompt", "--", self.dataset]
        change = key_step("change", Message("Change the key"), argv, kind, self.dataset)
        own = dataset is not None and dataset.encryption_root == self.dataset
        keeps = dataset is not None and key_store.is_marked(dataset)
        return Plan(
            summary=join_messages(
                [
                    Message("{dataset} is opened by a new {to} from now on.", dataset=self.dataset, to=self.to),
                    ""
                    if own
                    else Message(
                        " So far it was opened by the key of {encryption_root}.",
                        encryption_root=dataset.encryption_root if dataset else Message("its parent"),
                    ),
                ],
                "",
            ),
            steps=(change, *([delete_key_step(self.dataset, self.guid)] if keeps else [])),
            identity={**self.plan_identity(), "root": dataset.encryption_root if dataset else "", "keeps": keeps},
            warnings=(
                Message(
                    "The files are not encrypted again. With the old key, an old copy of the disks can still be read."
                ),
                *(
                    (Message("Its copies open with the old key until the next backup. Keep the old one until then."),)
                    if self.is_backed_up(facts)
                    else ()
                ),
            ),
            undo=Message("It can be changed again at any time."),
            key_file=self.to == "key file",
        )

    def probe(self, step: str, facts: Facts) -> bool:
        # Nothing shows from outside that a key has changed, so this never claims it.
        return step == "forget" and not key_store.has_key(self.guid)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message(
            "Either the old or the new key opens it. It stays open until the box is switched off: change the "
            "key once more, so that you know which."
        )


def mark_step(dataset: str) -> Step:
    argv = ["zfs", "set", "--", f"{user_properties.UNLOCK}={key_store.box_mark()}", dataset]

    def set_mark(_work: Work) -> None:
        command.run(argv, timeout=60)

    return Step(
        "mark", Message("Note on the folder that this box stores its key"), shlex.join(argv), set_mark, (dataset,)
    )


def delete_key_step(dataset: str, guid: int) -> Step:
    argv = ["zfs", "inherit", "--", user_properties.UNLOCK, dataset]

    def delete_key(work: Work) -> None:
        key_store.delete_key(guid)
        command.run(argv, timeout=60)
        work.note(Message("This box no longer stores the key"))

    return Step(
        "forget",
        Message("Remove the key from this box"),
        f"delete {key_store.key_path(guid)}\n{shlex.join(argv)}",
        delete_key,
        (dataset,),
    )


class StoreKey(EncryptionRootOperation, tag="store-key"):
    """Store the key on this box, which then unlocks the dataset after each start. The key is tried first."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Keep the key of {dataset} on this box", dataset=self.dataset)

    def wants_secret(self) -> bool:
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        if dataset and dataset.encryption != "off" and dataset.encryption_root != self.dataset:
            yield Reason(
                "key-of-parent",
                "It is unlocked by the key of {root}. Store that key instead.",
                root=dataset.encryption_root,
            )

    def plan(self, facts: Facts) -> Plan:
        dataset = self.find_dataset(facts)
        kind = dataset.key_format if dataset else ""
        trial = ["zfs", "load-key", "-n", "-L", "prompt", "--", self.dataset]

        def try_and_store(work: Work) -> None:
            secret = work.secret()
            try:
                command.run(trial, timeout=300, given=encode_key(secret, kind))
            except command.CommandFailed as failed:
                raise Failed(Message("That does not open it, so nothing was kept"), failed.said) from failed
            key_store.store_key(self.guid, secret)
            work.note(Message("The key unlocks it and is stored"))

        return Plan(
            summary=Message(
                "The key of {dataset} is kept on this box's system disk, readable by root alone. {stored_key_means}",
                dataset=self.dataset,
                stored_key_means=STORED_KEY_MEANS,
            ),
            steps=(
                Step(
                    "keep",
                    Message("Try the key, then store it"),
                    f"{shlex.join(trial)}\nwrite {key_store.key_path(self.guid)}",
                    try_and_store,
                    (self.dataset,),
                    Message("Remove it again"),
                ),
                mark_step(self.dataset),
            ),
            identity=self.plan_identity(),
            warnings=(Message("Encryption then protects disks that leave this box, not the box itself."),),
            undo=Message("The key can be removed from this box at any time."),
            key_file=kind in KEY_FILES,
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = self.find_dataset(facts)
        if dataset is None or not key_store.has_key(self.guid):
            return False
        return step == "keep" or key_store.is_marked(dataset)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if key_store.has_key(self.guid):
            return Message("The key is on this box, but the folder may not say so. Store the key again, or remove it.")
        return Message("The key is not on this box. Store the key again if you want it there.")


class DeleteStoredKey(DatasetOperation, tag="delete-key"):
    """Remove the key from this box: the dataset then has to be unlocked by hand after each start."""

    needs_proof = always

    @property
    def title(self) -> str:
        return Message("Remove the key of {dataset} from this box", dataset=self.dataset)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        if dataset and not key_store.is_marked(dataset):
            yield Reason("key-not-stored", "This box does not store its key.")

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary=Message(
                "After the next start {dataset} stays locked until you unlock it. Be sure that you have the "
                "key elsewhere.",
                dataset=self.dataset,
            ),
            steps=(delete_key_step(self.dataset, self.guid),),
            identity=self.plan_identity(),
            warnings=(
                Message(
                    "A deleted file can sometimes be read from a system disk. Change the key if the box gets "
                    "into other hands."
                ),
            ),
            undo=Message("The key can be stored again if you still have it."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = self.find_dataset(facts)
        return not key_store.has_key(self.guid) and (dataset is None or not key_store.is_marked(dataset))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message(
            "The key is {what} on this box. Remove it again until the folder's page no longer mentions it.",
            what=Message("still") if key_store.has_key(self.guid) else Message("no longer"),
        )
