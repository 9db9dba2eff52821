"""The weekly report: alerts, pools, disks and finished work. Its arrival also shows that mail works."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from django.conf import settings
from django.utils.translation import gettext, ngettext

from appliance.facts import vdev_state
from web.alerts import pool_usage
from web.alerts.models import Alert
from web.inventory.box import read_box
from web.inventory.models import DiskRow
from web.pools.models import WorkReport
from web.translation import lazy_text, text_of
from workers.alerts.mail_text import name_subject, plain_text

WEEK = timedelta(days=7)
WORDS = {
    "healthy": lazy_text("{count} healthy"),
    "watch": lazy_text("{count} to watch"),
    "failing": lazy_text("{count} failing"),
    "unknown": lazy_text("{count} without health data"),
    "": lazy_text("{count} not asked yet"),
}
MOST = 20


def build_report(now: datetime) -> tuple[str, list[tuple[str, str]]]:
    """Subject, and heading with text of each part."""
    waiting = [
        plain_text(row.summary) for row in Alert.objects.exclude(state=Alert.State.CLEARED).exclude(severity="notice")
    ]
    count = ngettext("{count} thing needs you", "{count} things need you", len(waiting)).format(count=len(waiting))
    title = name_subject(str(settings.BOX_NAME), count if waiting else gettext("all is well this week"))
    parts = [
        ("", gettext("These wait for you.") if waiting else gettext("All is well.")),
        (gettext("Open alerts"), join_lines(waiting)),
        (gettext("Pools"), join_lines(pool_lines(now))),
        (gettext("Disks"), disk_summary()),
        (gettext("Scrubs and rebuilds of this week"), join_lines(work_lines(now))),
        (
            gettext("Began and ended this week"),
            join_lines([plain_text(row.summary) for row in Alert.objects.filter(cleared__gte=now - WEEK)]),
        ),
    ]
    return title, [(head, text) for head, text in parts if text]


def join_lines(lines: list[str]) -> str:
    more = [gettext("and {count} more").format(count=len(lines) - MOST)] if len(lines) > MOST else []
    return "\n".join([*lines[:MOST], *more])


def pool_lines(now: datetime) -> list[str]:
    found = [card.pool for card in read_box().cards]
    filled = {
        one.guid: gettext(", {percent} % full. {forecast}")
        .format(percent=one.percent, forecast=text_of(one.forecast_text))
        .rstrip()
        for one in pool_usage.usage_of_pools(found, now)
    }
    return [
        f"{plain_text(pool.name)}: {text_of(vdev_state.describe(pool.state).word)}{filled.get(pool.guid, '')}"
        for pool in found
    ]


def disk_summary() -> str:
    """``4 well, 1 to be looked at``"""
    count = Counter(DiskRow.objects.values_list("verdict", flat=True))
    return ", ".join(str(words).format(count=count[state]) for state, words in WORDS.items() if count[state])


def work_lines(now: datetime) -> list[str]:
    rows = WorkReport.objects.filter(ended__gte=now - WEEK, kind__in=("scrub", "resilver"))
    return [work_line(row) for row in rows[:100] if row.outcome == "finished"]


def work_line(row: WorkReport) -> str:
    if row.kind == "scrub":
        said = (
            gettext("{pool} was scrubbed. Errors: {count}") if row.errors else gettext("{pool} was scrubbed: no errors")
        )
    else:
        said = (
            gettext("{pool} was rebuilt. Errors: {count}") if row.errors else gettext("{pool} was rebuilt: no errors")
        )
    return said.format(pool=plain_text(row.pool), count=row.errors)
