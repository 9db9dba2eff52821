"""Run a job: claim its row, send the operation to the agent, store the progress and the outcome.

The agent runs on without a listener, and its journal outlives both.
So a worker that finds a running job without a worker asks the agent for its outcome.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from appliance import agent_client
from appliance.agent import delayed_jobs
from appliance.agent.journal import OUTDATED
from appliance.agent.registry import decode_operation
from appliance.errors import Failed, Refused, explain_error
from appliance.message import Message, messages_by_text
from web.inventory import store
from web.inventory.models import Progress
from web.jobs import confirm
from web.jobs.models import Job
from workers import (
    background,
    benchmarks,
    burn_in,
    collect_box,
    collect_dataset,
    collect_importable,
    collect_snapshots,
    collectors,
    guard,
    io_rate,
)
from workers.celery import TOKEN, app

log = logging.getLogger(__name__)
ENDS = {
    state.value
    for state in (Job.State.DONE, Job.State.FAILED, Job.State.REFUSED, Job.State.CANCELLED, Job.State.INTERRUPTED)
}
NEVER_BEGUN = Message("It was interrupted before it began. Nothing was changed.")
SECONDS_BEFORE_SENDING_AGAIN = 20
_mine: set[str] = set()
_mine_lock = threading.Lock()
# Of the worker's eight threads jobs take six at most, so that readings that a page asks for always find
# one. What goes on for hours leaves two of them to what a person waits for, and of jobs that wait for
# another job only two keep theirs.
_jobs = threading.BoundedSemaphore(6)
_long = threading.BoundedSemaphore(4)
_blocked = threading.BoundedSemaphore(2)
SECONDS_FOR_FACTS = 60.0
MOST_PLANS = 4  # of a job whose plan nobody has seen, while the box keeps changing
SECONDS_FOR_REDIS = 5.0
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
        if is_long(job_id):
            with take_seat(_long) as free:
                if free:
                    run_if_room(job_id)
        else:
            run_if_room(job_id)
    finally:
        with _mine_lock:
            _mine.discard(job_id)


def run_if_room(job_id: str) -> None:
    """Run a job if a thread for jobs is free; otherwise the next tick sends it again."""
    with take_seat(_jobs) as free:
        if free:
            claim_and_run(job_id)


@contextmanager
def take_seat(seats: threading.BoundedSemaphore) -> Iterator[bool]:
    """Take a seat during the body; yields whether one was free."""
    free = seats.acquire(blocking=False)
    try:
        yield free
    finally:
        if free:
            seats.release()


def is_long(job_id: str) -> bool:
    """Whether a job can take hours; False where it is gone or from another version."""
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
        # Only the agent knows whether it has waited long enough or was cancelled.
        request = run_request(row.get())
    elif row.filter(state=Job.State.RUNNING).update(worker=TOKEN):
        # Its worker or the agent was restarted: ask for the outcome, never start it again.
        request = {"verb": "follow", "job": job_id}
    else:
        return
    try:
        store.touch("jobs")
        try:
            outcome = run_to_its_end(job_id, request)
        except Refused as refusal:
            said = explain_error(refusal)
            outcome = {"state": Job.State.REFUSED, "text": said, "messages": messages_by_text(said)}
        else:
            # Pages should be current when the job ends, so its end waits a while for the readings
            # but does not depend on them.
            background.wait_for(lambda: refresh_after_job(job_id), SECONDS_FOR_FACTS)
        finish_job(job_id, outcome)
        benchmarks.continue_after_job(job_id)
        burn_in.continue_after_job(job_id)
    except LetGo:
        with _mine_lock:
            _sent[job_id] = time.monotonic()
        row.filter(state=Job.State.RUNNING).update(worker="")
    except Exception as error:
        # It may still run: the next tick asks again.
        log.warning("job %s: %s", job_id, explain_error(error), exc_info=not isinstance(error, Failed))
        row.filter(state=Job.State.RUNNING).update(worker="")


def run_to_its_end(job_id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Run or follow a job and return its outcome. Raises as follow_job.

    A plan that nobody has seen was made from facts of some seconds ago.
    Where it is outdated, facts and plan are made anew.
    """
    for _again in range(MOST_PLANS - 1):
        outcome = follow_job(job_id, request)
        if outcome.get("state") != OUTDATED:
            return outcome
        background.wait_for(collectors.collect_now, SECONDS_FOR_FACTS)
        job = Job.objects.get(pk=job_id)
        confirm.plan_again(job)
        request = run_request(job)
    return follow_job(job_id, request | {"plan_seen": True})


def refresh_after_job(job_id: str) -> None:
    """Read what a job may have changed; one part that fails stops no other."""
    parts: dict[str, Callable[[], object]] = {
        "snapshots": lambda: collect_snapshots.doubt_snapshots(datasets_of(job_id)),
        "facts": collectors.collect_now,
        "pools": lambda: collect_importable.search_after_job(job_id),
        "box": lambda: collect_box.reread_after_job(job_id),
        "folders": lambda: collect_dataset.reread_after_job(job_id),
    }
    guard.for_each(parts, lambda name: parts[name](), lambda name: f"reading {name} after job {job_id}")


class LetGo(Exception):
    """The job waits for another one and gives up its thread.
    The agent keeps waiting, and a tick soon follows it again."""


def run_request(job: Job) -> dict[str, Any]:
    return {
        "verb": "run",
        "job": str(job.pk),
        "digest": job.digest,
        "operation": job.fields,
        "plan_seen": job.plan_seen,
    }


def datasets_of(job_id: str) -> tuple[str, ...]:
    """The datasets whose snapshots a job changes; none where its operation is from another version."""
    try:
        return decode_operation(Job.objects.get(pk=job_id).operation).snapshot_datasets()
    except Refused:
        return ()


def follow_job(job_id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Store the progress of a job and return its outcome.
    Raises Refused, and Failed where the agent stops answering."""
    found = make_meter(request)
    with ExitStack() as seat:
        blocked = False
        for message in agent_client.stream_replies(request):
            waits = bool(message.get("waits"))
            if "percent" in message:
                store_progress(job_id, message, found)
            if waits and not blocked and not seat.enter_context(take_seat(_blocked)):
                raise LetGo
            if blocked and not waits:
                seat.close()
            blocked = waits
            if "outcome" in message:
                return dict(message["outcome"])
    raise Failed(Message("Larder's agent ended without an answer"))


def store_progress(job_id: str, message: dict[str, Any], found: io_rate.Meter | None) -> None:
    """Store the progress of a job."""
    now = {
        "percent": message["percent"],
        "phrase": message["phrase"][:300],
        "waits": bool(message.get("waits")),
        "said": message.get("messages", {}),
    }
    Progress.objects.update_or_create(job=job_id, defaults=now | ({"speeds": found.measure_speeds()} if found else {}))
    store.touch("jobs")


def make_meter(request: dict[str, Any]) -> io_rate.Meter | None:
    """The meter of the disks of a benchmark case; None for other jobs and for one that is only followed."""
    return io_rate.meter_of(decode_operation(json.dumps(request["operation"]))) if "operation" in request else None


def finish_job(job_id: str, outcome: dict[str, Any]) -> None:
    """Store the outcome of a job; has no effect on a finished one."""
    state = outcome.get("state", "")
    text = outcome.get("text", "")
    messages = outcome.get("messages", {})
    if state == "unknown":
        state, text = Job.State.INTERRUPTED, NEVER_BEGUN
        messages = messages_by_text(text)
    if state == Job.State.WAITING:
        starts = datetime.fromisoformat(outcome["until"])
        Job.objects.filter(pk=job_id, state=Job.State.RUNNING).update(state=state, starts=starts, worker="")
        Progress.objects.filter(job=job_id).delete()
        store.touch("jobs")
        return
    if state not in ENDS:
        Job.objects.filter(pk=job_id, state=Job.State.RUNNING).update(worker="")
        return
    row = Job.objects.filter(pk=job_id, state=Job.State.RUNNING)
    ended = {
        "state": state,
        "text": text,
        "done": outcome.get("done", []),
        "log": outcome.get("notes", []),
        "finished": timezone.now(),
    }
    if messages:
        ended["said"] = (row.values_list("said", flat=True).first() or {}) | messages
    row.update(**ended)
    Progress.objects.filter(job=job_id).delete()
    store.touch("jobs")
    try:
        agent_client.forget_secret(job_id)
    except OSError:
        log.warning("the secret of job %s could not be removed", job_id)


def jobs_to_start() -> list[str]:
    """Delayed jobs to start: those whose time has come, and those that the agent no longer lists."""
    rows = dict(Job.objects.filter(state=Job.State.WAITING).values_list("pk", "starts"))
    told = {one.job for one in delayed_jobs.waiting_jobs()} if rows else set()
    now = timezone.now()
    return [str(pk) for pk, starts in rows.items() if str(pk) not in told or not starts or starts <= now]


def send_waiting() -> None:
    """Queue the jobs that wait, and running ones that nobody follows. Raises Failed where the queue does not answer.

    A job sent a moment ago is not sent again, unless Redis lost it.
    """
    check_queue()
    waiting = [*Job.objects.filter(state=Job.State.QUEUED).values_list("pk", flat=True), *jobs_to_start()]
    # The row's worker does not tell: on a full disk its outcome cannot be stored, nor that this worker lets it go.
    with _mine_lock:
        mine = set(_mine)
    running = Job.objects.filter(state=Job.State.RUNNING).values_list("pk", flat=True)
    left = [job_id for job_id in running if str(job_id) not in mine]
    now = time.monotonic()
    for job_id in map(str, [*waiting, *left]):
        if now - _sent.get(job_id, float("-inf")) > SECONDS_BEFORE_SENDING_AGAIN:
            run_job.delay(job_id)
            _sent[job_id] = now


def check_queue() -> None:
    """Test that Redis answers. Raises Failed."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(SECONDS_FOR_REDIS)
            probe.connect(str(settings.BROKER_SOCKET))
            probe.sendall(b"PING\r\n")
            said = probe.recv(64)
    except OSError as problem:
        raise Failed(
            Message("Larder's queue (Redis) does not answer"), problem.strerror or Message("nothing came in time")
        ) from problem
    if not said.startswith(b"+PONG"):
        raise Failed(Message("Larder's queue (Redis) does not answer as Redis does"))
