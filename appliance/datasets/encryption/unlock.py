"""Unlock encrypted datasets: load the key that a person gives or that the box stores, then mount."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from appliance import command, names, passphrases
from appliance.datasets import reasons
from appliance.datasets.encryption import key_store
from appliance.errors import Failed, LarderError, Reason, explain_error
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import count_content
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.shares import publish
from appliance.zfs import mount as zfs_mount
from appliance.zfs.dataset_losses import name_with_below, split_kinds

KEY_FILES = {"hex", "raw"}  # zfsprops(7), keyformat: keys that come as files


def encode_key(secret: str, key_format: str) -> str | bytes:
    """Encode a passphrase or a key's digits for the standard input of ``zfs``. Raises Refused if it is not a key.

    zfs-load-key(8): a line of text, or the 32 bytes of a raw key.
    """
    if key_format in KEY_FILES:
        passphrases.key_digits(secret)
    return bytes.fromhex(secret) if key_format == "raw" else f"{secret}\n"


def no_own_key(dataset: str) -> Reason:
    return Reason("dataset-without-key", "{dataset} has no key of its own.", dataset=dataset)


def load_key_argv(dataset: str) -> list[str]:
    return ["zfs", "load-key", "-L", "prompt", "--", dataset]


def key_step(name: str, title: str, argv: list[str], key_format: str, dataset: str, undo: str = "") -> Step:
    """A step that is one command, with the job's secret on standard input."""

    def run_with_secret(work: Work) -> None:
        result = command.run(argv, timeout=300, given=encode_key(work.secret(), key_format))
        for line in (result.stdout + result.stderr).splitlines():
            work.note(line)

    return Step(name, title, shlex.join(argv), run_with_secret, (dataset,), undo)


def datasets_of_key(facts: Facts, root: str) -> list[Dataset]:
    """The datasets that the key of an encryption root unlocks and that can be mounted, parents first."""
    return [dataset for dataset in facts.datasets if dataset.encryption_root == root and dataset.can_mount]


def mountable_datasets(facts: Facts, root: str) -> list[Dataset]:
    """Those of ``datasets_of_key`` whose mountpoint is below the folder of their pool."""
    return [
        dataset
        for dataset in datasets_of_key(facts, root)
        if not zfs_mount.reason_against(dataset.name, dataset.mountpoint, facts.datasets)
    ]


def explain_unmounted(facts: Facts, root: str) -> list[str]:
    """Why the others are not mounted, one sentence each."""
    waiting = [dataset for dataset in datasets_of_key(facts, root) if not dataset.mounted]
    return [
        str(reason.message)
        for dataset in waiting
        if (reason := zfs_mount.reason_against(dataset.name, dataset.mountpoint, facts.datasets))
    ]


def mount_datasets(waiting: Iterable[Dataset], work: Work) -> None:
    """Mount these datasets, parents first. If one fails, those below it stay unmounted too. Raises Failed."""
    failed: list[tuple[Dataset, LarderError]] = []
    for dataset in sorted(waiting, key=lambda found: found.mountpoint.count("/")):
        if any(dataset.mountpoint.startswith(f"{other.mountpoint}/") for other, _error in failed):
            continue
        try:
            zfs_mount.mount_dataset(dataset.name, work)
        except LarderError as error:
            failed.append((dataset, error))
    if failed:
        told = [
            Message("{dataset} was not mounted: {reason}", dataset=one.name, reason=explain_error(error))
            for one, error in failed
        ]
        raise Failed(join_messages(told, "; "))


def show_mounts(waiting: Iterable[Dataset]) -> str:
    return "\n".join(zfs_mount.mount_text(dataset.name, dataset.mountpoint) for dataset in waiting)


class UnlockDataset(Operation, tag="unlock-dataset"):
    """Load the key of an encryption root, a passphrase or a key file, and mount what it unlocks."""

    needs_proof = never

    dataset: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)

    @property
    def title(self) -> str:
        return Message("Unlock {dataset}", dataset=self.dataset)

    @property
    def subject(self) -> str:
        return self.dataset

    def wants_secret(self) -> bool:
        return True

    def locks(self) -> tuple[str, ...]:
        return (self.dataset.split("/", 1)[0], "shares")

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            yield reasons.dataset_missing(self.dataset)
        elif dataset.encryption_root != self.dataset:
            yield no_own_key(self.dataset)
        elif not dataset.locked:
            yield Reason("dataset-unlocked-already", "{dataset} is already unlocked.", dataset=self.dataset)

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.dataset)
        waiting = [member for member in mountable_datasets(facts, self.dataset) if not member.mounted]
        volumes = [one for one in facts.datasets if one.encryption_root == self.dataset and one.kind == "volume"]
        kind = dataset.key_format if dataset else ""
        load = load_key_argv(self.dataset)

        outside = explain_unmounted(facts, self.dataset)

        def mount_waiting(work: Work) -> None:
            for text in outside:
                work.note(text)
            try:
                mount_datasets(waiting, work)
            finally:
                publish.republish_quietly(work)

        return Plan(
            summary=Message(
                "{folders} can be used until the box is switched off.",
                folders=name_with_below(self.dataset, [*waiting, *volumes]),
            ),
            steps=(
                key_step("key", Message("Load the key"), load, kind, self.dataset),
                Step(
                    "mount",
                    Message("Mount the folders"),
                    show_mounts(waiting),
                    mount_waiting,
                    tuple(dataset.name for dataset in waiting),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "dataset": dataset.guid if dataset else 0},
            undo=Message("Yes: lock it again at any time."),
            warnings=tuple(outside),
            key_file=kind in KEY_FILES,
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.dataset)
        if dataset is None or dataset.locked:
            return False
        return step == "key" or all(member.mounted for member in mountable_datasets(facts, self.dataset))

    def recovery_hint(self, step: str, facts: Facts) -> str:
        dataset = facts.dataset(self.dataset)
        if dataset and dataset.locked:
            what = Message("key file") if dataset.key_format in KEY_FILES else Message("passphrase")
            return Message("It is still locked. Check the {what} and unlock it again.", what=what)
        return Message("The key is loaded, but some folders are not mounted. See the folder's page.")


class UnlockAll(Operation, tag="unlock-all"):
    """Try one passphrase and the stored keys on every locked dataset, for use after a start."""

    needs_proof = never

    datasets: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in self.datasets:
            names.existing_dataset(name, field="datasets")

    @property
    def title(self) -> str:
        return Message("Unlock everything")

    @property
    def subject(self) -> str:
        return ", ".join(self.datasets)[:200]

    def wants_secret(self) -> bool:
        return True

    def locks(self) -> tuple[str, ...]:
        return (*sorted({name.split("/", 1)[0] for name in self.datasets}), "shares")

    def lasts(self) -> bool:
        return True

    def locked_roots(self, facts: Facts) -> list[Dataset]:
        return [
            dataset
            for dataset in facts.datasets
            if dataset.locked and dataset.encryption_root == dataset.name and dataset.name in self.datasets
        ]

    def check(self, facts: Facts) -> Iterator[Reason]:
        if not self.locked_roots(facts):
            yield Reason("nothing-locked", "Nothing is locked.")

    def plan(self, facts: Facts) -> Plan:
        locked = self.locked_roots(facts)
        waiting = {
            dataset.name: [member for member in mountable_datasets(facts, dataset.name) if not member.mounted]
            for dataset in locked
        }

        def unlock_all(work: Work) -> None:
            passphrase, still_locked, failures = work.secret(), [], []
            for root in locked:
                work.stop_if_asked()
                if not self.unlock_root(root, passphrase):
                    still_locked.append(root.name)
                    continue
                work.note(Message("{root} is unlocked", root=root.name))
                for text in explain_unmounted(facts, root.name):
                    work.note(text)
                try:
                    mount_datasets(waiting[root.name], work)
                except Failed as failed:
                    failures.append(explain_error(failed))
            publish.republish_quietly(work)
            if still_locked:
                failures.insert(
                    0,
                    Message(
                        "Still locked: {datasets}. These need another passphrase or a key file. Unlock them one by one",
                        datasets=", ".join(still_locked),
                    ),
                )
            if failures:
                raise Failed(join_messages(failures, ". "))

        loads = [shlex.join(load_key_argv(root.name)) for root in locked]
        shown = "\n".join(filter(None, [*loads, *map(show_mounts, waiting.values())]))
        return Plan(
            summary=Message(
                "The passphrase is tried on {folders}, and what it opens is mounted. Stored keys are used too.",
                folders=name_locked(locked),
            ),
            steps=(
                Step("unlock", Message("Try it on each"), shown, unlock_all, tuple(dataset.name for dataset in locked)),
            ),
            warnings=tuple(text for dataset in locked for text in explain_unmounted(facts, dataset.name)),
            identity={"locked": sorted(dataset.guid for dataset in locked)},
            undo=Message("Yes: lock each of them again at any time."),
        )

    @staticmethod
    def unlock_root(root: Dataset, passphrase: str) -> bool:
        """Whether the passphrase, or else the stored key, unlocked it."""
        if root.key_format not in KEY_FILES:
            given = f"{passphrase}\n"
            if command.run(load_key_argv(root.name), timeout=300, given=given, accept=range(256)).status == 0:
                return True
        return unlock_with_stored_key(root)

    def probe(self, step: str, facts: Facts) -> bool:
        return not self.locked_roots(facts)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        locked = [dataset.name for dataset in self.locked_roots(facts)]
        return (
            Message("Still locked: {locked}. Unlock these one by one.", locked=", ".join(locked))
            if locked
            else Message("Everything is unlocked.")
        )


def name_locked(locked: Sequence[Dataset]) -> str:
    """The only one by its name, or how many folders and volumes."""
    if len(locked) == 1:
        return locked[0].name
    folders, volumes = split_kinds(locked)
    if not volumes:
        return Message("{count} locked folders", count=len(folders))
    return Message("{content} that are locked", content=count_content(len(folders), len(volumes)))


def unlock_with_stored_key(one: Dataset) -> bool:
    """Whether the stored key unlocked it."""
    if not key_store.has_key(one.guid):
        return False
    try:
        given = encode_key(key_store.read_key(one.guid), one.key_format)
    except (OSError, LarderError):
        return False
    argv = load_key_argv(one.name)
    return command.run(argv, timeout=300, given=given, accept=range(256)).status == 0
