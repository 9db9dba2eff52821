"""Forms for users and groups."""

from __future__ import annotations

from collections.abc import Callable

from django import forms
from django.utils.translation import gettext

from appliance import names
from appliance.errors import Refused
from web.jobs.refusals import validation_error
from web.translation import lazy_text

PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}


def clean_with(grammar: Callable[[str], str], text: str) -> str:
    """Validate with a function of ``names``: its refusal becomes the errors of the field."""
    try:
        return grammar(text)
    except Refused as refusal:
        raise validation_error(refusal.reasons) from refusal


def display_field() -> forms.CharField:
    return forms.CharField(
        label=gettext("Display name"),
        max_length=names.LONGEST_DISPLAY,
        required=False,
        help_text=gettext("Pages show it, for example Anna from next door."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class UserForm(forms.Form):
    """A new user; the review page asks for the password."""

    name = forms.CharField(
        label=lazy_text("Name"),
        max_length=60,
        strip=False,
        error_messages={"required": lazy_text("Give the user a name, for example anna.")},
        help_text=lazy_text("Lowercase letters, for example anna. It is typed on the other computer."),
        widget=forms.TextInput(attrs=PLAIN),
    )
    display = display_field()
    home = forms.ChoiceField(
        label=lazy_text("Home folder"),
        required=False,
        help_text=lazy_text("Nobody else may enter it. It is created below the folder you choose."),
    )

    def __init__(self, data: object = None, *, parents: list[str]) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # Django takes a QueryDict here
        choices = [("", gettext("None")), *((name, gettext("Below {name}").format(name=name)) for name in parents)]
        self.fields["home"].choices = choices  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        return clean_with(names.check_user_name, self.cleaned_data["name"])

    def clean_display(self) -> str:
        return clean_with(names.check_display_name, self.cleaned_data["display"])


class DisplayForm(forms.Form):
    """A new display name."""

    display = display_field()

    def clean_display(self) -> str:
        return clean_with(names.check_display_name, self.cleaned_data["display"])


class HeirForm(forms.Form):
    """Who gets the files of a removed user."""

    heir = forms.ChoiceField(label=lazy_text("Their files"), required=False)

    def __init__(self, data: object = None, *, others: list[tuple[str, str]]) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # Django takes a QueryDict here
        choices = [
            ("", gettext("Stay where they are and belong to nobody")),
            *((name, gettext("Go to {called}").format(called=called)) for name, called in others),
        ]
        self.fields["heir"].choices = choices  # type: ignore[attr-defined]


class MembersForm(forms.Form):
    """The members of a group."""

    members = forms.MultipleChoiceField(
        label=lazy_text("Members"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"invalid_choice": lazy_text("There is no user %(value)s any more.")},
    )

    def __init__(
        self, data: object = None, *, people: list[tuple[str, str]], initial: dict[str, object] | None = None
    ) -> None:
        super().__init__(data, initial=initial)  # type: ignore[arg-type]  # Django takes a QueryDict here
        self.fields["members"].choices = people  # type: ignore[attr-defined]


class GroupForm(MembersForm):
    """A new group."""

    name = forms.CharField(
        label=lazy_text("Name"),
        max_length=60,
        strip=False,
        error_messages={"required": lazy_text("Give the group a name, for example family.")},
        help_text=lazy_text("Lowercase letters, for example family."),
        widget=forms.TextInput(attrs=PLAIN),
    )
    field_order = ("name", "members")

    def clean_name(self) -> str:
        return clean_with(names.check_group_name, self.cleaned_data["name"])
