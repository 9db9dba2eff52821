"""What disks answered becomes rows: the verdict as it is now, and a short history a day that outlives a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from django.utils import timezone

from appliance.disks.health import SINCE_FIRST_SEEN, Verdict, judge
from appliance.disks.smart import Reading
from web.alerts.models import LARGEST, Accepted, DiskDay
from web.inventory.models import DiskRow
from web.retention import past

WRITTEN_EVERY = timedelta(hours=1)  # a temperature that wanders within the day's range is not worth a write
KEPT = 3 * 366  # days of each disk, counted: by their dates a clock that is years ahead would take all of them away
KNOWN = ("healthy", "watch", "failing")
WANDERING = ("temperature", "latency")
FIGURE = "figure "  # before the name of what is kept for its graph alone


def note(answers: Mapping[DiskRow, Reading]) -> bool:
    """Judge and keep the answers; whether anything that pages show has changed. A sleeping disk keeps what it last said."""
    accepted = accepted_of([row.key for row in answers])
    changed = False
    for row, answered in answers.items():
        reading = bounded(answered)
        if reading.asleep:
            now: dict[str, object] = {"asleep": True}
        elif row.verdict in KNOWN and not reading.answered and reading.temperature is None:
            # What it last said stays: a disk that hangs has not become well.
            now = {"asleep": False, "reading": {**row.reading, "silent": reading.message or "It does not answer."}}
        else:
            own = first_look(row.key, reading, accepted.get(row.key, {}))
            warm = any(reason[2] == "temperature" for reason in row.reasons)
            now = columns(reading, judge(reading, own, rotational=row.fact.rotational, warm=warm))
            keep(row.key, reading)
        if any(getattr(row, column) != value for column, value in now.items()):
            changed = bool(DiskRow.objects.filter(pk=row.pk).update(**now)) or changed
    return changed


def bounded(reading: Reading) -> Reading:
    """The same with counts that a column can hold."""
    return replace(reading, counts={name: min(value, LARGEST) for name, value in reading.counts.items()})


def note_latency(row: DiskRow, took: Mapping[str, float]) -> bool:
    """Keep how long a disk's requests took, by kernel name; one that had too few keeps nothing, for its last figure is old."""
    own = took.get(row.fact.name)
    if own is not None:
        keep(row.key, Reading(counts={"latency": round(own)}))
    return row.latency != own and bool(DiskRow.objects.filter(pk=row.pk).update(latency=own))


def columns(reading: Reading, verdict: Verdict) -> dict[str, object]:
    return {
        "asleep": False,
        "temperature": reading.temperature,
        "smart_passed": reading.passed,
        "smart_text": verdict.text[:500],
        "verdict": verdict.state,
        "reasons": [[reason.state, reason.text, reason.count, reason.value] for reason in verdict.reasons],
        "reading": {
            "counts": reading.counts,
            "hours": reading.hours,
            "errors": reading.errors,
            "left": reading.test_left,
            "able": reading.able,
            "ata": reading.ata,
            "tests": [asdict(test) for test in reading.tests[:10]],
            "figures": [[one.name, one.number, one.text, one.rating, one.limit] for one in reading.figures],
        },
    }


def accepted_of(keys: list[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for row in Accepted.objects.filter(disk__in=keys):
        found.setdefault(row.disk, {})[row.count] = row.value
    return found


def first_look(key: str, reading: Reading, known: dict[str, int]) -> dict[str, int]:
    """What is accepted of a disk. Counts that say little by themselves begin at what they are when first seen."""
    own = dict(known)
    for name in SINCE_FIRST_SEEN:
        if name in reading.counts and name not in own:
            own[name] = reading.counts[name]
            Accepted.objects.get_or_create(disk=key, count=name, defaults={"value": own[name]})
    return own


def accept(row: DiskRow, by: str) -> int:
    """Let what a disk counts now stay quiet until it grows; how many values that were."""
    found = [(count, value) for _state, _text, count, value in row.reasons if count and value and not count.startswith("warning")]  # fmt: skip
    for count, value in found:
        Accepted.objects.update_or_create(disk=row.key, count=count, defaults={"value": value, "by": by})
    return len(found)


def keep(key: str, reading: Reading, now: datetime | None = None) -> None:
    """Add an answer to the day's row. Written where a count moved or the day's range grew, else once an hour; what is kept
    for its graph alone waits for that."""
    now = now or timezone.now()
    told = dict(reading.counts)
    if reading.temperature is not None:
        told["temperature"] = reading.temperature
    if not told:
        return
    row = DiskDay.objects.filter(disk=key, day=now.date()).first()
    if row is None:
        past(DiskDay.objects.filter(disk=key).order_by("-day"), KEPT).delete()
        row = DiskDay(disk=key, day=now.date(), written=now)
    merged = dict(row.values)
    moved = row.pk is None
    for name, value in told.items():
        least, most, last = merged.get(name, (value, value, value))
        merged[name] = [min(least, value), max(most, value), value]
        moved = moved or name not in row.values or [least, most] != merged[name][:2]
        moved = moved or (name not in WANDERING and last != value)
    for one in reading.figures:
        least, most, _last = merged.get(FIGURE + one.name, (one.number, one.number, one.number))
        merged[FIGURE + one.name] = [min(least, one.number), max(most, one.number), one.number]
    if moved or now - row.written > WRITTEN_EVERY:
        row.values, row.written = merged, now
        row.save()
