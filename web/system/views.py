"""Pages about Larder itself."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from web.system.glossary import GLOSSARY


@login_not_required
@require_GET
def ready(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Answer programs that wait until pages are served; it reveals nothing about the box."""
    return HttpResponse("ready\n", content_type="text/plain")


@require_GET
def show_help(request: HttpRequest) -> HttpResponse:
    """Every term of the glossary."""
    return render(request, "system/help.html", {"glossary": GLOSSARY.items()})


@require_GET
def show_components(request: HttpRequest) -> HttpResponse:
    """Every piece of the interface on one page, in debug mode."""
    return render(request, "components.html")
