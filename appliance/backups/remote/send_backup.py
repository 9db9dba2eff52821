"""Run a backup task whose copies go to another computer: the steps of ``RunBackup``, sent through ssh.

Nothing there is destroyed, and no stream is forced. Which copies stay is decided there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Self

import msgspec
from msgspec.structs import replace

from appliance import names, snapshot_names
from appliance.backups import copies, run_mark, tasks, unchanged
from appliance.backups.copy_dataset import DatasetCopy, let_go_here, withdraw
from appliance.backups.receive import Destination
from appliance.backups.remote import connection, settings
from appliance.backups.remote.answers import RemoteCopy
from appliance.backups.remote.remote_place import RemotePlace, list_all
from appliance.backups.remote.try_remote import try_remote
from appliance.backups.run_results import Run, conclude
from appliance.backups.run_snapshot import command_text, take_snapshot
from appliance.backups.stream import NotReceived
from appliance.backups.tasks import BackupTask
from appliance.backups.transfer import find_snapshot, run_transfer, send_flags
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset, Snapshot
from appliance.facts.pool_reasons import stopped_pool
from appliance.facts.remote import Remote
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.recovery import refresh
from appliance.snapshots.bookmarks import read_bookmarks
from appliance.snapshots.take import dataset_missing
from appliance.zfs import list_snapshots

COMPLETE = "complete "  # of the note that says up to when the copies are complete, for the one who keeps it


class RemoteRun(Run):
    """``names``: of the copies there, by the guid of their original."""

    place: RemotePlace | None = None
    names: dict[int, str] = msgspec.field(default_factory=dict)
    listed: dict[str, RemoteCopy] = msgspec.field(default_factory=dict)

    @property
    def there(self) -> RemotePlace:
        if self.place is None:
            raise Failed(Message("The other computer was not asked yet"))
        return self.place


class RemoteTransfer(DatasetCopy, frozen=True):
    """One dataset of a run, with the other computer as the place of its copy."""

    there: RemotePlace

    @property
    def destination(self) -> Destination:
        return self.there


class SendBackup(Operation, tag="send-backup"):
    """Copy a folder to another computer as its task says. ``moment`` names the snapshot, as in RunBackup."""

    needs_proof = never
    settled = Message("Larder was interrupted meanwhile. The next run sends what is missing.")

    dataset: str
    key: str
    remote: str
    moment: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        settings.check_key(self.remote)
        tasks.check_key(self.key)
        if not snapshot_names.MOMENT.fullmatch(self.moment):
            raise Refused(Reason("moment-invalid", "That is not a date and time.", field="moment"))

    @classmethod
    def of(cls, dataset: Dataset, task: BackupTask, moment: str) -> Self:
        return cls(dataset=dataset.name, key=task.key, remote=task.remote, moment=moment)

    @property
    def backup(self) -> str:
        return self.key

    @property
    def title(self) -> str:
        return Message("Back up {dataset} to another computer", dataset=self.dataset)

    @property
    def subject(self) -> str:
        return self.dataset

    @property
    def short(self) -> str:
        return f"{snapshot_names.PREFIX}{snapshot_names.BACKUP}-{self.moment}"

    def again(self, facts: Facts) -> Self:
        """A run of now, as with RunBackup."""
        return replace(self, moment=snapshot_names.format_moment(datetime.now(UTC)))

    def locks(self) -> tuple[str, ...]:
        return (f"the backup {self.key}", lock_of(self.remote))

    def files_used(self) -> tuple[str, ...]:
        return (self.dataset,)

    def lasts(self) -> bool:
        return True

    def snapshot_datasets(self) -> tuple[str, ...]:
        return (self.dataset,)

    def load_extra_facts(self, facts: Facts) -> Facts:
        dataset, task, _remote = self.find(facts)
        if dataset is None or task is None:
            return facts  # ``check`` says why
        tree = [one.name for one in tasks.members(dataset, task, facts)]
        return replace(
            facts, snapshots=tuple(list_snapshots.list_snapshots(tree)), bookmarks=tuple(read_bookmarks(tree))
        )

    def find(self, facts: Facts) -> tuple[Dataset | None, BackupTask | None, Remote | None]:
        dataset = facts.dataset(self.dataset)
        return dataset, tasks.find_task(dataset, self.key), facts.remote(self.remote)

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset, task, remote = self.find(facts)
        if dataset is None:
            yield dataset_missing(self.dataset)
            return
        if task is None or task.remote != self.remote:
            yield tasks.task_missing(self.dataset)
        if remote is None:
            yield settings.remote_missing()
        elif not remote.host_key:
            yield settings.not_confirmed(remote)
        yield from refresh.replaced_reasons((dataset.pool,), facts)
        if (pool := facts.pool(dataset.pool)) and pool.state == "SUSPENDED":
            yield stopped_pool(pool.name)

    def plan(self, facts: Facts) -> Plan:
        dataset, task, remote = self.find(facts)
        if dataset is None or task is None or remote is None:
            raise Refused(settings.remote_missing())
        tree = tasks.members(dataset, task, facts)
        run = RemoteRun()
        steps = [
            Step(
                "connect",
                Message("Ask {host} what it has", host=remote.host),
                "\n".join(connection.shown(remote, words) for words in (("hello",), ("list",))),
                partial(self.connect, run, dataset, task, tree),
            ),
            refresh.record_step((dataset.pool,), facts, run.record),
            self.snapshot_step(tree, run),
            *(self.copy_step(one, dataset, task, tree, remote, run) for one in tree),
            Step(
                "check",
                Message("Check whether every folder was copied"),
                Message("what the other computer lists is compared"),
                partial(self.report, run, len(tree)),
            ),
        ]
        count = Message("{count} folders", count=len(tree)) if len(tree) > 1 else Message("It")
        verb = Message("are") if len(tree) > 1 else Message("is")
        return Plan(
            summary=Message(
                "{count} {verb} copied to {root}/{task_path} on {host}. Only what has changed since the last "
                "copy is sent.",
                count=count,
                verb=verb,
                root=remote.root,
                task_path=task.path,
                host=remote.host,
            ),
            steps=tuple(steps),
            identity={
                "operation": msgspec.to_builtins(self),
                "task": msgspec.to_builtins(task),
                "datasets": [one.guid for one in tree],
                "remote": [remote.host, remote.port, remote.user, remote.root, remote.host_key],
            },
            undo=Message("The copy stays until somebody destroys it on that computer."),
        )

    # --- steps ----------------------------------------------------------------------------------------------------
    def connect(self, run: RemoteRun, top: Dataset, task: BackupTask, tree: Sequence[Dataset], work: Work) -> None:
        """Before anything is snapshotted: whether it can be reached, what is missing there, and which copies it has."""
        remote, hello = try_remote(self.remote)
        run.place, run.listed = RemotePlace(remote, hello), list_all(remote)
        run.names = names_there(task.path, top, tree, run.listed)
        longest = max(len(f"{remote.root}/{name}@{self.short}") for name in run.names.values())
        if longest > names.LONGEST_SNAPSHOT:
            raise Refused(Reason("backup-name-too-long", "The names of the copies would be too long for ZFS."))
        work.note(
            Message(
                "{host} has ZFS {version_text} and lists {count} copies.",
                host=remote.host,
                version_text=hello.version_text,
                count=len(run.listed),
            )
        )

    def snapshot_step(self, tree: list[Dataset], run: RemoteRun) -> Step:
        wanted = [f"{one.name}@{self.short}" for one in tree]

        def take(work: Work) -> None:
            snapshot = take_snapshot(work, tree, self.short, self.key)
            run.taken = snapshot.taken
            run.failures |= snapshot.failures(tree)
            run.unchanged = find_unchanged(snapshot.members(tree), run, snapshot.found)
            snapshot.leave_out(work, tree, run.unchanged)

        said = Message("Take a snapshot of everything at the same moment")
        return Step("snapshot", said, command_text(wanted), take, tuple(wanted))

    def copy_step(
        self, one: Dataset, top: Dataset, task: BackupTask, tree: list[Dataset], remote: Remote, run: RemoteRun
    ) -> Step:
        expected = names_there(task.path, top, tree, {})[one.guid]
        raw = one.encryption != "off"

        def send(work: Work) -> None:
            if one.guid in run.unchanged or one.guid in run.failures:
                return
            flags = send_flags(dict(run.there.hello.features), raw=raw, into_encrypted=run.there.hello.is_encrypted)
            if (listed := run.listed.get(run.names[one.guid])) and listed.is_sent_plain and not raw:
                flags = ()
            copy = RemoteTransfer(one, run.names[one.guid], self.short, flags, task, run.there)
            try:
                wanted = find_snapshot(copy)
                run_transfer(work, copy, wanted)
                let_go_here(work, copy, wanted)
            except (Refused, Failed) as error:
                plain = explain_error(explain_failure(remote, error))
                run.failures[one.guid] = Message("{dataset}: {error}", dataset=one.name, error=plain)
                work.note(run.failures[one.guid])
                if isinstance(error, Refused):
                    withdraw(work, copy)

        sender = ["zfs", "send", *(("-w",) if raw else ("-L", "-e", "-c")), "--", f"{one.name}@{self.short}"]
        words = ("receive", expected, str(one.guid), "raw" if raw else "large")
        shown = f"{shlex.join(sender)} | {connection.shown(remote, words)}"
        return Step(f"copy-{one.guid}", Message("Copy {one}", one=one.name), shown, send, (one.name,))

    def report(self, run: RemoteRun, count: int, work: Work) -> None:
        """Note up to when the copies are complete, and fail with the folders that were not copied."""
        mark = run_mark.mark_of(self.moment, run.taken, run.failures) if run.taken else None
        if mark:
            work.note(Message("{complete}{mark_text}", complete=COMPLETE, mark_text=mark.text))
        conclude(run, count, work)

    def probe(self, step: str, facts: Facts) -> bool:
        dataset, task, _remote = self.find(facts)
        if step == "connect" or dataset is None or task is None:
            return dataset is not None and task is not None
        if step == refresh.STEP:
            return refresh.is_written((dataset.pool,), facts)
        if step != "snapshot":
            return False  # only the other computer knows
        tree = tasks.members(dataset, task, facts)
        return all(any(found.short == self.short for found in facts.snapshots_of(one.name)) for one in tree)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("What was sent stays there. The next run goes on from there.")


def lock_of(remote: str) -> str:
    """The lock that keeps one computer from being sent to, tested and removed at once."""
    return f"the computer {remote}"


def names_there(path: str, top: Dataset, tree: Sequence[Dataset], listed: Mapping[str, RemoteCopy]) -> dict[int, str]:
    """Where the copy of each dataset is or will be. A copy is found by its mark, below the task's name alone."""
    below = {name: copy for name, copy in listed.items() if name == path or name.startswith(f"{path}/")}
    found = {copy.mark.guid: name for name, copy in sorted(below.items(), reverse=True) if copy.mark}
    # An interrupted first copy may have no mark yet: it is gone on with under its name.
    taken = {name for name, copy in below.items() if copy.mark or copy.guids or not copy.is_partial}
    return copies.names_among(path, top, tree, found, taken, spell)


def spell(name: str) -> str:
    """A name such as larder-peer takes it: ``trip_2019`` for ``trip 2019``. It identifies nothing; the mark does."""
    plain = re.sub(r"[^A-Za-z0-9_.:-]", "_", name)
    return plain if plain[:1] not in {".", "-"} else f"_{plain[1:]}"


def find_unchanged(tree: Sequence[Dataset], run: RemoteRun, taken: Sequence[Snapshot]) -> set[int]:
    """The guids of the datasets whose copies there are as these are. Encrypted ones are always sent, as to a pool."""
    here: dict[str, list[Snapshot]] = {}
    for snapshot in taken:
        here.setdefault(snapshot.dataset, []).append(snapshot)
    return {
        one.guid
        for one in tree
        if (copy := run.listed.get(run.names[one.guid])) is not None
        and one.encryption == "off"
        and copy.mark
        and copy.mark.text == copies.mark_text(one)
        and not (copy.written or copy.is_partial or copy.open_properties)
        and copy.guids
        and unchanged.has_nothing_new(here.get(one.name, []), copy.guids[-1])
    }


def explain_failure(remote: Remote, error: Refused | Failed) -> Refused | Failed:
    """The same with a sentence for what ssh or ZFS there said, where that is known."""
    if not isinstance(error, NotReceived):
        return error
    for pattern, what, advice in (
        (
            r"out of space|quota",
            Message("{root} on {host} is full", root=remote.root, host=remote.host),
            Message("Make room there. The next run goes on where this one stopped."),
        ),
        (
            r"partially-complete state|dataset is busy|already.*being received",
            Message("{host} is still receiving an earlier copy", host=remote.host),
            Message("The next run tries again."),
        ),
        (
            r"cannot (receive|create|mount|unmount).*permission denied",
            Message("A right is missing on {host}", host=remote.host),
            join_messages(
                [
                    error.said,
                    Message(
                        "As root there: zfs allow -u {user} create,mount,receive:append,userprop {root} "
                        "(receive in place of receive:append where ZFS is older than 2.3.2)",
                        user=remote.user,
                        root=remote.root,
                    ),
                ]
            ),
        ),
    ):
        if re.search(pattern, error.said):
            return Failed(what, advice)
    # A computer that no longer answers ends ssh without a word; what is said then is that the sender's pipe broke.
    return connection.unreachable(remote, error.said) if error.status == connection.NOT_SIGNED_IN else error
