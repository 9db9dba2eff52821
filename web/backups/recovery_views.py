"""Pages of the recovery phrase: whether there is one, making it, and typing it back."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods

from appliance.errors import Failed, Refused
from appliance.recovery import phrase
from web import agent, live
from web.backups import recovery, status
from web.inventory import store
from web.jobs.refusals import add_reasons, validation_error

SECONDS = 60


class PasswordForm(forms.Form):
    """The administrator's password, which makes a phrase."""

    password = forms.CharField(
        label="Your password",
        strip=False,
        max_length=200,
        help_text="The phrase opens every password and key that this box stores.",
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class TypedForm(forms.Form):
    """The phrase, typed back from the paper."""

    phrase = forms.CharField(
        label="Recovery phrase",
        max_length=phrase.LONGEST,
        help_text="Seven groups of four letters and digits. Capital or small letters, with or without hyphens.",
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
        facts = status.read_facts()
        return {
            "phrase": recovery.read_phrase(),
            "others": list(recovery.other_boxes(facts)),
            "keys": recovery.unexported(facts.datasets),
        }

    return live.respond(request, "backups/recovery.html", build)


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
