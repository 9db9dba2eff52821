"""Pages of alerts: the list, and one alert with its history and actions."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.db import transaction
from django.db.models import Case, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from appliance.alerts.alert_kind import SEVERITIES
from appliance.alerts.kinds import KINDS
from appliance.message import Message, join_messages
from web import live
from web.alerts import failing_disk_guide, pool_usage, reconcile
from web.alerts.models import Alert, MailSettings
from web.alerts.models import Message as Letter
from web.forms_common import not_possible
from web.inventory import store
from web.inventory.fact_row import look_up_or_none, readable_facts
from web.inventory.models import PoolRow
from web.translation import lazy_text, text_of

SILENCES = {
    "day": (timedelta(days=1), Message("Silenced for a day")),
    "week": (timedelta(days=7), Message("Silenced for a week")),
    "month": (timedelta(days=30), Message("Silenced for a month")),
}
TOLD = {
    ("mail", False): lazy_text("Mail about it"),
    ("mail", True): lazy_text("Mail that it is over"),
    ("webhook", False): lazy_text("Webhook about it"),
    ("webhook", True): lazy_text("Webhook that it is over"),
}
A_PAGE = 50
PAGES = {"open": Alert.State.OPEN, "acknowledged": Alert.State.ACKNOWLEDGED, "page": Alert.State.CLEARED}
WORST_FIRST = Case(*(When(severity=one, then=at) for at, one in enumerate(SEVERITIES)), default=len(SEVERITIES))
AT_ONCE = 20  # lines of a time line that are seen without asking for more


@require_GET
def alert_list(request: HttpRequest) -> HttpResponse:
    """All alerts in three paged lists: open ones with the worst first, acknowledged ones, cleared ones."""

    def page_of(state: str, name: str) -> Page[Alert]:
        rows = Alert.objects.filter(state=state)
        if state != Alert.State.CLEARED:
            rows = rows.filter(kind__in=KINDS).order_by(WORST_FIRST, "-first_seen", "-pk")
        return Paginator(rows, A_PAGE).get_page(request.GET.get(name))

    def build() -> dict[str, object]:
        mail = MailSettings.load_row()
        pages = {name: page_of(state, name) for name, state in PAGES.items()}
        return {
            "open": pages["open"],
            "acknowledged": pages["acknowledged"],
            "page": pages["page"],
            "others": {name: other_pages(pages, name) for name in pages},
            "told": bool((mail.host and mail.recipients_for("critical")) or mail.webhook),
            "spaces": list(
                pool_usage.usage_of_pools(readable_facts(PoolRow.objects.all()), timezone.now(), look_up_or_none)
            ),
            "undelivered": Letter.objects.filter(state="given-up").exclude(event="test").count(),
        }

    return live.respond(request, "alerts/list.html", build)


def other_pages(pages: dict[str, Page[Alert]], own: str) -> str:
    """The page numbers of the other lists, for links that turn one list."""
    return urlencode({name: page.number for name, page in pages.items() if name != own and page.number > 1})


@require_GET
def alert_page(request: HttpRequest, pk: int) -> HttpResponse:
    """One alert: its details, what it means, what to do, and its history."""

    def build() -> dict[str, object]:
        row = get_object_or_404(Alert, pk=pk, kind__in=KINDS)
        return {
            "alert": row,
            "kind": row.kind_info,
            "happened": (happened := alert_events(row))[:AT_ONCE],
            "earlier": happened[AT_ONCE:],
            "severities": SEVERITIES,
            "path": failing_disk_guide.guide_for(row) if row.kind == "disk.failing" else None,
        }

    return live.respond(request, "alerts/alert.html", build)


def alert_events(row: Alert) -> list[tuple[datetime, str, str]]:
    """Time, user and text of all notes and messages of an alert, the newest first. Two queries."""
    sent = [
        (
            one.made,
            "",
            f"{TOLD[one.way, one.event == 'cleared']}: {one.get_state_display().lower()}. {text_of(one.answer)}",
        )
        for one in Letter.objects.filter(alert=row)[:20]
    ]
    notes = [(note.at, note.by, note.text) for note in row.notes.order_by("-at", "-pk")[:200]]
    return sorted(sent + notes, key=lambda line: line[0], reverse=True)


@require_POST
def alert_action(request: HttpRequest, pk: int) -> HttpResponse:
    """Acknowledge, reopen or silence an alert, or set the severity of its kind."""
    what, by, now = request.POST.get("act", ""), request.user.get_username(), timezone.now()
    with transaction.atomic():
        row = get_object_or_404(Alert.objects.select_for_update(), pk=pk, kind__in=KINDS)
        if not apply_action(request, row, what, by, now):
            return not_possible(request, gettext("That is not something that can be done with an alert."))
    store.touch("alerts")
    return redirect("alert", pk=pk)


def apply_action(request: HttpRequest, row: Alert, what: str, by: str, now: datetime) -> bool:
    """Apply an action; whether it is a known one. A repeated action changes nothing."""
    if what == "acknowledge":
        if row.state == Alert.State.OPEN:
            row.state, row.mark_seen = Alert.State.ACKNOWLEDGED, row.mark
            reconcile.add_note(row, Message("Acknowledged. It stays quiet until it gets worse."), now, by)
    elif what == "open":
        if row.state == Alert.State.ACKNOWLEDGED:
            row.state = Alert.State.OPEN
            reconcile.add_note(row, Message("Opened again."), now, by)
    elif what == "silence" and request.POST.get("for") in SILENCES:
        reason = " ".join(request.POST.get("reason", "").split())[:200]
        lasts, said = SILENCES[request.POST["for"]]
        row.quiet_until, row.quiet_reason = now + lasts, reason
        reconcile.add_note(row, join_messages([said, reason], ": "), now, by)
    elif what == "unsilence":
        row.quiet_until = None
        reconcile.add_note(row, Message("Not silenced any more."), now, by)
    elif what == "severity" and request.POST.get("severity") in SEVERITIES:
        reconcile.set_severity(row.kind, request.POST["severity"], now, by)
        row.refresh_from_db()
    else:
        return False
    row.save()
    return True
