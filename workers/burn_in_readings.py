"""What disks say of themselves during a burn-in: their figures, log of self-tests and
temperature, read beside the tick."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone
from msgspec.structs import asdict

from appliance import agent_client
from appliance.disks import smart, smart_values
from web.disks.models import BurnIn
from web.inventory import store
from workers import guard
from workers.interval import Interval

EVERY = timedelta(minutes=1)  # of a self-test: a disk that sleeps soon after it has been asked before
WHILE_WRITING = timedelta(minutes=5)
MOST_TEMPERATURES = 240  # then every second one goes, so a curve over days has as many points as one over hours
asking = Interval(5.0)


def is_due(row: BurnIn) -> bool:
    """Whether the disk is to be asked now: at once where a reading is waited for, else every so often."""
    asked = row.reading.get("asked")
    last = datetime.fromisoformat(asked) if asked else row.read_at
    every = WHILE_WRITING if row.stage == "write" else EVERY
    return last is None or is_awaited(row) or abs(timezone.now() - last) > every


def is_awaited(row: BurnIn) -> bool:
    """Whether the burn-in goes on only with a newer reading."""
    return row.read_at is None or (row.wanted is not None and not row.is_fresh)


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


def store_reading(row: BurnIn, found: smart_values.Reading, at: datetime) -> int:
    """Keep an answer with its burn-in. One of a sleeping disk, or of one that never tells figures, leaves the last
    ones. One that lacks what was told before is no reading: whatever waits for one goes on waiting."""
    if not found.asleep and is_lacking(row, found):
        if is_awaited(row):
            return 0
        return BurnIn.objects.filter(pk=row.pk).update(reading={**row.reading, "asked": at.isoformat()})
    if found.asleep or not tells_anything(found):
        reading = {**row.reading, "asleep": found.asleep, "left": None, "testing": False, "at": at.isoformat()}
        reading.pop("asked", None)
        return BurnIn.objects.filter(pk=row.pk).update(reading=reading)
    told = asdict(found)
    kept = ("asleep", "counts", "passed", "temperature", "limit", "hours", "able", "testing")
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


def tells_anything(found: smart_values.Reading) -> bool:
    return bool(found.answered or found.tests or found.able or found.unable or found.testing)


def is_lacking(row: BurnIn, found: smart_values.Reading) -> bool:
    """Whether the disk hangs, or no longer tells what it told at the beginning.

    In a self-test its log, or that one runs, is enough; elsewhere the figures are what matters.
    """
    if found.message.startswith(smart.UNANSWERED):
        return True
    if row.before.get("counts") and not found.counts:
        return row.stage not in BurnIn.SELF_TESTS or not (found.tests or found.testing)
    return bool(row.before.get("able")) and not tells_anything(found)


def minutes_since(row: BurnIn, at: datetime) -> int:
    return max(round((at - row.created).total_seconds() / 60), 0)


def thin_out(points: list[list[int]]) -> list[list[int]]:
    """At most so many points: of too many every second one, and the warmest always."""
    if len(points) <= MOST_TEMPERATURES:
        return points
    warmest = max(points, key=lambda point: point[1])
    return [point for at, point in enumerate(points) if at % 2 == 0 or point is warmest or at == len(points) - 1]
