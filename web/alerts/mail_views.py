"""Notification settings, and how: the mail server, recipients by severity, quiet hours, a webhook; and a test with the real answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from web.alerts import outbox, smtp_password
from web.alerts.models import MailSettings, Message
from web.forms_common import HOURS
from web.inventory import store
from web.jobs import queue

# Host, port, security; what each provider's help page says for sending mail from a program.
PRESETS: dict[str, tuple[str, int, str, str]] = {
    "gmail": ("smtp.gmail.com", 587, "starttls", "Gmail: use an app password, not that of your account."),
    "icloud": ("smtp.mail.me.com", 587, "starttls", "iCloud: use an app-specific password."),
    "outlook": ("smtp-mail.outlook.com", 587, "starttls", "Outlook.com"),
    "fastmail": ("smtp.fastmail.com", 465, "tls", "Fastmail: use an app password."),
    "gmx": ("mail.gmx.net", 587, "starttls", "GMX: allow POP3 and IMAP in its settings first."),
    "own": ("", 587, "starttls", "Another server"),
}
SECURITY = (("starttls", "STARTTLS"), ("tls", "TLS"), ("none", "None (no sign-in then)"))


if TYPE_CHECKING:
    SettingsForm = forms.ModelForm[MailSettings]
else:
    SettingsForm = forms.ModelForm  # at run time it takes no parameter


class MailForm(SettingsForm):
    field_order = ("preset", "host", "port", "security", "user", "password", "forget")
    preset = forms.ChoiceField(label="Provider", choices=[(key, found[3]) for key, found in PRESETS.items()], initial="own", required=False)  # fmt: skip
    host = forms.RegexField(r"^[A-Za-z0-9.:_-]+$", label="Mail server", required=False, max_length=255, help_text="Empty: no mail is sent. A provider chosen above fills it in.", error_messages={"invalid": "That is not the name of a server."})  # fmt: skip
    password = forms.CharField(label="Password", required=False, strip=False, max_length=500, widget=forms.PasswordInput(attrs={"autocomplete": "off"}), help_text="Leave it empty to keep the stored one. It is in a file that only Larder can read.")  # fmt: skip
    forget = forms.BooleanField(label="Remove the stored password", required=False)
    security = forms.ChoiceField(label="Encryption", choices=SECURITY, help_text="As the server wants it: STARTTLS goes with port 587, TLS with 465.")  # fmt: skip
    port = forms.IntegerField(label="Port", min_value=1, max_value=65535, error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), "A port is a number from 1 to 65535."))  # fmt: skip

    class Meta:
        model = MailSettings
        fields = (
            "host", "port", "security", "user", "sender", "critical", "warning", "notice", "quiet_from", "quiet_to",
            "digest_hour", "weekly", "address", "webhook", "webhook_private",
        )  # fmt: skip
        labels = {
            "user": "User name", "sender": "Sender’s address", "critical": "Recipients of critical alerts",
            "warning": "Recipients of warnings", "notice": "Recipients of notices", "quiet_from": "Quiet from",
            "quiet_to": "Quiet until", "digest_hour": "Daily summary at",
            "weekly": "A report each Monday, even when all is well", "address": "Address of this box, for links",
            "webhook": "Webhook", "webhook_private": "Allow webhooks in my own network",
        }  # fmt: skip
        help_texts = {
            "critical": "One address per line. Sent at once, at any hour.",
            "quiet_to": "The same hour twice means no quiet hours. Critical alerts are always sent.",
            "weekly": "It goes to the recipients of notices. If it does not arrive, mail does not work.",
            "address": "For example https://larder.local",
            "webhook": "An address that passes messages on, to a phone for example. Larder posts the text there as ntfy does: https://ntfy.sh/your-topic",
        }
        widgets = {
            **{name: forms.Textarea(attrs={"rows": 2}) for name in ("critical", "warning", "notice")},
            **{name: forms.Select(choices=HOURS) for name in ("quiet_from", "quiet_to", "digest_hour")},
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if not smtp_password.has_password():
            del self.fields["forget"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if data.get("forget") and data.get("password"):
            self.add_error("forget", "Either type a new password or remove the stored one.")
        if (preset := PRESETS.get(str(data.get("preset")))) and preset[0]:
            data["host"], data["port"], data["security"] = preset[:3]
        for name in ("user", "sender", "address", "webhook"):
            if any(not letter.isprintable() for letter in str(data.get(name, ""))):
                self.add_error(name, "This contains an invisible character. Type it by hand.")
        for name in ("critical", "warning", "notice"):
            for line in filter(None, (line.strip() for line in str(data.get(name, "")).splitlines())):
                self.check_address(name, line)
        for name in ("quiet_from", "quiet_to", "digest_hour"):
            if not 0 <= (data.get(name) or 0) <= 23:
                self.add_error(name, "Choose an hour.")
        if data.get("host"):
            self.check_address("sender", str(data.get("sender") or data.get("user") or ""))
            if data.get("user") and data.get("security") == "none":
                self.add_error("security", "A password is not sent over an unencrypted connection.")
        for name in ("webhook", "address"):
            if data.get(name):
                self.check_link(name, str(data[name]))
        # As loaded from the row: the form's own changes are not in the instance before it is valid.
        if data.get("user") and not data.get("password") and not data.get("forget") and smtp_password.has_password() and data.get("host") != self.initial.get("host"):  # fmt: skip
            self.add_error("password", "Type it again: the stored one belongs to another server.")
        return data

    def check_link(self, name: str, text: str) -> None:
        try:
            parts = urlsplit(text)
            _port = parts.port
        except ValueError:
            return self.add_error(name, "That is not an address.")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            self.add_error(name, "Start with https:// or http://, then the name of a computer.")
        elif parts.username is not None or parts.password is not None:
            self.add_error(name, "The address must not contain a name and password.")
        return None

    def check_address(self, name: str, text: str) -> None:
        try:
            validate_email(text)
        except ValidationError:
            self.add_error(name, f"“{text[:80]}” is not a mail address." if text else "Enter an address.")


@require_http_methods(["GET", "POST"])
def mail_settings(request: HttpRequest) -> HttpResponse:
    """The notification settings, as a form."""
    form = MailForm(request.POST or None, instance=MailSettings.load_row())
    if request.method == "POST" and form.is_valid():
        row = form.save(commit=False)
        row.pk = 1
        row.save()
        if form.cleaned_data["password"]:
            smtp_password.store_password(form.cleaned_data["password"])
        elif form.cleaned_data.get("forget"):
            smtp_password.store_password("")
        messages.success(request, "Saved. Send a test to see whether it works.")
        return redirect("mail_settings")
    tests = {row.way: row for row in Message.objects.filter(event="test")}
    context = {
        "form": form,
        "password_known": smtp_password.has_password(),
        "tests": tests.values(),
        "mail": MailSettings.load_row(),
    }
    return render(request, "alerts/mail.html", context, status=400 if form.is_bound else 200)


@require_POST
def send_test(request: HttpRequest) -> HttpResponse:
    """Queue a test message; the page then shows the server's answer."""
    way = "webhook" if request.POST.get("way") == "webhook" else "mail"
    outbox.queue_test(way, timezone.now())
    store.touch("alerts")
    queue.send("workers.deliver")
    return redirect("mail_settings")
