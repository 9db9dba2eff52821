"""What forms in several places ask for."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext

from appliance import formatting
from web.translation import text_of

HOURS = [(hour, f"{hour:02d}:00") for hour in range(24)]  # of the box's own clock


def with_free_space(name: str, free: int) -> str:
    """A place to choose, with the bytes that are free there."""
    return gettext("{name} ({available} free)").format(name=name, available=text_of(formatting.size_text(free)))


class SizeField(forms.Field):
    """A size with a unit, such as 1.5 GB; cleaned to whole bytes, 0 if empty."""

    def __init__(self, **more: Any) -> None:
        super().__init__(widget=forms.TextInput(attrs={"autocomplete": "off", "inputmode": "text"}), **more)

    def to_python(self, value: object) -> Any:
        text = str(value or "").strip()[:40]
        if not text or text.lower() in {"0", "none"}:
            return 0
        try:
            return formatting.size_of(text)
        except ValueError as error:
            raise forms.ValidationError(
                gettext("Give a size with its unit, for example 500 GB."), code="size-malformed"
            ) from error

    def prepare_value(self, value: object) -> object:
        return formatting.size_typed(value) if isinstance(value, int) and value else value or ""


def not_possible(request: HttpRequest, sentence: str) -> HttpResponse:
    """What a form asks for is nothing that its page offers: it is out of date, or was made up."""
    return render(request, "system/not_possible.html", {"sentence": sentence}, status=400)
