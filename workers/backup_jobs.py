"""Jobs of backups: which are under way, and how long a task rests after one that failed."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import QuerySet

from appliance.agent.registry import decode_operation
from appliance.backups import copies
from appliance.backups.remote.send_backup import lock_of
from appliance.errors import Refused
from appliance.operation import Operation
from web.backups.status import BackupStatus
from web.inventory.models import Progress
from web.jobs.models import Job

RUNS = ("run-backup", "send-backup")
KINDS_OF_JOBS = (*RUNS, "verify-backup")
MOST_DOUBLED = 5  # eight hours
TRY_AGAIN_AFTER = timedelta(minutes=15)
FAILURES_COUNT_FOR = timedelta(days=2)
SECOND = timedelta(seconds=1)  # what ZFS and the marks of runs round moments down to


def under_way(kinds: Collection[str]) -> QuerySet[Job]:
    return Job.objects.filter(kind__in=kinds, state__in=Job.OPEN)


def is_busy(kinds: Collection[str], stopped: Collection[str]) -> bool:
    """Whether a job of one of these kinds is at work. One that waits for another job does not count: it uses neither
    disks nor the network yet. Nor does one whose pool has stopped: what reads or writes there waits in the kernel until
    the disks are back, perhaps for ever. Nothing else should wait with either."""
    waiting = list(Progress.objects.filter(waits=True).values_list("job", flat=True))
    found = under_way(kinds).exclude(pk__in=waiting).values_list("operation", flat=True)
    return any(not pools_of(operation) & set(stopped) for operation in found)


def pools_in_use(kinds: Collection[str]) -> set[str]:
    """The pools that jobs of these kinds work on."""
    return set[str]().union(*map(pools_of, under_way(kinds).values_list("operation", flat=True)))


def operations_under_way(kinds: Collection[str]) -> list[Operation]:
    """What jobs of these kinds do or wait to do, also those that hang; without those of another version."""
    found = map(decode_known, under_way(kinds).values_list("operation", flat=True))
    return [one for one in found if one]


def is_free(one: BackupStatus, others: Collection[Operation]) -> bool:
    """Whether a run or a check of this backup would wait at the agent for none of these operations: they need neither
    its task nor the place of its copies, and none of its folders for themselves."""
    if one.task.remote:
        place, used = lock_of(one.task.remote), [one.dataset.name]
    else:
        place, used = copies.lock_of(one.target), [one.dataset.name, one.target]
    wanted = {f"the backup {one.task.key}", place}
    taken = [folder for other in others for folder in other.files_taken()]
    return not any(wanted & {*other.locks()} for other in others) and not any(
        not folder or f"{name}/".startswith(f"{folder}/") for folder in taken for name in used
    )


def decode_known(operation: str) -> Operation | None:
    """The operation of a job; None where it is from another version."""
    try:
        return decode_operation(operation)
    except Refused:
        return None


def pools_of(operation: str) -> set[str]:
    """The pools whose files an operation works on; none where it is from another version."""
    found = decode_known(operation)
    if found is None:
        return set()
    return {name.partition("/")[0] for name in (*found.files_used(), *found.files_taken()) if name}


def is_resting(one: BackupStatus, now: datetime, kinds: Collection[str]) -> bool:
    """Whether a job of one of these kinds has failed and is not tried again yet: a quarter of an hour later,
    doubled with each further failure of the last two days. After a run that copied everything nothing rests,
    whatever else it could not do."""
    if one.job is None or one.job.open or one.job.state == Job.State.DONE:
        return False
    tries = Job.objects.filter(kind__in=kinds, subject=one.dataset.name, backup=one.task.key)
    failed = tries.filter(created__range=(now - FAILURES_COUNT_FOR, now)).exclude(state=Job.State.DONE)
    if one.good and one.good <= now and not one.missing:
        failed = failed.filter(created__gt=one.good + SECOND)
    last = failed.order_by("-created").first()
    doubled = min(max(failed.count() - 1, 0), MOST_DOUBLED)
    return last is not None and now - TRY_AGAIN_AFTER * (1 << doubled) < last.created
