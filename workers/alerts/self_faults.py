"""Faults of Larder itself: a restored or lost settings database, and failed upkeep."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings

from appliance.alerts.fault import Fault
from appliance.message import Message
from web.inventory.models import Source
from web.system import database

NOTICE_FOR = timedelta(days=30)
SOURCE = "upkeep-"
NAMES = {
    "copy": Message("copy of the settings"),
    "record": Message("copy of the settings to the pools"),
    "jobs": Message("removal of old jobs"),
    "sessions": Message("removal of ended sessions"),
}


def settings_file() -> Path:
    return Path(str(settings.DATABASES["default"]["NAME"]))


def upkeep_faults(now: datetime) -> Iterator[Fault]:
    """A restored or lost database for a month; a stage of the upkeep until it works again."""
    notice = database.read_notice(settings_file())
    if notice and abs(now - notice.at) < NOTICE_FOR:
        kind = "settings.restored" if notice.copy else "settings.lost"
        yield Fault(kind, notice.at.isoformat(), notice.headline, notice.meaning)
    for row in Source.objects.filter(name__startswith=SOURCE).exclude(error=""):
        stage = row.name.removeprefix(SOURCE)
        if stage in NAMES:
            yield Fault("upkeep.failed", stage, Message("The {stage} failed.", stage=NAMES[stage]), row.error)
