"""What a support bundle holds of Larder's own rows: settings, alerts and jobs as text.
Fields are named one by one here, so that a new one is not in a bundle before somebody has thought of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.db.models import Model

from appliance.alerts.kinds import KINDS
from web.alerts.models import Alert, AlertNote, DiskCare, KindSeverity, MailSettings, Message, PoolDay, SelfTestPlan
from web.inventory.models import Source
from web.jobs.models import Job
from web.pools.models import CareSchedule

ALERTS, JOBS, MESSAGES, ROWS = 200, 100, 50, 500
LOG_LINES, LONGEST = 40, 100_000  # of a job's log; of a file in characters, well below what the agent takes
FAILED = (Job.State.FAILED, Job.State.INTERRUPTED, Job.State.REFUSED)


def own_files() -> dict[str, str]:
    """The files by name."""
    texts = {"settings.txt": settings_lines(), "alerts.txt": alert_lines(), "jobs.txt": job_lines()}
    return {name: "\n".join(lines)[: 2 * LONGEST] + "\n" for name, lines in texts.items()}


def masked_values() -> dict[str, list[str]]:
    """Names that only these rows know, and what must be nowhere in a bundle."""
    mail = MailSettings.load_row()
    recipients = [one for name in ("critical", "warning", "notice") for one in mail.recipients_for(name)]
    hosts = [mail.host, urlsplit(mail.webhook).hostname or "", urlsplit(mail.address).hostname or ""]
    users = [
        *User.objects.values_list("username", flat=True)[:100],
        mail.user,
        *(one.partition("@")[0] for one in recipients),
    ]
    return {
        "users": sorted({user[:150] for user in users if user and user.isprintable()})[:300],
        "hosts": sorted({host for host in hosts if host and host.isprintable()}),
        "pools": sorted(set(PoolDay.objects.values_list("name", flat=True).distinct()[:300])),
        "secrets": [one for one in secrets_of_webhook(mail.webhook) if one],
    }


def secrets_of_webhook(address: str) -> list[str]:
    """A webhook's address is a secret, and so is each part of it behind the name of the computer."""
    parts = urlsplit(address)
    return [address, *(one for one in parts.path.split("/") if len(one) > 7), parts.query, parts.password or ""]


def table(title: str, rows: Iterable[Model], *fields: str) -> list[str]:
    """A heading and a line of JSON for each row, of these fields."""
    return [f"== {title}", *(json.dumps(line_of(row, fields), ensure_ascii=False) for row in rows), ""]


def line_of(row: Model, fields: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in fields}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}


def settings_lines() -> list[str]:
    mail = MailSettings.load_row()
    notifications = {
        **line_of(
            mail, ("host", "port", "security", "user", "sender", "quiet_from", "quiet_to", "digest_hour", "weekly")
        ),
        "certificates of its own": bool(mail.authority),
        "recipients": {name: len(mail.recipients_for(name)) for name in ("critical", "warning", "notice")},
        "webhook": "set" if mail.webhook else "not set",
        "webhook in this network": mail.webhook_private,
    }
    return [
        "== Notifications",
        json.dumps(notifications, ensure_ascii=False),
        "",
        *table("Alert levels that were changed", KindSeverity.objects.all()[:ROWS], "kind", "severity"),
        *table("Self-tests", [SelfTestPlan.load_row()], "short", "long", "first", "last"),
        *table(
            "Disks in self-tests, and sleep",
            DiskCare.objects.all()[:ROWS],
            "disk",
            "tested",
            "sleep",
            "short",
            "long",
            "answer",
        ),
        *table(
            "Scrubs and trims", CareSchedule.objects.all()[:ROWS], "pool_key", "kind", "every", "first", "last", "tried"
        ),
        *table("Messages", Message.objects.all()[:MESSAGES], "event", "way", "state", "made", "tries", "answer"),
        *table("What is read regularly", Source.objects.order_by("name")[:ROWS], "name", "checked", "error"),
    ]


def alert_lines() -> list[str]:
    rows = list(Alert.objects.all()[:ALERTS])
    notes: dict[int, list[AlertNote]] = {}
    for note in AlertNote.objects.filter(alert__in=rows).order_by("at")[: 10 * ALERTS]:
        notes.setdefault(note.alert_id, []).append(note)
    lines: list[str] = []
    for row in rows:
        ended = f", cleared {row.cleared:%Y-%m-%d %H:%M}" if row.cleared else ""
        known = "" if row.kind in KINDS else " (unknown kind)"
        lines += [
            f"{row.first_seen:%Y-%m-%d %H:%M} {row.severity} {row.kind}{known}: {row.state}{ended}",
            f"    {row.summary}",
        ]
        lines += [f"    {row.detail}"] if row.detail else []
        lines += [f"    {note.at:%Y-%m-%d %H:%M} {note.text}" for note in notes.get(row.pk, ())]
    return lines or ["There was no alert yet."]


def job_lines() -> list[str]:
    """The last jobs; of those that did not end well the end of their log too."""
    lines: list[str] = []
    for job in Job.objects.defer("plan")[:JOBS]:
        times = " to ".join(f"{at:%Y-%m-%d %H:%M:%S}" for at in (job.started, job.finished) if at) or "not begun"
        lines += [f"{job.created:%Y-%m-%d %H:%M:%S} {job.kind} {job.state}: {job.title} (by {job.created_by}; {times})"]
        lines += [f"    {job.text}"] if job.text else []
        if job.state in FAILED:
            lines += [f"    | {str(line)[:500]}" for line in job.log[-LOG_LINES:]]
    return lines or ["There was no job yet."]
