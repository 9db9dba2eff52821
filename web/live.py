"""Pages with live parts: the same view gives the whole page, or its part ``live`` to htmx, with a
304 when nothing changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags
from django.utils.translation import get_language
from django_htmx.http import HTMX_STOP_POLLING, reswap, retarget, trigger_client_event

from web.inventory.models import Source
from web.jobs import queue
from web.system import service_status


def tag(request: HttpRequest, sources: list[Source], trouble: str) -> str:
    """An entity tag that moves when any fact, job or progress has changed; one query for all of it, made before."""
    known = (one for one in sources if one.version and not one.name.startswith("looking"))
    versions = sorted((source.name, source.version) for source in known)
    return (
        f'"{hashlib.sha256(f"{get_language()}{request.get_full_path()}{versions}{trouble}".encode()).hexdigest()[:20]}"'
    )


def respond(request: HttpRequest, template: str, build: Callable[[], dict[str, Any]]) -> HttpResponse:
    """Render ``template``, or its part ``live`` where htmx asks for it. Looking asks for fresh facts.

    The part carries its tag as a header that htmx sends along the next time. ``live_ended`` in what ``build`` returns
    stops the asking: nothing on the page will change any more.
    """
    queue.request_refresh()
    now = service_status.service_status(request)
    current = tag(request, now.sources, str([trouble.key for trouble in now.troubles]))
    response = respond_with_tag(request, template, build, current)
    patch_vary_headers(response, ["HX-Request"])
    response["ETag"] = current
    response["Cache-Control"] = "no-store"
    if is_for_htmx(request) and now.checked:
        times = {"at": now.checked.isoformat(), "now": timezone.now().isoformat()}
        trigger_client_event(response, "factsChecked", times)
    return response


def respond_with_tag(
    request: HttpRequest, template: str, build: Callable[[], dict[str, Any]], current: str
) -> HttpResponse:
    """The whole page, the part, or nothing where the part is what htmx has already."""
    # nginx weakens the tag of what it compresses, and the browser sends it back like that.
    had = [given.removeprefix("W/") for given in parse_etags(request.headers.get("If-None-Match", ""))]
    if is_for_htmx(request) and current in had:
        return HttpResponseNotModified()
    context = {"live_headers": json.dumps({"If-None-Match": current}), **build()}
    if not is_for_htmx(request):
        return render(request, template, context)
    status = HTMX_STOP_POLLING if context.get("live_ended") else 200
    return render(request, "inc/live_part.html", {**context, "live_part": f"{template}#live"}, status=status)


def respond_to_form(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """The page of ``form`` in ``context``; to htmx only the part ``form``, where something is wrong with what was sent.

    A form offers facts to choose from: opening it has them read again, unless they are fresh.
    """
    if not context["form"].is_bound:
        queue.request_refresh()
        return render(request, template, context)
    if not is_for_htmx(request):
        return render(request, template, context, status=400)
    response = render(request, f"{template}#form", context, status=400)
    return reswap(retarget(response, "#form"), "outerHTML")


def is_for_htmx(request: HttpRequest) -> bool:
    """Whether a script asks, for a part of the page that it shows."""
    return bool(request.htmx)  # type: ignore[attr-defined]  # set by its middleware
