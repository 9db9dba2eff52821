"""Run a backup task once: one snapshot of the whole tree, then each folder that has something new sent to its copy.

Nothing at the destination is destroyed but by the task's own retention, and no stream is forced (``zfs receive -F``). A
folder that cannot be copied does not keep the others from being copied; the job then fails and names it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Self

import msgspec

from appliance import command, names, schedule, snapshot_names
from appliance.backups import copies, run_mark, tasks, unchanged
from appliance.backups.base import BackupOperation
from appliance.backups.copy_dataset import DatasetCopy, run_copy, withdraw
from appliance.backups.run_results import Run, conclude
from appliance.backups.run_snapshot import command_text, take_snapshot
from appliance.backups.tasks import BackupTask
from appliance.backups.transfer import read_features, send_flags
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.facts import user_properties
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Dataset
from appliance.message import Message
from appliance.operation import Plan, Step, Work, never
from appliance.recovery import refresh
from appliance.zfs import kstat


class RunBackup(BackupOperation, tag="run-backup"):
    """Copy a folder as its task says. ``moment`` names the snapshot, so that the same run is never another."""

    needs_proof = never
    settled = Message("Larder was interrupted meanwhile. A check afterwards found every copy complete.")

    moment: str  # as in snapshot_names.FORMAT

    def __post_init__(self) -> None:
        super().__post_init__()
        if not snapshot_names.MOMENT.fullmatch(self.moment):
            raise Refused(Reason("moment-invalid", "That is not a date and time.", field="moment"))

    @property
    def title(self) -> str:
        return Message("Back up {dataset}", dataset=self.dataset)

    @classmethod
    def of(cls, dataset: Dataset, task: BackupTask, pool: Pool, moment: str) -> Self:
        return cls(dataset=dataset.name, key=task.key, target=task.root(pool), moment=moment)

    @property
    def short(self) -> str:
        return f"{snapshot_names.PREFIX}{snapshot_names.BACKUP}-{self.moment}"

    def again(self, facts: Facts) -> Self:
        """A run of now: the names of this one's snapshots and bookmarks may be taken, by itself."""
        return msgspec.structs.replace(self, moment=snapshot_names.format_moment(datetime.now(UTC)))

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = facts.dataset(self.dataset)
        task = tasks.find_task(dataset, self.key)
        if dataset and task:
            yield from refresh.replaced_reasons((dataset.pool, self.target.split("/", 1)[0]), facts)
            found = self.targets(dataset, task, facts).values()
            if max(len(f"{name}@{self.short}") for name in found) > names.LONGEST_SNAPSHOT:
                yield Reason("backup-name-too-long", "The names of the copies would be too long for ZFS.", field="path")

    def plan(self, facts: Facts) -> Plan:
        dataset, task, pool = self.find_all(facts)
        tree = tasks.members(dataset, task, facts)
        targets = self.targets(dataset, task, facts)
        run = Run()
        steps = [
            refresh.record_step((dataset.pool, pool.name), facts, run.record),
            self.snapshot_step(tree, targets, run),
        ]
        if argv := copies.missing_home(self.target, facts):
            steps.append(
                Step(
                    "prepare",
                    Message("Make the folder for copies in {pool}", pool=pool.name),
                    shlex.join(argv),
                    partial(run_quietly, argv),
                    (argv[-1],),
                )
            )
        steps += [self.copy_step(one, targets[one.guid], task, pool, facts, run) for one in tree]
        steps.append(
            Step(
                "check",
                Message("Check whether every folder was copied"),
                shlex.join(["zfs", "set", f"{user_properties.COPIED}=…", targets[dataset.guid]]),
                partial(self.report, run, dataset, targets[dataset.guid], len(tree)),
            )
        )
        count = Message("{count} folders", count=len(tree)) if len(tree) > 1 else Message("It")
        verb = Message("are") if len(tree) > 1 else Message("is")
        return Plan(
            summary=Message(
                "{count} {verb} copied to {target}. Only what has changed since the last copy is sent.",
                count=count,
                verb=verb,
                target=self.target,
            ),
            steps=tuple(steps),
            identity={
                "operation": msgspec.to_builtins(self),
                "task": msgspec.to_builtins(task),
                "datasets": [one.guid for one in tree],
            },
            undo=Message("The copy stays until the backup's own retention no longer keeps it."),
        )

    def snapshot_step(self, tree: list[Dataset], targets: dict[int, str], run: Run) -> Step:
        wanted = [f"{one.name}@{self.short}" for one in tree]

        def take(work: Work) -> None:
            snapshot = take_snapshot(work, tree, self.short, self.key)
            run.taken = snapshot.taken
            run.failures |= snapshot.failures(tree)
            taken = snapshot.members(tree)
            run.unchanged = unchanged.find_unchanged(work, taken, targets, snapshot.found, self.target)
            snapshot.leave_out(work, tree, run.unchanged)

        said = Message("Take a snapshot of everything at the same moment")
        return Step("snapshot", said, command_text(wanted), take, tuple(wanted))

    def copy_step(self, one: Dataset, target: str, task: BackupTask, pool: Pool, facts: Facts, run: Run) -> Step:
        encrypted = self.is_encrypted_at(target, facts)

        def send(work: Work) -> None:
            if one.guid in run.unchanged or one.guid in run.failures:
                return
            if kstat.is_stopped(pool.name):  # asked for anything, it would keep the job waiting in the kernel
                run.failures[one.guid] = Message("{one}: {pool} has stopped.", one=one.name, pool=pool.name)
                return
            flags = send_flags(read_features(pool.name), raw=one.encryption != "off", into_encrypted=encrypted)
            copy = DatasetCopy(one, target, self.short, flags, task)
            try:
                run_copy(work, copy, schedule.box_zone())
            except (Refused, Failed) as error:
                run.failures[one.guid] = Message("{dataset}: {error}", dataset=one.name, error=explain_error(error))
                work.note(run.failures[one.guid])
                if isinstance(error, Refused):
                    withdraw(work, copy)

        flags = ("-w",) if one.encryption != "off" else ("-L", "-e", "-c")
        shown = DatasetCopy(one, target, self.short, flags, task)
        return Step(f"copy-{one.guid}", Message("Copy {one}", one=one.name), shown.command_text(facts), send, (target,))

    def report(self, run: Run, top: Dataset, copy: str, count: int, work: Work) -> None:
        """Mark up to when the copies are complete, and fail with the folders that were not copied."""
        # What lies at its place may be somebody else's, and a pool that has stopped takes no mark.
        if top.guid not in run.failures and not kstat.is_stopped(copy.partition("/")[0]):
            self.mark_copy(run, copy, work)
        conclude(run, count, work)

    def mark_copy(self, run: Run, copy: str, work: Work) -> None:
        """Without the mark the copies count as old as their newest snapshots, so a run that
        cannot set it is not lost."""
        mark = run_mark.mark_of(self.moment, run.taken, run.failures) if run.taken else None
        if mark is None:
            return
        try:
            command.run(["zfs", "set", f"{user_properties.COPIED}={mark.text}", copy], timeout=120)
        except Failed as error:
            work.note(Message("{copy} was not marked: {error}", copy=copy, error=explain_error(error)))

    def is_encrypted_at(self, target: str, facts: Facts) -> bool:
        """Whether ZFS encrypts what lies there: the copy, or what it will be made in."""
        while target and (found := facts.dataset(target)) is None:
            target = target.rpartition("/")[0]
        return bool(target) and found is not None and found.encryption != "off"

    def probe(self, step: str, facts: Facts) -> bool:
        try:
            dataset, task, pool = self.find_all(facts)
        except Refused:
            return False
        if step == refresh.STEP:
            return refresh.is_written((dataset.pool, pool.name), facts)
        if step == "prepare":
            return not copies.missing_home(self.target, facts)
        targets = self.targets(dataset, task, facts)
        mark = run_mark.run_mark_of(facts.dataset(targets[dataset.guid]))
        if mark and mark.run == self.moment:  # the run came to its end
            return not mark.left or step not in {"check", *(f"copy-{guid}" for guid in mark.left)}
        tree = tasks.members(dataset, task, facts)
        made = {one.guid: self.snapshot_of(one.name, facts) for one in tree}
        if step == "snapshot":
            return all(made.values())
        wanted = [one for one in tree if step in {"check", f"copy-{one.guid}"}]
        return bool(wanted) and all(
            made[one.guid] and made[one.guid] in self.arrived(targets[one.guid], facts) for one in wanted
        )

    def snapshot_of(self, dataset: str, facts: Facts) -> int:
        return next((one.guid for one in facts.snapshots_of(dataset) if one.short == self.short), 0)

    def arrived(self, target: str, facts: Facts) -> set[int]:
        return {one.guid for one in facts.snapshots_of(target)}

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("What was sent stays. The next run goes on from there.")


def run_quietly(argv: list[str], _work: Work) -> None:
    command.run(argv, timeout=120)
