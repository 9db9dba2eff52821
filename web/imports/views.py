"""Pages of imports of files from another NAS: the list, setting one up, its page with what is next."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance import snapshot_names
from appliance.backups.remote.instructions import LOOK_AT_KEYS
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.facts.file_import import FileImport
from appliance.facts.remote import fingerprint_of
from appliance.imports.run_import import RunImport
from appliance.imports.set_password import SetImportPassword
from appliance.imports.set_up import ConfirmImportKey, RemoveImport
from appliance.imports.try_import import TestImport
from web import agent, live
from web.imports.forms import FORMS, KINDS
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts
from web.inventory.models import ImportRow, Progress
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import add_reasons, refusals_lead_to

KINDS_OF_JOBS = ("add-import", "test-import", "confirm-import-key", "set-import-password", "run-import")


def find_import(key: str) -> FileImport:
    """Raises Http404."""
    task: FileImport = get_object_or_404(ImportRow, key=key).fact
    return task


def state_of(task: FileImport) -> tuple[str, str]:
    """The state that has a picture and a colour, and the word beside it."""
    if task.has_other_key:
        return "failed", gettext("key changed")
    if task.needs_host_key:
        return "attention", gettext("not confirmed")
    if task.problem:
        return "attention", gettext("interrupted") if task.began else gettext("not ready")
    if task.result:
        return (
            ("attention", gettext("with differences"))
            if task.result.missed or task.result.different
            else ("healthy", gettext("done"))
        )
    if task.began:
        return "attention", gettext("interrupted")
    return ("healthy", gettext("ready")) if task.found else ("unknown", gettext("not tested yet"))


def key_line(task: FileImport) -> str:
    """The line for ``authorized_keys`` there: with this key nobody gets a terminal or reaches other computers."""
    return f"restrict {task.public_key} larder-import-{task.id}"


@require_GET
def list_imports(request: HttpRequest) -> HttpResponse:
    """Every import."""

    def build() -> dict[str, object]:
        found: list[FileImport] = readable_facts(ImportRow.objects.order_by("name"))
        return {"imports": [(one, *state_of(one)) for one in found]}

    return live.respond(request, "imports/list.html", build)


@require_GET
def choose_source(request: HttpRequest) -> HttpResponse:
    """Ask what kind of source the files are on."""
    kinds = [(key, *kind) for key, kind in KINDS.items()]
    return render(request, "imports/choose.html", {"kinds": kinds})


@require_http_methods(["GET", "POST"])
@refusals_lead_to("imports")
def add_import(request: HttpRequest, protocol: str) -> HttpResponse:
    """Ask where files come from and where they go; the import's page then says what is next.

    Without a host key to confirm later, its review asks for the administrator's password, and for
    that of the user over there."""
    if protocol not in FORMS:
        raise Http404
    form = FORMS[protocol](request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            return confirm.start_or_review(request, form.operation, back=reverse("add_import", args=[protocol]))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    title, _summary = KINDS[protocol]
    return live.respond_to_form(
        request,
        "imports/add.html",
        {
            "form": form,
            "kind": title,
            "protocol": protocol,
        },
    )


@require_GET
def show_import(request: HttpRequest, key: str) -> HttpResponse:
    """One import: what is next, what runs, what was found."""

    def build() -> dict[str, object]:
        task = find_import(key)
        state, word = state_of(task)
        jobs = Job.objects.filter(kind__in=KINDS_OF_JOBS, subject=key).defer("plan", "log").order_by("-created")
        job = jobs.first()
        if job and job.open and job.kind == "run-import":
            state, word = "working", gettext("copying")
        return {
            "task": task,
            "state": state,
            "word": word,
            "fingerprint": fingerprint_of(task.host_key),
            "offered": fingerprint_of(task.offered_key),
            "key_line": key_line(task),
            "kind": KINDS[task.protocol][0],
            "port": task.port if task.port != FORMS[task.protocol].usual_port() else 0,
            "look": LOOK_AT_KEYS,
            "folder": DatasetRow.objects.filter(key=str(task.guid)).first(),
            "fits": task.found is None or task.found.new_size < task.free,
            "job": job,
            "progress": Progress.objects.filter(job=job.pk).first() if job else None,
            "running": bool(job and job.open),
        }

    return live.respond(request, "imports/show.html", build)


@require_POST
@refusals_lead_to("imports")
def test_import(request: HttpRequest, key: str) -> HttpResponse:
    """Ask the other NAS what it would send."""
    job = confirm.start_without_review(TestImport(task=find_import(key).id), user=request.user.get_username())
    return redirect("job", pk=job.pk)


@require_GET
@refusals_lead_to("imports")
def confirm_import_key(request: HttpRequest, key: str) -> HttpResponse:
    """Review the host key that is to be trusted."""
    task = find_import(key)
    if not task.offered_key:
        raise Http404
    operation = ConfirmImportKey(task=key, fingerprint=fingerprint_of(task.offered_key))
    return confirm.review(request, operation, back=reverse("import", args=[key]))


@require_GET
@refusals_lead_to("imports")
def set_import_password(request: HttpRequest, key: str) -> HttpResponse:
    """Ask for another password of the user over there."""
    return confirm.review(request, SetImportPassword(task=find_import(key).id), back=reverse("import", args=[key]))


@require_GET
@refusals_lead_to("imports")
def run_import(request: HttpRequest, key: str) -> HttpResponse:
    """Review what is copied."""
    task = find_import(key)
    operation = RunImport(task=key, dataset=task.dataset, moment=snapshot_names.format_moment(timezone.now()))
    return confirm.review(request, operation, back=reverse("import", args=[key]))


@require_GET
@refusals_lead_to("imports")
def download_report(_request: HttpRequest, key: str) -> HttpResponse:
    """The report of the latest run, as a file."""
    task = find_import(key)
    try:
        answer = agent.last({"verb": "read-import-report", "task": task.id}, silence=60)
    except Failed as error:
        raise Refused(
            Reason("import-report-unread", "The report cannot be read now: {why}.", why=explain_error(error))
        ) from error
    text = str(answer["facts"]["text"])
    if not text:
        raise Http404
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="import-{task.id}.txt"'
    return response


@require_GET
@refusals_lead_to("imports")
def remove_import(request: HttpRequest, key: str) -> HttpResponse:
    """Review what removing an import means. What was copied stays."""
    return confirm.review(request, RemoveImport(task=find_import(key).id), back=reverse("import", args=[key]))
