"""Jobs: reviewing and confirming an operation, following it, the history."""

from __future__ import annotations
