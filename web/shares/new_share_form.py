"""The form that shares a folder: which, with whom, from which computers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from django import forms

from appliance import names
from appliance.datasets.access_note import AccessNote, valid_note
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.files.posix_acl import Level
from appliance.shares import nfs_export_rules
from appliance.shares.settings import Afp, Nfs, Smb
from appliance.snapshots.policy import USUAL, Policy, policy_of
from appliance.users import new_passwords
from appliance.users.share_folder import ShareFolder
from web.jobs.refusals import validation_error
from web.shares.switches import share_name
from web.shares.user_levels import UserLine, parse_level, split_levels
from web.translation import lazy_format, lazy_text


class NewShareForm(forms.Form):
    """Share a folder. ``existing``: a folder that is there already; without it a new one is made in ``pool``.

    ``people`` and ``new_users`` only carry errors: their rows are read from the data as they are.
    """

    pool = forms.ChoiceField(label=lazy_text("Pool"))
    name = forms.CharField(
        label=lazy_text("Name of the folder"),
        max_length=120,
        strip=False,
        help_text=lazy_text("For example photos. Other computers see the share under this name."),
        error_messages={"required": lazy_text("Give the folder a name, for example photos.")},
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )
    people = forms.CharField(label=lazy_text("Who may use it"), required=False)
    new_users = forms.CharField(label=lazy_text("New user"), required=False)
    smb = forms.BooleanField(
        label=lazy_text("Windows and Mac (SMB)"),
        required=False,
        help_text=lazy_text("Also phones and Linux. Users sign in with a password."),
    )
    nfs = forms.BooleanField(
        label=lazy_text("Linux and media players (NFS)"),
        required=False,
        help_text=lazy_text(
            "Asks for no password: every computer in the network below may use the folder as the first user above."
        ),
    )
    hosts = forms.CharField(
        label=lazy_text("Network for NFS"),
        required=False,
        max_length=8000,
        help_text=lazy_text("For example 192.168.1.0/24, or the address of one computer. Only used with NFS."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )
    afp = forms.BooleanField(
        label=lazy_text("Older Macs (AFP)"),
        required=False,
        help_text=lazy_text("Only for Macs with OS X older than 10.9, from 2013."),
    )
    snapshots = forms.BooleanField(
        label=lazy_text("Automatic snapshots"),
        required=False,
        help_text=lazy_format(
            "Keeps earlier versions of files: {kept}. They use space only for what changed.", kept=USUAL.sentence
        ),
    )

    def __init__(
        self,
        data: Mapping[str, str] | None,
        *,
        facts: Facts,
        pools: list[str],
        answers: Mapping[str, str],
        existing: Dataset | None = None,
        network: str = "",
    ) -> None:
        self.facts, self.existing, self.answers = facts, existing, answers
        self.note = (valid_note(existing, facts) if existing else None) or AccessNote(guid=0)
        filled = "filled" in answers
        initial: dict[str, object] = {name: answers.get(name, "") for name in ("pool", "name")}
        initial |= {name: name in answers if filled else usual for name, usual in USUAL_WAYS.items()}
        initial["hosts"] = answers.get("hosts", network)
        super().__init__(data, initial=initial)
        self.fields["pool"].choices = [(name, name) for name in pools]  # type: ignore[attr-defined]
        if existing:
            del self.fields["pool"], self.fields["name"]
        elif len(pools) == 1:
            self.fields["pool"].widget = forms.HiddenInput()
            self.initial["pool"] = pools[0]
        if self.policy_above:
            del self.fields["snapshots"]

    @property
    def policy_above(self) -> Policy | None:
        """The snapshot schedule that an existing folder has already."""
        return policy_of(self.existing) if self.existing else None

    def lines(self) -> list[UserLine]:
        """A row for each user of this box."""
        return [
            UserLine(
                field, user.called, user.name if user.display else "", self.answers.get(field) or self.usual(user.name)
            )
            for user in self.facts.accounts
            for field in [f"user-{user.name}"]
        ]

    def usual(self, user: str) -> Level:
        """What is proposed for a user: everyone may change a new folder; an existing one stays as it was set."""
        return self.note.level_of(user, self.facts) if self.note.guid else "change"

    def new_lines(self) -> list[UserLine]:
        """The rows for new users: those that were asked for, and one at the start where there is no user yet."""
        asked = self.answers.get("more") or self.answers.get("rows") or ""
        count = int(asked) if re.fullmatch("[0-9]", asked) else 0
        at_least = 0 if self.facts.accounts else 1
        return [
            UserLine(f"new-{at}", self.answers.get(f"new-{at}", ""), "", self.answers.get(f"new-{at}-may", "change"))
            for at in range(min(max(count, at_least), new_passwords.MOST))
        ]

    @property
    def more(self) -> int:
        """The number of rows for new users after one more was asked for; 0 where there cannot be more."""
        count = len(self.new_lines()) + 1
        return count if count <= new_passwords.MOST else 0

    def clean_name(self) -> str:
        try:
            return names.check_folder_name(self.cleaned_data["name"])
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal

    def chosen_levels(self) -> dict[str, Level]:
        """The level of each user, those of this box first. Raises Refused where a row has none."""
        found: dict[str, Level] = {}
        rows = [(line.field.removeprefix("user-"), line.value) for line in self.lines()]
        rows += [(names.check_user_name(name, field="new_users"), level) for name, level in self.new_users_rows()]
        for name, value in rows:
            found[name] = parse_level(value)
        return found

    def new_users_rows(self) -> list[tuple[str, str]]:
        """Name and level of each new user that was named."""
        return [(name, line.value) for line in self.new_lines() if (name := line.who.strip())]

    def operation(self) -> ShareFolder:
        """What a valid form asks for. Raises Refused where its answers do not go together."""
        answers, levels = self.cleaned_data, self.chosen_levels()
        dataset = self.existing.name if self.existing else f"{answers['pool']}/{answers['name']}"
        write, read = split_levels(levels)
        if not (*write, *read):
            raise Refused(
                Reason("share-without-users", "Choose at least one user who may use the folder.", field="people")
            )
        new = tuple(name for name, _level in self.new_users_rows())
        known = {name: level for name, level in levels.items() if name not in new}
        is_set = bool(self.note.guid) and self.note.done
        unchanged = is_set and not new and all(self.note.level_of(who, self.facts) == known[who] for who in known)
        keeps = bool(self.note.guid)  # a user's own "none" matters only where groups or everybody have more
        name = share_name(dataset)
        return ShareFolder(
            dataset=dataset,
            guid=self.existing.guid if self.existing else 0,
            new_users=new,
            everybody=self.note.everybody,
            people={} if unchanged else {who: level for who, level in levels.items() if keeps or level != "none"},
            groups=self.note.groups,
            smb=Smb(name=name, write=write, read=read) if answers["smb"] else None,
            nfs=self.nfs_part(write, read) if answers["nfs"] else None,
            afp=Afp(name=name, write=write, read=read) if answers["afp"] else None,
            policy=USUAL if answers.get("snapshots") else None,
        )

    def nfs_part(self, write: tuple[str, ...], read: tuple[str, ...]) -> Nfs:
        """NFS as the first user who may change the folder; only for reading where nobody may."""
        hosts = tuple(re.split(r"[\s,]+", self.cleaned_data["hosts"].strip(), flags=re.ASCII))
        return Nfs(hosts=nfs_export_rules.check_clients(hosts), write=bool(write), everybody_as=(*write, *read)[0])


USUAL_WAYS = {"smb": True, "nfs": False, "afp": False, "snapshots": True}


def network_of(address: str) -> str:
    """The home network of a computer: the /24 of a private IPv4 address; empty where it has none."""
    try:
        found = ipaddress.IPv4Address(address)
    except ValueError:
        return ""
    if not found.is_private or found.is_loopback:
        return ""
    return str(ipaddress.IPv4Network((found, 24), strict=False))
