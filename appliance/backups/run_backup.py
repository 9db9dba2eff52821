"""Run a backup task once: one snapshot of the whole tree, then each folder sent to its copy.

Nothing at the destination is destroyed but by the task's own retention, and no stream is forced (``zfs receive -F``). A
folder that cannot be copied does not keep the others from being copied; the job then fails and names it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from typing import Self

import msgspec

from appliance import command, names, schedule, snapshot_names
from appliance.backups import copies, tasks
from appliance.backups.base import BackupOperation
from appliance.backups.copy_dataset import PREFIX, DatasetCopy, run_copy, withdraw
from appliance.backups.tasks import BackupTask
from appliance.backups.transfer import read_features, send_flags
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Dataset
from appliance.operation import Plan, Step, Work, never
from appliance.zfs import libzfs, list_snapshots

NAMED = 5


class RunBackup(BackupOperation, tag="run-backup"):
    """Copy a folder as its task says. ``moment`` names the snapshot, so that the same run is never another."""

    needs_proof = never
    settled = "Larder was interrupted meanwhile; looking afterwards, every copy is complete."

    moment: str  # as in snapshot_names.FORMAT

    def __post_init__(self) -> None:
        super().__post_init__()
        if not snapshot_names.MOMENT.fullmatch(self.moment):
            raise Refused(Reason("moment-invalid", "That is not a date and time.", field="moment"))

    @property
    def title(self) -> str:
        return f"Back up {self.dataset}"

    @classmethod
    def of(cls, dataset: Dataset, task: BackupTask, pool: Pool, moment: str) -> Self:
        return cls(dataset=dataset.name, key=task.key, target=task.root(pool), moment=moment)

    @property
    def short(self) -> str:
        return f"{snapshot_names.PREFIX}{snapshot_names.BACKUP}-{self.moment}"

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = facts.dataset(self.dataset)
        task = tasks.find_task(dataset, self.key)
        if dataset and task:
            found = self.targets(dataset, task, facts).values()
            if max(len(f"{name}@{self.short}") for name in found) > names.LONGEST_SNAPSHOT:
                yield Reason("backup-name-too-long", "The names of the copies would be too long for ZFS.", field="path")

    def plan(self, facts: Facts) -> Plan:
        dataset, task, pool = self.find_all(facts)
        tree = tasks.members(dataset, task, facts)
        targets = self.targets(dataset, task, facts)
        failures: list[str] = []
        steps = [self.snapshot_step(tree)]
        if argv := copies.missing_home(self.target, facts):
            steps.append(Step("prepare", f"Make the folder for copies in {pool.name}", shlex.join(argv), partial(run_quietly, argv), (argv[-1],)))  # fmt: skip
        steps += [self.copy_step(one, targets[one.guid], task, pool, facts, failures) for one in tree]
        steps.append(
            Step(
                "check",
                "Look whether every folder was copied",
                "zfs list, zfs get",
                partial(report, failures, len(tree)),
            )
        )
        count = f"{len(tree)} folders" if len(tree) > 1 else "It"
        verb = "are" if len(tree) > 1 else "is"
        return Plan(
            summary=f"{count} {verb} copied to {self.target}. Only what has changed since the last copy is sent.",
            steps=tuple(steps),
            identity={
                "operation": msgspec.to_builtins(self),
                "task": msgspec.to_builtins(task),
                "datasets": [one.guid for one in tree],
            },
            undo="The copy stays until the backup's own retention no longer keeps it.",
        )

    def snapshot_step(self, tree: list[Dataset]) -> Step:
        wanted = [f"{one.name}@{self.short}" for one in tree]

        def run(_work: Work) -> None:
            libzfs.take_snapshots(wanted, {})
            # A bookmark keeps the moment even where the snapshot is destroyed before the next run.
            for found in list_snapshots.list_snapshots([one.name for one in tree]):
                if found.short == self.short:
                    libzfs.create_bookmark(f"{found.dataset}#{PREFIX}{self.key}-{found.guid}", found.name)

        more = " …" if len(wanted) > NAMED else ""
        text = shlex.join(["zfs", "snapshot", "--", *wanted[:NAMED]]) + more
        return Step("snapshot", "Take a snapshot of everything at the same moment", text, run, tuple(wanted))

    def copy_step(
        self, one: Dataset, target: str, task: BackupTask, pool: Pool, facts: Facts, failures: list[str]
    ) -> Step:
        encrypted = self.is_encrypted_at(target, facts)

        def run(work: Work) -> None:
            flags = send_flags(read_features(pool.name), raw=one.encryption != "off", into_encrypted=encrypted)
            copy = DatasetCopy(one, target, self.short, flags, task)
            try:
                run_copy(work, copy, schedule.box_zone())
            except (Refused, Failed) as error:
                failures.append(f"{one.name}: {error}")
                work.note(failures[-1])
                if isinstance(error, Refused):
                    withdraw(work, copy)

        flags = ("-w",) if one.encryption != "off" else ("-L", "-e", "-c")
        shown = DatasetCopy(one, target, self.short, flags, task)
        return Step(f"copy-{one.guid}", f"Copy {one.name}", shown.command_text(facts), run, (target,))

    def is_encrypted_at(self, target: str, facts: Facts) -> bool:
        """Whether ZFS encrypts what lies there: the copy, or what it will be made in."""
        while target and (found := facts.dataset(target)) is None:
            target = target.rpartition("/")[0]
        return bool(target) and found is not None and found.encryption != "off"

    def probe(self, step: str, facts: Facts) -> bool:
        try:
            dataset, task, _pool = self.find_all(facts)
        except Refused:
            return False
        if step == "prepare":
            return not copies.missing_home(self.target, facts)
        tree = tasks.members(dataset, task, facts)
        made = {one.guid: self.snapshot_of(one.name, facts) for one in tree}
        if step == "snapshot":
            return all(made.values())
        targets = self.targets(dataset, task, facts)
        wanted = [one for one in tree if step in {"check", f"copy-{one.guid}"}]
        return bool(wanted) and all(made[one.guid] and made[one.guid] in self.arrived(targets[one.guid], facts) for one in wanted)  # fmt: skip

    def snapshot_of(self, dataset: str, facts: Facts) -> int:
        return next((one.guid for one in facts.snapshots_of(dataset) if one.short == self.short), 0)

    def arrived(self, target: str, facts: Facts) -> set[int]:
        return {one.guid for one in facts.snapshots_of(target)}

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return "What was sent stays. The next run goes on from there."


def run_quietly(argv: list[str], _work: Work) -> None:
    command.run(argv, timeout=120)


def report(failures: list[str], count: int, work: Work) -> None:
    """Fail with the folders that were not copied."""
    if failures:
        more = f" And {len(failures) - NAMED} more." if len(failures) > NAMED else ""
        raise Failed(f"{len(failures)} of {count} folders were not copied", " ".join(failures[:NAMED]) + more)
    work.note(f"{count} of {count} folders copied.")
