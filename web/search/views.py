"""The search: a page of its own, and its results for the field in the header."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from web.search.entries import LONGEST, MOST, find_entries


@require_GET
def search(request: HttpRequest) -> HttpResponse:
    """What was found for ``q``; for htmx only the list."""
    text = request.GET.get("q", "")[:LONGEST]
    # set by its middleware
    template = "search/results.html" if request.htmx else "search/search.html"  # type: ignore[attr-defined]
    return render(request, template, {"q": text, "entries": find_entries(text), "most": MOST})
