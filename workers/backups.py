"""Start due backups, one at a time, and remember how each stands for when its disks are not connected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec
from django.utils import timezone
from msgspec.structs import replace

from appliance import schedule, snapshot_names
from appliance.alerts.fault import Fault
from appliance.backups import run_mark
from appliance.backups.remote.send_backup import COMPLETE, SendBackup
from appliance.backups.run_backup import RunBackup
from appliance.backups.verify_backup import PREFIX, Comparison, VerifyBackup
from appliance.facts.box import Pool
from appliance.formatting import moment_text, names_text
from appliance.message import Message, join_messages
from appliance.operation import Operation, kind_of
from web.backups import recovery, status
from web.backups.models import BackupRecord
from web.backups.status import BackupStatus
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import first_fact, readable_facts
from web.jobs import confirm
from web.jobs.models import BY_SCHEDULE, Job
from workers import backup_disks, backup_jobs, backup_proof, guard
from workers.interval import Interval

SECONDS_BETWEEN_LOOKS = 30.0
SENDS = ("send-backup",)
FETCHES = ("restore-remote", "drill-remote")
ON_DISKS = ("run-backup", "verify-backup", "restore-folder", *backup_proof.KINDS_OF_JOBS)
COMPARE_EVERY = timedelta(days=7)
NAMED = 5  # folders in an alert
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
SEEN_EVERY = timedelta(hours=6)  # how often it is written down that a destination is connected
looks = Interval(SECONDS_BETWEEN_LOOKS)
Due = Callable[[BackupStatus, datetime], bool]
Build = Callable[[BackupStatus, Pool, datetime], Operation]


def start_due_backups() -> Job | None:
    """Start the run that has been due for longest, or a comparison where no run is due. One at a time on the disks
    of this box, as two streams on the same disks slow each other down; and one over the network, which may take
    days the first time. What is fetched over the network goes the other way: a restore, or a test of one, keeps
    only its computer and its folder."""
    if not store.is_read("snapshots") or not store.is_read("datasets"):
        return None
    recovery.read_phrase()  # so that pages know of it soon after a start
    now = timezone.now()
    statuses = status.read_all(now)
    forget_removed(statuses)
    try:
        guard.for_each(statuses, remember)
    finally:  # a record that cannot be written keeps no backup from being made
        job = start_next([as_remembered(one) for one in statuses], now)
    return job


def as_remembered(one: BackupStatus) -> BackupStatus:
    """The same with what was just written down: of copies on another computer nothing else tells how old they are."""
    return replace(one, good=one.record.good) if one.task.remote and one.record else one


def start_next(statuses: list[BackupStatus], now: datetime) -> Job | None:
    """Start whatever comes next over the network or on the disks of this box, where nothing runs already."""
    if not statuses:
        return None
    stopped = store.stopped_pools()
    others = backup_jobs.operations_under_way((*SENDS, *FETCHES, *ON_DISKS, *backup_disks.KINDS_OF_JOBS))
    free = [one for one in statuses if is_ready(one, stopped) and backup_jobs.is_free(one, others)]
    if not backup_jobs.is_busy(SENDS, stopped):
        ready = [one for one in free if one.task.remote]
        if job := start_longest_due(find_due(ready, now), now):
            return job
        if not backup_jobs.is_busy(FETCHES, stopped) and (job := start_remote_drill(find_rested(ready, now), now)):
            return job
    if backup_jobs.is_busy(ON_DISKS, stopped):
        return None
    local = [one for one in statuses if not one.task.remote]
    return start_on_disks(local, [one for one in free if not one.task.remote], now, stopped)


def find_due(ready: Iterable[BackupStatus], now: datetime) -> list[BackupStatus]:
    """Those to run now. A comparison that failed makes no run wait."""
    due = (one for one in ready if one.missing or one.task.is_due(one.good, now, schedule.box_zone()))
    return [one for one in due if not backup_jobs.is_resting(one, now, backup_jobs.RUNS)]


def find_rested(ready: Iterable[BackupStatus], now: datetime) -> list[BackupStatus]:
    """Those that may be compared and tested: neither a run nor a comparison of theirs was just a failure."""
    return [one for one in ready if not backup_jobs.is_resting(one, now, backup_jobs.KINDS_OF_JOBS)]


def start_longest_due(due: Iterable[BackupStatus], now: datetime) -> Job | None:
    for one in sorted(due, key=lambda one: one.good or NEVER):
        if job := start_run(one, now):
            return job
    return None


def start_remote_drill(ready: Iterable[BackupStatus], now: datetime) -> Job | None:
    for one in ready:
        if backup_proof.is_drill_due(one, now) and (job := start_operation(one, backup_proof.drill_of(one, None, now))):
            return job
    return None


def start_on_disks(
    statuses: list[BackupStatus], ready: list[BackupStatus], now: datetime, stopped: set[str]
) -> Job | None:
    """Runs to pools of this box, then comparisons and other checks; disks are imported before and released afterwards.
    ``ready``: those that may run now."""
    if (left := backup_proof.left_over(now)) and (job := backup_disks.start(left)):
        return job
    if job := backup_disks.fetch_disk(statuses, now):
        return job
    due = find_due(ready, now)
    if job := start_longest_due(due, now):
        return job
    rested = find_rested(ready, now)
    stale = [one for one in rested if one.pool and one.good and is_comparison_due(one, now)]
    for one in sorted(stale, key=lambda one: (one.record and one.record.compared) or NEVER):
        if job := start(one, now, comparison_of):
            return job
    checks: list[tuple[Due, Build]] = [
        (backup_proof.is_key_due, backup_proof.key_check_of),
        (backup_proof.is_drill_due, backup_proof.drill_of),
    ]
    for is_due, build in checks:
        for one in rested:
            if is_due(one, now) and (job := start(one, now, build)):
                return job
    kept = stopped | backup_jobs.pools_in_use(ON_DISKS)
    return backup_disks.release_disk(statuses, {one.task.pool for one in (*due, *stale)}, kept, now)


def is_ready(one: BackupStatus, stopped: set[str]) -> bool:
    """Whether it may run: it was set here, and its destination answers."""
    pools = {one.dataset.pool, *([one.pool.name] if one.pool else ())}
    return one.can_run and not one.is_foreign and not pools & stopped


def is_comparison_due(one: BackupStatus, now: datetime) -> bool:
    if not one.checks.comparable:
        return False
    last = one.record.compared if one.record else None
    return last is None or not timedelta() <= now - last < COMPARE_EVERY


def run_of(one: BackupStatus, pool: Pool, now: datetime) -> Operation:
    return RunBackup.of(one.dataset, one.task, pool, snapshot_names.format_moment(now))


def comparison_of(one: BackupStatus, pool: Pool, _now: datetime) -> Operation:
    """The next part of the files, and whatever changed since the last comparison; every file
    after a difference was found."""
    record, name, key, target = one.record, one.dataset.name, one.task.key, one.task.root(pool)
    if one.differs:
        return VerifyBackup(dataset=name, key=key, target=target)
    since = int(record.compared.timestamp()) if record and record.compared else 0
    turn = record.turn % status.CYCLE if record else 0
    return VerifyBackup(dataset=name, key=key, target=target, turn=turn, cycle=status.CYCLE, since=since)


def start(one: BackupStatus, now: datetime, build: Build) -> Job | None:
    """Start what needs the pool of the copies."""
    return start_operation(one, build(one, one.pool, now)) if one.pool else None


def start_run(one: BackupStatus, now: datetime) -> Job | None:
    """Start a run, whatever its destination is."""
    if one.task.remote:
        return start_operation(one, SendBackup.of(one.dataset, one.task, snapshot_names.format_moment(now)))
    return start(one, now, run_of)


def start_operation(one: BackupStatus, operation: Operation) -> Job | None:
    with guard.refusals_logged(f"{kind_of(operation)} of {one.dataset.name} ({one.task.key})"):
        return confirm.start_without_review(operation, user=BY_SCHEDULE)
    return None


def remember(one: BackupStatus) -> None:
    """Write down what changed. While a destination is not connected nothing is known anew."""
    row = one.record
    if row is None and was_set_here(one):
        row = BackupRecord(dataset_key=one.key, task=one.task.key, since=one.now)
        row.save()
    if row is None:
        return
    store_comparison(one, row)
    backup_proof.remember_proof(one, row)
    if one.task.remote:
        store_remote_run(one, row)
    if one.pool is None:
        return
    seen = row.seen if row.seen and timedelta() <= one.now - row.seen < SEEN_EVERY else one.now
    if (row.good, row.pool_name, row.seen) != (one.good, one.pool_name, seen):
        row.good, row.pool_name, row.seen = one.good, one.pool_name, seen
        row.save()


def store_remote_run(one: BackupStatus, row: BackupRecord) -> None:
    """Keep up to when the copies on another computer are complete, as its latest run has noted.
    One that left a folder out moves nothing."""
    job = one.job
    if job is None or job.open or job.kind != "send-backup":
        return
    log = Job.objects.filter(pk=job.pk).values_list("log", flat=True).first() or []
    text = next((line.removeprefix(COMPLETE) for line in reversed(log) if line.startswith(COMPLETE + "{")), "")
    mark = run_mark.parse_run_mark(text)
    good = mark.complete if mark else None
    name = one.pool_name if one.remote else row.pool_name
    if good is None or (row.good, row.pool_name) == (good, name) or (row.good and good < row.good <= one.now):
        return
    row.good, row.pool_name, row.seen = good, name, job.finished
    row.save()


def store_comparison(one: BackupStatus, row: BackupRecord) -> None:
    """Keep what the latest comparison found. One that failed has found differences, or could not compare at
    all. A difference that is known stays until every file was read again, and until then a folder counts as
    left out only if it always was."""
    jobs = Job.objects.filter(kind="verify-backup", subject=one.dataset.name, backup=one.task.key)
    job = jobs.exclude(state__in=Job.OPEN).exclude(finished=None).order_by("-finished").first()
    if job is None or job.finished is None or (row.compared and job.finished <= row.compared):
        return
    if found := parse_comparison(job.log):
        if found.different or not row.different or clears_difference(job, found, row):
            still = row.skipped if row.different and found.different else found.skipped
            row.skipped = [name for name in found.skipped if name in still]
            row.more_skipped = min(found.more, row.more_skipped) if row.different and found.different else found.more
            row.different, row.differences = found.different, list(found.differences)
        row.compared, row.turn = job.finished, (row.turn + 1) % status.CYCLE
        row.files, row.size, row.total = found.files, found.size, found.total
        row.save()


def clears_difference(job: Job, found: Comparison, row: BackupRecord) -> bool:
    """Whether a comparison that found nothing has read everything that the one before it had read: no
    part of the contents alone, and no folder left out that was there then and compared. Volumes never
    are, and stand after the folders."""
    if job.fields.get("cycle", 1) != 1:
        return False
    last = first_fact(DatasetRow.objects.filter(name=found.skipped[-1])) if found.more and found.skipped else None
    if found.more and (last is None or last.kind == "filesystem"):
        return False  # one of those without a name may be such a folder
    rows = list(DatasetRow.objects.filter(name__in=set(found.skipped) - set(row.skipped)))
    left = readable_facts(rows)
    if len(left) < len(rows):
        return False  # one that cannot be decoded may be such a folder
    return not any(one.kind == "filesystem" and row.compared and one.created <= row.compared for one in left)


def parse_comparison(lines: list[str]) -> Comparison | None:
    """The result in a job's log; None where there is none that can be read."""
    text = next((line.removeprefix(PREFIX) for line in lines if line.startswith(PREFIX + "{")), "")
    try:
        return msgspec.json.decode(text, type=Comparison) if text else None
    except msgspec.MsgspecError:
        return None


def was_set_here(one: BackupStatus) -> bool:
    """Whether somebody of this box set the task. Disks from elsewhere bring theirs, which run
    only once they are set here."""
    done = Job.objects.filter(kind="set-backup", state=Job.State.DONE, subject=one.dataset.name)
    return any(
        one.task.key == task.get("key") for job in done.only("operation") for task in job.fields.get("tasks", ())
    )


def forget_removed(statuses: list[BackupStatus]) -> None:
    """Delete the records of tasks that were removed from a dataset that is still here; one that left may come back."""
    kept = {(one.key, one.task.key) for one in statuses}
    unknown = [row for row in BackupRecord.objects.all() if (row.dataset_key, row.task) not in kept]
    here = set(DatasetRow.objects.filter(key__in=[row.dataset_key for row in unknown]).values_list("key", flat=True))
    if gone := [row.pk for row in unknown if row.dataset_key in here]:
        BackupRecord.objects.filter(pk__in=gone).delete()


def newest_text(one: BackupStatus, zone: tzinfo) -> str:
    if one.good is None:
        return Message("There is no copy yet.")
    if one.has_unknown_age:
        return Message("The newest copy is dated in the future, so nobody can tell how old it is.")
    return Message("The newest copy is of {moment}.", moment=moment_text(one.good.astimezone(zone)))


def backup_faults(now: datetime) -> Iterator[Fault]:
    """A fault for each backup whose newest copy is older than its owner allows, or differs from the original."""
    other_keys: set[str] = set()
    for one in status.read_all(now):
        if one.differs and one.record:
            yield Fault(
                "backup.differs",
                f"{one.key}:{one.task.key}",
                Message("The backup of {name} differs from the original.", name=one.dataset.name),
                backup_proof.differences_text(one.record.differences, one.record.different),
                f"/backups/of/{one.key}/{one.task.key}/",
                one.record.different,
            )
        yield from backup_proof.proof_faults(one)
        if one.remote and one.remote.has_other_key and one.remote.id not in other_keys:
            other_keys.add(one.remote.id)
            yield Fault(
                "backup.host-key",
                one.remote.id,
                Message("{host} shows another host key than the one that was confirmed.", host=one.remote.host),
                Message("Backups are not sent to it, among them that of {name}.", name=one.dataset.name),
                f"/backups/computers/{one.remote.id}/",
            )
        if one.is_late:
            pool, missing = one.pool_name, names_text(one.missing, NAMED)
            summary = (
                Message("The backup of {name} is too old.", name=one.dataset.name)
                if one.is_old
                else Message("The backup of {name} is incomplete.", name=one.dataset.name)
            )
            last = newest_text(one, schedule.box_zone())
            lacks = Message("Without any copy: {missing}.", missing=missing) if one.missing else ""
            where = (
                Message("Its copies are stored on {pool}.", pool=pool)
                if one.pool or one.remote
                else Message("{pool}, where its copies are stored, is not connected.", pool=pool)
            )
            yield Fault(
                "backup.old",
                f"{one.key}:{one.task.key}",
                summary,
                join_messages([last, lacks, where]),
                f"/backups/of/{one.key}/{one.task.key}/",
            )
