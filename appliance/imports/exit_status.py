"""How rsync ended (rsync(1), EXIT VALUES)."""

from __future__ import annotations

PARTLY, VANISHED = 23, 24  # some files could not be copied; some vanished at the source
SILENT = 30  # nothing came for too long
LOST = frozenset({10, 12, SILENT, 35, 255})  # the connection broke off, or nothing came for too long
