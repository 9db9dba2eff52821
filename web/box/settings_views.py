"""The settings of the box itself: a form for each, whose answers lead to the review of the change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from appliance.errors import Reason, Refused
from appliance.operation import Operation
from appliance.schedule import box_zone
from appliance.system.box_info import BoxInfo
from appliance.system.service_start import refuse_container
from appliance.system.set_host_name import SetHostName
from appliance.system.time_servers import SetTimeServers
from appliance.system.time_zone import SetTimeZone
from web.alerts.models import MailSettings
from web.box import time_zone_choices
from web.box.views import describe_clients
from web.inventory.models import BoxRow
from web.jobs import confirm
from web.jobs.refusals import add_reasons, refusals_lead_to
from web.translation import lazy_text

Setting = TypeVar("Setting", bound=Operation)


def read_box() -> BoxInfo:
    """What is known of the box. Raises Refused before it was read, and in a container, where
    nothing of it can be set."""
    row = BoxRow.objects.first()
    if row is None:
        raise Refused(Reason("box-not-read", "Larder is still reading this box. Try again in a few seconds."))
    info: BoxInfo = row.fact
    if not info.has_systemd:
        refuse_container()
    return info


class TimeZoneForm(forms.Form):
    """The zones by region, each under the name of its place."""

    zone = forms.ChoiceField(
        label=lazy_text("Time zone"),
        help_text=lazy_text("Choose the region and a place that has the same time as the box."),
        error_messages={
            "required": lazy_text("Choose a time zone."),
            "invalid_choice": lazy_text("Choose a time zone from the list."),
        },
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        choices = time_zone_choices.list_choices(self.initial.get("zone"))
        self.fields["zone"].choices = choices  # type: ignore[attr-defined]  # a ChoiceField


class HostNameForm(forms.Form):
    """The new name. What a name may be is the operation's to say."""

    name = forms.CharField(
        label=lazy_text("Host name"),
        max_length=100,
        help_text=lazy_text("At most 15 characters: letters, digits and hyphens. For example attic-nas."),
        error_messages={"required": lazy_text("Type a name, for example attic-nas.")},
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )

    def clean_name(self) -> str:
        """Upper and lower case are the same in names of computers."""
        return str(self.cleaned_data["name"]).lower()


@require_GET
@refusals_lead_to("box")
def set_host_name(request: HttpRequest) -> HttpResponse:
    """The form with the name that the box has; with an answer, the review of the change."""
    former = read_box().host_name
    form = HostNameForm(request.GET or None, initial={"name": former})
    return show_or_review(
        request,
        form,
        "box/host_name.html",
        lambda name: SetHostName(name=name, former=former),
        lambda _operation: f"{describe_clients()} {describe_links(former)}".strip(),
    )


def describe_links(former: str) -> str:
    """A sentence where links in mails lead to the former name; otherwise empty."""
    address = MailSettings.load_row().address
    host = (urlsplit(address).hostname or "").partition(".")[0]
    if host != former.partition(".")[0].lower():
        return ""
    return gettext("Links in mails lead to {address}. Change that address under Notifications afterwards.").format(
        address=address
    )


class TimeServersForm(forms.Form):
    """One server a line; none for those of Debian."""

    servers = forms.CharField(
        label=lazy_text("Time servers"),
        required=False,
        max_length=2500,
        help_text=lazy_text(
            "One name or address per line, for example fritz.box: many routers know the time. "
            "Leave it empty for Debian's servers on the internet."
        ),
        widget=forms.Textarea(
            attrs={"rows": 4, "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )

    def clean_servers(self) -> tuple[str, ...]:
        """By lines, as it is asked, and by commas and spaces, as people type it all the same."""
        return tuple(self.cleaned_data["servers"].replace(",", " ").split())


@require_GET
@refusals_lead_to("box")
def set_time_servers(request: HttpRequest) -> HttpResponse:
    """The form with the servers that are set; with an answer, the review of the change."""
    sync = read_box().time_sync
    initial = {"servers": "\n".join(sync.servers) if sync else ""}
    form = TimeServersForm(request.GET if "servers" in request.GET else None, initial=initial)
    return show_or_review(request, form, "box/time_servers.html", SetTimeServers, lambda _operation: "")


@require_GET
@refusals_lead_to("box")
def set_time_zone(request: HttpRequest) -> HttpResponse:
    """The form with the zone that is set; with an answer, the review of the change."""
    form = TimeZoneForm(request.GET or None, initial={"zone": read_box().time_zone})
    return show_or_review(request, form, "box/time_zone.html", SetTimeZone, compare_times)


def compare_times(operation: SetTimeZone) -> str:
    """What time it is now in the zone that is set and in the other."""
    now, zone = timezone.now(), ZoneInfo(operation.zone)
    here = f"{now.astimezone(box_zone()):%H:%M (%Z)}"
    return gettext("It is now {here} on this box, and {zone:%H:%M (%Z)} in {zone_2}.").format(
        here=here, zone=now.astimezone(zone), zone_2=operation.zone
    )


def show_or_review(
    request: HttpRequest,
    form: forms.Form,
    template: str,
    kind: Callable[..., Setting],
    notice: Callable[[Setting], str],
) -> HttpResponse:
    """The form, or the review of the operation that its answers make."""
    if form.is_bound and form.is_valid():
        try:
            operation = kind(**form.cleaned_data)
            return confirm.review(request, operation, back=reverse("box"), notice=notice(operation))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {"form": form, "now": timezone.localtime()}
    return render(request, template, context, status=400 if form.is_bound else 200)
