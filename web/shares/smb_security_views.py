"""How SMB is protected for all folders: the choice, then its review."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from appliance.errors import Refused
from appliance.shares.set_smb_security import SetSmbSecurity
from web.inventory import store
from web.jobs import confirm
from web.jobs.refusals import add_reasons


class ProtectionForm(forms.Form):
    """Both questions are asked in the order of what they cost."""

    encryption = forms.ChoiceField(
        label="Encryption: nobody in the network can read along",
        widget=forms.RadioSelect,
        error_messages={"required": "Choose who has to encrypt."},
        choices=[
            ("asked", "Where a folder or the other computer asks for it. As usual at home."),
            ("desired", "For every computer that can. Slower on a small box; nobody is turned away."),
            ("required", "For everybody. Windows 7, OS X before 10.11, many old televisions and scanners can no longer connect."),
        ],
    )  # fmt: skip
    signing = forms.ChoiceField(
        label="Signing: nobody in the network can change what is on its way",
        widget=forms.RadioSelect,
        error_messages={"required": "Choose who has to sign."},
        choices=[
            ("asked", "Where the other computer asks for it. Windows 11 and newer Macs do."),
            ("required", "For everybody with a password. Some old scanners and players can no longer connect."),
        ],
    )


@require_GET
def smb_protection(request: HttpRequest) -> HttpResponse:
    """The form, and with answers the review."""
    now = store.facts().smb_policy
    initial = {"signing": now.signing, "encryption": now.encryption}
    form = ProtectionForm(request.GET if request.GET else None, initial=initial)
    if form.is_bound and form.is_valid():
        try:
            return confirm.review(request, SetSmbSecurity(**form.cleaned_data), back=reverse("protection"))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    return render(request, "shares/smb_security.html", {"form": form}, status=400 if form.is_bound else 200)
