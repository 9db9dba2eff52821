"""A volume as a disk for another computer: the switch, how to reach it, and why it cannot be seen."""

from __future__ import annotations

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from appliance.datasets.set_target import SetTarget
from appliance.errors import LarderError, Refused, explain_error
from appliance.facts.datasets import Dataset
from appliance.shares.iscsi import diagnose
from appliance.shares.iscsi.targets import volume_part
from appliance.shares.troubleshoot.diagnosis import Check
from web import agent, live
from web.inventory.dataset_models import DatasetRow
from web.jobs import confirm
from web.jobs.refusals import add_reasons, refusal_page
from web.shares.iscsi_form import IscsiForm
from web.shares.troubleshoot_views import Mend
from web.shares.volume_target import volume_context

SECONDS_TO_LOOK = 90


def get_volume(key: str) -> Dataset:
    """The volume of that key. Raises Http404 where it is none."""
    found: Dataset = get_object_or_404(DatasetRow, key=key).fact
    if found.kind != "volume":
        raise Http404
    return found


@require_http_methods(["GET", "POST"])
def share_over_iscsi(request: HttpRequest, key: str) -> HttpResponse:
    """Serve a volume over iSCSI, or change how."""
    volume = get_volume(key)
    now = volume_part(volume)
    shown = volume_context(volume, request)
    form = IscsiForm(request.POST or None, now=now, dataset=volume.name, served=bool(shown["target_served"]))
    if request.method == "POST" and form.is_valid():
        try:
            setting, new_secret = form.asked()
            operation = SetTarget(dataset=volume.name, guid=volume.guid, iscsi=setting, new_secret=new_secret)
            return confirm.review(request, operation, back=request.get_full_path())
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {"form": form, "dataset": volume, "key": key, **shown}
    return live.respond_to_form(request, "shares/iscsi.html", context)


@require_GET
def stop_iscsi(request: HttpRequest, key: str) -> HttpResponse:
    """Review that a volume is no longer served: a computer that uses it loses its disk."""
    volume, back = get_volume(key), reverse("folder", args=[key])
    try:
        return confirm.review(request, SetTarget(dataset=volume.name, guid=volume.guid), back=back)
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back)


@require_GET
def troubleshoot_iscsi(request: HttpRequest, key: str) -> HttpResponse:
    """What stands between a volume and another computer, as the agent finds it now."""
    volume = get_volume(key)
    checks: list[tuple[Check, Mend | None]] = []
    trouble = ""
    try:
        answer = agent.last({"verb": "look-at-target", "dataset": volume.name}, silence=SECONDS_TO_LOOK)
        seen = msgspec.convert(answer.get("facts", {}), diagnose.TargetDiagnosis)
        checks = [(check, mend_of(check, key, seen)) for check in diagnose.explain_diagnosis(volume, seen)]
    except (LarderError, msgspec.ValidationError) as error:
        trouble = explain_error(error)
    bad = sum(check.state == "failed" for check, _mend in checks)
    context = {"dataset": volume, "key": key, "checks": checks, "bad": bad, "trouble": trouble}
    return render(request, "shares/iscsi_why.html", context)


def mend_of(check: Check, key: str, seen: diagnose.TargetDiagnosis) -> Mend | None:
    """The button beside a check."""
    match check.mend:
        case "unlock":
            return Mend(
                gettext("Unlock {locked}").format(locked=seen.locked),
                f"{reverse('unlock')}?{urlencode({'dataset': seen.locked})}",
            )
        case "drift":
            return Mend(gettext("See the manual changes"), reverse("edits"))
        case "edit" | "serve":
            return Mend(gettext("Change the share"), reverse("share_iscsi", args=[key]))
        case _:
            return None
