"""Words that are chosen at import (labels, choices, tables), and messages of ``appliance/``.

``gettext`` and ``ngettext`` of Django are for words inside functions. A message is a whole sentence with named
arguments; ``tests/messages`` collects all of them.
"""

from __future__ import annotations

from typing import cast

from django.utils.functional import lazy
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy

from appliance.errors import Reason
from appliance.message import Message, words_of


def lazy_text(message: str) -> str:
    """The message in the language of the reader.

    It is typed as text because forms and templates use it as text. Where real text is needed (``join``, JSON, the
    database), write ``str(…)`` around it.
    """
    return cast("str", gettext_lazy(message))


def lazy_format(message: str, **arguments: object) -> str:
    """``lazy_text`` of a message with arguments, which may be messages themselves."""
    said = {name: read_later(one) if isinstance(one, Message) else one for name, one in arguments.items()}
    return cast("str", format_lazy(lazy_text(message), **said))


def message_text(message: Message) -> str:
    """A message of ``appliance/`` in the language of the reader, with its arguments as they are."""
    return words_of(message, gettext)


def text_of(text: str) -> str:
    """A text in the language of the reader where it is a message, else as it is."""
    return words_of(text, gettext)


read_later = lazy(text_of, str)


def reason_text(reason: Reason) -> str:
    """Why something is refused, in the language of the reader."""
    return message_text(reason.message)
