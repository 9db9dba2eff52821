"""Prove backups by schedule: try stored keys every week, test a restore every month, and remember what was found."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec
from django.db.models import QuerySet

from appliance.alerts.fault import Fault
from appliance.backups import check_keys, drill_base, drill_scratch
from appliance.backups.check_keys import CheckBackupKeys, KeyCheck
from appliance.backups.drill_base import Rehearsal
from appliance.backups.drill_scratch import RemoveDrill
from appliance.facts.box import Pool
from appliance.facts.datasets import Dataset
from appliance.formatting import and_more, day_text
from appliance.message import Message, reason_after_name
from appliance.operation import Operation
from web.backups import proof, status
from web.backups.models import BackupRecord
from web.backups.status import BackupStatus
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts
from web.inventory.models import Source
from web.jobs.models import Job

KINDS_OF_JOBS = ("drill-backup", "check-backup-keys", "remove-drill")  # on the disks of this box
REST_AFTER_FAILURE = timedelta(days=1)
REMOVE_AGAIN_AFTER = timedelta(minutes=10)
UNCHANGED = (Job.State.REFUSED, Job.State.CANCELLED)  # ends of jobs that have done nothing
Found = TypeVar("Found", bound=msgspec.Struct)


# --- what is due ------------------------------------------------------------------------------------------------------
def is_key_due(one: BackupStatus, now: datetime) -> bool:
    """Whether the stored key should be tried: no more than once a day, whatever came of it."""
    if one.pool is None or one.good is None or not one.checks.sealed or not one.checks.stores_key:
        return False
    is_due = one.has_newer_key or is_old(one.proof.keys, now, proof.KEYS_EVERY)
    return is_due and not was_tried(one, "check-backup-keys", now)


def is_drill_due(one: BackupStatus, now: datetime) -> bool:
    """Whether a test is due, and there is room for it and something to compare with.
    Where not, the backup's page says so."""
    if not one.can_run or not one.task.drill or one.good is None:
        return False
    if not is_old(one.proof.drilled, now, proof.DRILL_EVERY) or was_tried(one, proof.drill_kind(one.task), now):
        return False
    facts = status.read_facts()
    return proof.drill_place(one.dataset, one.task, facts).fits and not proof.locked_folders(
        one.dataset, one.task, facts
    )


def is_old(last: datetime | None, now: datetime, every: timedelta) -> bool:
    return last is None or not timedelta() <= now - last < every


def was_tried(one: BackupStatus, kind: str, now: datetime) -> bool:
    return jobs_of(one, kind).filter(created__range=(now - REST_AFTER_FAILURE, now)).exists()


def jobs_of(one: BackupStatus, kind: str) -> QuerySet[Job]:
    return Job.objects.filter(kind=kind, subject=one.dataset.name, backup=one.task.key)


def key_check_of(one: BackupStatus, pool: Pool, _now: datetime) -> Operation:
    return CheckBackupKeys(dataset=one.dataset.name, key=one.task.key, target=one.task.root(pool))


def drill_of(one: BackupStatus, pool: Pool | None, _now: datetime) -> Operation:
    return proof.make_drill(one, pool, status.read_facts())


def left_over(now: datetime) -> RemoveDrill | None:
    """What an interrupted test has left, while none runs and its removal was not just tried."""
    found: list[Dataset] = readable_facts(DatasetRow.objects.filter(is_test=True))
    for dataset in found:
        if not drill_scratch.is_scratch(dataset):
            continue
        key = drill_scratch.key_of(dataset.name)
        runs = Job.objects.filter(kind__in=proof.DRILL_KINDS, backup=key)
        tries = Job.objects.filter(
            kind="remove-drill", subject=dataset.name, created__range=(now - REMOVE_AGAIN_AFTER, now)
        )
        if not is_under_way(runs.order_by("-created").first()) and not tries.exists():
            return RemoveDrill(scratch=dataset.name, guid=dataset.guid)
    return None


def is_under_way(run: Job | None) -> bool:
    """Whether a test runs, or has ended since the folders were read: then what it made may be gone already."""
    if run is None:
        return False
    read = Source.objects.filter(name="datasets").values_list("checked", flat=True).first()
    return run.open or (run.finished is not None and read is not None and read <= run.finished)


# --- what is remembered -----------------------------------------------------------------------------------------------
def remember_proof(one: BackupStatus, row: BackupRecord) -> None:
    """Write down what the checks found that ended since, the pool's last scrub, what has no copy
    and what is half received."""
    found = proof.parse_proof(row.proof)
    before = msgspec.to_builtins(found)
    store_keys(one, found)
    store_renewed_keys(one, found)
    store_drill(one, found)
    store_failed_drill(one, found)
    if scrub := proof.last_scrub(one.pool):
        found.began, found.scrubbed, found.damaged = scrub.started, scrub.ended, scrub.errors
    if one.copied:  # of copies whose snapshots were not read yet nothing is known
        found.missing = {
            str(part.guid): min(found.missing.get(str(part.guid), one.now), one.now) for part in one.lacking
        }
    if one.pool and not one.is_running:  # of a run under way something is half received, too
        now = {rest.key for rest in one.checks.received}
        found.received = {key: found.received.get(key, one.now) for key in sorted(now)}
    after = msgspec.to_builtins(found)
    if after != before:
        row.proof = after
        row.save(update_fields=["proof"])


def store_keys(one: BackupStatus, found: proof.Proof) -> None:
    ended, result = latest_result(one, "check-backup-keys", check_keys.PREFIX, KeyCheck, found.keys)
    if ended and result and (result.opened or result.wrong):  # a phrase that was mistyped proves nothing
        found.keys, found.opened, found.of = ended, result.opened, result.of
        found.wrong, found.untried = list(result.wrong), list(result.untried)
        found.more_wrong, found.more_untried = result.more_wrong, result.more_untried
        found.tried = {one.copy: one.key for one in one.checks.sealed}


def store_renewed_keys(one: BackupStatus, found: proof.Proof) -> None:
    """Keep of which moment the first copies are that have another key, which a run brings after it was changed."""
    if one.good is None or not one.checks.sealed:
        return
    roots = {sealed.root_name: sealed.root for sealed in one.checks.sealed}
    jobs = Job.objects.filter(kind="change-key", subject__in=roots, finished__lt=one.good)
    for name, changed in jobs.exclude(state__in=UNCHANGED).values_list("subject", "finished"):
        key = roots[name]
        if changed and (key not in found.renewed or found.renewed[key] < changed):
            found.renewed[key] = one.good


def store_drill(one: BackupStatus, found: proof.Proof) -> None:
    ended, result = latest_result(one, proof.drill_kind(one.task), drill_base.PREFIX, Rehearsal, found.drilled)
    if ended and result:
        found.drilled, found.seconds, found.moved, found.files = ended, result.seconds, result.moved, result.files
        found.different, found.differences = result.different, list(result.differences)
        found.skipped, found.gone = list(result.skipped), list(result.gone)
        found.more_skipped, found.more_gone = result.more_skipped, result.more_gone


def store_failed_drill(one: BackupStatus, found: proof.Proof) -> None:
    """Keep that the latest test failed without a result, and why, until another one has a result.
    One that was refused was never begun, so it says nothing."""
    known = max((at for at in (found.drilled, found.broke) if at), default=None)
    if found.drilled and found.broke and found.broke <= found.drilled:
        found.broke, found.why = None, ""
    ended = jobs_of(one, proof.drill_kind(one.task)).filter(state=Job.State.FAILED).exclude(finished=None)
    job = (ended.filter(finished__gt=known) if known else ended).order_by("-finished").first()
    if job:
        found.broke, found.why = job.finished, job.text.as_json() if isinstance(job.text, Message) else job.text


def latest_result(
    one: BackupStatus, kind: str, prefix: str, shape: type[Found], known: datetime | None
) -> tuple[datetime | None, Found | None]:
    """When the latest job of a kind ended and what it found; nothing where that is known already."""
    ended = jobs_of(one, kind).exclude(state__in=Job.OPEN).exclude(finished=None)
    job = (ended.filter(finished__gt=known) if known else ended).order_by("-finished").first()
    if job is None:
        return None, None
    text = next((line.removeprefix(prefix) for line in job.log if line.startswith(prefix + "{")), "")
    try:
        return job.finished, msgspec.json.decode(text, type=shape) if text else None
    except msgspec.MsgspecError:
        return None, None


# --- alerts -----------------------------------------------------------------------------------------------------------
def differences_text(named: list[str], count: int) -> str:
    """The differences that are remembered, of so many."""
    return and_more([*map(reason_after_name, named)], count - len(named), "; ")


def proof_faults(one: BackupStatus) -> Iterator[Fault]:
    """What the checks of a backup found wrong."""
    found, subject, page = one.proof, f"{one.key}:{one.task.key}", f"/backups/of/{one.key}/{one.task.key}/"
    if found.different:
        summary = Message("The backup of {name} does not restore what it should.", name=one.dataset.name)
        yield Fault(
            "backup.drill",
            subject,
            summary,
            differences_text(found.differences, found.different),
            page,
            found.different,
        )
    elif found.has_failed_drill:
        summary = Message("A restore test of the backup of {name} could not run.", name=one.dataset.name)
        yield Fault("backup.untested", subject, summary, proof.reason_of(found), page)
    if found.wrong:
        summary = Message("The key of {name} does not open its backup.", name=found.wrong[0])
        yield Fault(
            "backup.key",
            subject,
            summary,
            Message("Tried on the copies of: {wrong}.", wrong=and_more(found.wrong, found.more_wrong)),
            page,
        )
    for rest in one.received:
        if rest.since and not one.is_running and one.now - rest.since > proof.RECEIVED_TOO_LONG:
            summary = Message("An interrupted backup of {name} takes up space.", name=one.dataset.name)
            detail = Message(
                "Since {day}, a half-received copy has been at {name}.", day=day_text(rest.since), name=rest.name
            )
            yield Fault("backup.received", f"{subject}:{rest.key}", summary, detail, page)
