"""Queue notifications as rows, in the transaction of the change they report. The worker sends them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, tzinfo

from appliance.schedule import box_zone
from web.alerts.models import Alert, MailSettings, Message

IMMEDIATE = ("critical", "warning")


def queue_alert(alert: Alert, event: str, now: datetime, mail: MailSettings, *, again: str = "") -> None:
    """Queue messages about an alert by mail and webhook. Silenced alerts and the failure of mail itself queue none."""
    if alert.kind == "mail.failing" or alert.is_silent(now):
        return
    if event == "cleared" and (
        alert.kind_info.news or not Message.objects.filter(alert=alert, event="raised").exists()
    ):
        return  # nobody was notified of it, or it is news, which does not end
    at = send_time(alert.severity, now, mail, box_zone())
    for way in mail.ways_for(alert.severity):
        key = "-".join(filter(None, [event, str(alert.pk), way, again]))
        Message.objects.get_or_create(
            key=key, defaults={"alert": alert, "event": event, "way": way, "made": now, "next_try": at}
        )


def forget_tests(ways: Iterable[str]) -> None:
    """Delete the tests of these ways, also those under way: their settings are no longer the same."""
    Message.objects.filter(event="test", way__in=ways).delete()


def forget_unsent(ways: Iterable[str]) -> None:
    """Delete what was to be sent by ways that are no longer set up."""
    unsent = (Message.State.WAITING, Message.State.SENDING)
    Message.objects.filter(way__in=ways, state__in=unsent).delete()


def queue_test(way: str, now: datetime) -> Message:
    """Queue a test message by mail or webhook; it replaces the last one."""
    forget_tests([way])
    return Message.objects.create(key=f"test-{way}-{now.timestamp()}", event="test", way=way, made=now, next_try=now)


def queue_weekly_report(now: datetime, mail: MailSettings) -> bool:
    """Queue the weekly report, from Monday on and once per calendar week; whether one was queued."""
    local = now.astimezone(box_zone())
    if not (mail.weekly and mail.host and mail.for_report):
        return False
    if local.weekday() == 0 and local.hour < mail.digest_hour:
        return False
    year, week, _day = local.isocalendar()
    _row, made = Message.objects.get_or_create(
        key=f"weekly-{year}-{week}", defaults={"event": "weekly", "way": "mail", "made": now, "next_try": now}
    )
    return made


def send_time(severity: str, now: datetime, mail: MailSettings, zone: tzinfo) -> datetime:
    """When to send: critical at once, warnings after the quiet hours, notices with the daily summary."""
    if severity == "critical":
        return now
    if severity not in IMMEDIATE:
        return next_hour(now, mail.digest_hour, zone)
    hour = now.astimezone(zone).hour
    begin, end = mail.quiet_from, mail.quiet_to
    quiet = begin <= hour < end if begin <= end else hour >= begin or hour < end
    return next_hour(now, end, zone) if quiet else now


def next_hour(now: datetime, hour: int, zone: tzinfo) -> datetime:
    """The next full hour of that number by the box's clock."""
    local = now.astimezone(zone)
    found = local.replace(hour=hour, minute=0, second=0, microsecond=0)
    return found if found > local else found + timedelta(days=1)
