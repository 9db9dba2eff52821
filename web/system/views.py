"""Pages about Larder itself."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET


@login_not_required
@require_GET
def ready(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """For whoever waits until the pages are served; says nothing of the box."""
    return HttpResponse("ready\n", content_type="text/plain")


@require_GET
def components(request: HttpRequest) -> HttpResponse:
    """Every piece of the interface on one page, in debug mode."""
    return render(request, "components.html")
