"""Store SMART answers: the current verdict of each disk, and one row of history per day."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from msgspec.structs import asdict, replace

from appliance.disks.health import ACCEPTABLE, SINCE_FIRST_SEEN, Before, DiskHealth, HealthReason, judge_health
from appliance.disks.smart import NOT_UNDERSTOOD
from appliance.disks.smart_values import Reading
from appliance.errors import Failed, explain_error
from appliance.formatting import moment_text
from appliance.message import Message, join_messages, shorten
from appliance.schedule import box_zone
from web import row_retention
from web.alerts.models import LARGEST, Accepted, DiskDay
from web.database import is_unusable
from web.inventory import store
from web.inventory.models import DiskRow
from web.said import said_in

WRITTEN_EVERY = timedelta(hours=1)  # a temperature that wanders within the day's range is not worth a write
KNOWN = ("healthy", "watch", "failing")
WANDERING = ("temperature", "latency")
FIGURE = "figure "  # before the name of what is kept for its graph alone
NO_ANSWER = Message("It does not answer.")
NO_FIGURES = Message("The disk no longer reports the figures that show its health.")
log = logging.getLogger(__name__)


def store_answers(answers: Mapping[DiskRow, Reading]) -> bool:
    """Judge and store the answers; whether a page shows anything new. A sleeping disk keeps its last values.

    An answer that cannot be judged or stored leaves no other disk unjudged. What the databases did not take is raised
    after the last disk: the verdicts are written first, in memory, so a full system disk hides none. While what was
    accepted cannot be read, disks are judged as if nothing was, and no history is written.
    """
    changed, problems, accepted, usable = False, list[Exception](), dict[str, dict[str, int]](), True
    try:
        accepted = accepted_of([row.key for row in answers])
    except Exception as problem:
        problems.append(problem)
        usable = False
    for row, answer in answers.items():
        own = accepted.get(row.key, {})
        try:
            reading = limit_counts(answer)
            changed = update_row(row, columns_of(row, reading, own)) or changed
        except Exception as problem:
            if is_unusable(problem):
                problems.append(problem)
                continue
            log.exception("what %s answered could not be judged", row.key)
            changed = update_row(row, not_understood(row)) or changed
            continue
        if not usable:
            continue  # a locked database would have every disk wait for it
        try:
            store_history(row.key, reading, own)
        except Exception as problem:
            usable = not is_unusable(problem)
            problems.append(unwritten_history(row.key, problem) if usable else problem)
    if problems:
        if changed:
            store.touch("disks")  # an exception does not tell the caller
        raise problems[0]
    return changed


def unwritten_history(key: str, problem: Exception) -> Failed:
    """The error of one disk whose history alone cannot be written."""
    log.error("the history of %s could not be written", key, exc_info=problem)
    return Failed(key, explain_error(problem))


def columns_of(row: DiskRow, reading: Reading, accepted: Mapping[str, int]) -> dict[str, object]:
    if reading.asleep:
        return {"asleep": True}
    return judged_columns(row, reading, {**first_counts(reading, accepted), **accepted})


def store_history(key: str, reading: Reading, accepted: Mapping[str, int]) -> None:
    """Write what outlasts a restart: the counts as first seen, and the day's row."""
    if reading.asleep:
        return
    with transaction.atomic():
        for name, value in first_counts(reading, accepted).items():
            Accepted.objects.get_or_create(disk=key, count=name, defaults={"value": value})
        store_day(key, reading)


def update_row(row: DiskRow, now: Mapping[str, object]) -> bool:
    if all(getattr(row, column) == value for column, value in now.items()):
        return False
    return bool(DiskRow.objects.filter(pk=row.pk).update(**now))


def judged_columns(row: DiskRow, reading: Reading, accepted: Mapping[str, int]) -> dict[str, object]:
    """The columns of a disk that is awake, by its answer and what was known before."""
    before = before_of(row)
    verdict = judge_health(reading, accepted, rotational=row.fact.rotational, before=before)
    missed = before.is_missed_by(reading)
    if missed and (before.known or reading.message == NOT_UNDERSTOOD):
        return silent_columns(row, reading, verdict)
    now = answer_columns(reading, verdict)
    if row.reading and not missed:
        now["reading"] = {**now["reading"], **carry_over(row.reading, reading)}
    return now


def before_of(row: DiskRow) -> Before:
    return Before(
        reasons=tuple(HealthReason(*found) for found in row.reasons),
        known=row.verdict in KNOWN or "silent" in row.reading,
        counted=bool(row.reading.get("counts")),
        now=moment_text(timezone.now().astimezone(box_zone())),
    )


def silent_columns(row: DiskRow, reading: Reading, verdict: DiskHealth) -> dict[str, object]:
    """The columns of a disk that stopped reporting its health: its last figures stay, the verdict becomes unknown."""
    told = answer_columns(reading, verdict)["reading"]
    fresh = {name: told[name] for name in ("hours", "errors", "figures") if told[name]}
    speaks = reading.answered or not reading.sure or reading.temperature is not None
    why = (NO_FIGURES if speaks else "", reading.message)
    return {
        "asleep": False,
        "temperature": row.temperature if reading.temperature is None else reading.temperature,
        "smart_passed": row.smart_passed if reading.passed is None else reading.passed,
        **verdict_columns(verdict),
        "reading": {**row.reading, **fresh, "silent": join_messages(why) or NO_ANSWER},
    }


def carry_over(before: Mapping[str, Any], reading: Reading) -> dict[str, object]:
    """Parts of the earlier answer that this one leaves out: hours of use, the self-tests, and
    whether the disk supports them."""
    told = {
        "tests": reading.logged or reading.tests,
        "able": reading.able or reading.unable,
        "hours": reading.hours is not None,
    }
    return {name: before[name] for name, found in told.items() if not found and name in before}


def not_understood(row: DiskRow) -> dict[str, object]:
    """The columns of a disk with an answer that cannot be parsed: its last values stay."""
    known: dict[str, object] = {"reading": {**row.reading, "silent": NOT_UNDERSTOOD}, "asleep": False}
    return (
        known
        if row.verdict in {"failing", "watch"}
        else {**known, **verdict_columns(DiskHealth("unknown", (HealthReason("unknown", NOT_UNDERSTOOD),)))}
    )


def limit_counts(reading: Reading) -> Reading:
    """The same with counts that a column can hold."""
    return replace(reading, counts={name: min(value, LARGEST) for name, value in reading.counts.items()})


def note_latency(row: DiskRow, took: Mapping[str, float]) -> bool:
    """Store a disk's latency, by kernel name; None after too few requests, because the last figure is old.

    The row comes first: it is in memory, so that a full system disk does not keep the figure from the alert rules.
    """
    own = took.get(row.fact.name)
    changed = row.latency != own and bool(DiskRow.objects.filter(pk=row.pk).update(latency=own))
    if own is not None:
        try:
            with transaction.atomic():
                store_day(row.key, Reading(counts={"latency": round(own)}))
        except Exception:
            if changed:
                store.touch("latency")  # an exception does not tell the caller
            raise
    return changed


def verdict_columns(verdict: DiskHealth) -> dict[str, object]:
    reasons = [[one.state, one.text, one.count, one.value, one.since] for one in verdict.reasons]
    text = verdict.text
    return {
        "smart_text": shorten(text, 500),
        "verdict": verdict.state,
        "reasons": reasons,
        "said": said_in(text, reasons),
    }


def answer_columns(reading: Reading, verdict: DiskHealth) -> dict[str, Any]:
    return {
        "asleep": False,
        "temperature": reading.temperature,
        "smart_passed": reading.passed,
        **verdict_columns(verdict),
        "reading": {
            "counts": reading.counts,
            "hours": reading.hours,
            "errors": reading.errors,
            "testing": reading.testing,
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


def first_counts(reading: Reading, accepted: Mapping[str, int]) -> dict[str, int]:
    """Counts that mean little alone and have no accepted value yet; they are accepted as first seen."""
    return {name: reading.counts[name] for name in SINCE_FIRST_SEEN if name in reading.counts and name not in accepted}


def acceptable_values(row: DiskRow) -> list[tuple[str, int]]:
    """The counts of a disk that the user can accept, with their current values."""
    return [(count, value) for _state, _text, count, value, *_ in row.reasons if count in ACCEPTABLE and value]


def accept_values(row: DiskRow, shown: Mapping[str, int], by: str) -> tuple[int, int]:
    """Accept the counts of a disk that are no higher than what the user was shown; returns how many these are, and how
    many others there are: they have grown since, or are new."""
    found = acceptable_values(row)
    seen = [(count, value) for count, value in found if value <= shown.get(count, 0)]
    for count, value in seen:
        Accepted.objects.update_or_create(disk=row.key, count=count, defaults={"value": value, "by": by})
    return len(seen), len(found) - len(seen)


def store_day(key: str, reading: Reading, now: datetime | None = None) -> None:
    """Add an answer to the day's row. Written where a count moved or the day's range grew, else once an hour; what is
    kept for its graph alone waits for that."""
    now = now or timezone.now()
    told = dict(reading.counts)
    if reading.temperature is not None:
        told["temperature"] = reading.temperature
    if not told:
        return
    row = DiskDay.objects.filter(disk=key, day=now.date()).first()
    if row is None:
        row_retention.choose_past(
            DiskDay.objects.filter(disk=key).order_by("-day"), row_retention.DAYS_OF_DISK
        ).delete()
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
