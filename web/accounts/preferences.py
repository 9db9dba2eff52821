"""The preferences of who asks, for templates and views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from appliance import formatting
from web.accounts.models import Preferences


def preferences_of(request: HttpRequest) -> Preferences:
    """Those that are stored, or unsaved ones with the defaults; read once for a request."""
    known: Preferences | None = getattr(request, "preferences", None)
    if known is None:
        known = read_preferences(request)
        request.preferences = known  # type: ignore[attr-defined]  # ours
    return known


def read_preferences(request: HttpRequest) -> Preferences:
    user = request.user
    if not isinstance(user, User):
        return Preferences()
    try:
        return user.preferences  # read with the user (``backend.py``)
    except Preferences.DoesNotExist:
        return Preferences(user=user)


def show_preferences(request: HttpRequest) -> dict[str, Any]:
    """Context processor: they are read only by a page that shows something by them."""
    return {"preferences": SimpleLazyObject(lambda: preferences_of(request))}


def in_chosen_units(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: sizes on the page are in the units that its user has chosen. Mails and the agent keep to TB."""

    def middleware(request: HttpRequest) -> HttpResponse:
        def units() -> formatting.Units:
            chosen = preferences_of(request).units
            return formatting.BINARY if chosen == Preferences.Units.BINARY else formatting.DECIMAL

        with formatting.space_in(units):
            return get_response(request)

    return middleware
