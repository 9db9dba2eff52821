"""Pages of the recovery phrase: whether there is one, making it, and typing it back."""

from __future__ import annotations

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods

from appliance.errors import Failed, Refused
from appliance.recovery import phrase
from appliance.recovery.take_place import TakePlace
from web import agent, live
from web.backups import recovery, status
from web.backups.recovery import OtherBox
from web.inventory import store
from web.inventory.fact_row import look_up_or_none
from web.jobs import confirm
from web.jobs.refusals import add_reasons, refusals_lead_to, validation_error
from web.translation import lazy_text

SECONDS = 60


class PasswordForm(forms.Form):
    """The administrator's password, which makes a phrase."""

    password = forms.CharField(
        label=lazy_text("Your password"),
        strip=False,
        max_length=200,
        help_text=lazy_text("The phrase opens every password and key that this box stores."),
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class TypedForm(forms.Form):
    """The phrase, typed back from the paper."""

    phrase = forms.CharField(
        label=lazy_text("Recovery phrase"),
        max_length=phrase.LONGEST,
        help_text=lazy_text(
            "Seven groups of four letters and digits. Capital or small letters, with or without hyphens."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "characters", "spellcheck": "false"}),
    )

    def clean_phrase(self) -> str:
        try:
            return phrase.spell_phrase(self.cleaned_data["phrase"])
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal


@require_GET
def show_recovery(request: HttpRequest) -> HttpResponse:
    """Whether there is a phrase on paper, what is in the record of this box, and which other boxes left theirs."""

    def build() -> dict[str, object]:
        facts = status.read_facts(look_up_or_none)
        return {
            "phrase": recovery.read_phrase(),
            "others": list(recovery.other_boxes(facts)),
            "own_records": recovery.own_records(facts),
            "keys": recovery.unexported(facts.datasets),
        }

    return live.respond(request, "backups/recovery.html", build)


def find_other(key: str, box: str) -> OtherBox:
    """The record of a box on a pool. Raises Http404."""
    found = (
        one for one in recovery.other_boxes(status.read_facts(look_up_or_none)) if (one.key, one.mark.id) == (key, box)
    )
    other = next(found, None)
    if other is None:
        raise Http404
    return other


@require_GET
@refusals_lead_to("recovery")
def show_box(request: HttpRequest, key: str, box: str) -> HttpResponse:
    """A box that left its record here: its users, and which of its folders are here, have a copy, or are missing."""
    other, facts = find_other(key, box), status.read_facts()
    record = recovery.read_record(other)
    context = {
        "other": other,
        "record": record,
        "users": ", ".join(one.name for one in record.users),
        "groups": ", ".join(one.name for one in record.groups),
        "folders": list(recovery.recorded_folders(record, facts)),
    }
    return render(request, "backups/other_box.html", context)


@require_GET
@refusals_lead_to("recovery")
def take_place(request: HttpRequest, key: str, box: str) -> HttpResponse:
    """Review what taking the place of a box means."""
    other = find_other(key, box)
    record = recovery.read_record(other)
    operation = TakePlace(pool=other.pool.name, guid=other.pool.guid, box=box, sealed=record.sealed)
    return confirm.review(request, operation, back=reverse("other_box", args=[key, box]))


@require_GET
@refusals_lead_to("other_box", "key", "box")
def share_again(request: HttpRequest, key: str, box: str, folder: str, dataset: str) -> HttpResponse:
    """Review sharing a restored folder as the record of its box says."""
    found = recovery.recorded_folders(recovery.read_record(find_other(key, box)), status.read_facts())
    one = next((one for one in found if str(one.folder.guid) == folder and one.can_share), None)
    place = next((place for place in one.restored if str(place.guid) == dataset), None) if one else None
    if one is None or place is None:
        raise Http404
    return confirm.review(request, recovery.share_again(one.folder, place), back=reverse("other_box", args=[key, box]))


@sensitive_post_parameters()
@sensitive_variables()
@require_http_methods(["GET", "POST"])
def make_phrase(request: HttpRequest) -> HttpResponse:
    """Make a new phrase and show it, this once. It is in this answer and nowhere else."""
    form = PasswordForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        asked = {"verb": "make-recovery-phrase", "password": form.cleaned_data["password"]}
        try:
            made = str(agent.last(asked, silence=SECONDS)["facts"]["phrase"])
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
        except Failed as failure:
            form.add_error(None, str(failure))
        else:
            store.touch("backups")
            return render(request, "backups/phrase.html", {"made": made, "groups": made.split("-")})
    return live.respond_to_form(request, "backups/make_phrase.html", {"form": form, "phrase": recovery.read_phrase()})


@sensitive_post_parameters()
@sensitive_variables()
@require_http_methods(["GET", "POST"])
def confirm_phrase(request: HttpRequest) -> HttpResponse:
    """Type the phrase back."""
    form = TypedForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            agent.last({"verb": "confirm-recovery-phrase", "phrase": form.cleaned_data["phrase"]}, silence=SECONDS)
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
        except Failed as failure:
            form.add_error(None, str(failure))
        else:
            store.touch("backups")
            return redirect("recovery")
    return live.respond_to_form(request, "backups/confirm_phrase.html", {"form": form})
