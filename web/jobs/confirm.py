"""From an operation to a review page, and from the review page to a job."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext

from appliance import agent_client
from appliance.agent import delayed_jobs
from appliance.agent.registry import decode_operation
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.operation import Operation, Plan, as_json, checked_plan, kind_of
from web.inventory import store
from web.jobs import operation_ui, queue
from web.jobs.models import Job
from web.said import said_in
from web.translation import reason_text


def plan_as_stored(plan: Plan) -> dict[str, Any]:
    """The plan as a job keeps it: what the person agreed to, without anything that could run."""
    return {
        "summary": plan.summary,
        "steps": [
            {"name": step.name, "title": step.title, "shown": step.command_text, "undo": step.undo}
            for step in plan.steps
        ],
        "losses": [{"what": loss.what, "size": loss.size} for loss in plan.losses],
        "warnings": list(plan.warnings),
        "undo": plan.undo,
        "facts": plan.details,
    }


def review(
    request: HttpRequest,
    operation: Operation,
    *,
    back: str,
    reasons: Sequence[Reason] = (),
    notice: str = "",
    job: str = "",
    status: int = 200,
    facts: Facts | None = None,
    titles: Sequence[str] = (),
) -> HttpResponse:
    """The page that shows the plan and asks for confirmation. Raises Refused where something speaks against it.

    ``reasons`` are what is wrong with its answers, by the fields of the page. ``facts`` are the inventory's, unless the
    page has read more for its sentences; the digest does not depend on that. ``titles`` are the steps that its wizard
    took, where it skipped some.
    """
    operation = as_read(operation)
    facts = facts or store.facts_for(operation)
    plan = checked_plan(operation, facts)
    errors = {reason.field: reason_text(reason) for reason in reasons}
    ui = operation_ui.UI[type(operation)]
    wizard = [title for title in ui.steps if not titles or title in titles]
    context = {
        "operation": operation,
        "facts": facts,
        "operation_json": as_json(operation),
        "plan": plan,
        "digest": plan.digest(),
        "secrets": asked_secrets(operation, plan, errors),
        "key_name": operation.subject.replace("/", "-"),
        "wizard": wizard,
        "wizard_at": ui.review_at % len(wizard) if wizard else 0,
        "job": job or str(uuid.uuid4()),
        "back": back,
        "reasons": reasons,
        "errors": errors,
        "notice": notice,
        "needs_proof": operation.needs_proof(facts, plan),
        "wait_minutes": delayed_jobs.MINUTES,
    }
    return render(request, "jobs/review.html", context, status=status)


def asked_secrets(operation: Operation, plan: Plan, errors: dict[str, str]) -> list[dict[str, object]]:
    """Each secret that the review asks for, with what was wrong with it."""
    return [
        {"secret": asked, "error": errors.get(asked.field, ""), "again_error": errors.get(asked.again, "")}
        for asked in operation_ui.secrets_of(operation, plan)
    ]


def as_read(operation: Operation) -> Operation:
    """The operation as the agent will read it, so that both digests are of the same: msgspec leaves a default out by
    what the object is and not by what it says, and a form's answer is another object than the one of a literal."""
    return decode_operation(as_json(operation))


def row_of(operation: Operation, plan: Plan, job: uuid.UUID, user: str) -> Job:
    """The job of a confirmed operation, not stored yet."""
    title, stored = plan.title or operation.title, plan_as_stored(plan)
    return Job(
        id=job,
        kind=kind_of(operation),
        title=title,
        subject=operation.subject,
        operation=as_json(operation),
        backup=operation.backup,
        digest=plan.digest(),
        plan=stored,
        said=said_in(title, stored),
        created_by=user,
    )


def keep_secret(job: str, secret: str) -> None:
    """Leave the secret for the agent. Raises Refused where there is no room or no folder for it."""
    try:
        # Whoever got here has just made the job's row: a file of that name is of an attempt that never became a job.
        agent_client.forget_secret(job)
        agent_client.leave_secret(job, secret)
    except OSError as error:
        raise Refused(
            Reason(
                "secret-not-stored",
                "What you typed could not be passed on, so nothing was started. Restart the box if this happens again.",
            )
        ) from error


def enqueue(row: Job) -> Job:
    """Let pages and workers know of a job that is stored."""
    store.touch("jobs")
    queue.send("workers.run_job", str(row.pk))
    return row


def make_job(operation: Operation, plan: Plan, *, job: str, secret: str, user: str) -> Job:
    """Store a confirmed operation and tell the workers. The same id twice is the same job. Raises Refused."""
    row = row_of(operation, plan, uuid.UUID(job), user)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            if secret:
                keep_secret(job, secret)
    except IntegrityError:
        return Job.objects.get(pk=job)
    return enqueue(row)


def start_without_review(operation: Operation, *, user: str) -> Job:
    """A small act that needs no review page: check it, and make its job. Raises Refused.

    Its form carries no job's id, so the same act sent twice is known by a job of the same operation that is still open.
    """
    operation = as_read(operation)
    row = row_of(operation, checked_plan(operation, store.facts_for(operation)), uuid.uuid4(), user)
    row.plan_seen = False
    with transaction.atomic():
        same = Job.objects.filter(state__in=Job.OPEN, subject=row.subject, operation=row.operation).first()
        if same:
            return same
        row.save(force_insert=True)
    return enqueue(row)


def plan_again(row: Job) -> None:
    """Give a job whose plan nobody has seen the plan of today. Raises Refused where it cannot be done any more."""
    operation = decode_operation(row.operation)
    now = row_of(operation, checked_plan(operation, store.facts_for(operation)), row.id, row.created_by)
    row.title, row.digest, row.plan, row.said = now.title, now.digest, now.plan, now.said
    row.save(update_fields=["title", "digest", "plan", "said"])


def needs_proof(operation: Operation) -> bool:
    """Whether the password has to go with it, by the inventory's facts. Raises Refused."""
    facts = store.facts_for(operation)
    return operation.needs_proof(facts, checked_plan(operation, facts))


def start_or_review(request: HttpRequest, operation: Operation, *, back: str) -> HttpResponse:
    """A small act: its job at once, or first its review page where it needs the password. Raises Refused."""
    if needs_proof(operation):
        return review(request, operation, back=back)
    return redirect("job", pk=start_without_review(operation, user=request.user.get_username()).pk)


def request_stop(row: Job) -> None:
    """Ask a job to stop before its next step; one that has not begun ends at once. Raises LarderError."""
    waiting = Job.objects.filter(pk=row.pk, state=Job.State.QUEUED)
    if waiting.update(
        state=Job.State.CANCELLED,
        finished=timezone.now(),
        text=gettext("Stopped before it began. Nothing was changed."),
    ):
        agent_client.forget_secret(str(row.pk))
    elif row.open:
        agent_client.send_request({"verb": "stop", "job": str(row.pk)}, silence=30)
        if row.state == Job.State.WAITING:
            queue.send("workers.run_job", str(row.pk))  # which asks the agent, and hears that it is over
    store.touch("jobs")
