"""Shares of folders: the switch of each protocol, and the page behind the switch of SMB."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import reswap, retarget

from appliance.errors import Refused
from appliance.facts.datasets import Dataset
from appliance.shares.publish import SERVING
from appliance.shares.set_share import SetShare
from appliance.shares.settings import Protocol, ShareSetting, setting_of
from web import live
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import AccountRow
from web.jobs import confirm
from web.jobs.refusals import add_reasons, refusal_page
from web.shares import switches
from web.shares.forms import SmbForm


@require_http_methods(["GET", "POST"])
def share_over_smb(request: HttpRequest, key: str) -> HttpResponse:
    """Share a folder over SMB, or change how: under which name, for whom."""
    row = get_object_or_404(DatasetRow, key=key)
    dataset: Dataset = row.fact
    facts = store.facts()
    now = (setting_of(dataset) or ShareSetting()).smb
    initial = now or switches.proposed_smb(dataset, facts)
    form = SmbForm(request.POST or None, facts=facts, initial=initial, dataset=dataset)
    if request.method == "POST" and form.is_valid():
        try:
            job = confirm.start_without_review(
                SetShare.of(dataset.name, "smb", form.part()), user=request.user.get_username()
            )
            return redirect("job", pk=job.pk)
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {"form": form, "dataset": dataset, "key": key, "accounts": facts.accounts, "shared": now is not None}
    return live.respond_to_form(request, "shares/smb.html", context)


@require_POST
def switch_share(request: HttpRequest, key: str, protocol: str, to: str) -> HttpResponse:
    """Turn a protocol on or off for a folder with one click: on as it says itself, or as is usual.
    Files stay, so there is no review; the switch can be moved back."""
    row = get_object_or_404(DatasetRow, key=key)
    if protocol not in SERVING or to not in {"on", "off"}:
        raise Http404
    kind, dataset = protocol, row.fact
    part = (setting_of(dataset) or ShareSetting()).part(kind)
    back = reverse("folder", args=[key])
    if to == "off" and part is None:
        return redirect(back)
    try:
        if to == "on" and part is None:
            part = switches.usual_part(kind, dataset, store.facts())
        operation = SetShare.of(dataset.name, kind, part if to == "on" else None)
        if confirm.needs_proof(operation):
            return confirm.review(request, operation, back=back)
        confirm.start_without_review(operation, user=request.user.get_username())
    except Refused as refusal:
        if live.is_for_htmx(request):
            return refused_switch(request, row, kind, refusal)
        if to == "on" and kind != "nfs" and not AccountRow.objects.exists():
            return redirect(switches.new_share_link(key))
        details = reverse(switches.DETAILS[kind], args=[key])
        return refusal_page(request, refusal.reasons, back if to == "off" else details)
    return redirect("folders") if request.POST.get("from") == "list" else redirect(back)


def refused_switch(request: HttpRequest, row: DatasetRow, protocol: Protocol, refusal: Refused) -> HttpResponse:
    """The switch as it was, in its place on the page, with the reasons under it."""
    shown = switches.SwitchesState.read().switches(row.key, row.fact)
    switch = next(one for one in shown if one.protocol == protocol)
    context = {"switch": switch, "reasons": refusal.reasons}
    response = render(request, "shares/switch.html", context, status=409)
    return reswap(retarget(response, f".share:has(#{switch.id})"), "outerHTML")
