"""NFS and AFP of one folder: who may use it and how."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_http_methods

from appliance.errors import Refused
from appliance.facts.datasets import Dataset
from appliance.shares.set_share import SetShare
from appliance.shares.settings import SPOKEN, Protocol, ShareSetting, setting_of
from appliance.shares.troubleshoot import diagnose
from appliance.system.accounts import people_number
from web import live
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import first_fact
from web.inventory.models import SeenRow
from web.jobs import confirm
from web.jobs.refusals import add_reasons
from web.shares import switches, troubleshoot_views
from web.shares.forms import AfpForm, NfsForm
from web.users.views import read_user_facts


def begin_change(
    request: HttpRequest, form: NfsForm | AfpForm, dataset: str, protocol: Protocol
) -> HttpResponse | None:
    """Start the change, or put the reasons against it into the form."""
    try:
        operation = SetShare.of(dataset, protocol, form.part())
        return confirm.start_or_review(request, operation, back=request.get_full_path())
    except Refused as refusal:
        add_reasons(form, refusal.reasons)
        return None


def render_page(
    request: HttpRequest, form: forms.Form, dataset: Dataset, key: str, protocol: Protocol, *, on: bool
) -> HttpResponse:
    context = {
        "form": form,
        "dataset": dataset,
        "key": key,
        "protocol": protocol,
        "protocol_name": SPOKEN[protocol],
        "on": on,
        "unknown": not_found(key, protocol) if on else (),
        **client_numbers(protocol),
    }
    return live.respond_to_form(request, "shares/protocol.html", context)


def not_found(key: str, protocol: Protocol) -> tuple[str, ...]:
    """Computers of an export whose names were not found when the share was last looked at; opening
    the page has it looked at."""
    dataset: Dataset = DatasetRow.objects.get(key=key).fact
    part = (setting_of(dataset) or ShareSetting()).nfs
    if protocol != "nfs" or part is None or diagnose.all_networks(part.hosts):
        return ()
    troubleshoot_views.have_it_looked_at(key, protocol, "")
    seen = first_fact(SeenRow.objects.filter(key=SeenRow.key_of(key, protocol, "")))
    return seen.unknown if seen else ()


def client_numbers(protocol: Protocol) -> dict[str, object]:
    """What users of other computers need where NFS goes by number."""
    if protocol != "nfs":
        return {}
    return {"users": read_user_facts().accounts, "people_gid": people_number()}


@require_http_methods(["GET", "POST"])
def over_nfs(request: HttpRequest, key: str) -> HttpResponse:
    """Share a folder over NFS, or change how."""
    dataset: Dataset = get_object_or_404(DatasetRow, key=key).fact
    now = (setting_of(dataset) or ShareSetting()).nfs
    facts = read_user_facts()
    form = NfsForm(
        request.POST or None, initial=now, accounts=list(facts.accounts), usual=switches.usual_client(dataset, facts)
    )
    if request.method == "POST" and form.is_valid() and (begun := begin_change(request, form, dataset.name, "nfs")):
        return begun
    return render_page(request, form, dataset, key, "nfs", on=now is not None)


@require_http_methods(["GET", "POST"])
def over_afp(request: HttpRequest, key: str) -> HttpResponse:
    """Share a folder over AFP, or change how."""
    dataset: Dataset = get_object_or_404(DatasetRow, key=key).fact
    now, facts = (setting_of(dataset) or ShareSetting()).afp, store.facts()
    proposed = now or switches.proposed_afp(dataset, facts)
    form = AfpForm(request.POST or None, facts=facts, initial=proposed, dataset=dataset)
    if request.method == "POST" and form.is_valid() and (begun := begin_change(request, form, dataset.name, "afp")):
        return begun
    return render_page(request, form, dataset, key, "afp", on=now is not None)
