"""Pages about snapshots: lists, schedules, browsing, restoring, the space that they use."""

from __future__ import annotations
