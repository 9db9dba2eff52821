"""The form of notifications: provider, recipient, user name and password; the rest has usual values."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.forms.boundfield import BoundField
from django.utils.translation import gettext

from appliance.errors import Reason
from web.alerts import smtp_password
from web.alerts.mail_providers import PROVIDERS, Provider, provider_of
from web.alerts.models import MailSettings
from web.forms_common import HOURS
from web.jobs.refusals import add_reasons
from web.translation import lazy_text

SECURITY = (("starttls", "STARTTLS"), ("tls", "TLS"), ("none", lazy_text("None (then without sign-in)")))
CHOICES = [("", lazy_text("None: no mail is sent")), *((key, provider.label) for key, provider in PROVIDERS.items())]
RECIPIENTS = ("critical", "warning", "notice")
FIRST = ("preset", "critical", "user", "password")
SERVER = ("host", "port", "security", "sender", "authority")
FOLLOWS = {"warning": "critical", "notice": "critical", "sender": "user"}  # until it is changed

NOTHING_TO_TEST = Reason(
    "nothing-to-test", "Choose a mail provider, or enter a webhook under “More settings”.", field="preset"
)

if TYPE_CHECKING:
    SettingsForm = forms.ModelForm[MailSettings]
else:
    SettingsForm = forms.ModelForm  # at run time it takes no parameter


class MailForm(SettingsForm):
    preset = forms.ChoiceField(label=lazy_text("Mail provider"), choices=CHOICES, required=False)
    host = forms.RegexField(
        r"^[A-Za-z0-9.:_-]+$",
        label=lazy_text("Mail server"),
        required=False,
        max_length=255,
        help_text=lazy_text("Without one, no mail is sent."),
        error_messages={"invalid": lazy_text("That is not the name of a server.")},
    )
    password = forms.CharField(
        label=lazy_text("App password"),
        required=False,
        strip=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    forget = forms.BooleanField(label=lazy_text("Remove the stored password"), required=False)
    security = forms.ChoiceField(
        label=lazy_text("Encryption"),
        choices=SECURITY,
        help_text=lazy_text("STARTTLS goes with port 587, TLS with port 465."),
    )
    port = forms.IntegerField(
        label=lazy_text("Port"),
        min_value=1,
        max_value=65535,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"), lazy_text("A port is a number from 1 to 65535.")
        ),
    )

    class Meta:
        model = MailSettings
        fields = (
            "critical",
            "user",
            "host",
            "port",
            "security",
            "sender",
            "authority",
            "warning",
            "notice",
            "quiet_from",
            "quiet_to",
            "digest_hour",
            "weekly",
            "address",
            "webhook",
            "webhook_private",
        )
        labels = {
            "critical": lazy_text("Send to"),
            "user": lazy_text("User name"),
            "sender": lazy_text("Sender’s address"),
            "authority": lazy_text("Trusted certificate"),
            "warning": lazy_text("Recipients of warnings"),
            "notice": lazy_text("Recipients of notices"),
            "quiet_from": lazy_text("Quiet from"),
            "quiet_to": lazy_text("Quiet until"),
            "digest_hour": lazy_text("Daily summary at"),
            "weekly": lazy_text("A report each Monday, even when all is well"),
            "address": lazy_text("Address of this box, for links"),
            "webhook": lazy_text("Webhook"),
            "webhook_private": lazy_text("Allow webhooks in my own network"),
        }
        help_texts = {
            "critical": lazy_text("Alerts are sent to this mail address. Separate several with commas."),
            "user": lazy_text("Usually the mail address of the mailbox that sends."),
            "sender": lazy_text("The same as the user name until you change it."),
            "authority": lazy_text(
                "Only for your own server, or for Proton Mail Bridge: its certificate, or that of its authority."
            ),
            "warning": lazy_text("One address per line. The same as above until you change it."),
            "notice": lazy_text(
                "One address per line. The same as above until you change it. Notices come once a day."
            ),
            "quiet_to": lazy_text("The same hour twice means no quiet hours. Critical alerts are always sent."),
            "weekly": lazy_text("It goes to the recipients of notices. If it does not arrive, mail does not work."),
            "address": lazy_text("Mails link to the pages of the box with it."),
            "webhook": lazy_text(
                "An address that passes messages on, to a phone for example. "
                "Larder posts the text there as ntfy does: https://ntfy.sh/your-topic"
            ),
        }
        widgets = {
            **{
                name: forms.Textarea(attrs={"rows": rows})
                for name, rows in (("warning", 2), ("notice", 2), ("authority", 3))
            },
            "critical": forms.TextInput(attrs={"inputmode": "email", "autocomplete": "email"}),
            **{name: forms.Select(choices=HOURS) for name in ("quiet_from", "quiet_to", "digest_hour")},
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.initial["critical"] = ", ".join(self.instance.critical.splitlines())
        self.initial["preset"] = self.initial.get("preset") or provider_of(self.instance.host)
        stored = smtp_password.has_password()
        self.fields["password"].help_text = (
            gettext("A password is stored in a file that only Larder can read. Leave this empty if it has not changed.")
            if stored
            else gettext("Or the mailbox’s own password, where the provider accepts it.")
        )
        if not stored:
            del self.fields["forget"]

    @property
    def provider(self) -> Provider | None:
        """The provider that is chosen now."""
        return PROVIDERS.get(str(self["preset"].value() or ""))

    @property
    def server_fields(self) -> list[BoundField]:
        return [self[name] for name in SERVER]

    @property
    def more_fields(self) -> list[BoundField]:
        return [field for field in self if field.name not in FIRST + SERVER]

    @property
    def server_open(self) -> bool:
        """Whether the fields of the server have to be seen: an own server, or an error in them."""
        own = bool(self.provider and not self.provider.host) or self["preset"].value() == "proton"
        return own or any(field.errors for field in self.server_fields)

    @property
    def more_open(self) -> bool:
        return any(field.errors for field in self.more_fields)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if data.get("forget") and data.get("password"):
            self.add_error("forget", gettext("Either type a new password or remove the stored one."))
        for name in RECIPIENTS:
            data[name] = "\n".join(filter(None, re.split(r"[\s,;]+", str(data.get(name) or ""))))
        self.fill_in(data)
        add_reasons(self, self.reasons_against(data))
        if "test" in self.data and not data.get("host") and not data.get("webhook") and not self.errors:
            add_reasons(self, [NOTHING_TO_TEST])
        return data

    def reasons_against(self, data: dict[str, Any]) -> Iterator[Reason]:
        """What is wrong with the answers beyond the form of each one."""
        for name in ("user", "sender", "address", "webhook"):
            if any(not letter.isprintable() for letter in str(data.get(name, ""))):
                yield Reason(
                    "invisible-characters",
                    "This contains a line break or another invisible character. Type it again by hand.",
                    field=name,
                )
        for name in RECIPIENTS:
            for address in str(data[name]).splitlines():
                yield from reasons_against_address(name, address)
        for name in ("quiet_from", "quiet_to", "digest_hour"):
            if not 0 <= (data.get(name) or 0) <= 23:
                yield Reason("hour-not-chosen", "Choose an hour.", field=name)
        if data.get("host"):
            yield from self.reasons_against_mail(data)
        elif data.get("preset") and (data.get("user") or data.get("password")):
            yield Reason("mail-server-missing", "Enter the name of the mail server.", field="host")
        for name in ("webhook", "address"):
            if data.get(name):
                yield from reasons_against_link(name, str(data[name]))

    def fill_in(self, data: dict[str, Any]) -> None:
        """Fill in the server of the chosen provider, and what follows another field until it is changed."""
        provider = PROVIDERS.get(str(data.get("preset")))
        untouched = not data.get("host") or data["host"] == self.initial.get("host")
        if "preset" in self.data and not data.get("preset") and untouched:
            data["host"] = ""
        if provider and provider.host and untouched and data.get("host") != provider.host:
            data["host"], data["port"], data["security"] = provider.host, provider.port, provider.security
        for name, leader in FOLLOWS.items():
            before, now = getattr(self.instance, name), str(data.get(leader) or "")
            if data.get(name) == before == getattr(self.instance, leader) and (name != "sender" or "@" in now):
                data[name] = now

    def reasons_against_mail(self, data: dict[str, Any]) -> Iterator[Reason]:
        """What sending mail needs beyond each field alone."""
        if not data.get("critical") and "critical" not in self.errors:
            yield Reason("mail-recipient-missing", "Enter the mail address that alerts are sent to.", field="critical")
        yield from reasons_against_address("sender", str(data.get("sender") or data.get("user") or ""))
        if data.get("user") and data.get("security") == "none":
            yield Reason(
                "mail-password-unencrypted", "A password is not sent over an unencrypted connection.", field="security"
            )
        if (
            data.get("user")
            and not data.get("password")
            and not data.get("forget")
            and smtp_password.has_password()
            and data["host"] != self.initial.get("host")
        ):
            yield Reason(
                "mail-password-other-server",
                "Type it again: the stored one belongs to another server.",
                field="password",
            )
        if data.get("authority"):
            yield from reasons_against_certificate(str(data["authority"]))


def reasons_against_certificate(text: str) -> Iterator[Reason]:
    """Why this text cannot be the certificate that is trusted."""
    if "PRIVATE KEY" in text:
        yield Reason(
            "certificate-private", "This contains a private key. Paste only the certificate.", field="authority"
        )
        return
    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        yield Reason(
            "certificate-invalid",
            "That is not a certificate. Paste all of it, from -----BEGIN CERTIFICATE----- on.",
            field="authority",
        )


def reasons_against_link(name: str, text: str) -> Iterator[Reason]:
    """Why the answer of this field cannot be the address of a web page or service."""
    try:
        parts = urlsplit(text)
        _port = parts.port
    except ValueError:
        yield Reason("link-malformed", "That is not an address.", field=name)
        return
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        yield Reason("link-not-web", "Start with https:// or http://, then the name of a computer.", field=name)
    elif parts.username is not None or parts.password is not None:
        yield Reason("link-with-password", "The address must not contain a name and password.", field=name)


def reasons_against_address(name: str, text: str) -> Iterator[Reason]:
    """Why the answer of this field cannot be a mail address."""
    if not text:
        yield Reason("mail-address-missing", "Enter an address.", field=name)
        return
    try:
        validate_email(text)
    except ValidationError:
        yield Reason("mail-address-invalid", "“{address}” is not a mail address.", field=name, address=text[:80])
