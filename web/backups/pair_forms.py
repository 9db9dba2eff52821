"""The forms of a pairing: what is received where, and with which Larder."""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

from django import forms
from django.utils.translation import gettext

from appliance.backups.pairing.pair_box import PairBox
from appliance.backups.pairing.receive_copies import ReceiveCopies
from appliance.backups.remote import settings
from appliance.backups.tasks import HOME
from appliance.errors import Refused
from appliance.facts.box import Facts
from web.backups.remote_forms import PLAIN
from web.forms_common import SizeField, with_free_space
from web.jobs.refusals import validation_error
from web.translation import lazy_format, lazy_text

HTTPS = 443


class ReceiveForm(forms.Form):
    """Where the copies of another Larder lie."""

    pool = forms.ChoiceField(label=lazy_text("Pool"), widget=forms.RadioSelect)
    name = forms.CharField(
        label=lazy_text("Name"),
        max_length=60,
        help_text=lazy_format(
            "For example the name of the other box. Its copies lie in a folder of this name, in the folder {home} of the pool.",
            home=HOME,
        ),
        widget=forms.TextInput(attrs=PLAIN),
    )
    limit = SizeField(
        label=lazy_text("Limit"),
        required=False,
        help_text=lazy_text(
            "The copies never use more than this, with all their snapshots. For example 2 TB. Without a limit they can fill the pool."
        ),
    )

    def __init__(self, data: object, *, facts: Facts) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # Django takes a QueryDict here
        tops = {one.name: one for one in facts.datasets}
        choices = [
            (
                pool.name,
                with_free_space(pool.name, tops[pool.name].available),
            )
            for pool in facts.pools
            if pool.name in tops
        ]
        self.fields["pool"].choices = choices  # type: ignore[attr-defined]  # a field with choices, declared above
        if len(choices) == 1:
            self.fields["pool"].initial = choices[0][0]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        try:
            if "/" in name:
                raise forms.ValidationError(gettext("A name has no slash."), code="name-with-slash")
            return settings.check_remote_name(name)
        except Refused as refusal:
            raise forms.ValidationError(
                gettext(
                    "A name begins with a letter or digit and has only letters, digits, hyphens, underscores, dots and colons."
                ),
                code=refusal.reasons[0].code,
            ) from refusal

    @property
    def operation(self) -> ReceiveCopies:
        """Raises Refused."""
        given = self.cleaned_data
        return ReceiveCopies(
            receiver=secrets.token_hex(4), pool=given["pool"], name=given["name"], limit=given["limit"] or 0
        )


class PairForm(forms.Form):
    """Which Larder shows a code."""

    address = forms.CharField(
        label=lazy_text("Address of the other Larder"),
        max_length=300,
        help_text=lazy_text("As it stands beside the code, for example attic.lan or 192.168.1.20."),
        widget=forms.TextInput(attrs=PLAIN),
    )

    def clean_address(self) -> str:
        typed: str = self.cleaned_data["address"].strip()
        try:
            parts = urlsplit(typed if "://" in typed else f"https://{typed}")
            host, port = parts.hostname or "", parts.port or HTTPS
        except ValueError as error:
            raise forms.ValidationError(
                gettext("Enter a name such as attic.lan, or an address such as 192.168.1.20."), code="host-invalid"
            ) from error
        try:
            settings.check_host(host)
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal
        self.place = (host, port)
        return typed

    @property
    def operation(self) -> PairBox:
        """Raises Refused."""
        host, port = self.place
        return PairBox(remote=secrets.token_hex(4), host=host, port=port)
