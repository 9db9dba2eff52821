"""Words that are chosen at import (labels, choices, tables), and messages of ``appliance/``.

``gettext`` and ``ngettext`` of Django are for words inside functions. A message is a whole sentence with named
arguments; ``tests/messages`` collects all of them.
"""

from __future__ import annotations

from typing import cast

from django.conf import settings
from django.utils.functional import lazy
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy

from appliance.errors import Reason
from appliance.message import Message, fill_template


def lazy_text(message: str) -> str:
    """The message in the language of the reader; where only English is offered, the plain string.

    It is typed as text because forms and templates use it as text. Where real text is needed (``join``, JSON, the
    database), write ``str(…)`` around it.
    """
    return cast("str", gettext_lazy(message)) if settings.OFFER_LANGUAGES else message


def lazy_format(message: str, **arguments: object) -> str:
    """``lazy_text`` of a message with arguments, which may be messages themselves."""
    if settings.OFFER_LANGUAGES:
        said = {name: read_later(one) if isinstance(one, Message) else one for name, one in arguments.items()}
        return cast("str", format_lazy(lazy_text(message), **said))
    return message.format(**arguments)


def message_text(message: Message) -> str:
    """A message of ``appliance/`` in the language of the reader, with its arguments as they are."""
    said = gettext(message.template)
    values = {name: text_of(value) for name, value in message.arguments.items()}
    return fill_template(said, values)


def text_of(text: str) -> str:
    """A text in the language of the reader where it is a message, else as it is."""
    return message_text(text) if isinstance(text, Message) else text


read_later = lazy(text_of, str)


def reason_text(reason: Reason) -> str:
    """Why something is refused, in the language of the reader."""
    return message_text(reason.message)
