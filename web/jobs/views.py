"""Jobs: confirming one, following it, its history."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from appliance import agent_client, names, passphrases
from appliance.agent import delayed_jobs
from appliance.agent.registry import decode_operation
from appliance.datasets.set_target import SetTarget
from appliance.errors import LarderError, Reason, Refused, explain_error
from appliance.operation import Operation, Plan, checked_plan
from appliance.shares.iscsi import chap
from appliance.system import clock
from appliance.users import new_passwords
from appliance.users.share_folder import ShareFolder
from web import live
from web.accounts import proof
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import Progress
from web.jobs import confirm, operation_ui
from web.jobs.models import Job
from web.jobs.refusals import refusal_page
from web.jobs.secret_fields import Secret

PAGE = 50
LARGEST_KEY_FILE = 4096  # bytes; a key has 64 digits


def local_address(url: str) -> str:
    """An address of this site to go back to; the overview where it is anything else."""
    return url if url_has_allowed_host_and_scheme(url, allowed_hosts=None) and url.startswith("/") else "/"


def read_secret(request: HttpRequest, operation: Operation, plan: Plan) -> str:
    """Read the secret of the job from what was typed on the review page. Raises Refused with reasons for its fields."""
    asked = operation_ui.secrets_of(operation, plan)
    if plan.key_file and asked:
        return read_key_file(request, asked[0])
    reasons = [reason for one in asked for reason in reasons_against(request, one)]
    Refused.unless_empty(reasons)
    typed = [request.POST.get(one.field, "") for one in asked]
    if isinstance(operation, SetTarget) and typed:
        return chap.encode_secrets(typed)
    if isinstance(operation, ShareFolder) and typed:
        return new_passwords.encode_passwords(dict(zip(operation.new_users, typed, strict=True)))
    return "".join(typed)  # one at most


def reasons_against(request: HttpRequest, asked: Secret) -> tuple[Reason, ...]:
    """What is wrong with one secret as it was typed."""
    secret = request.POST.get(asked.field, "")
    try:
        usual = passphrases.check_password if asked.password else passphrases.check_passphrase
        (asked.check or usual)(secret, field=asked.field)
    except Refused as refusal:
        return refusal.reasons
    if asked.twice and request.POST.get(asked.again, "") != secret:
        return (Reason("secrets-differ", "The two differ. Type both again.", field=asked.again),)
    return ()


def read_key_file(request: HttpRequest, asked: Secret) -> str:
    """Read the key from the file that was sent along, as digits. Raises Refused for any other file."""
    file = request.FILES.get("secret")
    if file is not None:
        return passphrases.parse_key_file(file.read(LARGEST_KEY_FILE), field="secret")
    if asked.twice:
        raise Refused(
            Reason("key-file-not-saved", "Save the key first, then choose the file that you saved.", field="secret")
        )
    raise Refused(Reason("key-file-not-chosen", "Choose the file that you saved.", field="secret"))


def read_answers(request: HttpRequest, operation: Operation, plan: Plan) -> tuple[str, list[Reason]]:
    """Read the secret that goes with the job, and what is wrong with the answers of the review page."""
    reasons = []
    if (name := plan.type_to_confirm) and request.POST.get("typed", "") != name:
        reasons.append(
            Reason("name-not-typed", "Type {name} exactly, to show that you mean it.", field="typed", name=name)
        )
    try:
        return read_secret(request, operation, plan), reasons
    except Refused as refusal:
        return "", [*reasons, *refusal.reasons]


@sensitive_post_parameters()  # every field: the names of those of passwords have the users' names in them
@require_POST
def confirm_job(request: HttpRequest) -> HttpResponse:
    """The review page was confirmed: plan again, and make the job if it still means the same."""
    back, titles = local_address(request.POST.get("back", "")), request.POST.getlist("titles")
    try:
        operation = decode_operation(request.POST.get("operation", ""))
        job = names.job_id(request.POST.get("job", ""))
        if known := Job.objects.filter(pk=job).first():
            return redirect(page_of(known, back))
        facts = store.facts_for(operation)
        plan = checked_plan(operation, facts)
        if plan.digest() != request.POST.get("digest"):
            notice = gettext(
                "Something changed since you looked: a disk, a pool, or what is on them. Nothing was done. "
                "This is the plan as things are now."
            )
            return confirm.review(request, operation, back=back, notice=notice, job=job, titles=titles, status=409)
        secret, reasons = read_answers(request, operation, plan)
        password = request.POST.get("password", "") if operation.needs_proof(facts, plan) else ""
        if password and not reasons:
            reasons += proof.prove_job(operation, digest=plan.digest(), job=job, password=password, user=request.user)
        if reasons:
            return confirm.review(request, operation, back=back, reasons=reasons, job=job, titles=titles, status=400)
        row = confirm.make_job(operation, plan, job=job, secret=secret, user=request.user.get_username())
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back)
    return redirect(page_of(row, back))


def page_of(row: Job, back: str) -> str:
    """Where a job that was confirmed is followed: on its own page, or on the one whose steps it is among."""
    return back if operation_ui.is_followed(row.kind) and back != "/" else reverse("job", args=[row.pk])


def find_strange_jobs() -> list[delayed_jobs.Waiting]:
    """What waits at the agent and was not asked for on these pages."""
    told = delayed_jobs.waiting_jobs()
    known = set(map(str, Job.objects.filter(pk__in=[one.job for one in told]).values_list("pk", flat=True)))
    return [one for one in told if one.job not in known]


@require_GET
def list_jobs(request: HttpRequest) -> HttpResponse:
    """All jobs, the newest first."""

    def build() -> dict[str, object]:
        page = Paginator(Job.objects.defer("log", "plan", "operation"), PAGE).get_page(request.GET.get("page"))
        progress = {row.job: row for row in Progress.objects.filter(job__in=[job.pk for job in page if job.open])}
        return {"page": page, "rows": [(job, progress.get(job.pk)) for job in page], "strange": find_strange_jobs()}

    return live.respond(request, "jobs/list.html", build)


@require_GET
def show_job(request: HttpRequest, pk: str) -> HttpResponse:
    """One job: its plan, how far it is, what became of it."""

    def build() -> dict[str, object]:
        row = get_object_or_404(Job, pk=pk)
        away = operation_ui.away_by(row.kind)
        going = bool(away) and row.state == Job.State.DONE and row.fields.get("boot") == clock.boot_id()
        return {
            "job": row,
            "away": away,
            "going": going,
            "next": operation_ui.page_after(row.kind),
            "made": DatasetRow.objects.filter(name=row.subject).first()
            if operation_ui.makes_folder(row.kind)
            else None,
            "progress": Progress.objects.filter(job=row.pk).first(),
            "again": row.state in {"failed", "refused", "interrupted", "cancelled"},
            "live_ended": not row.open and not going,
        }

    return live.respond(request, "jobs/job.html", build)


@require_POST
def stop_job(request: HttpRequest, pk: str) -> HttpResponse:
    """Ask a job to stop before its next step; one that has not begun ends at once."""
    row = Job.objects.filter(pk=pk).first()
    if row is None and str(pk) not in {one.job for one in find_strange_jobs()}:
        raise Http404
    back = reverse("job", args=[pk]) if row else reverse("jobs")
    try:
        if row:
            confirm.request_stop(row)
        else:
            agent_client.send_request({"verb": "stop", "job": str(pk)}, silence=30)
    except LarderError as error:
        return refusal_page(request, [Reason("agent-failed", "{error}", error=explain_error(error))], back, status=503)
    return redirect(back)


@require_POST
def acknowledge_job(request: HttpRequest, pk: str) -> HttpResponse:
    """The person has seen how it ended."""
    row = get_object_or_404(Job, pk=pk)
    Job.objects.filter(pk=row.pk, acknowledged=None).update(acknowledged=timezone.now())
    store.touch("jobs")
    return redirect(local_address(request.POST.get("next", f"/jobs/{row.pk}/")))


@require_GET
def plan_again(request: HttpRequest, pk: str) -> HttpResponse:
    """Plan the same operation anew, for a job that did not end well."""
    row = get_object_or_404(Job, pk=pk)
    try:
        operation = decode_operation(row.operation)
        if row.state != Job.State.REFUSED:  # which made nothing
            operation = operation.again(store.facts_for(operation))
        return confirm.review(request, operation, back=f"/jobs/{row.pk}/")
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, f"/jobs/{row.pk}/")
