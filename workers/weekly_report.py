"""The weekly report: alerts, pools, disks and finished work. Its arrival also shows that mail works."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from django.conf import settings

from appliance.facts import vdev_state
from web.alerts import pool_usage
from web.alerts.models import Alert
from web.inventory.box import read_box
from web.inventory.models import DiskRow
from web.pools.models import WorkReport
from workers.mail_text import name_subject, plain_text

WEEK = timedelta(days=7)
WORDS = {"healthy": "well", "watch": "to be looked at", "failing": "failing", "unknown": "silent about themselves", "": "not asked yet"}  # fmt: skip
MOST = 20


def build_report(now: datetime) -> tuple[str, list[tuple[str, str]]]:
    """Subject, and heading with text of each part."""
    waiting = [
        plain_text(row.summary) for row in Alert.objects.exclude(state=Alert.State.CLEARED).exclude(severity="notice")
    ]
    count = f"{len(waiting)} {'thing needs' if len(waiting) == 1 else 'things need'} you"
    title = name_subject(str(settings.BOX_NAME), count if waiting else "all is well this week")
    parts = [
        ("", "These wait for you." if waiting else "All is well."),
        ("Open alerts", join_lines(waiting)),
        ("Pools", join_lines(pool_lines(now))),
        ("Disks", disk_summary()),
        ("Checks and rebuildings of this week", join_lines(work_lines(now))),
        (
            "Began and ended this week",
            join_lines([plain_text(row.summary) for row in Alert.objects.filter(cleared__gte=now - WEEK)]),
        ),
    ]
    return title, [(head, text) for head, text in parts if text]


def join_lines(lines: list[str]) -> str:
    more = [f"and {len(lines) - MOST} more"] if len(lines) > MOST else []
    return "\n".join([*lines[:MOST], *more])


def pool_lines(now: datetime) -> list[str]:
    found = [card.pool for card in read_box().cards]
    filled = {
        one.guid: f", {one.percent} % full. {one.forecast_text}".rstrip()
        for one in pool_usage.usage_of_pools(found, now)
    }
    return [
        f"{plain_text(pool.name)}: {vdev_state.describe(pool.state).word}{filled.get(pool.guid, '')}" for pool in found
    ]


def disk_summary() -> str:
    """``4 well, 1 to be looked at``"""
    count = Counter(DiskRow.objects.values_list("verdict", flat=True))
    return ", ".join(f"{count[state]} {word}" for state, word in WORDS.items() if count[state])


def work_lines(now: datetime) -> list[str]:
    words = {"scrub": "checked", "resilver": "rebuilt"}
    rows = WorkReport.objects.filter(ended__gte=now - WEEK, kind__in=words)
    return [f"{plain_text(row.pool)} was {words[row.kind]}: {row.errors or 'no'} errors" for row in rows[:100] if row.outcome == "finished"]  # fmt: skip
