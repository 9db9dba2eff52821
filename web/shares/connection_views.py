"""The connected clients of shares with their open files, and a button to disconnect each."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from appliance.errors import Refused
from appliance.shares.connections import Connection
from appliance.shares.end_connection import EndConnection
from appliance.shares.settings import SPOKEN
from web import live
from web.inventory import store
from web.inventory.fact_row import readable_facts
from web.inventory.models import ConnectionRow, Source
from web.inventory.source_names import CONNECTIONS
from web.jobs import confirm, queue
from web.jobs.refusals import refusal_page

FRESH = timedelta(seconds=5)


@require_GET
def list_connections(request: HttpRequest) -> HttpResponse:
    """The clients that are connected, as of some seconds ago; opening the page reads them again."""
    if store.claim_refresh(CONNECTIONS, not_since=timezone.now() - FRESH):
        queue.send("workers.read_connections")

    def build() -> dict[str, object]:
        source = Source.objects.filter(name=CONNECTIONS).first()
        found: list[Connection] = readable_facts(ConnectionRow.objects.order_by("name", "key"))
        return {
            "connections": [(one, SPOKEN[one.protocol]) for one in found],
            "read": source.checked if source else None,
            "trouble": source.error if source else "",
        }

    return live.respond(request, "shares/connections.html", build)


@require_POST
def end_connection(request: HttpRequest, key: str) -> HttpResponse:
    """End one connection. Nothing is lost that the other computer cannot send again, so there is no review."""
    one: Connection = get_object_or_404(ConnectionRow, key=key).fact
    try:
        operation = EndConnection(protocol=one.protocol, id=one.id, who=one.user, machine=one.machine)
        return redirect("job", pk=confirm.start_without_review(operation, user=request.user.get_username()).pk)
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, reverse("connected"))
