"""Ask another NAS what it would send: a dry run, which proves the connection, the path and rsync on both sides."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from appliance import command
from appliance.backups.remote import connection
from appliance.backups.remote.connection import Unreachable
from appliance.errors import Failed, LarderError, Reason, explain_error
from appliance.facts.box import Facts
from appliance.facts.file_import import FileImport
from appliance.formatting import size_text
from appliance.imports import exit_status, rsync
from appliance.imports.base import ImportOperation, check_folder, open_folder, open_session, other_folder
from appliance.imports.rsync import RsyncListing
from appliance.imports.set_up import fetch_key
from appliance.imports.settings import find_import, write_import
from appliance.imports.sources import source_of
from appliance.message import Message, reason_after_name
from appliance.operation import Plan, Step, Work, never

MOST_SAID = 256 * 1024  # bytes of complaints about single files


class TestImport(ImportOperation, tag="test-import"):
    """Try the connection and count what would be copied. Nothing is changed."""

    __test__ = False  # no test of pytest's
    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Test an import")

    def lasts(self) -> bool:
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if task := facts.file_import(self.task):
            yield from check_target(task, facts)

    def plan(self, facts: Facts) -> Plan:
        task = self.find(facts)
        return Plan(
            title=Message("Test the import from {host}", host=task.host),
            summary=Message(
                "Larder asks {host} for the list of files in {path}. Nothing is copied.", host=task.host, path=task.path
            ),
            steps=(Step("test", Message("Count what would be copied"), shown(rsync.count_argv(task)), self.test),),
            identity={"operation": msgspec.to_builtins(self), "host_key": task.host_key},
            undo=Message("Nothing is changed."),
        )

    def test(self, work: Work) -> None:
        task = find_import(self.task)
        if task.needs_host_key:
            fetch_key(self.task, work)
            task = find_import(self.task)
            if not task.offered_key:
                raise Failed(task.problem_text or Message("{host} shows no host key", host=task.host))
            raise Failed(
                Message("{host} answers", host=task.host),
                Message("Confirm its host key on the page of the import, then test again."),
            )
        try:
            task = count_files(task, work)
        except LarderError as error:
            note_problem(task, error)
            raise
        assert task.found is not None  # noqa: S101  # just counted
        work.note(
            Message(
                "{files} files, {size}, in {folders} folders.",
                files=task.found.files,
                size=size_text(task.found.size),
                folders=task.found.folders,
            )
        )
        for line in task.found.named:
            work.note(Message("Left out: {line}", line=reason_after_name(line)))

    def probe(self, step: str, facts: Facts) -> bool:
        return False  # what it said is known only to the run itself

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return ""


def check_target(task: FileImport, facts: Facts) -> Iterator[Reason]:
    dataset = facts.dataset(task.dataset)
    yield from check_folder(dataset, task.dataset, facts)
    if dataset and dataset.guid != task.guid:
        yield other_folder(task)


def shown(argv: list[str]) -> str:
    """The command as pages show it: without ssh's options."""
    return shlex.join("--rsh=ssh" if word.startswith("--rsh=") else word for word in argv)


def count_files(task: FileImport, work: Work) -> FileImport:
    """Count what would be copied, and note that with the import. Raises Unreachable, Failed, Cancelled."""
    listing = RsyncListing(keeps=task.existing != "newer")

    def look() -> None:
        work.stop_if_asked()
        session.check()
        work.progress(0, Message("{files} files, {size} so far", files=listing.files, size=size_text(listing.size)))

    with open_folder(task) as handle, open_session(task, handle, writable=False) as session:
        room = os.statvfs(handle)
        argv = [*session.words, *rsync.count_argv(task)]
        result = command.watch(argv, take=listing.take, look=look, most_said=MOST_SAID)
    if result.status not in {0, exit_status.PARTLY, exit_status.VANISHED} or (
        result.status and not listing.folders + listing.files
    ):
        raise explain(task, result)
    now = datetime.now(UTC).replace(microsecond=0)
    task = replace(
        task, tested=now, problem="", offered_key="", found=listing.found, free=room.f_bavail * room.f_frsize
    )
    write_import(task)
    return task


def note_problem(task: FileImport, error: LarderError) -> None:
    """Let the page say why it did not work, and which other host key was shown."""
    offered = task.offered_key
    if isinstance(error, Unreachable) and error.code == "remote-host-key":
        try:
            found = connection.fetch_host_key(task.host, task.port)
        except Failed:
            found = offered
        offered = "" if found == task.host_key else found
    now = datetime.now(UTC).replace(microsecond=0)
    write_import(replace(task, tested=now, problem=explain_error(error), offered_key=offered))


def no_folder(task: FileImport) -> Message:
    if not task.user:
        return Message("{host} has no folder {path} that this box may read", host=task.host, path=task.path)
    return Message("{host} has no folder {path} that {user} may read", host=task.host, path=task.path, user=task.user)


def explain(task: FileImport, result: command.Result) -> Failed:
    """Why rsync did not list or copy anything, from its status and its words."""
    said = result.stderr
    for pattern, what, advice in (
        (
            "No space left on device|Disk quota exceeded",
            Message("{dataset} is full", dataset=task.dataset),
            Message("Make room. What was copied stays."),
        ),
        (
            "rsync: command not found|rsync: not found|rsync: No such file",
            Message("{host} has no rsync", host=task.host),
            Message("Install it there, or switch on its rsync service."),
        ),
        ("change_dir", no_folder(task), Message("Look at the path, and at the rights of that user there.")),
        (
            "unknown option",
            Message("The rsync of {host} is too old", host=task.host),
            Message("It needs rsync 3.1 or later."),
        ),
        (
            "protocol version mismatch",
            Message("{host} prints text before rsync starts", host=task.host),
            Message("Look at what the shell of that user prints when it starts."),
        ),
    ):
        if any(one in said for one in pattern.split("|")):
            return Failed(what, advice)
    if found := source_of(task).explain(task, result):
        return found
    return Failed(Message("rsync ended with status {status}", status=result.status), said[-400:])
