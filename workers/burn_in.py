"""Carry burn-ins of disks on, a job at a time. Nothing here waits: each call does the next step of each.

The rows are the truth. A job's id is stored before the job is made, so that after a crash the same job is found. What
the agent noted of each region counts, however its job ended; a burn-in goes on with the first region without a result.
"""

from __future__ import annotations

import logging
import threading
import uuid
from datetime import timedelta
from typing import Any

import msgspec
from django.utils import timezone

from appliance.burn_in import verdict
from appliance.burn_in.burn_in_disk import BurnInDisk
from appliance.burn_in.regions import decode_results
from appliance.disks.selftest import StartSelfTest
from appliance.errors import LarderError, Refused, explain_error
from appliance.message import Message
from appliance.operation import Operation, checked_plan
from web.database import is_unusable
from web.disks.models import BurnIn
from web.inventory import store
from web.inventory.models import DiskRow
from web.jobs import confirm
from web.jobs.models import Job
from web.said import said_in
from workers import background, burn_in_readings, guard

log = logging.getLogger(__name__)
State = BurnIn.State
MOST_ATTEMPTS = 3
MOST_BAD = 8  # regions that fail before the rest is not worth the days
AT_A_TIME = 6  # regions in a job: an hour on 8 TB, so that a job is never long and others get their turn
AT_ONCE = 4  # jobs of burn-ins: as many as the worker has room for long work
ANSWER_WITHIN = timedelta(minutes=15)
SILENT_AFTER = timedelta(minutes=5)  # in a self-test, where the disk is asked every minute
_looking = threading.Lock()


def continue_after_job(job_id: str) -> None:
    """Carry on the burn-in of a job that has ended. Errors are logged, because the job itself succeeded."""
    try:
        if BurnIn.objects.filter(job=job_id).exists():
            advance_burn_ins()
    except Exception:
        log.exception("the burn-in of job %s could not go on", job_id)


def advance_burn_ins() -> None:
    """Do the next step of every burn-in. Does nothing while another call does."""
    if not _looking.acquire(blocking=False):
        return
    try:
        active = BurnIn.objects.filter(state__in=BurnIn.ACTIVE).order_by("created")
        for row in active:
            advance_or_hold(row)
        left = list(active.all())
        if not left:
            guard.note_outcome("run-burn-in-readings", "")  # nothing is read that could end an error
        elif any(map(burn_in_readings.is_due, left)) and burn_in_readings.asking.claim_turn():
            background.start_thread("run-burn-in-readings", burn_in_readings.read_due)
    finally:
        _looking.release()


def advance_or_hold(row: BurnIn) -> None:
    """Do the next step of a burn-in; one that fails waits for the user and holds up no other.

    Raises DatabaseError where the database cannot be used.
    """
    try:
        advance(row)
    except Exception as problem:
        if is_unusable(problem):
            raise
        log.exception("burn-in %s cannot go on", row.pk)
        said = str(problem) if isinstance(problem, msgspec.MsgspecError) else explain_error(problem)
        hold(row, Message("Larder cannot continue this burn-in: {said}", said=said))


def advance(row: BurnIn) -> None:
    job = Job.objects.filter(pk=row.job).first() if row.job else None
    if job and job.open:
        if row.state != State.RUNNING:
            stop_job(job)
        return
    if job and not settle_job(row, job):
        return
    if row.state == State.STOPPING:
        change(row, state=State.STOPPED, text="", job=None, finished=timezone.now())
    elif row.state == State.PAUSING:
        change(row, state=State.PAUSED, job=None)
    elif store.is_read("pools") and store.is_read("disks"):  # nothing is known right after a start
        take_step(row)


def take_step(row: BurnIn) -> None:
    """Begin what comes next in its stage."""
    if not DiskRow.objects.filter(key=row.disk).exists():
        hold(row, Message("The disk is no longer there. Put it back, then resume."))
    elif row.stage in BurnIn.SELF_TESTS:
        test_itself(row)
    elif row.stage == "write":
        write_regions(row)
    elif awake_reading(row):
        finish(row)


def awake_reading(row: BurnIn) -> bool:
    """Whether the reading is there that is waited for. A disk that never answers is not waited for beyond its time."""
    if row.wanted is None:
        change(row, wanted=timezone.now())
        return False
    if row.is_fresh and not row.reading.get("asleep"):
        return True
    if abs(timezone.now() - row.wanted) > ANSWER_WITHIN:
        hold(row, Message("The disk does not report its health figures. Look at its health page, then resume."))
    return False


# --- self-tests -----------------------------------------------------------------------------------------------
def test_itself(row: BurnIn) -> None:
    """Start the self-test of this stage, or see how it ended."""
    if not row.wanted:
        change(row, wanted=timezone.now())
    elif not row.is_fresh:
        if abs(timezone.now() - row.wanted) > ANSWER_WITHIN:
            hold(row, Message("The disk does not answer. Look at its cables, then resume."))
    elif row.is_testing:  # one is running, ours or another: a later reading says more
        if row.read_at and abs(timezone.now() - row.read_at) > SILENT_AFTER:
            # Counted from now, because the box may have been off since then.
            change(row, wanted=timezone.now())
    elif row.attempts and row.reading.get("tests") != row.log and not row.reading.get("asleep"):
        note_test(row, newest(row))
    elif not row.reading.get("able") and not row.reading.get("asleep"):
        next_stage(row, {"passed": None, "able": False, "text": Message("It does not support self-tests.")})
    elif row.attempts >= MOST_ATTEMPTS:
        next_stage(row, {"passed": None, "text": Message("It left no result, although it was started three times.")})
    else:
        log_now = row.reading.get("tests", row.log)
        kept = {"attempts": row.attempts + 1, "log": log_now, "wanted": None}
        start_job(row, StartSelfTest(disk=row.path, test="long" if row.stage == "long" else "short"), **kept)


def newest(row: BurnIn) -> dict[str, object]:
    """The newest test of this stage's kind in the drive's log; without a result where there is none."""
    found = next((test for test in row.reading["tests"] if test["kind"] == row.stage), None)
    if not found:
        return {"passed": None, "text": Message("It left no result.")}
    return {"passed": found["passed"], "text": found["text"]}


def note_test(row: BurnIn, found: dict[str, object]) -> None:
    if found["passed"] is None and row.attempts < MOST_ATTEMPTS:
        change(row, log=row.reading["tests"], wanted=timezone.now())  # it was stopped: start it again
        start_job(
            row,
            StartSelfTest(disk=row.path, test="long" if row.stage == "long" else "short"),
            attempts=row.attempts + 1,
            wanted=None,
        )
    else:
        next_stage(row, found)


def next_stage(row: BurnIn, test: dict[str, object]) -> None:
    """Store the result of a self-test and go on. After one that failed, only the figures are read once more."""
    tests = {**row.tests, row.stage: test}
    following = "long" if row.stage == "short" else "write" if row.writes else "last"
    stage = "last" if test["passed"] is False else following
    change(row, tests=tests, stage=stage, attempts=0, log=[], wanted=timezone.now() if stage == "last" else None)


# --- writing --------------------------------------------------------------------------------------------------
def write_regions(row: BurnIn) -> None:
    """Start the job of the next regions; without any, or after too many bad ones, the figures are read once more."""
    tested = {result.number for result in row.tested}
    left = [region.number for region in row.regions if region.number not in tested]
    if not left or sum(bool(result.problem) for result in row.tested) >= MOST_BAD:
        change(row, stage="last", attempts=0, wanted=timezone.now())
        return
    at_work = Job.objects.filter(kind="burn-in-disk", state__in=Job.OPEN).count()
    others_wait = Job.objects.filter(state=Job.State.QUEUED).exclude(kind="burn-in-disk").exists()
    if at_work >= AT_ONCE - others_wait:
        return
    first = left[0]
    count = next(number for number in range(1, AT_A_TIME + 1) if number == AT_A_TIME or first + number not in left)
    start_job(row, BurnInDisk(disk=row.path, size=row.size, first=first, count=count, rate=row.rate))


def finish(row: BurnIn) -> None:
    """Compare the figures with those of the beginning, and store the verdict."""
    warm = verdict.warm_limit(row.reading.get("limit"), rotational=row.rotational)
    found = verdict.judge_disk(
        drive_figures(row.before),
        drive_figures(row.reading),
        row.tests,
        row.regions,
        row.tested,
        hottest=max((degrees for _minute, degrees in row.temperatures), default=0),
        warm=warm,
    )
    findings = [[finding.state, finding.text] for finding in found.findings]
    change(row, state=State.DONE, verdict=found.state, findings=findings, text="", finished=timezone.now())


def drive_figures(reading: dict[str, Any]) -> verdict.DriveFigures:
    return verdict.DriveFigures(reading.get("counts", {}), reading.get("passed"))


# --- jobs -----------------------------------------------------------------------------------------------------
def start_job(row: BurnIn, operation: Operation, **changes: object) -> None:
    """Make a job of this burn-in. Where it is refused, the burn-in waits for the user."""
    operation = confirm.as_read(operation)
    try:
        plan = checked_plan(operation, store.facts_of_pools())
    except Refused as refusal:
        hold(row, explain_error(refusal))
        return
    change(row, job=uuid.uuid4(), text="", **changes)
    confirm.make_job(operation, plan, job=str(row.job), secret="", user=row.created_by)


def stop_job(job: Job) -> None:
    try:
        confirm.request_stop(job)
    except LarderError as error:
        log.warning("job %s could not be asked to stop: %s", job.pk, error)


def settle_job(row: BurnIn, job: Job) -> bool:
    """Store what a job found that has ended; whether the burn-in can go on."""
    if job.needs_attention:
        Job.objects.filter(pk=job.pk).update(acknowledged=timezone.now())  # the page of the burn-in shows it
    if job.kind != "burn-in-disk":
        return settle_selftest(row, job)
    known = {result.number: result for result in row.tested}
    found = {result.number: result for result in decode_results(map(str, job.log))}
    attempts = 0 if found or job.state == Job.State.CANCELLED else row.attempts + 1
    change(row, results=msgspec.to_builtins([*({**known, **found}).values()]), attempts=attempts, job=None)
    goes_on = job.state in {Job.State.DONE, Job.State.INTERRUPTED} and attempts < MOST_ATTEMPTS
    if row.state != State.RUNNING or goes_on:
        return True
    hold(row, Message("Its job was stopped on its own page.") if job.state == Job.State.CANCELLED else job.text)
    return False


def settle_selftest(row: BurnIn, job: Job) -> bool:
    """After the job that started a self-test: its result comes with a later reading.
    One that was not started is tried again."""
    change(row, job=None, wanted=timezone.now())
    if row.state == State.RUNNING and job.state in {Job.State.REFUSED, Job.State.CANCELLED}:
        hold(row, job.text)
        return False
    if job.state == Job.State.FAILED and row.attempts >= MOST_ATTEMPTS:
        next_stage(row, {"passed": None, "text": job.text})
    return True


def change(row: BurnIn, **values: object) -> None:
    """Change columns, unless the user changed the state meanwhile: then only what is not the state."""
    values |= said_too(row, values)
    same = BurnIn.objects.filter(pk=row.pk, state=row.state)
    if not same.update(**values):
        BurnIn.objects.filter(pk=row.pk).update(**{name: value for name, value in values.items() if name != "state"})
    row.refresh_from_db()
    store.touch("burn-ins")


def said_too(row: BurnIn, *values: object) -> dict[str, object]:
    """The column with the messages of these values, beside those that the row has; none where they hold no message."""
    said = said_in(*values)
    return {"said": row.said | said} if said else {}


def hold(row: BurnIn, text: str) -> None:
    """Pause with a reason; one that is being stopped is stopped."""
    BurnIn.objects.filter(pk=row.pk, state=State.STOPPING).update(
        state=State.STOPPED, job=None, finished=timezone.now()
    )
    BurnIn.objects.filter(pk=row.pk, state__in=(State.RUNNING, State.PAUSING)).update(
        state=State.PAUSED, text=text, job=None, **said_too(row, text)
    )
    row.refresh_from_db()
    store.touch("burn-ins")
