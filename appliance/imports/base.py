"""Base of all operations on one import, and the folder that it copies into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from appliance.backups.remote import settings
from appliance.datasets import reasons
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset
from appliance.facts.file_import import FileImport
from appliance.imports import sandbox
from appliance.imports.settings import import_missing
from appliance.imports.sources import source_of
from appliance.operation import Operation
from appliance.snapshots.browse import listing
from appliance.zfs import private_mount, system_datasets


class ImportOperation(Operation):
    """An operation on one import, known by its id."""

    task: str

    def __post_init__(self) -> None:
        settings.check_key(self.task, field="task")

    @property
    def subject(self) -> str:
        return self.task

    def locks(self) -> tuple[str, ...]:
        return (f"the import {self.task}",)

    def find(self, facts: Facts) -> FileImport:
        """Raises Refused where it was removed."""
        found = facts.file_import(self.task)
        if found is None:
            raise Refused(import_missing())
        return found

    def check(self, facts: Facts) -> Iterator[Reason]:
        found = facts.file_import(self.task)
        if found is None:
            yield import_missing()


def not_confirmed(task: FileImport) -> Reason:
    return Reason(
        "import-not-confirmed", "The host key of {host} was not confirmed yet. Do that first.", host=task.host
    )


def check_folder(dataset: Dataset | None, name: str, facts: Facts) -> Iterator[Reason]:
    """The reasons against copying files into a folder."""
    if dataset is None or dataset.kind != "filesystem":
        yield reasons.dataset_missing(name).with_field("dataset")
    elif parse_copy_mark(dataset.copy_of):
        yield Reason(
            "import-into-copy",
            "{dataset} is the copy of a backup. Choose another folder.",
            field="dataset",
            dataset=name,
        )
    elif dataset.locked:
        yield reasons.dataset_locked(name).with_field("dataset")
    elif refusal := system_datasets.reason_against(dataset, facts.datasets):
        yield refusal.with_field("dataset")
    elif not dataset.mounted or dataset.mountpoint == "/":
        yield listing.not_mounted(name).with_field("dataset")
    elif dataset.readonly:
        yield reasons.dataset_read_only(name).with_field("dataset")


@contextmanager
def open_folder(task: FileImport) -> Iterator[int]:
    """A descriptor of the top of the folder that is copied into. Raises Refused, Failed.

    It is opened in the mount namespace of this request alone, where the sandbox is made: what is of
    another one cannot be bound.
    """
    private_mount.enter_own_namespace()
    dataset = listing.dataset_now(task.dataset)
    if dataset is None or dataset.guid != task.guid:
        raise Refused(other_folder(task))
    with listing.open_live_folder(dataset) as handle:
        if handle is None:
            raise Refused(listing.not_mounted(task.dataset))
        yield handle


class ImportSession(msgspec.Struct, frozen=True):
    """Folder and source, side by side in the sandbox. ``words`` run a command in there;
    ``check`` raises SourceAway where the other NAS went away meanwhile."""

    words: list[str]
    check: Callable[[], None]


@contextmanager
def open_session(task: FileImport, handle: int, *, writable: bool) -> Iterator[ImportSession]:
    """What rsync needs to read the source of an import into the folder that ``open_folder`` has opened.
    Raises Failed."""
    source = source_of(task)

    def furnish(place: Path) -> None:
        source.furnish(task, place)

    with sandbox.enter(handle, furnish, writable=writable) as words:
        yield ImportSession(words, source.watch(task, sandbox.PLACE))


def other_folder(task: FileImport) -> Reason:
    return Reason(
        "import-folder-gone",
        "The folder {dataset} is gone, or another one has its name. Remove this import and set it up again.",
        dataset=task.dataset,
    )
