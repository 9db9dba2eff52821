"""The trusted clock, stored over restarts: snapshot schedules and overdue checks use it."""

from __future__ import annotations

from datetime import datetime, timedelta

from appliance.system import clock
from appliance.system.clock import Clock
from web.inventory.dataset_models import SnapshotRow
from web.snapshots.models import ClockRow
from workers.interval import Interval

SAVED_EVERY = 600.0  # seconds of running that a power cut may cost
HOUR, DAY = 3600.0, 86400.0


class NetworkClock:
    """Whether the network sets the clock, asked of systemd once an hour: asking starts a process. A start
    of the box gets a day for it, because a box may be started before its router. Where systemd does not
    say, the last answer stays."""

    def __init__(self) -> None:
        self.turns = Interval(HOUR, after=DAY)
        self.unset = False

    def is_unset(self) -> bool:
        if self.turns.claim_turn():
            synced = clock.is_synced()
            if synced is not None:
                self.unset = not synced
        return self.unset


network_clock = NetworkClock()


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
                "boot": found.boot,
                "running": found.running,
                "wall": found.wall,
                "shift": found.shift,
                "since": found.since,
            },
        )
    return found


def is_news(last: Clock, found: Clock) -> bool:
    passed = found.running - last.running
    stepped = abs((found.wall - last.wall).total_seconds() - passed) > clock.STEP
    return (last.boot, last.shift) != (found.boot, found.shift) or stepped or passed > SAVED_EVERY


def clock_shift() -> timedelta:
    """The correction of the clock; zero while it is trusted."""
    return next(iter(ClockRow.objects.values_list("shift", flat=True)[:1]), timedelta())
