"""Share a folder: one form for the folder, its users, its protocols and its snapshots, then one review."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET

from appliance.errors import Refused
from appliance.facts.datasets import Dataset
from appliance.shares.settings import setting_of
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.jobs import confirm
from web.jobs.refusals import add_reasons
from web.shares.new_share_form import NewShareForm, network_of


@require_GET
def share_new_folder(request: HttpRequest) -> HttpResponse:
    """The form, or its review once it is answered. It asks for no secret, so going back keeps every answer."""
    existing: Dataset | None = None
    if key := request.GET.get("folder", ""):
        existing = get_object_or_404(DatasetRow, key=key).fact
        if (now := setting_of(existing)) and now.anything and existing.share_source == "local":
            return redirect("folder", key=key)
    facts = store.facts()
    pools = [one for one in facts.datasets if "/" not in one.name and one.kind == "filesystem"]
    open_pools = [one.name for one in pools if not one.locked]
    answered = "answered" in request.GET
    form = NewShareForm(
        request.GET if answered else None,
        facts=facts,
        pools=open_pools,
        answers=request.GET.dict(),
        existing=existing,
        network=network_of(request.META.get("HTTP_X_REAL_IP", "")),
    )
    if answered and form.is_valid():
        try:
            return confirm.review(request, form.operation(), back=back_to_form(request))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {
        "form": form,
        "folder": existing,
        "key": key,
        "locked": [one.name for one in pools if one.locked],
        "possible": bool(existing or open_pools),
    }
    return render(request, "shares/new.html", context, status=400 if form.is_bound else 200)


def back_to_form(request: HttpRequest) -> str:
    """The address of the form with the answers in it."""
    answers = request.GET.copy()
    del answers["answered"]
    return f"{request.path}?{answers.urlencode()}"
