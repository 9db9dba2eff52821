"""Copy the files of another NAS into a folder, compare them, and say what could not be copied."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from appliance import command, names, snapshot_names
from appliance.datasets import reasons
from appliance.errors import Failed, LarderError, Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.file_import import FileImport, ImportResult
from appliance.files.leftover import remove_leftover
from appliance.formatting import size_text
from appliance.imports import exit_status, report, rsync
from appliance.imports.base import ImportOperation, not_confirmed, open_folder
from appliance.imports.import_steps import (
    MOST_ATTEMPTS,
    ImportRun,
    compare_files,
    copy_once,
    count_again,
    find_owners,
    give_access,
    give_back_top,
    wait_for_answer,
)
from appliance.imports.settings import find_import, write_import
from appliance.imports.sources import source_of
from appliance.imports.try_import import check_target, explain, note_problem, shown
from appliance.message import Message, join_messages
from appliance.operation import Plan, Step, Work, never
from appliance.snapshots.take import before_step, snapshot_text
from appliance.zfs import libzfs

NOTE = "an import of files from another NAS"


class RunImport(ImportOperation, tag="run-import"):
    """Copy what is not here yet. ``dataset`` is the folder that it goes into; ``moment`` names the snapshots."""

    needs_proof = never
    settled = Message("Larder was interrupted meanwhile. Start the import again: it goes on where it was.")

    dataset: str
    moment: str
    compare: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        names.existing_dataset(self.dataset)
        if not snapshot_names.MOMENT.fullmatch(self.moment):
            raise Refused(Reason("moment-invalid", "That is not a date and time.", field="moment"))

    @property
    def title(self) -> str:
        return Message("Import files into {dataset}", dataset=self.dataset)

    @property
    def before(self) -> str:
        return f"{snapshot_names.PREFIX}{snapshot_names.BEFORE}-{self.moment}"

    @property
    def after(self) -> str:
        return f"{snapshot_names.PREFIX}{snapshot_names.IMPORT}-{self.moment}"

    def files_used(self) -> tuple[str, ...]:
        return (self.dataset,)

    def lasts(self) -> bool:
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        task = facts.file_import(self.task)
        if task is None:
            return
        if task.needs_host_key:
            yield not_confirmed(task)
        if task.dataset != self.dataset:
            yield Reason("import-other-folder", "This import goes into another folder. Go to its page and start again.")
        yield from check_target(task, facts)
        for _old, name in task.owners:
            if not facts.account(name):
                yield reasons.user_missing(name)
        if len(f"{self.dataset}@{self.before}") > names.LONGEST_SNAPSHOT:
            yield Reason(
                "import-name-too-long-for-snapshot",
                "The name of {dataset} is too long for a snapshot with the date in its name. Choose another folder.",
                dataset=self.dataset,
            )

    def plan(self, facts: Facts) -> Plan:
        task, run = self.find(facts), ImportRun()
        run.owners = find_owners(task, facts)
        return Plan(
            summary=summarise(task),
            steps=tuple(self.list_steps(task, run, facts)),
            identity={
                "operation": msgspec.to_builtins(self),
                "source": [task.protocol, task.host, task.port, task.user, task.path, task.host_key],
                "guid": task.guid,
                "existing": task.existing,
                "owners": run.owners,
            },
            warnings=(
                Message(
                    "The groups and access lists of the other NAS are not copied, and owners only for the "
                    "users that you named: the rules of the folder apply. Change them on its page."
                ),
                Message(
                    "Files that change over there meanwhile may be copied as they are at that moment. Stop "
                    "using the other NAS, then import once more."
                ),
            ),
            undo=Message("Nothing is deleted. The snapshot from before keeps the folder as it was."),
        )

    def list_steps(self, task: FileImport, run: ImportRun, facts: Facts) -> list[Step]:
        argv = shown(rsync.copy_argv(task, self.moment, run.owners))
        steps = [
            Step(
                "count",
                Message("Count what has to be copied"),
                shown(rsync.count_argv(task)),
                self.on(run, count_again),
            ),
            before_step(self.dataset, self.before, f"before {NOTE}"),
            Step(
                "copy",
                Message("Copy the files to {dataset}", dataset=self.dataset),
                argv,
                self.on(run, self.copy),
                (self.dataset,),
            ),
            Step(
                "access",
                Message("Apply the folder's rules to every file"),
                Message("by descriptor: owner, group and access list, as set for the folder"),
                lambda work: give_access(self.dataset, facts, work),
                (self.dataset,),
            ),
        ]
        if self.compare:
            compare = shown(rsync.compare_argv(task))
            steps.append(
                Step("compare", Message("Compare every file with the original"), compare, self.on(run, compare_files))
            )
        wanted = f"{self.dataset}@{self.after}"
        properties = {user_properties.NOTE: f"after {NOTE}"}
        steps += [
            Step(
                "after",
                Message("Take a snapshot"),
                snapshot_text([wanted], properties),
                lambda _work: libzfs.take_snapshots([wanted], properties),
                (wanted,),
            ),
            Step(
                "report",
                Message("Write the report"),
                f"write {report.file_of(self.task)}",
                lambda work: self.finish(run, work),
            ),
        ]
        return steps

    def on(self, run: ImportRun, act: Callable[[FileImport, ImportRun, Work], None]) -> Callable[[Work], None]:
        """``act`` on the import as it is now; what speaks against it is noted for its page."""

        def step(work: Work) -> None:
            task = find_import(self.task)
            try:
                act(task, run, work)
            except LarderError as error:
                if isinstance(error, Failed):
                    note_problem(find_import(self.task), error)
                raise

        return step

    # --- steps ----------------------------------------------------------------------------------------------------
    def copy(self, task: FileImport, run: ImportRun, work: Work) -> None:
        """Copy, and go on after a lost connection. Raises Failed where nothing more arrives, Cancelled."""
        with open_folder(task) as handle:
            owner = task.top_owner if task.began else os.fstat(handle).st_uid
        task = replace(task, began=True, top_owner=owner)
        write_import(task)
        try:
            result = self.copy_all(task, run, work)
        finally:
            give_back_top(task)
        run.missed, run.vanished = rsync.complaints(result.stderr), rsync.vanished(result.stderr)
        if result.status not in {0, exit_status.PARTLY, exit_status.VANISHED}:
            raise explain(task, result)
        if result.status == exit_status.PARTLY and not run.missed:
            raise explain(task, result)

    def copy_all(self, task: FileImport, run: ImportRun, work: Work) -> command.Result:
        """How rsync ended, whatever became of the connection meanwhile. Raises Failed, Cancelled."""
        done, left = 0, MOST_ATTEMPTS
        while True:
            result, moved = copy_once(task, run, done, self.moment, work)
            done += moved
            if not source_of(task).is_lost(result):
                work.note(Message("{done} copied", done=size_text(done)))
                return result
            left = MOST_ATTEMPTS if moved else left - 1
            if not left or "host key" in result.stderr.lower():
                raise explain(task, result)
            work.note(
                Message(
                    "The connection to {host} broke off after {done}; going on", host=task.host, done=size_text(done)
                )
            )
            wait_for_answer(task, work)

    def finish(self, run: ImportRun, work: Work) -> None:
        """Write the report, and fail where not everything is as at the source."""
        task = find_import(self.task)
        now = datetime.now(UTC).replace(microsecond=0)
        found = run.listing
        result = ImportResult(now, found.files if self.compare else 0, found.differing, len(run.missed))
        report.write_report(task, run.count, result, run.missed, run.vanished, found.different)
        write_import(replace(task, result=result, problem=""))
        if run.missed or found.differing:
            parts = [
                Message("{count} could not be copied or read", count=len(run.missed)) if run.missed else "",
                Message("{count} not as on {host}", count=found.differing, host=task.host) if found.differing else "",
            ]
            raise Failed(
                Message("Not everything is as it should be: {parts}", parts=join_messages(parts, ", ")),
                Message(
                    "The report says which. Everything else is here. Start the import again to try these once more."
                ),
            )
        if run.vanished:
            work.note(Message("Deleted on {host} meanwhile: {count}", host=task.host, count=len(run.vanished)))
        work.note(
            Message("{files} files compared, all of them equal", files=found.files)
            if self.compare
            else Message("Everything was copied")
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return False  # only the other NAS knows

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("What was copied stays. Start the import again: it goes on with what is missing.")

    def clean_up(self, work: Work) -> None:
        with suppress(LarderError, OSError), open_folder(find_import(self.task)) as handle:
            remove_leftover(rsync.SCRATCH.encode(), handle)


def summarise(task: FileImport) -> str:
    kept = {
        "newer": Message(
            "A file that is here already is replaced where the one over there is newer; the older one is "
            "kept beside it."
        ),
        "keep": Message("Files that are here already stay as they are."),
        "none": Message("The folder has to be empty."),
    }["keep" if task.began and task.existing == "none" else task.existing]
    what = Message("The files")
    if task.found:
        what = Message("{count} files, {size},", count=task.found.new, size=size_text(task.found.new_size))
    return Message(
        "{what} in {path} on {host} are copied to {dataset}. {kept} Then every file is compared.",
        what=what,
        path=task.path,
        host=task.host,
        dataset=task.dataset,
        kept=kept,
    )
