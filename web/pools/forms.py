"""The create-pool wizard's questions. One form, asked a step at a time; its answers travel in the address."""

from __future__ import annotations

from django import forms
from django.http import QueryDict

from appliance import names
from appliance.errors import Refused
from appliance.layout import choices
from appliance.layout.choices import LayoutChoice
from appliance.layout.geometry import LEAST_DISKS
from appliance.pools.create import LAYOUT_NAMES, CreatePool
from web.inventory.present import Bay
from web.jobs.operation_ui import UI

# The order in which answers are needed, and where each stands in the list of steps that is shown.
ORDER = ("name", "disks", "layout", "extras", "options", "review")
SHOWN_AT = {"name": 0, "disks": 1, "layout": 1, "extras": 2, "options": 3, "review": 4}
TITLES = UI[CreatePool].steps
FIELDS = {
    "name": ("name",),
    "disks": ("disks",),
    "layout": ("layout",),
    "extras": ("logs", "cache", "spares"),
    "options": ("encrypted", "key_file", "compression", "ashift", "atime", "rest"),
}
STEP_OF = {field: step for step, fields in FIELDS.items() for field in fields} | {"encryption": "options"}


def name_field(**more: object) -> forms.CharField:
    widget = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"})
    return forms.CharField(max_length=80, strip=False, widget=widget, **more)  # type: ignore[arg-type]  # a field's own options


class NameForm(forms.Form):
    name = name_field(
        label="What shall the pool be called?",
        error_messages={"required": "Give the pool a name, for example tank."},
        initial="tank",
        help_text="Short and plain: tank, attic, family. Folders will appear below it, for example tank/photos.",
    )

    def __init__(self, data: QueryDict | None) -> None:
        super().__init__(data)
        self.fields["name"].widget.attrs["autofocus"] = True

    def clean_name(self) -> str:
        return plain(self.cleaned_data["name"], "name")


def plain(name: str, field: str) -> str:
    """A pool's name by the grammar of names, as a form says it."""
    try:
        return names.pool(name, field=field)
    except Refused as refusal:
        raise forms.ValidationError(str(refusal)) from refusal


def named(bays: list[Bay]) -> list[tuple[str, str]]:
    return [(bay.disk.path, bay.label) for bay in bays if bay.disk.path]


def free_of_use(chosen: list[str], bays: list[Bay]) -> list[str]:
    """The chosen paths, each once, where nothing on them blocks."""
    by_path = {bay.disk.path: bay for bay in bays}
    for path in chosen:
        if blocked := by_path[path].disk.blocked:
            raise forms.ValidationError(f"{by_path[path].label.capitalize()} {blocked.text}, so it cannot be used.")
    return list(dict.fromkeys(chosen))


class DisksForm(forms.Form):
    disks = forms.MultipleChoiceField(
        label="Which disks?", required=False, error_messages={"invalid_choice": "One of the disks is no longer there."}
    )

    def __init__(self, data: QueryDict | None, *, bays: list[Bay]) -> None:
        super().__init__(data)
        self.bays = bays
        self.fields["disks"].choices = named(bays)  # type: ignore[attr-defined]

    def clean_disks(self) -> list[str]:
        chosen = free_of_use(self.cleaned_data["disks"], self.bays)
        if not chosen:
            raise forms.ValidationError("Choose at least one disk.")
        return chosen


class LayoutForm(forms.Form):
    """``layout`` is the ``value`` of a choice: ``raidz2-1``."""

    layout = forms.CharField(label="How shall they work together?", required=False)

    def __init__(self, data: QueryDict | None, *, sizes: list[int]) -> None:
        super().__init__(data)
        self.sizes = sizes

    def clean_layout(self) -> str:
        choice = choices.parse(self.cleaned_data["layout"])
        if choice is None or choice.spares > choices.MOST_SPARES:
            raise forms.ValidationError("Choose one of the layouts.")
        members = len(self.sizes) - choice.spares
        size, rest = divmod(members, choice.groups)
        if rest:
            raise forms.ValidationError(f"{members} disks cannot be divided into {choice.groups} equal groups.")
        if size < LEAST_DISKS[choice.layout]:
            raise forms.ValidationError(
                f"{LAYOUT_NAMES[choice.layout]} needs at least {LEAST_DISKS[choice.layout]} disks in each group."
            )
        if not choices.fits(choice, len(self.sizes)):
            raise forms.ValidationError("Choose one of the layouts.")
        if choice.equal and (choice.layout == "stripe" or not any(choices.rests_of(self.sizes))):
            raise forms.ValidationError("These disks give nothing more in equal partitions. Choose another layout.")
        if choice.mirrored and not choices.rest_mirrors(choices.rests_of(self.sizes)):
            raise forms.ValidationError("What is left of these disks cannot be mirrored. Choose another layout.")
        return choice.value


class ExtrasForm(forms.Form):
    """Log, cache and spare devices, of the disks that hold no data."""

    error = {"invalid_choice": "One of these disks is no longer there, or it is chosen for data already."}
    logs = forms.MultipleChoiceField(label="Log", required=False, error_messages=error)
    cache = forms.MultipleChoiceField(label="Cache", required=False, error_messages=error)
    spares = forms.MultipleChoiceField(label="Spare", required=False, error_messages=error)

    def __init__(self, data: QueryDict | None, *, bays: list[Bay]) -> None:
        super().__init__(data)
        self.bays = bays
        for field in self.fields.values():
            field.choices = named(bays)  # type: ignore[attr-defined]

    def clean_logs(self) -> list[str]:
        return free_of_use(self.cleaned_data["logs"], self.bays)

    def clean_cache(self) -> list[str]:
        return self.not_twice("cache", "logs")

    def clean_spares(self) -> list[str]:
        return self.not_twice("spares", "logs", "cache")

    def not_twice(self, field: str, *others: str) -> list[str]:
        chosen = free_of_use(self.cleaned_data[field], self.bays)
        for bay in self.bays:
            for other in others:
                if bay.disk.path in chosen and bay.disk.path in self.cleaned_data.get(other, ()):
                    label = self.fields[other].label
                    raise forms.ValidationError(f"{bay.label.capitalize()} is chosen as {str(label).lower()} already.")
        return chosen


class OptionsForm(forms.Form):
    encrypted = forms.BooleanField(
        label="Encrypt everything in it",
        required=False,
        help_text="A stolen disk then shows nothing. You type a passphrase after every start of the box; without it the data is lost, and nobody can help.",
    )
    key_file = forms.BooleanField(
        label="Unlock it with a key file instead of a passphrase",
        required=False,
        help_text="Larder makes a key that you save outside this box, and asks for the file after every start.",
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
    rest = name_field(
        label="What shall the second pool be called?",
        required=False,
        help_text="It is made of what the larger disks have left, and one failed disk loses everything in it. Leave this empty to leave that space unused.",
    )

    def __init__(self, data: QueryDict | None, *, choice: LayoutChoice | None, name: str) -> None:
        super().__init__(data, initial={"rest": f"{name[:35]}-rest"})
        if choice is None or not choice.equal:
            del self.fields["rest"]
        elif choice.mirrored:
            self.fields[
                "rest"
            ].help_text = "It is made of what the larger disks have left, as mirrors: one disk of each may fail. Leave this empty to leave that space unused."

    def clean_compression(self) -> str:
        return self.cleaned_data["compression"] or "lz4"

    def clean_key_file(self) -> bool:
        if self.cleaned_data["key_file"] and not self.cleaned_data.get("encrypted"):
            raise forms.ValidationError("A key file needs encryption. Tick “Encrypt everything in it” as well.")
        return bool(self.cleaned_data["key_file"])

    def clean_rest(self) -> str:
        return plain(self.cleaned_data["rest"], "rest") if self.cleaned_data["rest"] else ""


def operation_from(query: QueryDict, bays: list[Bay]) -> CreatePool:
    """The operation that the wizard's answers mean. Raises Refused by the operation's own grammar."""
    name = query.get("name", "")
    choice = choices.parse(query.get("layout", "")) or LayoutChoice("stripe")
    options = OptionsForm(query, choice=choice, name=name)
    options.full_clean()
    given = options.cleaned_data
    chosen = [bay.disk for bay in bays if bay.disk.path in query.getlist("disks")]
    sizes = [disk.size for disk in chosen]
    groups, spares = choices.deal(sizes, choice)
    others = {field: paths_of(field, query, bays) for field in FIELDS["extras"]}
    others["spares"] = tuple(dict.fromkeys([chosen[at].path for at in spares] + list(others["spares"])))
    return CreatePool(
        name=name,
        layout=choice.layout,  # type: ignore[arg-type]  # parse knows only layouts
        groups=tuple(tuple(chosen[at].path for at in group) for group in groups),
        ashift=given.get("ashift") or 12,
        compression=given.get("compression") or "lz4",
        atime=bool(given.get("atime")),
        autotrim=bool(chosen) and not any(disk.rotational for disk in chosen),
        encrypted=bool(given.get("encrypted")),
        key_file=bool(given.get("key_file")),
        partition=choices.slice_of(sizes) if choice.equal and sizes else 0,
        rest=given.get("rest", "") if choice.equal else "",
        rest_mirror=choice.mirrored and bool(given.get("rest")),
        **others,
    )


def paths_of(field: str, query: QueryDict, bays: list[Bay]) -> tuple[str, ...]:
    """The disks that an answer names and that are there, in the order of the bays."""
    return tuple(bay.disk.path for bay in bays if bay.disk.path and bay.disk.path in query.getlist(field))
