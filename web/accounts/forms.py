"""The forms of set-up and of preferences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib.auth import password_validation
from django.contrib.auth.models import User
from django.contrib.auth.validators import ASCIIUsernameValidator
from django.utils.translation import get_language, gettext

from appliance.system.time_zone import read_zone_name
from web import language
from web.accounts import first_run
from web.accounts.models import Preferences
from web.box import time_zone_choices
from web.translation import lazy_text

if TYPE_CHECKING:
    PreferencesModelForm = forms.ModelForm[Preferences]
else:
    PreferencesModelForm = forms.ModelForm  # at run time it takes no parameter


class SetUpForm(forms.Form):
    """Code, name and password of the administrator, and the box's language and time zone,
    which start as the browser's."""

    code = forms.CharField(
        label=lazy_text("Set-up code"),
        max_length=40,
        help_text=lazy_text(
            "Ten letters and digits, with or without the dash, shown on the box's screen. On the box itself: "
            "sudo cat /run/larder/inventory/setup-code"
        ),
        widget=forms.TextInput(
            attrs={
                "autocomplete": "one-time-code",
                "autocapitalize": "characters",
                "spellcheck": "false",
                "class": "code",
            }
        ),
    )
    username = forms.CharField(
        label=lazy_text("Your name for signing in"),
        max_length=40,
        initial="admin",
        validators=[ASCIIUsernameValidator()],
        widget=forms.TextInput(attrs={"autocomplete": "username"}),
    )
    password = forms.CharField(
        label=lazy_text("Password"),
        strip=False,
        max_length=200,
        help_text=lazy_text("At least 10 characters. Three or four words are easy to remember."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    again = forms.CharField(
        label=lazy_text("The password once more"),
        strip=False,
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    language = forms.ChoiceField(
        label=lazy_text("Language of this box"),
        choices=settings.LANGUAGES,
        required=False,
        help_text=lazy_text("For mails and the screen of the box. You can change it later on the System page."),
    )
    time_zone = forms.ChoiceField(
        label=lazy_text("Time zone"),
        required=False,
        help_text=lazy_text("For schedules, pages and mails. You can change it later on the System page."),
        widget=forms.Select(attrs={"data-browser-zone": ""}),
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["language"].initial = get_language()
        if not time_zone_choices.can_be_set():
            del self.fields["time_zone"]
            return
        field = self.fields["time_zone"]
        field.initial = read_zone_name()
        field.choices = time_zone_choices.list_choices(field.initial)  # type: ignore[attr-defined]  # a ChoiceField
        if self.is_bound:  # what was chosen stays
            del field.widget.attrs["data-browser-zone"]

    def clean_code(self) -> str:
        code = str(self.cleaned_data["code"])
        if not first_run.code_is_right(code):
            raise forms.ValidationError(
                gettext("That is not the code that the box shows. It changes at every start until set-up is done.")
            )
        return code

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        password, again = data.get("password"), data.get("again")
        if password and again and password != again:
            self.add_error("again", gettext("The two passwords differ."))
        if password:
            try:
                password_validation.validate_password(password, User(username=data.get("username", "")))
            except forms.ValidationError as error:
                self.add_error("password", error)
        return data


class PreferencesForm(PreferencesModelForm):
    """How pages show things to one user."""

    class Meta:
        model = Preferences
        fields = ("language", "units", "show_commands")
        labels = {
            "units": lazy_text("Space for files is shown in"),
            "show_commands": lazy_text("Always show the commands of a plan"),
        }
        help_texts = {"units": lazy_text("Disks are always shown as their labels say, in TB. Mails use TB too.")}
        widgets = {"units": forms.RadioSelect}

    language = forms.ChoiceField(
        label=lazy_text("Language"),
        required=False,
        help_text=lazy_text("Of the pages. Mails are in the language of the box, which is set on the System page."),
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        unchosen = gettext("As my browser is set")
        self.fields["language"].choices = language.choices(unchosen)  # type: ignore[attr-defined]  # a ChoiceField
