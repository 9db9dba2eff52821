"""Move events of ZED and smartd from the spool into rows, each once. Other files are quarantined and stop no event."""

from __future__ import annotations

import json
import logging
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.utils import timezone

from appliance.system import paths
from web import row_retention
from web.database import is_unusable
from web.inventory import store
from web.inventory.models import Event

log = logging.getLogger(__name__)
LARGEST = 64 * 1024
AT_ONCE = 200
MOST_ASIDE = 50


class NotAnEvent(ValueError):
    """The hooks do not write such a file."""


def ingest_events() -> list[Event]:
    """Store the events of the spool, the oldest first; returns the new ones.

    Raises OSError or DatabaseError where the spool or the table cannot be used: the files then stay.
    """
    try:
        waiting = sorted(path for path in paths.SPOOL.iterdir() if path.name.endswith(".json"))[:AT_ONCE]
    except FileNotFoundError:
        return []
    new: list[Event] = []
    broken = None
    for path in waiting:
        try:
            event, is_new = ingest_file(path)
            new += [event] if is_new else []
            path.unlink(missing_ok=True)
        except Exception as problem:  # a file that makes no row must not hold up those behind it
            if is_unusable(problem):
                log.warning("event %s stays in the spool: %s", path.name, problem)
                broken = problem
                break
            quarantine_file(path, problem)
    if new:
        store.touch("events")
        row_retention.choose_past(Event.objects.all(), row_retention.EVENTS, at_once=1000).delete()
    if broken:
        raise broken
    return new


def ingest_file(path: Path) -> tuple[Event, bool]:
    """Store the event of one file; returns its row and whether it is new.

    Raises ValueError (NotAnEvent is one), OSError or RecursionError.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise NotAnEvent("not a small regular file")
        raw = json.loads(os.read(handle, LARGEST).decode(errors="replace"))
    finally:
        os.close(handle)
    if (
        not isinstance(raw, dict)
        or raw.get("source") not in {"zed", "smartd"}
        or not isinstance(raw.get("fields"), dict)
    ):
        raise NotAnEvent("not an event of smartd or ZED")
    fields: dict[str, Any] = {str(key)[:60]: str(value)[:4000] for key, value in list(raw["fields"].items())[:200]}
    kind, subject = ("ZEVENT_CLASS", "ZEVENT_POOL") if raw["source"] == "zed" else ("SMARTD_FAILTYPE", "SMARTD_DEVICE")
    return Event.objects.get_or_create(
        file=path.name[:120],
        defaults={
            "source": raw["source"],
            "kind": fields.get(kind, "")[:120],
            "subject": fields.get(subject, "")[:255],
            "received": parse_time(raw.get("received")),
            "fields": fields,
        },
    )


def parse_time(text: object) -> datetime:
    """The time that a hook noted; now where it noted none."""
    try:
        return datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return timezone.now()


def quarantine_file(path: Path, problem: Exception) -> None:
    """Move a file that is no event out of the spool. A few are kept to look at; links are removed."""
    log.warning("set aside %r from the spool: %s", path.name[:80], problem)
    aside = paths.SPOOL.parent / "aside"
    try:
        if path.is_symlink() or len(list(aside.iterdir())) >= MOST_ASIDE:
            path.unlink()
        else:
            path.rename(aside / path.name)
    except OSError:
        log.warning("could not move %r", path.name[:80])
