"""Reports, command history and events of a pool."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_GET

from appliance.pools import events as pool_events
from appliance.pools import history as pool_history
from web import live
from web.inventory import store
from web.inventory.models import Event, HistoryLine, PoolRow, Source
from web.jobs import queue
from web.pools.models import WorkReport

PAGE = 50
FRESH = timedelta(seconds=30)


class HistoryRow(msgspec.Struct, frozen=True):
    """A line of history with what it means."""

    row: HistoryLine
    words: str


class EventLine(msgspec.Struct, frozen=True):
    """An event with what it means."""

    row: Event
    words: pool_events.Noticed


@require_GET
def show_reports(request: HttpRequest, key: str) -> HttpResponse:
    """How every scrub, rebuilding and other long work of this pool ended."""

    def build_context() -> dict[str, object]:
        row = get_object_or_404(PoolRow, key=key)
        page = Paginator(WorkReport.objects.filter(pool_key=key), PAGE).get_page(request.GET.get("page"))
        return {"name": row.name, "key": key, "page": page, "reports": [row.report for row in page]}

    return live.respond(request, "pools/reports.html", build_context)


@require_GET
def show_history(request: HttpRequest, key: str) -> HttpResponse:
    """Commands that changed the pool, the newest first. Also requests a new reading."""
    if PoolRow.objects.filter(key=key).exists() and store.claim_refresh(
        store.history_source(key), not_since=timezone.now() - FRESH
    ):
        queue.send("workers.read_history", key)

    def build_context() -> dict[str, object]:
        row = get_object_or_404(PoolRow, key=key)
        lines = HistoryLine.objects.filter(pool_key=key)
        every = request.GET.get("show") == "all"
        page = Paginator(lines if every else lines.filter(kind="command"), PAGE).get_page(request.GET.get("page"))
        source = Source.objects.filter(name=store.history_source(key)).first()
        return {
            "name": row.name,
            "key": key,
            "page": page,
            "lines": [HistoryRow(line, pool_history.describe_entry(line.kind, line.text)) for line in page],
            "every": every,
            "read": bool(source and source.checked),
            "error": source.error if source else "",
        }

    return live.respond(request, "pools/history.html", build_context)


@require_GET
def show_events(request: HttpRequest, key: str) -> HttpResponse:
    """What ZFS reported about the pool since the box was started, the newest first."""

    def build_context() -> dict[str, object]:
        row = get_object_or_404(PoolRow, key=key)
        noticed = Event.objects.filter(source="zed", subject=row.name)
        for quiet in pool_events.QUIET:
            noticed = noticed.exclude(kind__endswith=quiet)
        page = Paginator(noticed, PAGE).get_page(request.GET.get("page"))
        lines = [EventLine(event, pool_events.describe_event(event.kind, event.fields)) for event in page]
        return {"name": row.name, "key": key, "page": page, "lines": lines}

    return live.respond(request, "pools/events.html", build_context)
