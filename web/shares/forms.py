"""Forms about shares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext

from appliance import names
from appliance.errors import Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Account
from appliance.files.posix_acl import Level
from appliance.shares import nfs_export_rules
from appliance.shares.settings import LEAST_TIME_MACHINE, Afp, Nfs, Smb
from web.jobs.refusals import validation_error
from web.shares import user_levels
from web.translation import lazy_text

GIGABYTE = 10**9


TIME_MACHINE_HELP = lazy_text(
    "Macs can back up to it, up to this size, which is also set as the folder's own limit. Empty: it takes no backups."
)


def name_field() -> forms.CharField:
    return forms.CharField(
        label=gettext("Name of the share"),
        max_length=120,
        strip=False,
        error_messages={"required": gettext("Give the share a name, for example photos.")},
        help_text=gettext("Other computers see it under this name."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


def time_machine_field() -> forms.IntegerField:
    return forms.IntegerField(
        label=gettext("Time Machine: largest size in GB"),
        required=False,
        min_value=LEAST_TIME_MACHINE // GIGABYTE,
        max_value=2**62 // GIGABYTE,
        error_messages={"min_value": gettext("The limit for Time Machine is at least 1 GB.")},
        help_text=TIME_MACHINE_HELP,
    )


class NamedForm(forms.Form):
    """What SMB and AFP ask alike: under which name, and for whom.

    ``people`` only carries errors: the rows of its table are read from the data as they are.
    """

    name = name_field()
    people = forms.CharField(label=lazy_text("Who may use this share"), required=False)

    def __init__(
        self, data: Mapping[str, str] | None = None, *, facts: Facts, initial: Smb | Afp, dataset: Dataset
    ) -> None:
        values = {name: getattr(initial, name) for name in self.base_fields if name != "people"}
        values["time_machine"] = initial.time_machine // GIGABYTE or None
        super().__init__(data, initial=values)
        self.lines = user_levels.share_lines(facts, initial, data, dataset)

    def clean_name(self) -> str:
        try:
            return names.check_share_name(self.cleaned_data["name"])
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal

    def clean_people(self) -> dict[str, Level]:
        """The level of each user and group."""
        for who in user_levels.left_over(self.lines, self.data):
            said = gettext("There is no user %(value)s any more.") % {"value": who}
            raise forms.ValidationError(said, code="invalid_choice")
        try:
            return user_levels.chosen_levels(self.lines)
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal

    def answers(self) -> dict[str, Any]:
        """The answers of a valid form, as a part of a setting takes them."""
        found = dict(self.cleaned_data)
        found["write"], found["read"] = user_levels.split_levels(found.pop("people"))
        found["time_machine"] = (found["time_machine"] or 0) * GIGABYTE
        return found


class SmbForm(NamedForm):
    """How a folder is shared over SMB: under which name, for whom, with what."""

    guest = forms.ChoiceField(
        label=lazy_text("Guest access, without a password"),
        choices=[
            ("no", lazy_text("Nobody")),
            ("read", lazy_text("Everybody may read")),
            ("write", lazy_text("Everybody may read, change and delete")),
        ],
        initial="no",
        required=False,
        help_text=lazy_text(
            "Everybody means every device in your network, also a visitor's phone. Use it only for files "
            "that anybody may see or delete."
        ),
    )
    previous = forms.BooleanField(
        label=lazy_text("Previous versions"),
        required=False,
        help_text=lazy_text("Windows and Macs can restore files from this folder's snapshots."),
    )
    recycle = forms.BooleanField(
        label=lazy_text("Recycle bin"),
        required=False,
        help_text=lazy_text(
            "What is deleted over the network goes to the hidden folder .recycle, and takes up space until "
            "it is emptied there."
        ),
    )
    hidden = forms.BooleanField(
        label=lazy_text("Hidden"),
        required=False,
        help_text=lazy_text("It is not listed. Users with access who know its name can still open it."),
    )
    mac = forms.BooleanField(
        label=lazy_text("Optimise for Macs"),
        required=False,
        help_text=lazy_text(
            "Keeps what Macs attach to files (tags, colours). Harmless for Windows. It works best if all "
            "shares have the same setting."
        ),
    )
    time_machine = time_machine_field()
    exact_case = forms.BooleanField(
        label=lazy_text("Case-sensitive names"),
        required=False,
        help_text=lazy_text(
            "Photo.jpg and photo.jpg can then both be there. Windows cannot open both; leave it off unless "
            "Linux needs it."
        ),
    )
    encrypt = forms.BooleanField(
        label=lazy_text("Only encrypted connections"),
        required=False,
        help_text=lazy_text("Slower on a small box. Devices from before 2012 cannot connect."),
    )

    def clean_guest(self) -> str:
        """Default guest access to no."""
        return str(self.cleaned_data["guest"] or "no")

    def part(self) -> Smb:
        """The answers of a valid form. Raises Refused where they do not go together."""
        return Smb(**self.answers())


class AfpForm(NamedForm):
    """Under which name older Macs see the folder, and who may use it."""

    time_machine = time_machine_field()

    def part(self) -> Afp:
        """The answers of a valid form. Raises Refused where they do not go together."""
        return Afp(**self.answers())


class NfsForm(forms.Form):
    """Who may mount the folder, and how."""

    hosts = forms.CharField(
        label=lazy_text("Which networks and computers may mount it"),
        widget=forms.Textarea(
            attrs={"rows": 4, "autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}
        ),
        max_length=8000,
        error_messages={"required": lazy_text("Name at least one network or computer, for example 192.168.1.0/24.")},
        help_text=lazy_text("One per line: a network such as 192.168.1.0/24, an address, or a computer's name."),
    )
    write = forms.BooleanField(label=lazy_text("Allow changes"), required=False)
    sync = forms.BooleanField(
        label=lazy_text("Synchronous writes (sync)"),
        required=False,
        help_text=lazy_text("Slower, but safe in a power cut."),
    )
    everybody_as = forms.ChoiceField(
        label=lazy_text("Access as"),
        required=False,
        help_text=lazy_text(
            "NFS asks for no password. As one user: everybody who mounts it may do what that user may. By "
            "number: each user of the other computer needs the same number as here."
        ),
    )
    root = forms.BooleanField(
        label=lazy_text("Allow remote root (no_root_squash)"),
        required=False,
        help_text=lazy_text("Only for computers that you alone use, for backups of whole systems."),
    )

    field_order = ("hosts", "everybody_as")

    def __init__(self, data: object = None, *, initial: Nfs | None, accounts: list[Account], usual: str = "") -> None:
        shown: dict[str, object] = {"write": True, "sync": True, "everybody_as": usual}
        if initial:
            shown = {
                "hosts": "\n".join(initial.hosts),
                "write": initial.write,
                "sync": initial.sync,
                "root": initial.root,
                "everybody_as": initial.everybody_as,
            }
        super().__init__(data, initial=shown)  # type: ignore[arg-type]  # Django takes a QueryDict here
        known = {"", *(one.name for one in accounts)}
        self.gone = str(shown["everybody_as"]) if shown["everybody_as"] not in known else ""
        self.fields["everybody_as"].choices = [  # type: ignore[attr-defined]
            # A value that is not among the choices would have the browser select the first user.
            *([(self.gone, gettext("Choose a user"))] if self.gone else []),
            *(
                (
                    one.name,
                    gettext("Everybody counts as {called} (number {uid})").format(called=one.called, uid=one.uid),
                )
                for one in accounts
            ),
            ("", gettext("Each user by number")),
        ]

    def clean_hosts(self) -> tuple[str, ...]:
        try:
            return nfs_export_rules.check_clients(tuple(re.split(r"[\s,]+", self.cleaned_data["hosts"].strip())))
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal

    def clean_everybody_as(self) -> str:
        """Refuse a user who is no longer on this box."""
        chosen = str(self.cleaned_data["everybody_as"])
        if chosen and chosen == self.gone:
            raise forms.ValidationError(gettext("Choose a user."), code="required")
        return chosen

    def part(self) -> Nfs:
        return Nfs(**self.cleaned_data)
