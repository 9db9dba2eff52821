"""Dutch, with decimal points: sizes and rates come with them from ``appliance/``, and attributes of pages need them."""

from __future__ import annotations

DECIMAL_SEPARATOR = "."
