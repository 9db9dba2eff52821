"""The form of another computer that backups go to."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from django import forms

from appliance.backups.remote import settings
from appliance.backups.remote.set_up import AddRemote
from appliance.errors import Refused
from web.jobs.refusals import validation_error
from web.translation import lazy_text

PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}


class AddRemoteForm(forms.Form):
    """Where it is, and where copies lie there."""

    host = forms.CharField(
        label=lazy_text("Name or address of the computer"),
        max_length=253,
        help_text=lazy_text(
            "For example attic.lan or 192.168.1.20. It needs OpenSSH 7.2 and OpenZFS 0.8, or later ones."
        ),
        widget=forms.TextInput(attrs=PLAIN),
    )
    port = forms.IntegerField(label=lazy_text("Port of its ssh server"), min_value=1, max_value=65535, initial=22)
    user = forms.CharField(
        label=lazy_text("User there"),
        max_length=32,
        initial="larder-backup",
        help_text=lazy_text("A user for this alone, not root."),
        widget=forms.TextInput(attrs=PLAIN),
    )
    root = forms.CharField(
        label=lazy_text("ZFS folder there"),
        max_length=settings.LONGEST_NAME,
        help_text=lazy_text(
            "A folder for the copies of this box alone, for example tank/attic. You create it in the next step."
        ),
        widget=forms.TextInput(attrs=PLAIN),
    )

    def checked(self, field: str, check: Callable[[str], str]) -> str:
        try:
            return check(self.cleaned_data[field])
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal

    def clean_host(self) -> str:
        return self.checked("host", settings.check_host)

    def clean_user(self) -> str:
        return self.checked("user", settings.check_user)

    def clean_root(self) -> str:
        return self.checked("root", settings.check_remote_name)

    @property
    def operation(self) -> AddRemote:
        given = self.cleaned_data
        return AddRemote(
            remote=secrets.token_hex(4), host=given["host"], port=given["port"], user=given["user"], root=given["root"]
        )
