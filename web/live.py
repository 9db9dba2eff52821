"""Pages with live parts: the same view gives the whole page or only its part ``live``, with a 304 when nothing changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.utils.http import parse_etags

from web.inventory.models import Source
from web.jobs import queue
from web.system import service_status


def tag(request: HttpRequest, sources: list[Source], trouble: str) -> str:
    """An entity tag that moves when any fact, job or progress has changed; one query for all of it, made before."""
    versions = sorted((source.name, source.version) for source in sources if not source.name.startswith("looking"))
    return f'"{hashlib.sha256(f"{request.get_full_path()}{versions}{trouble}".encode()).hexdigest()[:20]}"'


def respond(request: HttpRequest, template: str, build: Callable[[], dict[str, Any]]) -> HttpResponse:
    """Render ``template``, or its part ``live`` where ``?part=live`` asks for it. Looking asks for fresh facts."""
    queue.request_refresh()
    if request.GET.get("part") != "live":
        return render(request, template, build())
    now = service_status.service_status(request)
    current = tag(request, now.sources, str([trouble.key for trouble in now.troubles]))
    # nginx weakens the tag of what it compresses, and the browser sends it back like that.
    if current in [given.removeprefix("W/") for given in parse_etags(request.headers.get("If-None-Match", ""))]:
        response: HttpResponse = HttpResponseNotModified()
    else:
        response = render(request, f"{template}#live", build())
    response["ETag"] = current
    response["Cache-Control"] = "no-store"
    if now.checked:
        response["X-Larder-Checked"] = now.checked.isoformat()
    return response
