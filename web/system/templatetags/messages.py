"""What a message of a template needs that ``blocktranslate`` cannot hold: addresses, and pieces of pages.

A sentence stays one message with its links and times in it, so that a translation can put them elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django import template
from django.template.base import Template
from django.template.context import Context
from django.utils.translation import get_language

from appliance.message import reason_after_name
from web.addresses import address
from web.translation import reason_text, text_of

register = template.Library()
register.filter("reason_text", reason_text)
register.simple_tag(address)


@register.filter
def reasons_after_names(lines: Iterable[str]) -> list[str]:
    """Stored lines with a name and a reason, in the language of the reader."""
    return [text_of(reason_after_name(line)) for line in lines]


@register.simple_tag
def page_language() -> str:
    """The language that the page is in, as an attribute of HTML: ``en-GB``."""
    language, dash, region = (get_language() or "").partition("-")
    return f"{language}{dash}{region.upper()}"


@register.simple_tag(takes_context=True)
def piece(context: Context, name: str, **values: Any) -> str:
    """A template of ``inc/`` with these values, written out, for use as a variable in a message."""
    with context.push(**values):
        return cast("Template", context.template).engine.get_template(name).render(context)
