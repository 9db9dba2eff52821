"""Messages of ``appliance/`` in rows. The columns hold English text; ``said`` holds, by that text, what it was made from.

It stays empty while only English is offered. Rows without it, such as those of earlier versions, show their English text.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models

from appliance.message import Message, messages_by_text


def said_in(*values: object) -> dict[str, Any]:
    """What a row has to hold of the messages in these values."""
    return messages_by_text(values) if settings.OFFER_LANGUAGES else {}


def as_said(value: Any, said: dict[str, Any]) -> Any:
    """The value with its texts as messages again, where a message is known for them."""
    if isinstance(value, str):
        return message_of(value, said)
    if isinstance(value, dict):
        return {as_said(name, said): as_said(one, said) for name, one in value.items()}
    if isinstance(value, list):
        return [as_said(one, said) for one in value]
    return value


def message_of(text: str, said: dict[str, Any]) -> str:
    """The message with this text; the text itself where none is known, or what is stored does not say the same."""
    try:
        message = Message.from_json(said[text])
    except (KeyError, TypeError, IndexError, ValueError, AttributeError):
        return text
    return message if message == text else text


class RowWithMessages(models.Model):
    """A row whose texts may be messages."""

    TEXTS: ClassVar[tuple[str, ...]] = ()  # the columns
    said: Any = models.JSONField(default=dict, editable=False)

    class Meta:
        abstract = True

    @classmethod
    def from_db(cls, db: str | None, field_names: Any, values: Any, **more: Any) -> Any:
        row = super().from_db(db, field_names, values, **more)
        if said := row.__dict__.get("said"):
            for name in row.__dict__.keys() & {*cls.TEXTS}:
                row.__dict__[name] = as_said(row.__dict__[name], said)
        return row
