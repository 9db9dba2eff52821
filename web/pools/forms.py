"""The forms of the create-pool wizard, one for each step."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext

from appliance import names
from appliance.errors import Reason, Refused
from appliance.formatting import capitalize_opening
from appliance.layout import choices
from appliance.layout.choices import LAYOUT_NAMES, LayoutChoice
from appliance.layout.geometry import LEAST_DISKS
from web.inventory.bays import Bay
from web.jobs.refusals import validation_error
from web.translation import lazy_text, text_of


def name_field(**more: object) -> forms.CharField:
    """A field for the name of a pool, without the browser's corrections."""
    widget = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"})
    # a field's own options
    return forms.CharField(max_length=80, strip=False, widget=widget, **more)  # type: ignore[arg-type]


def clean_pool_name(name: str, field: str) -> str:
    """The name of a new pool. Raises ValidationError."""
    try:
        return names.check_pool_name(name, field=field)
    except Refused as refusal:
        raise validation_error(refusal.reasons) from refusal


def is_usable(bay: Bay) -> bool:
    """Whether the disk in a bay can become part of a pool."""
    return bool(bay.disk.path) and not bay.disk.blocked


def disk_choices(bays: list[Bay]) -> list[tuple[str, str]]:
    """The choices of a field that asks for disks."""
    return [(bay.disk.path, bay.label) for bay in bays if bay.disk.path]


def clean_disks(paths: list[str], bays: list[Bay]) -> list[str]:
    """The chosen paths, each once. Raises ValidationError for a disk in use."""
    by_path = {bay.disk.path: bay for bay in bays}
    for path in paths:
        bay = by_path[path]
        if bay.disk.blocked:
            reason = Reason(
                "disk-in-use",
                "{disk} {use}, so it cannot be used.",
                disk=capitalize_opening(bay.label),
                use=text_of(bay.disk.blocked.text),
            )
            raise validation_error([reason])
    return list(dict.fromkeys(paths))


class NameForm(forms.Form):
    name = name_field(
        label=lazy_text("Name of the pool"),
        error_messages={"required": lazy_text("Give the pool a name, for example tank.")},
        help_text=lazy_text(
            "Short and plain: tank, attic, family. Folders will appear below it, for example tank/photos."
        ),
    )

    def __init__(self, data: QueryDict | None, *, taken: Collection[str]) -> None:
        """``taken``: names of pools, none of which is proposed."""
        numbered = (f"tank{number}" for number in itertools.count(2))
        proposed = next(name for name in itertools.chain(["tank"], numbered) if name not in taken)
        super().__init__(data, initial={"name": proposed})
        self.fields["name"].widget.attrs["autofocus"] = True

    def clean_name(self) -> str:
        return clean_pool_name(self.cleaned_data["name"], "name")


class DisksForm(forms.Form):
    disks = forms.MultipleChoiceField(
        label=lazy_text("Which disks?"),
        required=False,
        error_messages={"invalid_choice": lazy_text("One of the disks is no longer there.")},
    )

    def __init__(self, data: QueryDict | None, *, bays: list[Bay]) -> None:
        super().__init__(data)
        self.bays = bays
        self.fields["disks"].choices = disk_choices(bays)  # type: ignore[attr-defined]

    def clean_disks(self) -> list[str]:
        chosen = clean_disks(self.cleaned_data["disks"], self.bays)
        if not chosen:
            raise validation_error([Reason("disk-not-chosen", "Choose at least one disk.")])
        return chosen


class LayoutForm(forms.Form):
    """``layout`` is the ``value`` of a ``LayoutChoice``: ``raidz2-1``."""

    layout = forms.CharField(label=lazy_text("Layout"), required=False)

    def __init__(self, data: QueryDict | None, *, sizes: list[int]) -> None:
        super().__init__(data)
        self.sizes = sizes

    def clean_layout(self) -> str:
        choice = choices.parse_layout(self.cleaned_data["layout"])
        if choice is None or choice.spares > choices.MOST_SPARES:
            raise validation_error([Reason("layout-unknown", "Choose one of the layouts.")])
        if reason := reason_against(choice, self.sizes):
            raise validation_error([reason])
        return choice.value


def reason_against(choice: LayoutChoice, sizes: list[int]) -> Reason | None:
    """Why disks of these sizes cannot be laid out like that; None where they can."""
    members, least = len(sizes) - choice.spares, LEAST_DISKS[choice.layout]
    width, rest = divmod(members, choice.groups)
    if rest:
        return Reason(
            "layout-not-divisible",
            "{disks} disks cannot be divided into {groups} equal groups. Choose another layout.",
            disks=members,
            groups=choice.groups,
        )
    if width < least:
        return Reason(
            "disks-too-few-for-vdevs",
            "{layout} needs at least {count} disks in each group.",
            layout=LAYOUT_NAMES[choice.layout],
            count=least,
        )
    if not choices.is_possible(choice, len(sizes)):
        return Reason("layout-unknown", "Choose one of the layouts.")
    if choice.equal and (choice.layout == "stripe" or not any(choices.rest_sizes(sizes))):
        return Reason(
            "partitions-no-gain", "Equal partitions would give these disks no more space. Choose another layout."
        )
    if choice.mirrored and not choices.rest_mirrors(choices.rest_sizes(sizes)):
        return Reason("rest-not-mirrored", "What is left of these disks cannot be mirrored. Choose another layout.")
    return None


class ExtrasForm(forms.Form):
    """Log, cache and spare devices: disks that are not chosen for data."""

    error = {"invalid_choice": lazy_text("One of these disks is no longer there, or it is chosen for data already.")}
    logs = forms.MultipleChoiceField(label=lazy_text("Log"), required=False, error_messages=error)
    cache = forms.MultipleChoiceField(label=lazy_text("Cache"), required=False, error_messages=error)
    spares = forms.MultipleChoiceField(label=lazy_text("Spare"), required=False, error_messages=error)

    def __init__(self, data: QueryDict | None, *, bays: list[Bay]) -> None:
        super().__init__(data)
        self.bays = bays
        for field in self.fields.values():
            field.choices = disk_choices(bays)  # type: ignore[attr-defined]

    def clean_logs(self) -> list[str]:
        return clean_disks(self.cleaned_data["logs"], self.bays)

    def clean_cache(self) -> list[str]:
        return self.clean_other_disks("cache", "logs")

    def clean_spares(self) -> list[str]:
        return self.clean_other_disks("spares", "logs", "cache")

    def clean_other_disks(self, field: str, *others: str) -> list[str]:
        """The disks of one field, none of them chosen in the others as well."""
        chosen = clean_disks(self.cleaned_data[field], self.bays)
        for bay in self.bays:
            for other in others:
                if bay.disk.path in chosen and bay.disk.path in self.cleaned_data.get(other, ()):
                    role = str(self.fields[other].label).lower()
                    reason = Reason(
                        "disk-chosen-elsewhere",
                        "{disk} is already chosen as {role}.",
                        disk=capitalize_opening(bay.label),
                        role=role,
                    )
                    raise validation_error([reason])
        return chosen


class OptionsForm(forms.Form):
    """Encryption and other properties of the pool, and the name of a second pool where there is one."""

    encrypted = forms.BooleanField(
        label=lazy_text("Encrypt everything in it"),
        required=False,
        help_text=lazy_text(
            "A stolen disk then shows nothing. You type a passphrase after every start of the box; without "
            "it the data is lost, and nobody can help."
        ),
    )
    key_file = forms.BooleanField(
        label=lazy_text("Unlock it with a key file instead of a passphrase"),
        required=False,
        help_text=lazy_text(
            "Larder makes a key that you save outside this box, and asks for the file after every start."
        ),
    )
    compression = forms.ChoiceField(
        label=lazy_text("Compression"),
        choices=[
            ("lz4", lazy_text("lz4: fast, the usual choice")),
            ("zstd", lazy_text("zstd: smaller, slower on weak processors")),
            ("off", "off"),
        ],
        initial="lz4",
        required=False,
        help_text=lazy_text("Photos and films are compressed already and lose nothing by it."),
    )
    ashift = forms.TypedChoiceField(
        label=lazy_text("Sector size"),
        choices=[
            ("12", lazy_text("4096 bytes (ashift 12): right for nearly every disk")),
            ("13", lazy_text("8192 bytes (ashift 13): some SSDs")),
            ("9", lazy_text("512 bytes (ashift 9): slow on nearly every disk since 2011")),
        ],
        coerce=int,
        initial="12",
        empty_value=12,  # type: ignore[arg-type]  # the stubs want text; Django hands it out as it is
        required=False,
        help_text=lazy_text("It cannot be changed later."),
    )
    atime = forms.BooleanField(
        label=lazy_text("Access times (atime)"),
        required=False,
        help_text=lazy_text("Costs a write for every read. Hardly anything needs it."),
    )
    rest = name_field(
        label=lazy_text("Name of the second pool"),
        required=False,
        help_text=lazy_text(
            "It uses what the larger disks have left, and one failed disk loses everything in it. Leave this "
            "empty to leave that space unused."
        ),
    )

    def __init__(self, data: QueryDict | None, *, choice: LayoutChoice | None, name: str) -> None:
        super().__init__(data, initial={"rest": f"{name[:35]}-rest"})
        if choice is None or not choice.equal:
            del self.fields["rest"]
        elif choice.mirrored:
            self.fields["rest"].help_text = gettext(
                "It uses what the larger disks have left, as mirrors: one disk of each may fail. Leave this "
                "empty to leave that space unused."
            )

    def clean_compression(self) -> str:
        return self.cleaned_data["compression"] or "lz4"

    def clean_key_file(self) -> bool:
        if self.cleaned_data["key_file"] and not self.cleaned_data.get("encrypted"):
            reason = Reason(
                "key-file-unencrypted", "A key file needs encryption. Tick “Encrypt everything in it” as well."
            )
            raise validation_error([reason])
        return bool(self.cleaned_data["key_file"])

    def clean_rest(self) -> str:
        return clean_pool_name(self.cleaned_data["rest"], "rest") if self.cleaned_data["rest"] else ""
