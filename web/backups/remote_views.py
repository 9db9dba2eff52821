"""Pages of other computers that backups go to over ssh: the list, adding one, its page with what to do there."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance.backups import tasks
from appliance.backups.remote import instructions
from appliance.backups.remote.set_up import ConfirmHostKey, RemoveRemote, TestRemote
from appliance.errors import Refused
from appliance.facts.remote import Remote, fingerprint_of
from web import live
from web.backups.remote_forms import AddRemoteForm
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts
from web.inventory.models import RemoteRow
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import add_reasons, refusals_lead_to

KINDS_OF_JOBS = ("add-remote", "test-remote", "confirm-host-key", "remove-remote")


def find_remote(key: str) -> Remote:
    """Raises Http404."""
    remote: Remote = get_object_or_404(RemoteRow, key=key).fact
    return remote


def state_of(remote: Remote) -> tuple[str, str]:
    """The state that has a picture and a colour, and the word beside it."""
    if remote.has_other_key:
        return "failed", gettext("key changed")
    if not remote.host_key:
        return "attention", gettext("not confirmed")
    if remote.tested is None:
        return "unknown", gettext("not tested yet")
    return ("attention", gettext("not ready")) if remote.problem else ("healthy", gettext("ready"))


@require_GET
def list_remotes(request: HttpRequest) -> HttpResponse:
    """Every other computer that backups go to."""

    def build() -> dict[str, object]:
        found: list[Remote] = readable_facts(RemoteRow.objects.order_by("name"))
        return {"remotes": [(one, *state_of(one)) for one in found]}

    return live.respond(request, "backups/remotes.html", build)


@require_http_methods(["GET", "POST"])
@refusals_lead_to("remotes")
def add_remote(request: HttpRequest) -> HttpResponse:
    """Ask where it is; its page then says what to do there."""
    form = AddRemoteForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            job = confirm.start_without_review(form.operation, user=request.user.get_username())
            return redirect("job", pk=job.pk)
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    return live.respond_to_form(request, "backups/add_remote.html", {"form": form})


@require_GET
def show_remote(request: HttpRequest, key: str) -> HttpResponse:
    """One computer: how it stands, and what has to be done there."""

    def build() -> dict[str, object]:
        remote = find_remote(key)
        state, word = state_of(remote)
        folders = readable_facts(DatasetRow.objects.filter(backup_source="local").order_by("name"))
        job = Job.objects.filter(kind__in=KINDS_OF_JOBS, subject=key).defer("plan", "log").order_by("-created").first()
        return {
            "remote": remote,
            "state": state,
            "word": word,
            "fingerprint": fingerprint_of(remote.host_key),
            "offered": fingerprint_of(remote.offered_key),
            "key_line": instructions.key_line(remote),
            "create": instructions.create_command(remote),
            "allow": instructions.allow_command(remote),
            "allow_before": instructions.allow_command(remote, instructions.RIGHTS_BEFORE_APPEND),
            "look": instructions.LOOK_AT_KEYS,
            "installed": instructions.INSTALLED,
            "script": instructions.script_text(),
            "used": [(one, task) for one in folders for task in tasks.tasks_of(one) if task.remote == key],
            "job": job,
        }

    return live.respond(request, "backups/remote.html", build)


@require_GET
def download_peer(_request: HttpRequest) -> HttpResponse:
    """The script for the other computer, as a file."""
    response = HttpResponse(instructions.script_text(), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="larder-peer"'
    return response


@require_POST
@refusals_lead_to("remotes")
def test_remote(request: HttpRequest, key: str) -> HttpResponse:
    """Ask the other computer whether it can take copies."""
    job = confirm.start_without_review(TestRemote(remote=find_remote(key).id), user=request.user.get_username())
    return redirect("job", pk=job.pk)


@require_GET
@refusals_lead_to("remotes")
def confirm_host_key(request: HttpRequest, key: str) -> HttpResponse:
    """Review the host key that is to be trusted."""
    remote = find_remote(key)
    if not remote.offered_key:
        raise Http404
    operation = ConfirmHostKey(remote=key, fingerprint=fingerprint_of(remote.offered_key))
    return confirm.review(request, operation, back=reverse("remote", args=[key]))


@require_GET
@refusals_lead_to("remotes")
def remove_remote(request: HttpRequest, key: str) -> HttpResponse:
    """Review what removing a computer means. The copies there stay."""
    return confirm.review(request, RemoveRemote(remote=find_remote(key).id), back=reverse("remote", args=[key]))
