"""Messages of ``appliance/`` in rows. The columns hold English text;
``said`` holds, by that text, what it was made from.

Rows without it, such as those of earlier versions, show their English text.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from appliance.message import as_said, messages_by_text


def said_in(*values: object) -> dict[str, Any]:
    """What a row has to hold of the messages in these values."""
    return messages_by_text(values)


def with_said(**columns: str) -> dict[str, Any]:
    """The columns and what their messages were made from, for a row whose only texts they are."""
    return {**columns, "said": said_in(*columns.values())}


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
