"""People: the accounts that may use shares."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from appliance import names
from appliance.errors import Refused
from appliance.shares.accounts import CreateAccount, SetPassword
from web import live
from web.inventory.models import AccountRow
from web.jobs import confirm


class PersonForm(forms.Form):
    """The name of a new account; its password is asked on the next page."""

    name = forms.CharField(
        label="Name",
        max_length=60,
        strip=False,
        error_messages={"required": "Give the account a name, for example anna."},
        help_text="Small letters, for example anna.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )

    def clean_name(self) -> str:
        try:
            return names.account(self.cleaned_data["name"])
        except Refused as refusal:
            raise forms.ValidationError(str(refusal)) from refusal


@require_GET
def people(request: HttpRequest) -> HttpResponse:
    """Everybody who has an account for shares."""
    return live.respond(request, "people/list.html", lambda: {"people": AccountRow.objects.order_by("name")})


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Ask for the name, then lead to the review page, which asks for the password."""
    form = PersonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            return confirm.review(request, CreateAccount(name=form.cleaned_data["name"]), back=reverse("people"))
        except Refused as refusal:
            form.add_error("name", str(refusal))
    return render(request, "people/create.html", {"form": form}, status=400 if form.is_bound else 200)


@require_GET
def password(request: HttpRequest, name: str) -> HttpResponse:
    """The review page of a new password."""
    row = get_object_or_404(AccountRow, name=name)
    try:
        return confirm.review(request, SetPassword(name=row.name), back=reverse("people"))
    except Refused as refusal:
        return render(request, "jobs/refused.html", {"reasons": refusal.reasons, "back": reverse("people")}, status=409)
