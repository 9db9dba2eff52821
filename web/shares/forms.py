"""Forms about shares."""

from __future__ import annotations

from django import forms

from appliance import names
from appliance.errors import Refused
from appliance.facts import Facts
from appliance.shares.setting import LEAST_TIME_MACHINE, Smb

GIGABYTE = 10**9


class SmbForm(forms.Form):
    """How a folder is shared over SMB: under which name, for whom, with what."""

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
        required=False,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"invalid_choice": "There is no account %(value)s any more."},
    )
    read = forms.MultipleChoiceField(
        label="Who may only read it",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"invalid_choice": "There is no account %(value)s any more."},
    )
    guest = forms.ChoiceField(
        label="Without a name and password",
        choices=[("no", "Nobody"), ("read", "Everybody may read"), ("write", "Everybody may read, change and delete")],
        initial="no",
        required=False,
        help_text="Everybody means every device in your network, also a visitor's phone. Only for what may be lost and seen.",
    )
    previous = forms.BooleanField(
        label="Previous versions",
        required=False,
        help_text="Windows and Macs can fetch files back out of this folder's snapshots by themselves.",
    )
    recycle = forms.BooleanField(
        label="Recycle bin",
        required=False,
        help_text="What is deleted over the network goes to the hidden folder .recycle, and takes up space until it is emptied there.",
    )
    hidden = forms.BooleanField(
        label="Hidden",
        required=False,
        help_text="It is not listed. Whoever knows its name and may use it still reaches it.",
    )
    mac = forms.BooleanField(
        label="Made for Macs",
        required=False,
        help_text="Keeps what Macs attach to files (tags, colours). Harmless for Windows. It works best on all shares alike.",
    )
    time_machine = forms.IntegerField(
        label="Time Machine: largest size in GB",
        required=False,
        min_value=LEAST_TIME_MACHINE // GIGABYTE,
        max_value=2**62 // GIGABYTE,
        error_messages={"min_value": "The limit for Time Machine is at least 1 GB."},
        help_text="Macs can back up to it, up to this size, which is also set as the folder's own limit. Empty: it takes no backups.",
    )
    exact_case = forms.BooleanField(
        label="Tell large and small letters apart",
        required=False,
        help_text="Photo.jpg and photo.jpg can then both be there. Windows cannot open both; leave it off unless Linux needs it.",
    )
    encrypt = forms.BooleanField(
        label="Only encrypted connections",
        required=False,
        help_text="Slower on a small box. Devices from before 2012 cannot connect.",
    )

    def __init__(self, data: object = None, *, facts: Facts, initial: Smb) -> None:
        values = {name: getattr(initial, name) for name in self.base_fields}
        values["time_machine"] = initial.time_machine // GIGABYTE or None
        super().__init__(data, initial=values)  # type: ignore[arg-type]  # Django takes a QueryDict here
        known = [(one.name, one.name) for one in facts.accounts]
        known += [(f"@{group.name}", f"{group.name} (group)") for group in facts.groups]
        for field in ("write", "read"):
            self.fields[field].choices = known  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        try:
            return names.share(self.cleaned_data["name"])
        except Refused as refusal:
            raise forms.ValidationError(str(refusal)) from refusal

    def clean_guest(self) -> str:
        """Who does not say it lets nobody in."""
        return str(self.cleaned_data["guest"] or "no")

    def part(self) -> Smb:
        """The answers of a valid form. Raises Refused where they do not go together."""
        answers = dict(self.cleaned_data)
        answers["write"], answers["read"] = tuple(answers["write"]), tuple(answers["read"])
        answers["time_machine"] = (answers["time_machine"] or 0) * GIGABYTE
        return Smb(**answers)
