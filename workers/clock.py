"""The trusted clock, stored over restarts: snapshot schedules and overdue checks use it."""

from __future__ import annotations

from datetime import datetime, timedelta

from appliance.system import clock
from appliance.system.clock import Clock
from web.inventory.models import SnapshotRow
from web.snapshots.models import ClockRow

SAVED_EVERY = 600.0  # seconds of running that a power cut may cost


def update_clock(now: datetime) -> Clock:
    """Judge the clock and store the judgement where it changed or is some minutes old."""
    row = ClockRow.objects.first()
    newest = None
    if row is None:
        newest = SnapshotRow.objects.exclude(run="").order_by("-created").values_list("created", flat=True).first()
    last = row.clock if row else None
    found = clock.judge_clock(
        last, newest, boot=clock.boot_id(), running=clock.seconds_since_boot(), wall=now, is_synced=clock.is_synced
    )
    if last is None or is_news(last, found):
        ClockRow.objects.update_or_create(
            pk=row.pk if row else 1,
            defaults={
                "boot": found.boot, "running": found.running, "wall": found.wall, "shift": found.shift, "since": found.since,
            },
        )  # fmt: skip
    return found


def is_news(last: Clock, found: Clock) -> bool:
    passed = found.running - last.running
    stepped = abs((found.wall - last.wall).total_seconds() - passed) > clock.STEP
    return (last.boot, last.shift) != (found.boot, found.shift) or stepped or passed > SAVED_EVERY


def clock_shift() -> timedelta:
    """The correction of the clock; zero while it is trusted."""
    return next(iter(ClockRow.objects.values_list("shift", flat=True)[:1]), timedelta())
