"""How every backup stands, from the inventory's rows and from what is remembered: a constant number of queries."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cached_property

import msgspec
from django.db.models import Max, Q
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from msgspec.structs import replace

from appliance import snapshot_names
from appliance.backups import copies, tasks
from appliance.backups.pairing.receive_copies import receives
from appliance.backups.run_mark import RunMark, run_mark_of
from appliance.backups.tasks import BackupTask
from appliance.facts.box import Facts, Pool
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset
from appliance.facts.remote import Remote
from web.backups.models import BackupRecord
from web.backups.proof import Checkable, Proof, Received, checkable, newer_keys, parse_proof
from web.inventory.dataset_models import DatasetRow, SnapshotRow
from web.inventory.fact_row import LookUp, facts_of, look_up_or_none, look_up_strictly, readable_facts
from web.inventory.models import DiskRow, PoolRow, RemoteRow
from web.jobs.models import Job

NAMES = f"{snapshot_names.PREFIX}{snapshot_names.BACKUP}-"
AT_ONCE = 500
NOTHING_KNOWN = Checkable()
CLOCK_TOLERANCE = timedelta(minutes=10)  # a clock that is set back by so little was not wrong
AGE_UNKNOWN = datetime.fromtimestamp(0, UTC)
CYCLE = 5  # comparisons, a week apart, in which every file comes once


class BackupStatus(msgspec.Struct, frozen=True, dict=True):
    """One task of one folder. ``good``: the moment of the newest copy that every folder of it has;
    None: there is none."""

    dataset: Dataset
    task: BackupTask
    pool: Pool | None
    now: datetime
    good: datetime | None = None
    pool_name: str = ""
    record: BackupRecord | None = None
    copied: int = 0
    lacking: tuple[Dataset, ...] = ()  # folders without a copy, while others have one
    used: int = 0
    plugged: str = ""  # the name of its pool where the disk is here and the pool is not in use
    job: Job | None = None  # the latest run or comparison
    checks: Checkable = NOTHING_KNOWN
    remote: Remote | None = None  # the other computer that the copies go to

    def __str__(self) -> str:
        return gettext("the backup of {name}").format(name=self.dataset.name)

    @property
    def key(self) -> str:
        return str(self.dataset.guid)

    @property
    def target(self) -> str:
        if self.remote:
            return f"{self.remote.root}/{self.task.path}"
        return f"{self.pool_name}/{self.task.path}"

    @property
    def can_run(self) -> bool:
        """Whether its destination is there: a pool that is connected, or a computer whose host key is confirmed."""
        if self.task.remote:
            return self.remote is not None and bool(self.remote.host_key) and not self.remote.has_other_key
        return self.pool is not None

    @property
    def is_running(self) -> bool:
        return self.job is not None and self.job.open

    @property
    def since(self) -> datetime | None:
        return self.record.since if self.record else None

    @property
    def seen(self) -> datetime | None:
        """When the destination was connected last, while it is not."""
        return self.record.seen if self.record and not (self.pool or self.plugged or self.task.remote) else None

    @property
    def made(self) -> datetime | None:
        """The moment of the newest copy, where that is known."""
        return None if self.has_unknown_age else self.good

    @property
    def needed_by(self) -> datetime | None:
        """Until when the disk of a copy has to be connected again, so that it never is older than its owner allows;
        None where it is already."""
        return self.made + timedelta(days=self.task.days) if self.made and not self.is_late else None

    @property
    def compared(self) -> str:
        """What the last comparison covered: ``412 files, 8 % of the data; all of it once in 5 weeks``."""
        if self.record is None or self.record.compared is None:
            return ""
        count = ngettext("{files} file", "{files} files", self.record.files).format(files=self.record.files)
        share = (
            gettext(", {size} % of the data").format(size=self.record.size * 100 // self.record.total)
            if self.record.total
            else ""
        )
        return gettext("{count}{share}; all of it once in {cycle} weeks").format(count=count, share=share, cycle=CYCLE)

    @property
    def differs(self) -> bool:
        return self.record is not None and self.record.different > 0

    @cached_property
    def proof(self) -> Proof:
        return parse_proof(self.record.proof) if self.record else Proof()

    @property
    def is_useless(self) -> bool:
        """Whether the copy does not restore what it should, or its key does not open it."""
        return self.proof.different > 0 or bool(self.proof.wrong)

    @property
    def has_untried_key(self) -> bool:
        """Whether a part of it is encrypted, and nobody has seen yet that the key at hand opens the copy."""
        return bool(self.checks.sealed) and (not self.proof.opened or bool(self.proof.untried) or self.has_newer_key)

    @property
    def has_newer_key(self) -> bool:
        """Whether a copy came, or got another key, since keys were tried."""
        return self.proof.of < len(self.checks.sealed) or bool(newer_keys(self.proof, self.checks.sealed))

    @property
    def received(self) -> list[Received]:
        """What interrupted runs have left at the copies, with the moment when it was first seen."""
        return [replace(one, since=self.proof.received.get(one.key)) for one in self.checks.received]

    @property
    def is_foreign(self) -> bool:
        """Whether it came with disks from another box and nobody of this box has set it."""
        return self.since is None

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.lacking)

    @property
    def is_late(self) -> bool:
        """Whether the newest copy is older than its owner allows, or a folder has been without one for as long."""
        return self.is_old or any(self.is_over(self.proof.missing.get(str(one.guid))) for one in self.lacking)

    @property
    def is_old(self) -> bool:
        """Whether the newest copy, of the folders that have one, is older than its owner allows."""
        return self.is_over(self.good or self.since)

    def is_over(self, last: datetime | None) -> bool:
        """Whether a moment is longer ago than the newest copy may be, or in the future, which says nothing."""
        if last is None or self.is_foreign:
            return False
        return not -CLOCK_TOLERANCE <= self.now - last <= timedelta(days=self.task.days)

    @property
    def has_unknown_age(self) -> bool:
        """Whether it is there, and the clock was wrong when it was made."""
        return self.good is not None and (self.good == AGE_UNKNOWN or self.good - self.now > CLOCK_TOLERANCE)

    @property
    def failed(self) -> bool:
        return self.job is not None and self.job.state in {Job.State.FAILED, Job.State.REFUSED}

    @property
    def state(self) -> str:
        """One of the states that have a picture and a colour."""
        if self.is_running:
            return "working"
        if self.differs or self.is_useless:
            return "failed"
        if self.is_foreign or self.is_late or self.failed or self.missing or (self.task.remote and not self.can_run):
            return "attention"
        if self.good is None:
            return "unknown"
        return "attention" if self.has_untried_key or self.proof.has_failed_drill else "healthy"

    @property
    def word(self) -> str:
        if self.is_running:
            return gettext("comparing") if self.job and self.job.kind == "verify-backup" else gettext("copying")
        if self.differs:
            return gettext("differs from the original")
        if self.is_useless:
            return gettext("key does not open it") if self.proof.wrong else gettext("restores differently")
        if self.is_foreign:
            return gettext("not confirmed")
        if self.has_unknown_age:
            return gettext("age unknown")
        if self.is_old:
            return gettext("too old") if self.good else gettext("no copy yet")
        if self.task.remote and not self.can_run:
            return gettext("key changed") if self.remote else gettext("removed")
        if self.failed and not self.is_late:
            return gettext("last run failed")
        if self.missing:
            return gettext("incomplete")
        if self.good is None:
            return gettext("no copy yet")
        if self.has_untried_key:
            return gettext("good, key not tried")
        if self.proof.has_failed_drill:
            return gettext("good, restore not proved")
        if self.plugged:
            return gettext("good, safe to unplug")
        return gettext("good") if self.can_run else gettext("good, not connected")


def read_facts(look_up: LookUp = look_up_strictly) -> Facts:
    """Pools, datasets and other computers alone. Three queries.
    With another ``look_up`` odd rows are left out: for looking."""
    return Facts(
        pools=tuple(facts_of(PoolRow.objects.order_by("name"), look_up)),
        datasets=tuple(facts_of(DatasetRow.objects.order_by("name"), look_up)),
        remotes=tuple(facts_of(RemoteRow.objects.order_by("name"), look_up)),
    )


def read_all(now: datetime | None = None) -> list[BackupStatus]:
    """Every task of every folder; one query where there is none."""
    if not DatasetRow.objects.filter(backup_source="local").exists():
        return []
    return read_statuses(read_facts(), now)


def read_statuses(facts: Facts, now: datetime | None = None) -> list[BackupStatus]:
    """Every task of every folder. Four queries and one for each 500 copies."""
    now = now or timezone.now()
    found = [(one, task) for one in facts.datasets for task in tasks.tasks_of(one)]
    if not found:
        return []
    targets: dict[tuple[int, str], dict[int, str]] = {}
    for dataset, task in found:
        if pool := task.find_pool(facts):
            tree = tasks.members(dataset, task, facts)
            targets[dataset.guid, task.key] = copies.names_of(task.root(pool), dataset, tree, facts)
    newest = newest_copies((name for names in targets.values() for name in names.values()), now)
    for (guid, _key), names in targets.items():
        newest |= marked_copies(names, newest, run_mark_of(facts.dataset(names[guid])), now)
    records = {(row.dataset_key, row.task): row for row in BackupRecord.objects.all()}
    jobs, plugged = latest_jobs(), plugged_pools()
    return [
        status_of(
            dataset,
            task,
            facts,
            now,
            targets.get((dataset.guid, task.key)),
            newest,
            records.get((str(dataset.guid), task.key)),
            jobs.get((dataset.name, task.key)),
            plugged.get(task.pool, ""),
        )
        for dataset, task in found
    ]


def status_of(
    dataset: Dataset,
    task: BackupTask,
    facts: Facts,
    now: datetime,
    targets: dict[int, str] | None,
    newest: dict[str, datetime],
    record: BackupRecord | None,
    job: Job | None,
    plugged: str,
) -> BackupStatus:
    pool = task.find_pool(facts)
    if task.remote:
        remote, good, name = facts.remote(task.remote), None, ""
        if record:
            good, name = record.good, record.pool_name
        host = remote.host if remote else name or gettext("a computer that was removed")
        return BackupStatus(dataset, task, None, now, good=good, pool_name=host, job=job, record=record, remote=remote)
    members = tasks.members(dataset, task, facts)
    if targets is None or pool is None:
        good, name = (record.good, record.pool_name) if record else (None, "")
        known = parse_proof(record.proof).missing if record else {}
        return BackupStatus(
            dataset,
            task,
            None,
            now,
            good=good,
            pool_name=plugged or name or gettext("an unknown pool"),
            lacking=tuple(one for one in members if str(one.guid) in known),
            plugged=plugged,
            job=job,
            record=record,
        )
    there = [newest[name] for name in targets.values() if name in newest]
    lacking = tuple(one for one in members if targets[one.guid] not in newest)
    top = facts.dataset(task.root(pool))
    here = {one.name: one for one in facts.datasets}
    parts = [(one, here[name]) for one in members if (name := targets[one.guid]) in newest and name in here]
    return BackupStatus(
        dataset,
        task,
        pool,
        now,
        good=min(there) if there and dataset not in lacking else None,
        pool_name=pool.name,
        copied=len(there),
        lacking=lacking if there else (),
        used=top.used if top else 0,
        job=job,
        record=record,
        checks=checkable(task.root(pool), parts, facts),
    )


def newest_copies(names: Iterable[str], now: datetime) -> dict[str, datetime]:
    """By the dataset of a copy, the moment of the newest that a backup has brought. One from the future says
    nothing of its age: the clock was wrong when it was made. A copy that has only such ones counts as made
    at the beginning of time."""
    wanted = sorted(set(names))
    past = Max("created", filter=Q(created__lte=now + CLOCK_TOLERANCE))
    found: dict[str, datetime] = {}
    for start in range(0, len(wanted), AT_ONCE):
        rows = SnapshotRow.objects.filter(dataset__in=wanted[start : start + AT_ONCE], short__startswith=NAMES)
        known = rows.values("dataset").annotate(newest=past).values_list("dataset", "newest")
        found.update((name, newest or AGE_UNKNOWN) for name, newest in known)
    return found


def marked_copies(
    names: dict[int, str], newest: dict[str, datetime], mark: RunMark | None, now: datetime
) -> dict[str, datetime]:
    """The copies that the latest run found complete, by its mark: it sends nothing where nothing is new."""
    complete = {name: mark.complete_since(guid) for guid, name in names.items() if name in newest} if mark else {}
    return {name: at for name, at in complete.items() if at and newest[name] < at <= now + CLOCK_TOLERANCE}


def plugged_pools() -> dict[int, str]:
    """The guid and name of each pool that is on a disk of this box and not in use."""
    return {
        int(use.identity): use.pool
        for disk in readable_facts(DiskRow.objects.all())
        for use in disk.uses
        if use.kind == "exported" and use.identity.isdecimal()
    }


def latest_jobs() -> dict[tuple[str, str], Job]:
    """The latest run of each task."""
    rows = (
        Job.objects.filter(kind__in=("run-backup", "send-backup", "verify-backup"))
        .defer("plan", "log")
        .order_by("-created")[:200]
    )
    found: dict[tuple[str, str], Job] = {}
    for row in rows:
        found.setdefault((row.subject, row.backup), row)
    return found


def read_orphans(facts: Facts) -> list[Dataset]:
    """The copies that no backup continues: their folder is gone, or they were set aside. Without those below them."""
    here = {one.guid for one in facts.datasets if not one.copy_of}
    received = {one.name for one in facts.datasets if receives(one)}
    found = (
        one for one in facts.datasets if copies.is_copy(one) and one.name.count("/") == 2 and one.name not in received
    )
    return [one for one in found if (mark := parse_copy_mark(one.copy_of)) and mark.guid not in here]


def backups_holding(dataset: Dataset) -> list[BackupStatus]:
    """The backups that hold a folder: its own, and those of folders above it with all below.
    One query where there is none."""
    parts = dataset.name.split("/")
    names = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    if not DatasetRow.objects.filter(name__in=names, backup_source="local").exists():
        return []
    return [
        one
        for one in read_statuses(read_facts(look_up_or_none))
        if one.dataset.name == dataset.name or (one.task.below and dataset.name.startswith(f"{one.dataset.name}/"))
    ]
