"""Take events out of the spool, each once. What is no event is put aside, logged once, and never stops the others."""

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
from web.database import is_unusable
from web.inventory import store
from web.inventory.models import Event
from web.prune_rows import past

log = logging.getLogger(__name__)
LARGEST = 64 * 1024
AT_ONCE = 200
KEPT = 500
MOST_ASIDE = 50


class NotAnEvent(ValueError):
    """The file is nothing that the hooks write."""


def ingest() -> int:
    """Read what lies in the spool, oldest first; how many events were new. Raises OSError, DatabaseError where the spool
    or the table cannot be used: what lies there then stays."""
    try:
        waiting = sorted(path for path in paths.SPOOL.iterdir() if path.name.endswith(".json"))[:AT_ONCE]
    except FileNotFoundError:
        return 0
    new, broken = 0, None
    for path in waiting:
        try:
            new += take(path)
            path.unlink(missing_ok=True)
        except Exception as problem:  # what no row can be made of must not hold up those behind it
            if is_unusable(problem):
                log.warning("event %s stays in the spool: %s", path.name, problem)
                broken = problem
                break
            put_aside(path, problem)
    if new:
        store.touch("events")
        past(Event.objects.all(), KEPT, at_once=1000).delete()
    if broken:
        raise broken
    return new


def take(path: Path) -> int:
    """Make a row of one file; 1 where it was not known. Raises ValueError (NotAnEvent is one), OSError, RecursionError."""
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
    _row, made = Event.objects.get_or_create(
        file=path.name[:120],
        defaults={
            "source": raw["source"],
            "kind": fields.get(kind, "")[:120],
            "subject": fields.get(subject, "")[:255],
            "received": moment(raw.get("received")),
            "fields": fields,
        },
    )
    return int(made)


def moment(text: object) -> datetime:
    try:
        return datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return timezone.now()


def put_aside(path: Path, problem: Exception) -> None:
    """Move a file that is no event out of the way, keeping a few to look at; links are just removed."""
    log.warning("set aside %r from the spool: %s", path.name[:80], problem)
    aside = paths.SPOOL.parent / "aside"
    try:
        if path.is_symlink() or len(list(aside.iterdir())) >= MOST_ASIDE:
            path.unlink()
        else:
            path.rename(aside / path.name)
    except OSError:
        log.warning("could not move %r", path.name[:80])
