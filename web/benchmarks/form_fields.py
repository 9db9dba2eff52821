"""Fields of the forms of benchmarks."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext

PLAIN = "none"  # value of the checkbox for "no protocol", because a checkbox needs a value


def multiple_choice(
    label: str, choices: list[tuple[Any, str]], coerce: Any = str, **more: Any
) -> forms.TypedMultipleChoiceField:
    return forms.TypedMultipleChoiceField(
        label=label,
        choices=choices,
        coerce=coerce,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext("Choose at least one.")},
        **more,
    )


def number_field(label: str, least: int, most: int, help_text: str = "") -> forms.IntegerField:
    return forms.IntegerField(label=label, min_value=least, max_value=most, help_text=help_text)


def protocol_name(word: str) -> str:
    return "" if word == PLAIN else word


def parse_bool(word: str) -> bool:
    return word == "True"
