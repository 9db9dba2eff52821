"""The form that serves a volume over iSCSI."""

from __future__ import annotations

import re
from typing import Any

from django import forms

from appliance.errors import Refused
from appliance.shares.iscsi import part
from appliance.shares.iscsi.part import Iscsi
from web.jobs.refusals import validation_error
from web.translation import lazy_format, lazy_text

PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}
NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")


def proposed_name(dataset: str) -> str:
    """The end of a target's name out of the volume's: tank/vm/disk1 becomes tank-vm-disk1."""
    return NOT_IN_A_NAME.sub("-", dataset.lower()).strip("-")[-60:].strip("-") or "disk"


def list_names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for one in re.split(r"[\s,]+", text.strip()) if one))


class IscsiForm(forms.Form):
    """Under which name, for which computers, with CHAP or without."""

    name = forms.CharField(
        label=lazy_text("Name"),
        max_length=63,
        error_messages={"required": lazy_text("Give it a name, for example disk1.")},
        help_text=lazy_format("Other computers see it as {prefix}name.", prefix=part.PREFIX),
        widget=forms.TextInput(attrs=PLAIN),
    )
    initiators = forms.CharField(
        label=lazy_text("Which computers may use it"),
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 3, **PLAIN}),
        help_text=lazy_text(
            "The names of their initiators, one per line, for example iqn.1991-05.com.microsoft:my-pc. "
            "Empty: every computer that reaches this box. A name is no proof: anybody can pretend to have "
            "it, so use CHAP too."
        ),
    )
    user = forms.CharField(
        label=lazy_text("CHAP: name"),
        required=False,
        max_length=63,
        widget=forms.TextInput(attrs=PLAIN),
        help_text=lazy_text("The other computer signs in with this name and a secret. Empty: no secret is asked for."),
    )
    back_user = forms.CharField(
        label=lazy_text("CHAP: name of this box"),
        required=False,
        max_length=63,
        widget=forms.TextInput(attrs=PLAIN),
        help_text=lazy_text(
            "Fill it in if the other computer asks this box to prove itself too, with a second secret. Empty: one way."
        ),
    )
    new_secret = forms.BooleanField(
        label=lazy_text("Set a new secret"),
        required=False,
        help_text=lazy_text("It is asked for on the next page. The current secret stops working."),
    )
    addresses = forms.CharField(
        label=lazy_text("Addresses of this box"),
        required=False,
        max_length=400,
        widget=forms.TextInput(attrs=PLAIN),
        help_text=lazy_text("Served on these addresses only, for example 192.168.1.10. Empty: on all."),
    )
    block = forms.TypedChoiceField(
        label=lazy_text("Sector size"),
        coerce=int,
        choices=[(512, lazy_text("512 bytes")), (4096, lazy_text("4096 bytes"))],
        help_text=lazy_text(
            "512 suits every system. Choose 4096 only for a new disk whose system asks for it: what was "
            "written with one size cannot be read with the other."
        ),
    )

    def __init__(self, data: object = None, *, now: Iscsi | None, dataset: str, served: bool = True) -> None:
        shown: dict[str, object] = {"name": proposed_name(dataset), "block": 512, "new_secret": True}
        if now:
            shown = {
                "name": now.name,
                "initiators": "\n".join(now.initiators),
                "user": now.user,
                "back_user": now.back_user,
                "addresses": ", ".join(now.addresses),
                "block": now.block,
                # It may have come with its disks from another box, which has kept the secret.
                "new_secret": not served,
            }
        super().__init__(data, initial=shown)  # type: ignore[arg-type]  # Django takes a QueryDict here
        self.now = now
        if now is None or not now.user:
            # The first secret is always a new one.
            del self.fields["new_secret"]

    def clean_initiators(self) -> tuple[str, ...]:
        return self.each("initiators", part.check_initiator)

    def clean_addresses(self) -> tuple[str, ...]:
        return self.each("addresses", part.check_address)

    def each(self, field: str, check: Any) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(check(one) for one in list_names(self.cleaned_data[field])))
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal

    def asked(self) -> tuple[Iscsi, bool]:
        """The setting, and whether a secret has to be set. Raises Refused where the answers do not go together."""
        found = {name: value for name, value in self.cleaned_data.items() if name != "new_secret"}
        setting = Iscsi(**found)
        same = self.now is not None and bool(self.now.user) and bool(self.now.back_user) == bool(setting.back_user)
        return setting, bool(setting.user) and (not same or bool(self.cleaned_data.get("new_secret")))
