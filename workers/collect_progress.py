"""Scrubs, rebuilds and other long work of the kernel as rows: progress and time left, also of work begun elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

from django.utils import timezone

from appliance.facts.box import LongWork, Pool
from appliance.pools import progress
from appliance.pools.progress import RateSample, WorkRate
from web.inventory.models import Activity
from web.said import said_in


def update_activities(pools: Iterable[Pool]) -> bool:
    """Update the rows from the pools' statistics; whether a page shows anything new."""
    known = {row.key: row for row in Activity.objects.all()}
    seen: set[str] = set()
    changed = False
    for pool in pools:
        for work in pool.work:
            key = progress.work_key(pool, work)
            seen.add(key)
            changed = update_activity(key, pool, work, known.get(key)) or changed
    gone = set(known) - seen
    Activity.objects.filter(key__in=gone).delete()
    return changed or bool(gone)


def update_activity(key: str, pool: Pool, work: LongWork, before: Activity | None) -> bool:
    """Store one row; whether a page shows a difference."""
    pace = pace_before(before).add_sample(
        RateSample(time.monotonic(), work.done, work.looked), running=work.state == "running"
    )
    left = pace.seconds_left(work.done, work.total)
    phrase = progress.describe_progress(work, left=left, standing=pace.stalled_seconds) if work.under_way else ""
    now = {
        "pool": pool.name,
        "state": work.state,
        "percent": work.percent,
        "started": start_of(work, before),
        "ended": work.ended,
        "rate": pace.rate,
        "left": left,
        "phrase": phrase,
        "said": said_in(phrase),
        "subject": work.subject[:255],
        "done": work.done,
        "total": work.total,
        "settled": bool(before and not work.under_way and (before.state, before.ended) == (work.state, work.ended)),
    }
    if before and not work.under_way and all(getattr(before, name) == value for name, value in now.items()):
        return False
    kept = json.dumps([[sample.at, sample.done, sample.looked] for sample in pace.samples])
    fixed = {"pool_key": str(pool.guid), "kind": work.kind, "seen": timezone.now(), "samples": kept}
    Activity.objects.update_or_create(key=key, defaults={**now, **fixed})
    shown = ("pool", "state", "percent", "phrase", "ended", "subject")
    return before is None or any(getattr(before, name) != now[name] for name in shown)


def start_of(work: LongWork, before: Activity | None) -> object:
    """When the work began. Work without a known beginning, or paused and resumed, keeps the time that was stored."""
    if work.kind in progress.KNOWN_BY_THEIR_END and before and before.under_way and before.started:
        return before.started
    return work.started or (before.started if before and before.ended == work.ended else None)


def pace_before(before: Activity | None) -> WorkRate:
    return WorkRate(tuple(RateSample(*found) for found in json.loads(before.samples))) if before else WorkRate()
