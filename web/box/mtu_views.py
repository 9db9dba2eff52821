"""The MTU of a network port: the form, and the confirmation that keeps what is being tried."""

from __future__ import annotations

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from appliance.errors import Reason, Refused
from appliance.system import mtu
from appliance.system.box_info import Port
from appliance.system.mtu import MtuStatus, Unreached
from appliance.system.set_mtu import KeepMtu, TryMtu
from web.box.settings_views import read_box
from web.jobs import confirm
from web.jobs.refusals import add_reasons, refusals_lead_to
from web.translation import lazy_text


class MtuForm(forms.Form):
    """The value to try."""

    mtu = forms.IntegerField(
        label=lazy_text("MTU in bytes"),
        min_value=mtu.LEAST,
        max_value=mtu.MOST,
        help_text=lazy_text(
            "1500 is usual. 9000 (jumbo frames) needs every computer and switch in this network to use it too."
        ),
    )
    anyway = forms.BooleanField(required=False)

    def __init__(self, data: QueryDict | None, status: MtuStatus) -> None:
        self.unreached = unreached = status.unreached
        super().__init__(data, initial={"mtu": unreached.mtu if unreached else status.value})
        if unreached is None:
            del self.fields["anyway"]
            return
        label = gettext("Try {mtu} although not all computers can follow")
        self.fields["anyway"].label = label.format(mtu=unreached.mtu)
        self.fields["anyway"].help_text = explain_unreached(unreached)

    @property
    def accepted(self) -> tuple[str, ...]:
        """The computers that may be cut off until the former value is back."""
        found = self.unreached
        if found is None or found.mtu != self.cleaned_data["mtu"] or not self.cleaned_data["anyway"]:
            return ()
        return (*found.deaf, *found.silent)


def explain_unreached(found: Unreached) -> str:
    """Who cannot follow, and of whom that is not known."""
    parts = []
    if found.deaf:
        parts.append(
            gettext("Frames of {mtu} bytes did not reach {names}.").format(mtu=found.mtu, names=", ".join(found.deaf))
        )
    if found.silent:
        parts.append(
            gettext("It is not known for {names}: no ping was answered there.").format(names=", ".join(found.silent))
        )
    return " ".join([*parts, gettext("They may lose their connection until the former value is back.")])


def find_port(name: str) -> tuple[Port, MtuStatus]:
    """Raises Http404, Refused."""
    port = next((one for one in read_box().ports if one.name == name), None)
    if port is None or port.mtu is None:
        raise Http404
    return port, port.mtu


@require_GET
@refusals_lead_to("box")
def set_mtu(request: HttpRequest, name: str) -> HttpResponse:
    """The form; with an answer, the review of the change."""
    port, status = find_port(name)
    form = MtuForm(request.GET if "mtu" in request.GET else None, status)
    if not status.refusal and form.is_bound and form.is_valid():
        try:
            operation = TryMtu(port=name, mtu=form.cleaned_data["mtu"], former=status.value, accepted=form.accepted)
            return confirm.review(request, operation, back=reverse("box"))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {"form": form, "port": port, "refusal": status.refusal, "seconds": mtu.SECONDS}
    return render(request, "box/mtu.html", context, status=400 if form.is_bound else 200)


@require_POST
@refusals_lead_to("box")
def keep_mtu(request: HttpRequest, name: str) -> HttpResponse:
    """Keep what is being tried, if it still is what the page showed."""
    _port, status = find_port(name)
    if status.trial is None or request.POST.get("mtu") != str(status.trial.mtu):
        raise Refused(Reason("mtu-trial-over", "The former MTU is back already. Try the other one again."))
    operation = KeepMtu(port=name, mtu=status.trial.mtu, former=status.trial.former)
    job = confirm.start_without_review(operation, user=request.user.get_username())
    return redirect("job", pk=job.pk)
