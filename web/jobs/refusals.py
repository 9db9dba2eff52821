"""The page that says why something was not done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from appliance.errors import Reason, Refused
from appliance.operation import Operation
from web.inventory.fact_row import OddRow
from web.jobs import confirm
from web.translation import reason_text

View = Callable[..., HttpResponse]


def refusal_page(request: HttpRequest, reasons: Iterable[Reason], back: str, *, status: int = 409) -> HttpResponse:
    """The reasons as a page, with a link to ``back``."""
    return render(request, "jobs/refused.html", {"reasons": tuple(reasons), "back": back}, status=status)


def review_or_refusal(request: HttpRequest, operation: Operation, back: str) -> HttpResponse:
    """The review page of an operation, or the page that says what speaks against it."""
    try:
        return confirm.review(request, operation, back=back)
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back)


def review_act(
    request: HttpRequest, acts: Mapping[str, Callable[..., Operation]], act: str, *, back: str, **target: object
) -> HttpResponse:
    """The review page of one of ``acts`` on its target, or the page of what speaks against it. Raises Http404."""
    if act not in acts:
        raise Http404
    try:
        return confirm.review(request, acts[act](**target), back=back)
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back)


def refusals_lead_to(route: str, *arguments: str) -> Callable[[View], View]:
    """Decorate a view: what is refused in it becomes the page of reasons, with a link to ``route``.

    ``arguments`` are the names of the view's own arguments that the route needs.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def decorated(request: HttpRequest, *args: Any, **given: Any) -> HttpResponse:
            try:
                return view(request, *args, **given)
            except Refused as refusal:
                back = reverse(route, kwargs={name: given[name] for name in arguments})
                return refusal_page(request, refusal.reasons, back)

        return decorated

    return decorate


class OddRowPage:
    """Middleware: where a page needs what cannot be decoded and says nothing of that itself, the page that says so."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, OddRow):
            return None
        return refusal_page(request, exception.reasons, reverse("overview"))


def validation_error(reasons: Iterable[Reason]) -> ValidationError:
    """What the clean method of a form raises for these reasons: their sentences and codes."""
    return ValidationError([ValidationError(reason_text(reason), code=reason.code) for reason in reasons])


def add_reasons(form: forms.BaseForm, reasons: Iterable[Reason]) -> None:
    """Put each reason beside the field that it is about, or above the form."""
    for reason in reasons:
        field = reason.field if reason.field in form.fields else None
        form.add_error(field, validation_error([reason]))
