"""The preferences of who asks, for templates and views."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from web.accounts.models import Preferences


def preferences_of(request: HttpRequest) -> Preferences:
    """Those that are stored, or unsaved ones with the defaults."""
    if not request.user.is_authenticated:
        return Preferences()
    return Preferences.objects.filter(user=request.user).first() or Preferences(user=request.user)


def show_preferences(request: HttpRequest) -> dict[str, Any]:
    """Context processor: they are read only by a page that shows something by them."""
    return {"preferences": SimpleLazyObject(lambda: preferences_of(request))}
