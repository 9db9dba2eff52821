"""The page that says why something was not done."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from appliance.errors import Reason, Refused
from appliance.operation import Operation
from web.jobs import confirm


def refusal_page(request: HttpRequest, reasons: Iterable[Reason], back: str, *, status: int = 409) -> HttpResponse:
    """The reasons as a page, with a link to ``back``."""
    return render(request, "jobs/refused.html", {"reasons": tuple(reasons), "back": back}, status=status)


def review_or_refusal(request: HttpRequest, operation: Operation, back: str) -> HttpResponse:
    """The review page of an operation, or the page that says what speaks against it."""
    try:
        return confirm.review(request, operation, back=back)
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back)
