"""Forms about shares."""

from __future__ import annotations

from django import forms

from appliance import names
from appliance.errors import Refused


class SmbForm(forms.Form):
    """Who may use a folder over SMB, and under which name."""

    name = forms.CharField(
        label="Name of the share",
        max_length=120,
        strip=False,
        error_messages={"required": "Give the share a name, for example photos."},
        help_text="Other computers see it under this name.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    write = forms.MultipleChoiceField(
        label="Who may read and change it",
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": "Choose at least one account that may use the folder.",
            "invalid_choice": "There is no account %(value)s any more.",
        },
    )

    def __init__(self, data: object = None, *, accounts: list[str], initial: dict[str, object] | None = None) -> None:
        super().__init__(data, initial=initial)  # type: ignore[arg-type]  # Django takes a QueryDict here
        self.fields["write"].choices = [(name, name) for name in accounts]  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        try:
            return names.share(self.cleaned_data["name"])
        except Refused as refusal:
            raise forms.ValidationError(str(refusal)) from refusal
