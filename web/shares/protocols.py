"""NFS and AFP of one folder: who may use it and how."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods

from appliance.dataset import Dataset
from appliance.errors import Refused
from appliance.shares.setting import SPOKEN, Part, Protocol, ShareSetting, setting_of
from appliance.shares.share import SetShare
from web.datasets.views import add_reasons
from web.inventory import store
from web.inventory.models import DatasetRow
from web.jobs import confirm
from web.shares import switches
from web.shares.forms import AfpForm, NfsForm


def begin(request: HttpRequest, form: forms.Form, dataset: str, protocol: Protocol, part: Part) -> HttpResponse | None:
    """Start the change, or put what speaks against it into the form."""
    try:
        operation = SetShare.of(dataset, protocol, part)
        return confirm.begin(request, operation, back=request.get_full_path())
    except Refused as refusal:
        add_reasons(form, refusal)
        return None


def page(
    request: HttpRequest, form: forms.Form, dataset: Dataset, key: str, protocol: Protocol, *, on: bool
) -> HttpResponse:
    context = {
        "form": form,
        "dataset": dataset,
        "key": key,
        "protocol": protocol,
        "protocol_name": SPOKEN[protocol],
        "on": on,
    }
    return render(request, "shares/protocol.html", context, status=400 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
def over_nfs(request: HttpRequest, key: str) -> HttpResponse:
    """Share a folder over NFS, or change how."""
    dataset: Dataset = get_object_or_404(DatasetRow, key=key).fact
    now = (setting_of(dataset) or ShareSetting()).nfs
    form = NfsForm(request.POST or None, initial=now)
    if (
        request.method == "POST"
        and form.is_valid()
        and (begun := begin(request, form, dataset.name, "nfs", form.part()))
    ):
        return begun
    return page(request, form, dataset, key, "nfs", on=now is not None)


@require_http_methods(["GET", "POST"])
def over_afp(request: HttpRequest, key: str) -> HttpResponse:
    """Share a folder over AFP, or change how."""
    dataset: Dataset = get_object_or_404(DatasetRow, key=key).fact
    now, facts = (setting_of(dataset) or ShareSetting()).afp, store.facts()
    form = AfpForm(request.POST or None, facts=facts, initial=now or switches.proposed_afp(dataset, facts))
    if (
        request.method == "POST"
        and form.is_valid()
        and (begun := begin(request, form, dataset.name, "afp", form.part()))
    ):
        return begun
    return page(request, form, dataset, key, "afp", on=now is not None)
