"""What goes on in the box at this moment: network, disks, temperatures, who is connected,
and how old the copies are."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec
from django.utils import timezone

from appliance.shares.connections import Connection
from appliance.system.box_info import Sensor
from web.backups.models import BackupRecord
from web.inventory import store
from web.inventory.bays import Bay
from web.inventory.fact_row import readable_facts
from web.inventory.models import BoxRow, ConnectionRow, ShareRow, Source
from web.inventory.source_names import BOX, CONNECTIONS
from web.jobs import queue

# An open overview has these read again. Figures that are older are not of now.
BOX_EVERY, CONNECTIONS_EVERY = timedelta(seconds=10), timedelta(seconds=30)
LONGEST_NOW = timedelta(seconds=60)
NAMED = 4  # of those who are connected


class RightNow(msgspec.Struct, frozen=True):
    """``network`` and ``disks``: bytes a second in and out, read and written; None: not measured yet. ``warmest``: °C
    of the warmest disk, 0 where none tells. ``copied``: the oldest of the newest good copies of all backups;
    ``uncopied`` of them have none."""

    network: tuple[int, int] | None = None
    disks: tuple[int, int] | None = None
    warmest: int = 0
    sensor: Sensor | None = None
    people: tuple[str, ...] = ()
    more_people: int = 0
    shared: bool = False
    backups: int = 0
    copied: datetime | None = None
    uncopied: int = 0


def request_readings(sources: Iterable[Source]) -> None:
    """Ask for the box and for who is connected, each once in a while; no query where nothing is due."""
    asked = {source.name: source.requested for source in sources}
    now = timezone.now()
    for name, every, task in (
        (BOX, BOX_EVERY, "workers.read_box"),
        (CONNECTIONS, CONNECTIONS_EVERY, "workers.read_connections"),
    ):
        last = asked.get(name)
        if last and now - every < last <= now:
            continue
        if store.claim_refresh(name, not_since=now - every) and (name != CONNECTIONS or ShareRow.objects.exists()):
            queue.send(task)


def read_right_now(bays: Iterable[Bay], sources: Iterable[Source], *, shared: bool) -> RightNow:
    """``shared``: whether a folder is shared, so that somebody can be connected. Three queries."""
    row = BoxRow.objects.first()
    read = {source.name: source.checked for source in sources}
    fresh = row if row and (at := read.get(BOX)) and timezone.now() - at < LONGEST_NOW else None
    info = next(iter(readable_facts([fresh])), None) if fresh else None
    ports = list(fresh.rates.values()) if fresh else []
    shared = shared and read.get(CONNECTIONS) is not None
    people = connected_people() if shared else ()
    copies = list(BackupRecord.objects.values_list("good", flat=True))
    return RightNow(
        network=(sum(one[0] for one in ports), sum(one[1] for one in ports)) if ports else None,
        disks=(fresh.disk_rates[0], fresh.disk_rates[1]) if fresh and fresh.disk_rates else None,
        warmest=max((bay.temperature or 0 for bay in bays if not bay.asleep), default=0),
        sensor=max(info.temperatures, key=lambda one: one.value, default=None) if info else None,
        people=people[:NAMED],
        more_people=max(len(people) - NAMED, 0),
        shared=shared,
        backups=len(copies),
        copied=min((at for at in copies if at), default=None),
        uncopied=copies.count(None),
    )


def connected_people() -> tuple[str, ...]:
    """Those who have a share open, each once: the user, or the computer where the protocol knows no user."""
    found: list[Connection] = readable_facts(ConnectionRow.objects.order_by("name", "key")[:200])
    return tuple(dict.fromkeys(one.name for one in found if one.name))
