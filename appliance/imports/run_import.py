"""Copy the files of another NAS into a folder, compare them, and say what could not be copied."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from appliance import command, names, snapshot_names
from appliance.datasets import reasons
from appliance.datasets.access_note import valid_note
from appliance.datasets.permissions import apply_note
from appliance.errors import Failed, LarderError, Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.file_import import Count, FileImport, ImportResult
from appliance.files.leftover import remove_leftover, scratch_folder
from appliance.formatting import rate_text, size_text, time_left
from appliance.imports import exit_status, report, rsync
from appliance.imports.base import ImportOperation, not_confirmed, open_folder, open_session
from appliance.imports.rsync import RsyncListing, RsyncTransfer
from appliance.imports.settings import find_import, write_import
from appliance.imports.sources import source_of
from appliance.imports.sources.base import SourceAway
from appliance.imports.try_import import MOST_SAID, check_target, count_files, explain, note_problem, shown
from appliance.message import Message, join_messages
from appliance.operation import Plan, Step, Work, never
from appliance.snapshots.take import before_step, snapshot_text
from appliance.zfs import libzfs

NOTE = "an import of files from another NAS"
SPARE = 64 * 1024**2  # bytes that have to stay free
MOST_ATTEMPTS = 10  # after a lost connection, without a byte more than before
SECONDS_TO_WAIT = 600  # for the other NAS to answer again
SECONDS_BETWEEN_ASKING = 10
SECONDS_OF_PACE = 5


class ImportRun(msgspec.Struct):
    """What the steps tell each other."""

    count: Count = msgspec.field(default_factory=Count)
    owners: list[tuple[str, int]] = msgspec.field(default_factory=list)
    missed: list[str] = msgspec.field(default_factory=list)
    vanished: list[str] = msgspec.field(default_factory=list)
    listing: RsyncListing = msgspec.field(default_factory=RsyncListing)


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
            yield Reason("import-name-too-long-for-snapshot", "The name of {dataset} is too long for a snapshot with the date in its name. Choose another folder.", dataset=self.dataset)  # fmt: skip

    def plan(self, facts: Facts) -> Plan:
        task, run = self.find(facts), ImportRun()
        run.owners = find_owners(task, facts)
        argv = shown(rsync.copy_argv(task, self.moment, run.owners))
        steps = [
            Step("count", Message("Count what has to be copied"), shown(rsync.count_argv(task)), self.on(run, count_again)),
            before_step(self.dataset, self.before, f"before {NOTE}"),
            Step("copy", Message("Copy the files to {dataset}", dataset=self.dataset), argv, self.on(run, self.copy), (self.dataset,)),
            Step("access", Message("Apply the folder's rules to every file"), Message("by descriptor: owner, group and access list, as set for the folder"), lambda work: give_access(self.dataset, facts, work), (self.dataset,)),
        ]  # fmt: skip
        if self.compare:
            compare = shown(rsync.compare_argv(task))
            steps.append(
                Step("compare", Message("Compare every file with the original"), compare, self.on(run, compare_files))
            )
        wanted = f"{self.dataset}@{self.after}"
        properties = {user_properties.NOTE: f"after {NOTE}"}
        steps += [
            Step("after", Message("Take a snapshot"), snapshot_text([wanted], properties), lambda _work: libzfs.take_snapshots([wanted], properties), (wanted,)),
            Step("report", Message("Write the report"), f"write {report.file_of(self.task)}", lambda work: self.finish(run, work)),
        ]  # fmt: skip
        return Plan(
            summary=summarise(task),
            steps=tuple(steps),
            identity={
                "operation": msgspec.to_builtins(self),
                "source": [task.protocol, task.host, task.port, task.user, task.path, task.host_key],
                "guid": task.guid,
                "existing": task.existing,
                "owners": run.owners,
            },
            warnings=(
                Message("The groups and access lists of the other NAS are not copied, and owners only for the users that you named: the rules of the folder apply. Change them on its page."),
                Message("Files that change over there meanwhile may be copied as they are at that moment. Stop using the other NAS, then import once more."),
            ),
            undo=Message("Nothing is deleted. The snapshot from before keeps the folder as it was."),
        )  # fmt: skip

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


def find_owners(task: FileImport, facts: Facts) -> list[tuple[str, int]]:
    """Users there, each with the number of the one here who gets their files."""
    return [(old, found.uid) for old, name in task.owners if (found := facts.account(name))]


def summarise(task: FileImport) -> str:
    kept = {
        "newer": Message(
            "A file that is here already is replaced where the one over there is newer; the older one is kept beside it."
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


def count_again(task: FileImport, run: ImportRun, work: Work) -> None:
    """Count now, and refuse what does not fit or would mix with files that are here. Raises Refused, Failed."""
    with open_folder(task) as handle:
        remove_leftover(rsync.SCRATCH.encode(), handle)
        if task.existing == "none" and not task.began and is_filled(handle):
            raise Refused(Reason("import-folder-not-empty", "{dataset} is not empty. Choose an empty folder, or set up the import so that it copies beside what is there.", dataset=task.dataset))  # fmt: skip
    task = count_files(task, work)
    run.count = task.found or Count()
    if run.count.new_size + SPARE > task.free:
        raise Refused(
            Reason(
                "import-no-room",
                "{needed} have to be copied, and {dataset} has {free} of free space. Make room, or choose another folder.",
                needed=size_text(run.count.new_size),
                dataset=task.dataset,
                free=size_text(task.free),
            )
        )
    work.note(
        Message(
            "{new} files to copy, {new_size}; {left_out} left out",
            new=run.count.new,
            new_size=size_text(run.count.new_size),
            left_out=run.count.left_out,
        )
    )


def is_filled(handle: int) -> bool:
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
    try:
        with os.scandir(opened) as entries:
            return any(entry.name != ".zfs" for entry in entries)
    finally:
        os.close(opened)


def copy_once(task: FileImport, run: ImportRun, before: int, moment: str, work: Work) -> tuple[command.Result, int]:
    """One connection: how rsync ended, and the bytes that it copied. Raises Cancelled."""
    transfer, began, total = RsyncTransfer(), time.monotonic(), run.count.new_size

    def look() -> None:
        work.stop_if_asked()
        session.check()
        done, passed = before + transfer.done, max(time.monotonic() - began, 0.1)
        parts = [
            Message("{done} of {total}", done=size_text(done), total=size_text(total)),
            rate_text(round(transfer.done / passed)),
        ]
        if passed > SECONDS_OF_PACE and 0 < transfer.done < total - before:
            parts.append(time_left(int((total - done) * passed / transfer.done)))
        work.progress(min(99, done * 100 // max(total, 1)), join_messages(parts, ", "))

    with open_folder(task) as handle, scratch_folder(rsync.SCRATCH.encode(), handle):
        try:
            with open_session(task, handle, writable=True) as session:
                argv = [*session.words, *rsync.copy_argv(task, moment, run.owners)]
                result = command.watch(argv, take=transfer.take, look=look, most_said=MOST_SAID)
        except SourceAway as away:
            result = command.Result(("rsync",), exit_status.SILENT, "", str(away), 0.0)
    return result, transfer.done


def give_back_top(task: FileImport) -> None:
    """Where owners are mapped, rsync gives the folder itself to its owner over there. It stays with its own owner, who may
    change everybody's rights. The number was noted before the first run, so a run that was killed changes nothing for good."""
    if task.owners:
        with open_folder(task) as handle:
            os.chown(f"/proc/self/fd/{handle}/.", task.top_owner, -1)


def wait_for_answer(task: FileImport, work: Work) -> None:
    """Wait until the other NAS answers again, for some minutes. Raises Cancelled; the next attempt says what is wrong."""
    until = time.monotonic() + SECONDS_TO_WAIT
    while time.monotonic() < until:
        work.stop_if_asked()
        try:
            source_of(task).ask(task)
        except Failed:
            work.progress(0, Message("{host} does not answer; waiting for it", host=task.host))
            time.sleep(SECONDS_BETWEEN_ASKING)
        else:
            return


def give_access(name: str, facts: Facts, work: Work) -> None:
    """Apply what is set for the folder; a folder without rules of its own hands on its access list already."""
    dataset = facts.dataset(name)
    note = valid_note(dataset, facts) if dataset else None
    if dataset is None or note is None:
        work.note(Message("The folder has no rules for users. Set them on its page, and they apply to these files too"))
        return
    apply_note(dataset, note, facts, work)


def compare_files(task: FileImport, run: ImportRun, work: Work) -> None:
    """Read every file on both sides. What differs is reported at the end. Raises Failed, Cancelled."""
    run.listing = listing = RsyncListing(most=report.MOST_LINES)
    total = max(run.count.files, 1)

    def look() -> None:
        work.stop_if_asked()
        session.check()
        work.progress(
            min(99, listing.files * 100 // total),
            Message("{files} of {total} files compared", files=listing.files, total=total),
        )

    with open_folder(task) as handle, open_session(task, handle, writable=False) as session:
        argv = [*session.words, *rsync.compare_argv(task)]
        result = command.watch(argv, take=listing.take, look=look, most_said=MOST_SAID)
    if result.status not in {0, exit_status.PARTLY, exit_status.VANISHED}:
        raise explain(task, result)
    run.missed = list(dict.fromkeys([*run.missed, *rsync.complaints(result.stderr)]))
    run.vanished = list(dict.fromkeys([*run.vanished, *rsync.vanished(result.stderr)]))
