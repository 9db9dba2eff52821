"""Since when faults wait to become alerts, on the monotonic clock. Stored in a file in memory, so that a restart of the
worker does not restart the wait."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from appliance.system import paths

log = logging.getLogger(__name__)
_kept: dict[str, dict[str, float]] = {}  # also where the file cannot be written


def fault_key(*parts: str) -> str:
    return json.dumps(parts)


def pending_file(name: str) -> Path:
    return paths.RUN / "inventory" / f"waits-{name}.json"


def read_pending(name: str) -> dict[str, float]:
    """Read what was stored under a name; empty where it cannot be read."""
    if name in _kept:
        return _kept[name]
    try:
        found = json.loads(pending_file(name).read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(one): float(since) for one, since in found.items() if isinstance(since, int | float)}


def store_pending(name: str, since: dict[str, float]) -> None:
    """Store these times instead, where they differ."""
    if read_pending(name) == since:
        return
    _kept[name] = since
    beside = pending_file(name).with_suffix(".new")
    try:
        beside.write_text(json.dumps(since))
        beside.replace(pending_file(name))
    except OSError as problem:
        log.warning("since when faults wait could not be kept: %s", problem)
