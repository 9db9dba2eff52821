"""Forms about folders (datasets)."""

from __future__ import annotations

from django import forms

from appliance import names
from appliance.errors import Refused


class FolderForm(forms.Form):
    """A new folder below ``parent``."""

    parent = forms.ChoiceField(label="Where")
    name = forms.CharField(
        label="Name",
        max_length=120,
        strip=False,
        error_messages={"required": "Give the folder a name, for example photos."},
        help_text="For example photos.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )
    preset = forms.ChoiceField(
        label="What will be in it?",
        choices=[
            ("general", "A bit of everything"),
            ("photos", "Photos"),
            ("media", "Films and music"),
            ("documents", "Documents"),
        ],
        initial="general",
        help_text="Chooses the size of the pieces in which files are kept: large for films and photos, medium for the rest.",
    )

    def __init__(self, data: object = None, *, parents: list[str], initial: dict[str, object] | None = None) -> None:
        super().__init__(data, initial=initial)  # type: ignore[arg-type]  # Django takes a QueryDict here
        self.fields["parent"].choices = [(name, name) for name in parents]  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        try:
            return names.folder(self.cleaned_data["name"])
        except Refused as refusal:
            raise forms.ValidationError(str(refusal)) from refusal
