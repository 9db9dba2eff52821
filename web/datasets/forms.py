"""Forms for folders (datasets) and volumes."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext

from appliance import formatting, names
from appliance.datasets.presets import PRESETS
from appliance.datasets.volumes import BLOCKS, whole_blocks
from appliance.errors import Refused
from web.forms_common import SizeField
from web.jobs.refusals import validation_error
from web.translation import lazy_text


def name_field(example: str, what: str = "it") -> forms.CharField:
    return forms.CharField(
        label=gettext("Name"),
        max_length=120,
        strip=False,
        help_text=gettext("For example {example}.").format(example=example),
        error_messages={
            "required": gettext("Give {what} a name, for example {example}.").format(what=what, example=example)
        },
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )


class PlaceForm(forms.Form):
    """A parent folder and a name below it."""

    parent = forms.ChoiceField(label=lazy_text("Where"))
    name = name_field("photos", lazy_text("the folder"))

    def __init__(self, data: object = None, *, parents: list[str], initial: dict[str, object] | None = None) -> None:
        super().__init__(data, initial=initial)  # type: ignore[arg-type]  # Django takes a QueryDict here
        self.fields["parent"].choices = [(name, name) for name in parents]  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        try:
            return names.check_folder_name(self.cleaned_data["name"])
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal


class FolderForm(PlaceForm):
    """A new folder below ``parent``."""

    preset = forms.ChoiceField(
        label=lazy_text("What will be in it?"),
        choices=[(name, preset.title) for name, preset in PRESETS.items()],
        initial="general",
        help_text=lazy_text("Chooses how its files are stored. The list below says what each choice sets, and why."),
    )
    limit = SizeField(
        label=lazy_text("Limit"),
        required=False,
        help_text=lazy_text(
            "It never uses more than this, with everything below. For example 500 GB. Set one for backups: "
            "they fill all the space they get."
        ),
    )
    key = forms.ChoiceField(
        label=lazy_text("Encryption"),
        required=False,
        choices=[
            ("", lazy_text("Same as the folder above")),
            ("passphrase", lazy_text("A passphrase of its own")),
            ("key file", lazy_text("A key file of its own")),
        ],
        help_text=lazy_text(
            "With a key of its own it is locked after every start, until somebody unlocks it. This cannot be "
            "changed later."
        ),
    )


class RenameForm(PlaceForm):
    """A new name or place for a folder."""


class VolumeForm(PlaceForm):
    """A new volume."""

    name = name_field("disk1", lazy_text("the volume"))
    size = SizeField(
        label=lazy_text("Size"), help_text=lazy_text("For example 100 GB. It can be made larger later, never smaller.")
    )
    block = forms.TypedChoiceField(
        label=lazy_text("Block size"),
        coerce=int,
        choices=[(size, formatting.binary_text(size)) for size in BLOCKS],
        initial=16 * 1024,
        help_text=lazy_text(
            "16 KiB for a virtual machine or a database, 64 KiB for the disk of a desktop. What each costs "
            "is in the table below. It cannot be changed later."
        ),
    )
    thin = forms.BooleanField(
        label=lazy_text("Thin-provisioned"),
        required=False,
        initial=True,
        help_text=lazy_text(
            "Uses space only as data is written. Off: reserves the full size now, so it can never run out of space."
        ),
    )

    def clean(self) -> dict[str, Any]:
        """A size such as 100 GB is seldom a multiple of the block size, so it is rounded up to one."""
        values = dict(super().clean() or {})
        if "size" in values and "block" in values:
            values["size"] = whole_blocks(values["size"], values["block"])
        return values


class GrowForm(forms.Form):
    size = SizeField(label=lazy_text("New size"), help_text=lazy_text("For example 100 GB. A volume can only grow."))

    def __init__(self, data: object = None, *, block: int, initial: dict[str, object]) -> None:
        super().__init__(data, initial=initial)  # type: ignore[arg-type]  # Django takes a QueryDict here
        self.block = block

    def clean_size(self) -> int:
        return whole_blocks(self.cleaned_data["size"], self.block)


class SpaceQuotaForm(forms.Form):
    """A limit for one user or group."""

    of = forms.ChoiceField(
        label=lazy_text("Who"), choices=[("user", lazy_text("A user")), ("group", lazy_text("A group"))], initial="user"
    )
    who = forms.CharField(
        label=lazy_text("Name"),
        max_length=40,
        error_messages={"required": lazy_text("Give the name of a user or group of this box.")},
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )
    size = SizeField(
        label=lazy_text("Limit"),
        required=False,
        help_text=lazy_text("For example 100 GB. Leave it empty for no limit."),
    )
