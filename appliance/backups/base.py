"""What operations on a backup have in common: its folder, its task, its copies, and the
locks that leave others alone."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from appliance import names
from appliance.backups import copies, match, tasks
from appliance.backups.tasks import BackupTask
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset
from appliance.facts.pool_reasons import stopped_pool
from appliance.operation import Operation
from appliance.snapshots.bookmarks import read_bookmarks
from appliance.snapshots.take import dataset_missing
from appliance.zfs import list_snapshots


class BackupOperation(Operation):
    """An operation on one task of a dataset. ``target`` is the dataset of the copy, so that its files can be locked."""

    dataset: str
    key: str
    target: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        names.existing_dataset(self.target, field="target")
        tasks.check_key(self.key)

    @property
    def backup(self) -> str:
        return self.key

    @property
    def subject(self) -> str:
        return self.dataset

    def locks(self) -> tuple[str, ...]:
        # Not the pools: a first copy takes hours, and everything else of theirs goes on meanwhile.
        return (f"the backup {self.key}", copies.lock_of(self.target))

    def files_used(self) -> tuple[str, ...]:
        return (self.dataset, self.target)

    def lasts(self) -> bool:
        return True

    def snapshot_datasets(self) -> tuple[str, ...]:
        return (self.dataset, self.target)

    def find_all(self, facts: Facts) -> tuple[Dataset, BackupTask, Pool]:
        """The folder, its task and the pool of the copies. Raises Refused where one of them is gone."""
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            raise Refused(dataset_missing(self.dataset))
        task = tasks.find_task(dataset, self.key)
        if task is None:
            raise Refused(tasks.task_missing(self.dataset))
        pool = task.find_pool(facts)
        if pool is None:
            raise Refused(
                Reason(
                    "backup-pool-missing",
                    "The pool for the copies of {dataset} is not connected. Connect its disks and import it.",
                    dataset=self.dataset,
                )
            )
        return dataset, task, pool

    def targets(self, dataset: Dataset, task: BackupTask, facts: Facts) -> dict[int, str]:
        """Where the copy of each dataset is or will be, by the dataset's guid."""
        return copies.names_of(self.target, dataset, tasks.members(dataset, task, facts), facts)

    def copied_folders(self, facts: Facts) -> list[tuple[Dataset, Dataset]]:
        """Each folder that has a copy, with its copy; none where the folder, its task or the
        pool of the copies is gone."""
        try:
            dataset, task, _pool = self.find_all(facts)
        except Refused:
            return []
        targets = self.targets(dataset, task, facts)
        found = [(one, facts.dataset(targets[one.guid])) for one in tasks.members(dataset, task, facts)]
        return [(one, copy) for one, copy in found if copy is not None]

    def load_extra_facts(self, facts: Facts) -> Facts:
        try:
            dataset, task, pool = self.find_all(facts)
        except Refused:
            return facts  # ``check`` says why
        if pool.state == "SUSPENDED":
            return facts
        sources = [one.name for one in tasks.members(dataset, task, facts)]
        here = {one.name for one in facts.datasets}
        found = [name for name in self.targets(dataset, task, facts).values() if name in here]
        return replace(
            facts,
            snapshots=tuple(list_snapshots.list_snapshots([*sources, *found])),
            bookmarks=tuple(read_bookmarks(sources)),
        )

    def check(self, facts: Facts) -> Iterator[Reason]:
        try:
            dataset, task, pool = self.find_all(facts)
        except Refused as refusal:
            yield from refusal.reasons
            return
        if task.root(pool) != self.target:
            yield Reason(
                "backup-moved",
                "The copies of {dataset} are now stored elsewhere. Start the backup again.",
                dataset=self.dataset,
            )
        for name in (dataset.pool, pool.name):
            if (found := facts.pool(name)) and found.state == "SUSPENDED":
                yield stopped_pool(name)
        at = facts.dataset(self.target)
        if at and (mark := parse_copy_mark(at.copy_of)):
            # As far as the list of folders tells; each copy is looked at again before anything is sent.
            copy = match.Copy(self.target, exists=True, mark=mark)
            if reason := match.conflict(dataset.name, dataset.guid, dataset.encryption != "off", copy):
                yield reason
