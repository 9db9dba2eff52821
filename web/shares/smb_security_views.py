"""How SMB is protected for all folders: the choice, then its review."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from appliance.errors import Refused
from appliance.facts.sharing import SmbPolicy
from appliance.shares.set_smb_security import SetSmbSecurity
from web.inventory.models import PolicyRow
from web.jobs import confirm
from web.jobs.refusals import add_reasons
from web.translation import lazy_text


class ProtectionForm(forms.Form):
    """Both questions are asked in the order of what they cost."""

    encryption = forms.ChoiceField(
        label=lazy_text("Encryption: nobody in the network can read what is sent"),
        widget=forms.RadioSelect,
        error_messages={"required": lazy_text("Choose who has to encrypt.")},
        choices=[
            ("asked", lazy_text("Where a folder or the other computer asks for it. This is usual at home.")),
            ("desired", lazy_text("For every computer that can. Slower on a small box; nobody is turned away.")),
            (
                "required",
                lazy_text(
                    "For everybody. Windows 7, OS X before 10.11, many old televisions and scanners can no "
                    "longer connect."
                ),
            ),
        ],
    )
    signing = forms.ChoiceField(
        label=lazy_text("Signing: nobody in the network can change what is on its way"),
        widget=forms.RadioSelect,
        error_messages={"required": lazy_text("Choose who has to sign.")},
        choices=[
            ("asked", lazy_text("Where the other computer asks for it. Windows 11 and newer Macs do.")),
            (
                "required",
                lazy_text("For everybody with a password. Some old scanners and players can no longer connect."),
            ),
        ],
    )


@require_GET
def smb_protection(request: HttpRequest) -> HttpResponse:
    """The form, and with answers the review."""
    row = PolicyRow.objects.first()
    now: SmbPolicy = row.fact if row else SmbPolicy()
    initial = {"signing": now.signing, "encryption": now.encryption}
    form = ProtectionForm(request.GET if request.GET else None, initial=initial)
    if form.is_bound and form.is_valid():
        try:
            return confirm.review(request, SetSmbSecurity(**form.cleaned_data), back=reverse("protection"))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    return render(request, "shares/smb_security.html", {"form": form}, status=400 if form.is_bound else 200)
