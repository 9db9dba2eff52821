"""The form of an import: where files come from, and where they go."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from django import forms
from django.utils.translation import gettext

from appliance.backups.remote import settings
from appliance.errors import Refused
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset
from appliance.imports.set_up import AddImport
from appliance.imports.settings import LONGEST_PATH, check_owners, check_path
from web.inventory.models import DatasetRow
from web.jobs.refusals import validation_error
from web.translation import lazy_text

PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}
EXISTING = (
    ("none", lazy_text("There are none: the folder is empty")),
    ("keep", lazy_text("Keep them as they are")),
    ("newer", lazy_text("Replace older ones, and keep those in a subfolder")),
)


class AddImportForm(forms.Form):
    """Where the files are, and the folder that they are copied into."""

    host = forms.CharField(
        label=lazy_text("Name or address of the other NAS"),
        max_length=253,
        help_text=lazy_text("For example nas.lan or 192.168.1.20. Switch on ssh and rsync there."),
        widget=forms.TextInput(attrs=PLAIN),
    )
    port = forms.IntegerField(label=lazy_text("Port of its ssh server"), min_value=1, max_value=65535, initial=22)
    user = forms.CharField(
        label=lazy_text("User there"),
        max_length=32,
        help_text=lazy_text("A user who may read all of the files."),
        widget=forms.TextInput(attrs=PLAIN),
    )
    path = forms.CharField(
        label=lazy_text("Folder there"),
        max_length=LONGEST_PATH,
        help_text=lazy_text(
            "Its whole path, for example /volume1/photos. A path into a snapshot is best: files do not change in it."
        ),
        widget=forms.TextInput(attrs=PLAIN),
    )
    folder = forms.ChoiceField(label=lazy_text("Folder here"))
    existing = forms.ChoiceField(
        label=lazy_text("Files that are here already"), choices=EXISTING, widget=forms.RadioSelect
    )

    owners = forms.CharField(
        label=lazy_text("Owners"),
        required=False,
        max_length=5000,
        help_text=lazy_text(
            "A line for each user there: the name or number there, an equals sign, and the user here, for example "
            "1026=anna. All other files belong to the folder."
        ),
        widget=forms.Textarea(attrs={**PLAIN, "rows": 3}),
    )

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # Django's own arguments
        self.datasets = {str(one.guid): one for one in possible_folders()}
        choices = [(key, one.name) for key, one in self.datasets.items()]
        self.fields["folder"].choices = choices  # type: ignore[attr-defined]  # a ChoiceField
        self.fields["existing"].initial = "none"

    def checked(self, field: str, check: Callable[[str], str]) -> str:
        try:
            return check(self.cleaned_data[field])
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal

    def clean_host(self) -> str:
        return self.checked("host", settings.check_host)

    def clean_user(self) -> str:
        return self.checked("user", settings.check_user)

    def clean_path(self) -> str:
        return self.checked("path", check_path)

    def clean_owners(self) -> dict[str, str]:
        lines = [line.strip() for line in self.cleaned_data["owners"].splitlines() if line.strip()]
        pairs = [line.partition("=") for line in lines]
        if any(not sign for _old, sign, _new in pairs):
            raise forms.ValidationError(gettext("Each line needs an equals sign, for example 1026=anna."))
        owners = {old.strip(): new.strip() for old, _sign, new in pairs}
        try:
            check_owners(owners)
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal
        return owners

    def clean(self) -> dict[str, object]:
        given = super().clean() or {}
        if given.get("owners") and given.get("existing") != "none":
            self.add_error(
                "owners",
                gettext("Owners can be set only in an empty folder. Leave them out, or choose an empty folder."),
            )
        return given

    @property
    def operation(self) -> AddImport:
        given = self.cleaned_data
        dataset = self.datasets[given["folder"]]
        return AddImport(
            task=secrets.token_hex(4),
            host=given["host"],
            port=given["port"],
            user=given["user"],
            path=given["path"],
            dataset=dataset.name,
            guid=dataset.guid,
            existing=given["existing"],
            owners=given["owners"],
        )


def possible_folders() -> list[Dataset]:
    """The folders that files can be copied into."""
    found: list[Dataset] = [row.fact for row in DatasetRow.objects.order_by("name")]
    return [
        one
        for one in found
        if one.kind == "filesystem" and one.mounted and not one.readonly and not parse_copy_mark(one.copy_of)
    ]
