"""What disks say of themselves during a burn-in: their figures, log of self-tests and temperature, read beside the tick."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone
from msgspec.structs import asdict

from appliance import agent_client
from appliance.disks import smart
from web.disks.models import BurnIn
from web.inventory import store
from workers import guard
from workers.interval import Interval

EVERY = timedelta(minutes=1)  # of a self-test: a disk that sleeps soon after it has been asked before
WHILE_WRITING = timedelta(minutes=5)
MOST_TEMPERATURES = 240  # then every second one goes, so a curve over days has as many points as one over hours
asking = Interval(5.0)


def read_at(row: BurnIn) -> datetime | None:
    """When the newest reading was taken."""
    told = row.reading.get("at")
    return datetime.fromisoformat(told) if told else None


def is_fresh(row: BurnIn) -> bool:
    """Whether the newest reading is the one that is waited for."""
    at = read_at(row)
    return at is not None and row.wanted is not None and at > row.wanted


def is_due(row: BurnIn) -> bool:
    at = read_at(row)
    every = WHILE_WRITING if row.stage == "write" else EVERY
    return at is None or abs(timezone.now() - at) > every or (row.wanted is not None and at <= row.wanted)


def read_due() -> None:
    """Ask the disks whose turn it is, all in one request. What cannot be asked is asked again a little later."""
    rows = {row.path: row for row in BurnIn.objects.filter(state__in=BurnIn.ACTIVE) if is_due(row)}
    if not rows:
        return
    began = timezone.now()
    answers = agent_client.send_request({"verb": "read-smart", "disks": list(rows)}, silence=180).get("facts", {})
    guard.for_each(
        [path for path in answers if path in rows],
        lambda path: bool(store_reading(rows[path], smart.read_smart(answers[path]), began)),
        lambda path: rows[path].disk,
    )
    store.touch("burn-ins")


def store_reading(row: BurnIn, found: smart.Reading, at: datetime) -> int:
    """Keep an answer with its burn-in. One of a sleeping disk, or one without figures, leaves the last ones; of one
    that hangs nothing is kept."""
    if found.message.startswith(smart.UNANSWERED):
        return 0
    if found.asleep or not (found.answered or found.tests or found.able or found.unable):
        reading = {**row.reading, "asleep": found.asleep, "at": at.isoformat()}
        return BurnIn.objects.filter(pk=row.pk).update(reading=reading)
    told = asdict(found)
    kept = ("asleep", "counts", "passed", "temperature", "limit", "hours", "able")
    reading = {name: told[name] for name in kept} | {
        "at": at.isoformat(),
        "left": found.test_left,
        "tests": [asdict(test) for test in found.tests],
    }
    columns: dict[str, object] = {"reading": reading}
    if not row.before:
        columns["before"] = reading
    if found.temperature is not None:
        columns["temperatures"] = thin_out([*row.temperatures, [minutes_since(row, at), found.temperature]])
    return BurnIn.objects.filter(pk=row.pk).update(**columns)


def minutes_since(row: BurnIn, at: datetime) -> int:
    return max(round((at - row.created).total_seconds() / 60), 0)


def thin_out(points: list[list[int]]) -> list[list[int]]:
    """At most so many points: of too many every second one, and the warmest always."""
    if len(points) <= MOST_TEMPERATURES:
        return points
    warmest = max(points, key=lambda point: point[1])
    return [point for at, point in enumerate(points) if at % 2 == 0 or point is warmest or at == len(points) - 1]
