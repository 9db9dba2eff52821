"""Dutch, with decimal points: attributes of pages need them. What is read is written by ``number_text``."""

from __future__ import annotations

DECIMAL_SEPARATOR = "."
