"""Set, change and remove the backup tasks of a folder: one property of its dataset, so they move with the data."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance import names
from appliance.backups import tasks
from appliance.backups.remote import settings
from appliance.backups.tasks import BackupTask
from appliance.errors import Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.pool_reasons import stopped_pool
from appliance.formatting import size_text
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, Step, command_step
from appliance.snapshots.take import dataset_missing

FAILMODE, WAIT = "failmode", "wait"  # zpoolprops(7): what a pool does that has lost its disks


class SetBackup(Operation, tag="set-backup"):
    """Give a dataset exactly these backup tasks; none removes them. Copies that were made stay."""

    dataset: str
    tasks: tuple[BackupTask, ...] = ()

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        if len(self.tasks) > tasks.MOST_TASKS:
            raise Refused(
                Reason("backups-too-many", "A folder can have at most {most} backups.", most=tasks.MOST_TASKS)
            )
        places = [(task.pool, task.remote, task.path) for task in self.tasks]
        if len({task.key for task in self.tasks}) < len(self.tasks) or len(set(places)) < len(places):
            raise Refused(Reason("backup-twice", "This folder is already copied there.", field="pool"))

    @property
    def title(self) -> str:
        return (
            Message("Set the backups of {dataset}", dataset=self.dataset)
            if self.tasks
            else Message("Stop backing up {dataset}", dataset=self.dataset)
        )

    @property
    def subject(self) -> str:
        return self.dataset

    def before(self, facts: Facts) -> dict[str, BackupTask]:
        """The tasks that are set now, by their key."""
        dataset = facts.dataset(self.dataset)
        return {task.key: task for task in tasks.tasks_of(dataset)} if dataset else {}

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        """Whether a task goes, or will keep fewer copies, or is told of later: then the owner should know."""
        then = {task.key: task for task in self.tasks}
        return any(key not in then or is_weaker(then[key], now) for key, now in self.before(facts).items())

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            yield dataset_missing(self.dataset)
            return
        if dataset.copy_of:
            yield Reason("backup-of-copy", "{dataset} is itself a copy that a backup made.", dataset=self.dataset)
        pool = facts.pool(dataset.pool)
        if pool and pool.state == "SUSPENDED":
            yield stopped_pool(pool.name)
        before = self.before(facts)
        for task in self.tasks:
            if before.get(task.key) != task:
                yield from self.check_task(task, pool.guid if pool else 0, facts)

    def check_task(self, task: BackupTask, own: int, facts: Facts) -> Iterator[Reason]:
        """The reasons against a task that is new or was changed."""
        if task.remote:
            yield from check_remote(task, facts)
            return
        pool = task.find_pool(facts)
        if task.pool == own:
            yield Reason(
                "backup-same-pool",
                "A copy in the same pool is lost together with the original. Choose another pool.",
                field="pool",
            )
        elif pool is None:
            yield Reason(
                "backup-pool-not-here", "That pool is not connected. Connect its disks and import it.", field="pool"
            )
        elif taken := facts.dataset(task.root(pool)):
            mark, dataset = parse_copy_mark(taken.copy_of), facts.dataset(self.dataset)
            if mark is None or dataset is None or mark.guid != dataset.guid:
                yield Reason(
                    "backup-path-taken",
                    "{root} already exists and is not a copy of this folder. Choose another name.",
                    field="path",
                    root=taken.name,
                )

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.dataset)
        if self.tasks:
            argv = ["zfs", "set", f"{user_properties.BACKUP}={tasks.encode_tasks(self.tasks)}", self.dataset]
        else:
            argv = ["zfs", "inherit", user_properties.BACKUP, self.dataset]
        return Plan(
            summary=join_messages([*self.sentences(facts)]),
            steps=(
                *(self.waiting_step(pool) for pool in self.impatient_pools(facts)),
                command_step("set", self.title, argv, affects=[self.dataset], undo=Message("Set it again as it was")),
            ),
            identity={"operation": msgspec.to_builtins(self), "dataset": dataset.guid if dataset else 0},
            warnings=tuple(self.warnings(facts)),
            undo=Message("The backups can be set again as they were. Copies that were made stay."),
        )

    def impatient_pools(self, facts: Facts) -> list[str]:
        """The pools on disks that come and go which would not wait for a disk that is unplugged while it is
        written to: with ``panic`` the box stops, with ``continue`` a run goes on into nothing and all that needs
        the pool hangs (ZFS 2.3.9)."""
        pools = [pool.name for task in self.tasks if task.removable and (pool := task.find_pool(facts))]
        return [name for name in dict.fromkeys(pools) if facts.properties_of(name).get(FAILMODE, WAIT) != WAIT]

    def waiting_step(self, pool: str) -> Step:
        return command_step(
            FAILMODE,
            Message("If the disk is unplugged too early, let {pool} wait for it", pool=pool),
            ["zpool", "set", f"{FAILMODE}={WAIT}", pool],
            affects=[pool],
        )

    def sentences(self, facts: Facts) -> Iterator[str]:
        for task in self.tasks:
            pool, remote = task.find_pool(facts), facts.remote(task.remote)
            place = task.root(pool) if pool else task.path
            if remote:
                place = Message("{root}/{task_path} on {host}", root=remote.root, task_path=task.path, host=remote.host)
            what = Message("{dataset} and all folders below it", dataset=self.dataset) if task.below else self.dataset
            yield Message("{what}: copied to {place} {when}.", what=what, place=place, when=task.when)
            if task.remote:
                yield Message("Copies are never destroyed from here: how long they stay is decided on that computer.")
            else:
                yield Message("{sentence} are kept.", sentence=task.keep.sentence)
            if task.speed:
                yield Message("Speed: {speed}.", speed=task.speed)
            if task.drill:
                yield Message("Once a month the whole folder is restored as a test, compared and removed again.")
            if task.removable:
                yield Message("Its pool is imported when you connect the disk, and released when the copy is complete.")
        if not self.tasks:
            yield Message(
                "No more copies of {dataset} are made. The copies that exist stay where they are.", dataset=self.dataset
            )

    def warnings(self, facts: Facts) -> Iterator[str]:
        """What the owner should know before the first run."""
        dataset, before = facts.dataset(self.dataset), self.before(facts)
        if set(before) - {task.key for task in self.tasks}:
            yield Message(
                "The last snapshot that a removed backup took stays in each folder and keeps the space of "
                "files that are deleted from now on. Delete it with the other snapshots when you no longer "
                "need it."
            )
        for task in self.tasks:
            pool = task.find_pool(facts)
            top = facts.dataset(pool.name) if pool else None
            if dataset and pool and top and task.key not in before and dataset.used > top.available:
                yield (
                    Message(
                        "{dataset} uses {used}, and {pool} has {available} free. The first copy may not fit.",
                        dataset=self.dataset,
                        used=size_text(dataset.used),
                        pool=pool.name,
                        available=size_text(top.available),
                    )
                )
            if (
                dataset
                and task.key not in before
                and any(one.encryption != "off" for one in tasks.members(dataset, task, facts))
            ):
                yield Message(
                    "Encrypted folders are copied encrypted. Without their passphrase or key file the copy "
                    "is worthless, so keep that outside of this box."
                )

    def probe(self, step: str, facts: Facts) -> bool:
        if step == FAILMODE:
            return not self.impatient_pools(facts)
        dataset = facts.dataset(self.dataset)
        return dataset is not None and tasks.tasks_of(dataset) == self.tasks

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The backups are unchanged. Set them again.")


def check_remote(task: BackupTask, facts: Facts) -> Iterator[Reason]:
    """The reasons against copying to that other computer."""
    remote = facts.remote(task.remote)
    if remote is None:
        yield settings.remote_missing().with_field("pool")
    elif not remote.host_key:
        yield settings.not_confirmed(remote)


def is_weaker(then: BackupTask, now: BackupTask) -> bool:
    """Whether a changed task keeps fewer copies, goes elsewhere, copies less, is tested no more,
    or may be late for longer."""
    fewer = then.keep.keeps_fewer(now.keep)
    moved = (then.pool, then.remote, then.path) != (now.pool, now.remote, now.path)
    return fewer or moved or then.days > now.days or (now.below and not then.below) or (now.drill and not then.drill)
