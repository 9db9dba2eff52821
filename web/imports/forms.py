"""The form of an import: where files come from, and where they go."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import ClassVar, Literal

from django import forms
from django.utils.translation import gettext

from appliance.backups.remote import settings
from appliance.errors import Refused
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset
from appliance.imports.set_up import AddImport
from appliance.imports.settings import LONGEST_PATH, check_owners, check_path, check_share_path
from appliance.imports.sources import SOURCES
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts
from web.jobs.refusals import add_reasons, validation_error
from web.translation import lazy_text

PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}
EXISTING = (
    ("none", lazy_text("There are none: the folder is empty")),
    ("keep", lazy_text("Keep them as they are")),
    ("newer", lazy_text("Replace older ones, and keep those in a subfolder")),
)


# The kinds of sources, in the order in which they are offered: the name and what it needs over there.
KINDS = {
    "ssh": (
        lazy_text("Another NAS over SSH"),
        lazy_text("Encrypted, and only from the computer that you confirmed. The NAS needs an ssh server and rsync."),
    ),
    "smb": (
        lazy_text("Windows or SMB share"),
        lazy_text("A share of a Windows computer, or of almost any NAS. Nothing has to be installed there."),
    ),
    "nfs": (
        lazy_text("NFS export"),
        lazy_text("A folder that the other NAS exports to this box. Not encrypted."),
    ),
    "rsync": (
        lazy_text("rsync service"),
        lazy_text("A NAS that offers its folders as rsync modules. Not encrypted."),
    ),
}


class AddImportForm(forms.Form):
    """Where the files are, and the folder that they are copied into.
    The forms of the kinds differ in their fields and words."""

    protocol: ClassVar[Literal["ssh", "smb", "nfs", "rsync"]]
    has_first = False  # whether a path begins with the name of a share or module

    host = forms.CharField(
        label=lazy_text("Name or address of the other NAS"), max_length=253, widget=forms.TextInput(attrs=PLAIN)
    )
    port = forms.IntegerField(label=lazy_text("Port"), min_value=1, max_value=65535)
    user = forms.CharField(label=lazy_text("User there"), max_length=64, widget=forms.TextInput(attrs=PLAIN))
    path = forms.CharField(max_length=LONGEST_PATH, widget=forms.TextInput(attrs=PLAIN))
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
        self.fields["port"].initial = self.usual_port()
        if not SOURCES[self.protocol].has_owners:
            del self.fields["owners"]
        elif not SOURCES[self.protocol].has_owner_names:
            self.fields["owners"].help_text = gettext(
                "A line for each user there: the number there, an equals sign, and the user here, for "
                "example 1026=anna. All other files belong to the folder."
            )
        self.label_fields()

    @classmethod
    def usual_port(cls) -> int:
        return SOURCES[cls.protocol].port

    def label_fields(self) -> None:
        """Put this kind's words to the fields that every kind has."""
        raise NotImplementedError

    def label(self, field: str, label: str, help_text: str) -> None:
        self.fields[field].label, self.fields[field].help_text = label, help_text

    def checked(self, field: str, check: Callable[[str], str]) -> str:
        try:
            return check(self.cleaned_data[field])
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal

    def clean_host(self) -> str:
        return self.checked("host", settings.check_host)

    def clean_path(self) -> str:
        """With a slash in front, which shares and modules are usually written without."""
        if self.has_first:
            self.cleaned_data["path"] = f"/{self.cleaned_data['path'].lstrip('/')}"
        return self.checked("path", check_share_path if self.has_first else check_path)

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
        if {"host", "path"} <= given.keys() and ("user" in given or "user" not in self.fields):
            try:
                SOURCES[self.protocol].check(given["host"], given.get("user", ""), given["path"])
            except Refused as refusal:
                add_reasons(self, refusal.reasons)
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
            user=given.get("user", ""),
            path=given["path"],
            dataset=dataset.name,
            guid=dataset.guid,
            existing=given["existing"],
            owners=given.get("owners", {}),
            protocol=self.protocol,
        )


class SshImportForm(AddImportForm):
    protocol = "ssh"

    def label_fields(self) -> None:
        self.fields["host"].help_text = gettext("For example nas.lan or 192.168.1.20. Switch on ssh and rsync there.")
        self.fields["port"].label = gettext("Port of its ssh server")
        self.fields["user"].help_text = gettext("A user who may read all of the files.")
        self.label(
            "path",
            gettext("Folder there"),
            gettext(
                "Its whole path, for example /volume1/photos. A path into a snapshot is best: files do not "
                "change in it."
            ),
        )


class SmbImportForm(AddImportForm):
    protocol = "smb"
    has_first = True

    def label_fields(self) -> None:
        self.label(
            "host", gettext("Name or address of the computer or NAS"), gettext("For example nas.lan or 192.168.1.20.")
        )
        self.fields["user"].required = False
        self.fields["user"].help_text = gettext(
            "Preferably a user with read-only access. The next step asks for the password. Leave empty for a "
            "share without one."
        )
        self.label(
            "path", gettext("Share there"), gettext("Its name, for example photos, or a folder in it: photos/2019.")
        )


class NfsImportForm(AddImportForm):
    protocol = "nfs"

    def label_fields(self) -> None:
        self.fields["host"].help_text = gettext("For example nas.lan or 192.168.1.20.")
        del self.fields["user"]
        self.label(
            "path",
            gettext("Exported folder there"),
            gettext(
                "Its whole path, for example /volume1/photos. Let the address of this box read it there, and "
                "do not map root to another user: otherwise files that only their owners may read are left "
                "out."
            ),
        )
        self.fields["owners"].help_text = gettext(
            "A line for each user there: the number there, an equals sign, and the user here, for example "
            "1026=anna. All other files belong to the folder, and all files where the NAS sends names over "
            "NFS 4 instead of numbers."
        )


class DaemonImportForm(AddImportForm):
    protocol = "rsync"
    has_first = True

    def label_fields(self) -> None:
        self.fields["host"].help_text = gettext("For example nas.lan or 192.168.1.20. Switch on its rsync service.")
        self.fields["user"].required = False
        self.fields["user"].help_text = gettext(
            "Its password is asked for in the next step. Leave it out for a module without a password."
        )
        self.label(
            "path", gettext("Module there"), gettext("Its name, for example photos, or a folder in it: photos/2019.")
        )


FORMS: dict[str, type[AddImportForm]] = {
    form.protocol: form for form in (SshImportForm, SmbImportForm, NfsImportForm, DaemonImportForm)
}


def possible_folders() -> list[Dataset]:
    """The folders that files can be copied into."""
    found: list[Dataset] = readable_facts(DatasetRow.objects.order_by("name"))
    return [
        one
        for one in found
        if one.kind == "filesystem" and one.mounted and not one.readonly and not parse_copy_mark(one.copy_of)
    ]
