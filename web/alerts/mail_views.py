"""The page of notifications: its settings, and a test whose result appears on the page."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from web import live
from web.alerts import outbox, smtp_password
from web.alerts.mail_form import MailForm
from web.alerts.mail_providers import PROVIDERS
from web.alerts.models import MailSettings, Message
from web.inventory import store
from web.jobs import queue

PAGE = "alerts/mail.html"
UNDER_WAY = (Message.State.WAITING, Message.State.SENDING)
# What a test of each way shows to work.
DELIVERY = {
    "mail": ("host", "port", "security", "authority", "user", "sender", "critical", "warning", "notice"),
    "webhook": ("webhook", "webhook_private"),
}


@require_http_methods(["GET", "POST"])
def mail_settings(request: HttpRequest) -> HttpResponse:
    """The notification settings as a form; its part for a chosen provider; the result of the last test."""
    row = MailSettings.load_row()
    if request.method == "GET":
        form = MailForm(instance=row, initial=usual_values(request, row))
        if request.GET.get("part") == "provider":
            return render(request, f"{PAGE}#provider", {"form": form})
        return live.respond(request, PAGE, lambda: page_context(form, last_tests()))
    form = MailForm(request.POST, instance=row)
    if not form.is_valid():
        return live.respond_to_form(request, PAGE, page_context(form, []))
    save_settings(form)
    if "test" in request.POST:
        queue_tests(row.ways)
    else:
        messages.success(request, gettext("Saved."))
    return redirect("mail_settings")


def page_context(form: MailForm, tests: list[Message]) -> dict[str, Any]:
    under_way = any(test.state in UNDER_WAY for test in tests)
    return {"form": form, "tests": tests, "providers": PROVIDERS.values(), "live_ended": not under_way}


def usual_values(request: HttpRequest, row: MailSettings) -> dict[str, Any]:
    """Initial values beyond the stored ones: a provider that was just chosen, and this box's address."""
    values: dict[str, Any] = {} if row.address else {"address": f"{request.scheme}://{request.get_host()}"}
    preset = request.GET.get("preset", "")
    if (chosen := PROVIDERS.get(preset)) and (not row.host or chosen.host != row.host):
        values |= {"preset": preset, "host": chosen.host, "port": chosen.port, "security": chosen.security}
    return values


def save_settings(form: MailForm) -> None:
    """Store the settings, and forget the tests of each way that they change: those said nothing of it as it is now.
    What waits for a way that is removed is forgotten too."""
    before = MailSettings.load_row()
    row = form.save(commit=False)
    row.pk = 1
    row.save()
    changed = {
        way for way, fields in DELIVERY.items() if any(getattr(row, one) != getattr(before, one) for one in fields)
    }
    if form.cleaned_data["password"]:
        smtp_password.store_password(form.cleaned_data["password"])
        changed.add("mail")
    elif form.cleaned_data.get("forget"):
        smtp_password.store_password("")
        changed.add("mail")
    outbox.forget_tests(changed)
    outbox.forget_unsent(DELIVERY.keys() - set(row.ways))


def last_tests() -> list[Message]:
    """The last test of each way."""
    return list({row.way: row for row in Message.objects.filter(event="test")}.values())


def queue_tests(ways: list[str]) -> None:
    for way in ways:
        outbox.queue_test(way, timezone.now())
    store.touch("alerts")
    queue.send("workers.deliver")


@require_POST
def send_test(request: HttpRequest) -> HttpResponse:
    """Send another test with the stored settings; the page then shows the server's answer."""
    queue_tests(["webhook" if request.POST.get("way") == "webhook" else "mail"])
    return redirect("mail_settings")
