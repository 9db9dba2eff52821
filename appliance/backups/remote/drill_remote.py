"""Rehearse a restore from another computer: fetch the newest snapshot that a folder and its copy there have in common,
apart, compare every file with the original's own snapshot, and remove it.

It is fetched as a restore is (``remote_source.py``) and compared as a drill of a local copy is (``drill_base.py``).
What has arrived is the work of another computer, so it is compared only with what this box has.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec

from appliance import names, schedule
from appliance.backups import copies, drill_scratch, match, tasks
from appliance.backups.drill_base import NAMED, DrillOperation, DrillPart, DrillRun
from appliance.backups.remote import connection, settings
from appliance.backups.remote.answers import RemoteCopy
from appliance.backups.remote.remote_source import RemoteRestored, RemoteSource, mode_of_part
from appliance.backups.remote.restore_remote import SHORT, RemotePart, make_part, source_of, time_text
from appliance.backups.remote.send_backup import lock_of, names_there
from appliance.backups.stored_keys import StoredKeys
from appliance.backups.tasks import BackupTask
from appliance.datasets import reasons
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset, Property, Snapshot
from appliance.facts.pool_reasons import stopped_pool
from appliance.facts.remote import Remote
from appliance.formatting import names_text, size_text
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.snapshots.take import dataset_missing
from appliance.zfs import list_snapshots


class RemoteRehearsed(RemoteRestored, frozen=True, kw_only=True):
    """A dataset that a drill fetches from another computer, for the task ``task``."""

    task: BackupTask

    @property
    def properties(self) -> dict[str, str]:
        return {**super().properties, **drill_scratch.made_by(self.task.key)}

    def most_bytes_a_second(self) -> int:
        return self.task.most_bytes_a_second(datetime.now(UTC), schedule.box_zone())


class Common(msgspec.Struct, frozen=True):
    """The newest snapshot that an original and its copy there have in common. ``created`` in seconds since 1970."""

    part: RemotePart
    created: int


class RemoteDrillRun(DrillRun):
    """The same with what the other computer was found to have, by the guid of the original."""

    source: RemoteSource | None = None
    found: dict[int, Common] = msgspec.field(default_factory=dict)


class DrillRemote(DrillOperation, Operation, tag="drill-remote"):
    """Fetch every folder of a backup from the computer ``remote`` to ``pool``, compare each file, and remove it all."""

    needs_proof = never

    dataset: str
    key: str
    remote: str
    pool: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        names.existing_pool(self.pool)
        settings.check_key(self.remote)
        tasks.check_key(self.key)

    @property
    def backup(self) -> str:
        return self.key

    @property
    def title(self) -> str:
        return Message("Test restoring the backup of {dataset} from another computer", dataset=self.dataset)

    @property
    def subject(self) -> str:
        return self.dataset

    def locks(self) -> tuple[str, ...]:
        return (f"the backup {self.key}", lock_of(self.remote))

    def files_used(self) -> tuple[str, ...]:
        return (self.dataset, self.drill.scratch)

    def lasts(self) -> bool:
        return True

    # --- what speaks against it ---------------------------------------------------------------------------------------
    def find(self, facts: Facts) -> tuple[Dataset, BackupTask, Remote]:
        """The folder, its task and the computer. Raises Refused where one of them is gone."""
        dataset, remote = facts.dataset(self.dataset), facts.remote(self.remote)
        if dataset is None:
            raise Refused(dataset_missing(self.dataset))
        task = tasks.find_task(dataset, self.key)
        if task is None or task.remote != self.remote:
            raise Refused(tasks.task_missing(self.dataset))
        if remote is None:
            raise Refused(settings.remote_missing())
        return dataset, task, remote

    def check(self, facts: Facts) -> Iterator[Reason]:
        try:
            dataset, task, remote = self.find(facts)
        except Refused as refusal:
            yield from refusal.reasons
            return
        yield from settings.check_confirmed(remote)
        for name in dict.fromkeys((dataset.pool, self.pool)):
            if (pool := facts.pool(name)) and pool.state == "SUSPENDED":
                yield stopped_pool(name)
        tree = tasks.members(dataset, task, facts)
        for one in tree:
            if one.locked:  # there would be nothing to compare with
                yield reasons.dataset_locked(one.name)
        yield from self.drill.check_place(size_of(tree), facts)

    # --- the plan -----------------------------------------------------------------------------------------------------
    def plan(self, facts: Facts) -> Plan:
        dataset, task, remote = self.find(facts)
        tree = tasks.members(dataset, task, facts)
        run, drill = RemoteDrillRun(), self.drill
        sealed = [one for one in tree if one.encryption != "off"]
        volumes = [one for one in tree if one.kind == "volume"]
        keys = StoredKeys.of([(one, one) for one in tree], facts)
        connect = Step(
            "connect",
            Message("Ask {host} for the copy", host=remote.host),
            "\n".join(connection.shown(remote, words) for words in (("hello",), ("tree", task.path))),
            partial(self.connect, run, task, dataset, tree, drill.free(facts)),
        )
        expected = names_there(task.path, dataset, tree, {})
        restores = [self.restore_step(one, expected[one.guid], task, remote, run) for one in tree]
        return Plan(
            summary=Message(
                "{count} fetched from {host}, about {size}, to {scratch}, where nobody can see it. Every "
                "name, size, owner, access right, attribute and content is compared with the snapshot here "
                "that it was copied from. Then all of it is removed.",
                count=drill.count_text(len(tree)),
                host=remote.host,
                size=size_text(size_of(tree)),
                scratch=drill.scratch,
            ),
            steps=(connect, *drill.steps(run, keys, restores, facts)),
            identity={
                "operation": msgspec.to_builtins(self),
                "task": msgspec.to_builtins(task),
                "datasets": [one.guid for one in tree],
                "remote": [remote.host, remote.port, remote.user, remote.root, remote.host_key],
            },
            warnings=tuple(self.warnings(sealed, volumes, keys)),
            undo=Message("Your own files are not changed, here or there. You can stop it at any time."),
        )

    def warnings(self, sealed: Sequence[Dataset], volumes: Sequence[Dataset], keys: StoredKeys) -> Iterator[str]:
        if opened := [one.name for one in sealed if keys.should_have(one)]:
            yield Message(
                "Encrypted folders arrive encrypted, and are opened with the key that this box stores, for "
                "the test alone: {opened}.",
                opened=names_text(opened, NAMED),
            )
        yield from self.drill.warnings(sealed, volumes, keys)
        yield Message("No backup is sent to that computer meanwhile.")

    def time_text(self, facts: Facts) -> str:
        """How long fetching will take, by the last measured pace.
        Raises Refused where nothing is known of the backup."""
        dataset, task, remote = self.find(facts)
        limit = task.most_bytes_a_second(datetime.now(UTC), schedule.box_zone())
        return time_text(size_of(tasks.members(dataset, task, facts)), remote.pace, limit)

    # --- the steps ----------------------------------------------------------------------------------------------------
    def connect(
        self, run: RemoteDrillRun, task: BackupTask, top: Dataset, tree: Sequence[Dataset], free: int, work: Work
    ) -> None:
        """Before anything is made here: whether it answers, which moment of each folder both
        have, and whether that fits."""
        source = RemoteSource.ask(self.remote)
        try:
            source.listed = source.read_tree(task.path)
        except Refused:  # there is no such copy
            source.listed = {}
        there = names_there(task.path, top, tree, source.listed)
        here: dict[str, list[Snapshot]] = {}
        for found in list_snapshots.list_snapshots([one.name for one in tree]):
            here.setdefault(found.dataset, []).append(found)
        for one in tree:
            name = there[one.guid]
            common = newest_common(one, here.get(one.name, []), name, source.listed.get(name))
            if common:
                run.found[one.guid] = common
            else:
                run.left[one.name] = Message("the copy there has no snapshot in common with it")
        if not run.found:
            raise Refused(
                Reason(
                    "drill-nothing-common",
                    "{dataset} and its copy on {host} have no snapshot in common, so there is nothing to "
                    "compare. Run the backup, then test again.",
                    dataset=self.dataset,
                    host=source.remote.host,
                )
            )
        needed = sum(common.part.size for common in run.found.values()) + drill_scratch.SPARE
        Refused.unless_empty(self.drill.check_room(needed, free))
        run.source = source
        work.note(
            Message(
                "{host} has {count} of {of} folders in a snapshot that is here too.",
                host=source.remote.host,
                count=len(run.found),
                of=len(tree),
            )
        )

    def restore_step(self, one: Dataset, expected: str, task: BackupTask, remote: Remote, run: RemoteDrillRun) -> Step:
        place = f"{self.drill.scratch}/{one.guid}"
        raw = one.encryption != "off"

        def restore(work: Work) -> None:
            common = run.found.get(one.guid)
            if common is None:
                work.note(Message("{one} was not restored: {why}.", one=one.name, why=run.left.get(one.name, "")))
                return
            if run.source is None:
                raise Failed(Message("The other computer was not asked yet"))
            part = rehearsed(one, common, place, task, run.source.remote)
            try:
                moved = run.source.bring(work, part, {place})
            except Failed:
                drill_scratch.discard_part(place, work)
                raise
            run.add(DrillPart(one, part), moved)

        example = RemotePart(
            name=expected,
            guid=one.guid,
            snapshot=1,
            short="NEWEST",
            original=one.guid,
            size=0,
            raw=raw,
            volume=one.kind == "volume",
        )
        shown = rehearsed(one, Common(example, 0), place, task, remote)
        words = ("send", expected, "NEWEST", mode_of_part(shown.flags))
        text = f"{connection.shown(remote, words)} | {shlex.join(shown.receiver(match.Decision('full')))}"
        return Step(
            f"restore-{one.guid}", Message("Restore {one}", one=one.name), text, self.drill.tidily(restore), (place,)
        )


def size_of(tree: Iterable[Dataset]) -> int:
    """About how many bytes a drill needs: as many as the originals, as far as is known before
    the other computer is asked."""
    return sum(one.referenced for one in tree) + drill_scratch.SPARE


def newest_common(one: Dataset, here: Iterable[Snapshot], name: str, there: RemoteCopy | None) -> Common | None:
    """The newest snapshot of a dataset that its copy there has too, by the guid.
    None where there is none, or no such copy."""
    if there is None or there.mark is None or there.mark.guid != one.guid or not there.guid:
        return None
    if there.is_volume != (one.kind == "volume"):
        return None
    shorts = {guid: short for _txg, guid, short in there.snapshots if SHORT.fullmatch(short)}
    newest = max((found for found in here if found.guid in shorts), key=lambda found: found.txg, default=None)
    if newest is None:
        return None
    part = make_part(name, there, newest.guid, shorts[newest.guid])
    return Common(part, int(newest.created.timestamp()))


def rehearsed(one: Dataset, common: Common, place: str, task: BackupTask, remote: Remote) -> RemoteRehearsed:
    """What is received of an original ``one``, with access lists where that has them."""
    part = common.part
    noted = {key: Property(value, "local") for key, value in copies.acl_of(one).items()}
    return RemoteRehearsed(
        source=source_of(part, remote, common.created, noted),
        target=place,
        short=part.short,
        flags=("-w",) if part.raw else ("-L", "-c"),
        place=place,
        guid=part.snapshot,
        remote=remote,
        task=task,
    )
