"""The create-pool wizard's questions. One form, asked a step at a time; its answers travel in the address."""

from __future__ import annotations

from django import forms
from django.http import QueryDict

from appliance import names
from appliance.errors import Refused
from appliance.layout.geometry import LEAST_DISKS
from appliance.zfs.pools import LAYOUT_NAMES, CreatePool
from web.inventory.present import Bay

STEPS = (("name", "Name"), ("disks", "Disks"), ("layout", "Layout"), ("options", "Options"), ("review", "Review"))


def grouped(disks: list[str], groups: int) -> tuple[tuple[str, ...], ...]:
    """Disks dealt into so many groups, in order; the last takes what does not divide, so that the check can say so."""
    size = max(len(disks) // max(groups, 1), 1)
    cut = [tuple(disks[at * size : (at + 1) * size]) for at in range(groups - 1)]
    return (*cut, tuple(disks[(groups - 1) * size :]))


class NameForm(forms.Form):
    name = forms.CharField(
        label="What shall the pool be called?",
        max_length=80,
        strip=False,
        error_messages={"required": "Give the pool a name, for example tank."},
        initial="tank",
        help_text="Short and plain: tank, attic, family. Folders will appear below it, for example tank/photos.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none", "autofocus": True}
        ),
    )

    def clean_name(self) -> str:
        try:
            return names.pool(self.cleaned_data["name"])
        except Refused as refusal:
            raise forms.ValidationError(str(refusal)) from refusal


class DisksForm(forms.Form):
    disks = forms.MultipleChoiceField(
        label="Which disks?", required=False, error_messages={"invalid_choice": "One of the disks is no longer there."}
    )

    def __init__(self, data: QueryDict | None, *, bays: list[Bay]) -> None:
        super().__init__(data)
        self.bays = bays
        self.fields["disks"].choices = [(bay.disk.path, bay.label) for bay in bays if bay.disk.path]  # type: ignore[attr-defined]

    def clean_disks(self) -> list[str]:
        chosen = list(dict.fromkeys(self.cleaned_data["disks"]))
        if not chosen:
            raise forms.ValidationError("Choose at least one disk.")
        by_path = {bay.disk.path: bay for bay in self.bays}
        for path in chosen:
            if blocked := by_path[path].disk.blocked:
                raise forms.ValidationError(f"{by_path[path].label.capitalize()} {blocked.text}, so it cannot be used.")
        return chosen


class LayoutForm(forms.Form):
    """``layout`` is a layout and a number of groups: ``raidz2-1``."""

    layout = forms.CharField(label="How shall they work together?", required=False)

    def __init__(self, data: QueryDict | None, *, disks: int) -> None:
        super().__init__(data)
        self.disks = disks

    def clean_layout(self) -> str:
        chosen = str(self.cleaned_data["layout"])
        layout, _, groups = chosen.partition("-")
        if layout not in LAYOUT_NAMES or not groups.isascii() or not groups.isdigit() or not 1 <= int(groups) <= 64:
            raise forms.ValidationError("Choose one of the layouts.")
        size, rest = divmod(self.disks, int(groups))
        if rest:
            raise forms.ValidationError(f"{self.disks} disks cannot be divided into {groups} equal groups.")
        if size < LEAST_DISKS[layout]:
            raise forms.ValidationError(
                f"{LAYOUT_NAMES[layout]} needs at least {LEAST_DISKS[layout]} disks in each group."
            )
        return chosen


class OptionsForm(forms.Form):
    encrypted = forms.BooleanField(
        label="Encrypt everything in it",
        required=False,
        help_text="A stolen disk then shows nothing. You type a passphrase after every start of the box; without it the data is lost, and nobody can help.",
    )
    compression = forms.ChoiceField(
        label="Compression",
        choices=[
            ("lz4", "lz4: fast, the usual choice"),
            ("zstd", "zstd: smaller, slower on weak processors"),
            ("off", "off"),
        ],
        initial="lz4",
        required=False,
        help_text="Photos and films are compressed already and lose nothing by it.",
    )
    ashift = forms.TypedChoiceField(
        label="Sector size",
        choices=[
            ("12", "4096 bytes (ashift 12): right for nearly every disk"),
            ("13", "8192 bytes (ashift 13): some SSDs"),
            ("9", "512 bytes (ashift 9): slow on nearly every disk since 2011"),
        ],
        coerce=int,
        initial="12",
        empty_value=12,  # type: ignore[arg-type]  # the stubs want text; Django hands it out as it is
        required=False,
        help_text="It cannot be changed later.",
    )
    atime = forms.BooleanField(
        label="Note each time a file is read (atime)",
        required=False,
        help_text="Costs a write for every read. Hardly anything needs it.",
    )

    def clean_compression(self) -> str:
        return self.cleaned_data["compression"] or "lz4"


def operation_from(query: QueryDict, bays: list[Bay]) -> CreatePool:
    """The operation that the wizard's answers mean. Raises Refused by the operation's own grammar."""
    layout, _, groups = query.get("layout", "").partition("-")
    options = OptionsForm(query)
    options.full_clean()
    chosen = [bay for bay in bays if bay.disk.path in query.getlist("disks")]
    return CreatePool(
        name=query.get("name", ""),
        layout=layout if layout in LAYOUT_NAMES else "stripe",  # type: ignore[arg-type]  # narrowed by LAYOUT_NAMES
        groups=grouped([bay.disk.path for bay in chosen], int(groups) if groups.isdigit() else 1),
        ashift=options.cleaned_data.get("ashift") or 12,
        compression=options.cleaned_data.get("compression") or "lz4",
        atime=bool(options.cleaned_data.get("atime")),
        autotrim=bool(chosen) and not any(bay.disk.rotational for bay in chosen),
        encrypted=bool(options.cleaned_data.get("encrypted")),
    )
