"""Carry a job to its end: claim the row, hand the operation to the agent, record what comes back.

The agent does not care whether anybody listens, and its journal outlives both. So a worker that finds a running job
without a worker asks the agent what became of it.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from datetime import datetime
from typing import Any

from django.utils import timezone

from appliance import brake, client
from appliance.errors import Failed, Refused, explain
from appliance.operations import decode_operation
from web.inventory import store
from web.inventory.models import Progress
from web.jobs.models import Job
from workers import collectors, datasets, meter, moving, snapshots, sweeps
from workers.celery import TOKEN, app

log = logging.getLogger(__name__)
ENDS = {
    state.value
    for state in (Job.State.DONE, Job.State.FAILED, Job.State.REFUSED, Job.State.CANCELLED, Job.State.INTERRUPTED)
}
NEVER_BEGUN = "It was interrupted before it began. Nothing was changed."
SECONDS_BEFORE_SENDING_AGAIN = 20
_mine: set[str] = set()
_mine_lock = threading.Lock()
# What goes on for hours leaves most of the worker's eight threads to what a person waits for.
_long = threading.BoundedSemaphore(4)
_sent: dict[str, float] = {}


@app.task(name="workers.run_job")
def run_job(job_id: str) -> None:
    """Run or recover one job; harmless to call twice."""
    with _mine_lock:
        _sent.pop(job_id, None)
        if job_id in _mine:
            return
        _mine.add(job_id)
    try:
        if not lasts(job_id):
            claim_and_run(job_id)
        elif _long.acquire(blocking=False):
            try:
                claim_and_run(job_id)
            finally:
                _long.release()
    finally:
        with _mine_lock:
            _mine.discard(job_id)


def lasts(job_id: str) -> bool:
    """Whether the job is one of those that can go on for hours; no where it is gone or of another version."""
    operation = Job.objects.filter(pk=job_id).values_list("operation", flat=True).first()
    try:
        return operation is not None and decode_operation(operation).lasts()
    except Refused:
        return False


def claim_and_run(job_id: str) -> None:
    row = Job.objects.filter(pk=job_id)
    now = timezone.now()
    if row.filter(state=Job.State.QUEUED).update(state=Job.State.RUNNING, worker=TOKEN, started=now):
        job = row.get()
        request = run_request(job)
    elif row.filter(state=Job.State.WAITING).update(state=Job.State.RUNNING, worker=TOKEN):
        # The agent alone knows whether it has waited long enough, or was cancelled.
        request = run_request(row.get())
    elif row.filter(state=Job.State.RUNNING).update(worker=TOKEN):
        # Its worker is gone, or the agent was: ask, never begin anew.
        request = {"verb": "follow", "job": job_id}
    else:
        return
    try:
        store.touch("jobs")
        try:
            outcome = listen(job_id, request)
        except Refused as refusal:
            outcome = {"state": Job.State.REFUSED, "text": str(refusal)}
        else:
            snapshots.doubt(about(job_id))
            collectors.collect_now()
            moving.after(job_id)
            datasets.after(job_id)
        finish(job_id, outcome)
        sweeps.after(job_id)
    except Exception as error:
        # Still running as far as anybody knows: the next tick asks again.
        log.warning("job %s: %s", job_id, explain(error), exc_info=not isinstance(error, Failed))
        row.filter(state=Job.State.RUNNING).update(worker="")


def run_request(job: Job) -> dict[str, Any]:
    return {"verb": "run", "job": str(job.pk), "digest": job.digest, "operation": json.loads(job.operation)}


def about(job_id: str) -> tuple[str, ...]:
    """The datasets whose snapshots a job was about; none where another version of Larder wrote its operation."""
    try:
        return decode_operation(Job.objects.get(pk=job_id).operation).about_snapshots()
    except Refused:
        return ()


def listen(job_id: str, request: dict[str, Any]) -> dict[str, Any]:
    """The outcome, after recording all progress on the way. Raises Refused, Failed where the agent fell silent."""
    found = metered(request)
    for message in client.ask(request):
        if "percent" in message:
            now = {"percent": message["percent"], "phrase": message["phrase"][:300]}
            Progress.objects.update_or_create(job=job_id, defaults=now | ({"speeds": found.speeds()} if found else {}))
            store.touch("jobs")
        if "outcome" in message:
            return dict(message["outcome"])
    raise Failed("Larder's agent ended without an answer")


def metered(request: dict[str, Any]) -> meter.Meter | None:
    """What reads the disks' speed while a case is measured; None for every other job, and for one that is only followed."""
    return meter.of(decode_operation(json.dumps(request["operation"]))) if "operation" in request else None


def finish(job_id: str, outcome: dict[str, Any]) -> None:
    """Give the row its end, once."""
    state = outcome.get("state", "")
    text = outcome.get("text", "")
    if state == "unknown":
        state, text = Job.State.INTERRUPTED, NEVER_BEGUN
    if state == Job.State.WAITING:
        starts = datetime.fromisoformat(outcome["until"])
        Job.objects.filter(pk=job_id, state=Job.State.RUNNING).update(state=state, starts=starts, worker="")
        Progress.objects.filter(job=job_id).delete()
        store.touch("jobs")
        return
    if state not in ENDS:
        Job.objects.filter(pk=job_id, state=Job.State.RUNNING).update(worker="")
        return
    Job.objects.filter(pk=job_id, state=Job.State.RUNNING).update(
        state=state, text=text, done=outcome.get("done", []), log=outcome.get("notes", []), finished=timezone.now()
    )
    Progress.objects.filter(job=job_id).delete()
    store.touch("jobs")
    try:
        client.forget_secret(job_id)
    except OSError:
        log.warning("the secret of job %s could not be removed", job_id)


def to_start() -> list[str]:
    """Jobs that have waited for their start, and those of which the agent tells no longer: cancelled, or the box was off."""
    rows = dict(Job.objects.filter(state=Job.State.WAITING).values_list("pk", "starts"))
    told = {one.job for one in brake.told()} if rows else set()
    now = timezone.now()
    return [str(pk) for pk, starts in rows.items() if str(pk) not in told or not starts or starts <= now]


def send_waiting() -> None:
    """Put into the queue what should be there: jobs that wait, and running ones that lost their worker.

    What was sent a moment ago is still on its way, unless Redis lost it.
    """
    waiting = [*Job.objects.filter(state=Job.State.QUEUED).values_list("pk", flat=True), *to_start()]
    left = Job.objects.filter(state=Job.State.RUNNING).exclude(worker=TOKEN).values_list("pk", flat=True)
    now = time.monotonic()
    for job_id in map(str, [*waiting, *left]):
        if now - _sent.get(job_id, float("-inf")) > SECONDS_BEFORE_SENDING_AGAIN:
            run_job.delay(job_id)
            _sent[job_id] = now
