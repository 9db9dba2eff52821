"""Advance benchmarks one case at a time. Each case is an ordinary job.
Nothing here waits: each call does the next step.

The rows are the truth. A case stores its job's id before the job is made, so that after a crash the same job is found.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import uuid
from datetime import timedelta

import msgspec
from django.db import transaction
from django.utils import timezone

from appliance.benchmarks.cleanup import CleanUpBenchmark
from appliance.benchmarks.conditions import versions_since
from appliance.benchmarks.results import RESULT, VERSIONS, BenchmarkRun
from appliance.benchmarks.run_case import RunBenchmarkCase
from appliance.benchmarks.scratch_claim import PREFIX, is_scratch_name, scratch_name
from appliance.errors import LarderError, Refused, explain_error
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Operation, as_json, checked_plan
from web.benchmarks.models import CaseRow, ResultRow, SweepRow
from web.database import is_unusable
from web.inventory import store
from web.jobs import confirm
from web.jobs.models import BY_BENCHMARK, Job
from web.said import with_said
from workers import guard
from workers.interval import Interval

log = logging.getLogger(__name__)
MOST_ATTEMPTS = 3
State, Its = SweepRow.State, CaseRow.State
TRY_AGAIN_AFTER = timedelta(hours=1)
tidying = Interval(60.0)
_looking = threading.Lock()


def continue_after_job(job_id: str) -> None:
    """Advance the benchmark of a job that has ended. Errors are logged, because the job itself succeeded."""
    try:
        if CaseRow.objects.filter(job=job_id).exists():
            advance_benchmarks()
    except Exception:
        log.exception("the sweep of job %s could not go on", job_id)


def advance_benchmarks() -> None:
    """Do the next step of every sweep. Does nothing while another call does."""
    if not _looking.acquire(blocking=False):
        return
    try:
        for row in SweepRow.objects.filter(state__in=(State.QUEUED, *SweepRow.ACTIVE)).order_by("created"):
            advance_or_hold(row)
        if tidying.claim_turn():
            clean_up_leftovers()
    finally:
        _looking.release()


def advance_or_hold(row: SweepRow) -> None:
    """Do the next step of a sweep; one that fails waits for the user and holds up no other.

    Raises DatabaseError where the database cannot be used.
    """
    try:
        advance_sweep(row)
    except Exception as problem:
        if is_unusable(problem):
            raise
        log.exception("sweep %s cannot go on", row.pk)
        said = str(problem) if isinstance(problem, msgspec.MsgspecError) else explain_error(problem)
        hold_sweep(row, Message("Larder cannot continue this benchmark: {said}", said=said))


def clean_up_leftovers() -> None:
    """Clear scratch pools of finished or deleted benchmarks that a returned disk has brought back."""
    facts = store.facts_of_pools()
    found = {use.pool for disk in facts.disks for use in disk.uses} | {pool.name for pool in facts.pools}

    def tidy_one(name: str) -> None:
        case = CaseRow.objects.filter(token=name.removeprefix(PREFIX)).select_related("sweep").first()
        if case is not None and case.sweep.state in SweepRow.OPEN:
            return
        operation = cleanup_operation(case) if case else cleanup_by_name(name, facts)
        jobs = Job.objects.filter(kind="clean-up-benchmark", subject=name, created_by=BY_BENCHMARK)
        lately = jobs.filter(created__gte=timezone.now() - TRY_AGAIN_AFTER)
        # Without a case, it may be a pool of another box, which has no claim here: once is enough.
        settled = case is None and jobs.filter(state=Job.State.DONE, operation=as_json(operation)).exists()
        if not settled and not lately.exists():
            with guard.refusals_logged(f"clearing away what is left of {name}"):
                confirm.start_without_review(operation, user=BY_BENCHMARK)

    guard.for_each(filter(is_scratch_name, sorted(found)), tidy_one)


def cleanup_by_name(name: str, facts: Facts) -> CleanUpBenchmark:
    """The clean-up for a benchmark that was deleted: its disks are those that carry the pool's name.

    The agent's claim still decides what is removed.
    """
    carriers = sorted(disk.path for disk in facts.disks if disk.path and any(use.pool == name for use in disk.uses))
    return CleanUpBenchmark(token=name.removeprefix(PREFIX), disks=tuple(carriers))


def advance_sweep(row: SweepRow) -> None:
    """Do the next step of a sweep."""
    current = row.cases.filter(state__in=(Its.RUNNING, Its.CLEARING)).first()
    if current and not settle_case(row, current):
        return
    row.refresh_from_db(fields=["state"])
    if row.state == State.QUEUED:
        begin_sweep(row)
    elif row.state == State.CANCELLING:
        end_sweep(row, State.CANCELLED)
    elif row.state == State.PAUSING:
        move_sweep(row, State.PAUSED)
    elif row.state == State.RUNNING:
        begin_next_case(row)


def begin_sweep(row: SweepRow) -> None:
    """Start a sweep, unless an active or paused one has one of its disks."""
    if row.is_held():
        return
    SweepRow.objects.filter(pk=row.pk, started=None).update(started=timezone.now())
    move_sweep(row, State.RUNNING)
    begin_next_case(row)


def begin_next_case(row: SweepRow) -> None:
    """Start the next case; without one, the sweep is done."""
    if not store.is_read("pools"):
        return  # nothing is known right after a start
    case = row.cases.filter(state=Its.WAITING).first()
    if case is None:
        end_sweep(row, State.DONE)
        return
    if has_leftovers(case):
        # A disk was missing during the last cleanup and is back with its part of the scratch pool.
        CaseRow.objects.filter(pk=case.pk).update(state=Its.CLEARING, ended="", job=None)
        store.touch("sweeps")
        return
    case.token, case.job = case.token or secrets.token_hex(6), uuid.uuid4()
    case.state, case.started, case.finished, case.ended = Its.RUNNING, timezone.now(), None, ""
    case.save()
    start_case_job(row, case, RunBenchmarkCase(token=case.token, case=case.case))


def has_leftovers(case: CaseRow) -> bool:
    """Whether a disk of the case still holds the scratch pool of an earlier attempt."""
    name = scratch_name(case.token)
    facts = store.facts_of_pools() if case.token else Facts()
    disks = [disk for path in case.case.all_disks if (disk := facts.disk(path))]
    return any(use.pool == name for disk in disks for use in disk.uses)


def start_case_job(row: SweepRow, case: CaseRow, operation: Operation) -> None:
    """Make the job of a case. Where it is refused, the sweep waits for the user."""
    operation = confirm.as_read(operation)
    try:
        plan = checked_plan(operation, store.facts())
    except Refused as refusal:
        CaseRow.objects.filter(pk=case.pk).update(state=Its.WAITING, job=None)
        hold_sweep(row, explain_error(refusal))
        return
    confirm.make_job(operation, plan, job=str(case.job), secret="", user=row.created_by)
    store.touch("sweeps")


def settle_case(row: SweepRow, case: CaseRow) -> bool:
    """Handle the end of a case's job; whether the sweep can go on."""
    job = Job.objects.filter(pk=case.job).first() if case.job else None
    if job is None:
        # The worker died before it made the job, or the cleanup failed then.
        operation = (
            cleanup_operation(case)
            if case.state == Its.CLEARING
            else RunBenchmarkCase(token=case.token, case=case.case)
        )
        CaseRow.objects.filter(pk=case.pk).update(job=(new := uuid.uuid4()))
        case.job = new
        start_case_job(row, case, operation)
        return False
    if job.open:
        if row.state == State.CANCELLING and case.state == Its.RUNNING:
            stop_job(job)
        return False
    if job.needs_attention:
        # The page of the sweep shows it.
        Job.objects.filter(pk=job.pk).update(acknowledged=timezone.now())
    if case.state == Its.CLEARING:
        return settle_cleanup(row, case, job)
    if job.state == Job.State.DONE:
        store_results(row, case, job)
        return True
    tried = case.attempts + (job.state != Job.State.CANCELLED)  # a case that the user stopped is no failure
    CaseRow.objects.filter(pk=case.pk).update(
        state=Its.CLEARING, ended=job.state, attempts=tried, job=None, **with_said(text=job.text)
    )
    case.refresh_from_db()
    return settle_case(row, case)


def cleanup_operation(case: CaseRow) -> CleanUpBenchmark:
    return CleanUpBenchmark(token=case.token, disks=case.case.all_disks)


def stop_job(job: Job) -> None:
    try:
        confirm.request_stop(job)
    except LarderError as error:
        log.warning("job %s could not be asked to stop: %s", job.pk, error)


def settle_cleanup(row: SweepRow, case: CaseRow, job: Job) -> bool:
    """After a cleanup: repeat the case, fail it, or wait for the user; whether the sweep goes on."""
    if job.state != Job.State.DONE:
        # It is retried when the user resumes the sweep; the agent keeps its note of the scratch pool.
        CaseRow.objects.filter(pk=case.pk).update(job=None)
        hold_sweep(row, job.text)
        return False
    again = case.ended in {"", Job.State.CANCELLED, Job.State.REFUSED} or case.attempts < MOST_ATTEMPTS
    state = Its.WAITING if again else Its.FAILED
    CaseRow.objects.filter(pk=case.pk).update(state=state, job=None, finished=None if again else timezone.now())
    if case.ended == Job.State.REFUSED:
        hold_sweep(row, case.text)
        return False
    if case.ended == Job.State.CANCELLED and row.state == State.RUNNING:
        hold_sweep(row, Message("A case was stopped before its end. It is repeated when you resume."))
        return False
    store.touch("sweeps")
    return True


def store_results(row: SweepRow, case: CaseRow, job: Job) -> None:
    """Store the results of the runs, once; without any, the case has failed."""
    runs = []
    for note in map(str, job.log):
        if note.startswith(RESULT):
            told = note.removeprefix(RESULT)
            try:
                runs.append(ResultRow(case=case, number=msgspec.json.decode(told, type=BenchmarkRun).number, told=told))
            except msgspec.MsgspecError:
                log.warning("job %s told a result that is none", job.pk)
    versions = next((note.removeprefix(VERSIONS) for note in map(str, job.log) if note.startswith(VERSIONS)), "")
    with transaction.atomic():
        ResultRow.objects.filter(case=case).delete()
        ResultRow.objects.bulk_create(runs)
        CaseRow.objects.filter(pk=case.pk).update(
            state=Its.DONE if runs else Its.FAILED,
            **with_said(text="" if runs else Message("It ended without a figure.")),
            finished=timezone.now(),
        )
        if versions:
            store_versions(row, case, job, versions)
    store.touch("sweeps")


def store_versions(row: SweepRow, case: CaseRow, job: Job, told: str) -> None:
    """Store the software versions from this case on. A note that cannot be read loses no result."""
    known = SweepRow.objects.values_list("versions", flat=True).get(pk=row.pk)
    try:
        found = versions_since(json.loads(known or "{}"), json.loads(told), case.number + 1)
    except (ValueError, TypeError, AttributeError, KeyError):
        log.warning("job %s told versions that are none", job.pk)
        return
    SweepRow.objects.filter(pk=row.pk).update(versions=json.dumps(found))


def hold_sweep(row: SweepRow, text: str) -> None:
    """Pause a sweep with a reason; one that is being cancelled ends once its scratch pool is gone."""
    left = row.cases.filter(state=Its.CLEARING).exists()
    SweepRow.objects.filter(pk=row.pk, state=State.CANCELLING).update(
        state=State.PAUSED if left else State.CANCELLED,
        finished=None if left else timezone.now(),
        **with_said(text=text if left else ""),
    )
    held = (State.QUEUED, State.RUNNING, State.PAUSING)
    SweepRow.objects.filter(pk=row.pk, state__in=held).update(state=State.PAUSED, **with_said(text=text))
    store.touch("sweeps")


def move_sweep(row: SweepRow, state: str) -> None:
    """Change the state unless the user changed it meanwhile."""
    if SweepRow.objects.filter(pk=row.pk, state=row.state).update(state=state, text=""):
        row.state = state
    store.touch("sweeps")


def end_sweep(row: SweepRow, state: str) -> None:
    SweepRow.objects.filter(pk=row.pk, state=row.state).update(state=state, text="", finished=timezone.now())
    store.touch("sweeps")
