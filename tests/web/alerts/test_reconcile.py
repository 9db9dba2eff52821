"""Each fault is one alert and one message, its end is one clearing; what flaps, breaks or
cannot be read changes neither."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from msgspec.structs import replace

from appliance.alerts.fault import Fault
from appliance.alerts.kinds import KINDS
from web import row_retention
from web.alerts import outbox, reconcile
from web.alerts.models import Alert, AlertNote, KindSeverity, MailSettings, Message

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
FAULT = Fault("disk.failing", "ata-WDC_1", "Disk in bay 3 is failing: 312 sectors cannot be read.", mark=312)


@pytest.fixture(autouse=True)
def somebody_is_told() -> MailSettings:
    return MailSettings.objects.create(
        pk=1, host="mail.example", critical="anna@example.org", warning="anna@example.org", notice="anna@example.org"
    )


def later(**more: float) -> datetime:
    return NOW + timedelta(**more)


def messages() -> list[str]:
    return sorted(message.event for message in Message.objects.all())


def test_a_fault_seen_a_thousand_times_is_one_alert_and_one_mail():
    for second in range(1000):
        reconcile.reconcile_alerts([FAULT], later(seconds=second / 1000))
    assert Alert.objects.count() == 1
    assert messages() == ["raised"]


def test_its_end_is_told_once_and_only_when_it_has_lasted():
    reconcile.reconcile_alerts([FAULT], NOW)
    reconcile.reconcile_alerts([], later(minutes=1))
    assert Alert.objects.get().state == "open"
    reconcile.reconcile_alerts([FAULT], later(minutes=2))  # it flaps
    reconcile.reconcile_alerts([], later(minutes=3))
    reconcile.reconcile_alerts([], later(minutes=12))
    assert Alert.objects.get().state == "open"
    reconcile.reconcile_alerts([], later(minutes=14))
    reconcile.reconcile_alerts([], later(minutes=15))
    assert Alert.objects.get().state == "cleared"
    assert messages() == ["cleared", "raised"]
    assert [note.text for note in AlertNote.objects.all()] == [FAULT.summary, "It is over."]


def test_what_has_happened_is_told_and_does_not_end():
    reconcile.reconcile_alerts([Fault("pool.repaired", "1/20260310", "tank repaired itself.")], NOW)
    reconcile.reconcile_alerts([], later(days=2))
    assert Alert.objects.get().state == "cleared"
    assert messages() == ["raised"]


def test_what_comes_again_later_is_another_alert():
    reconcile.reconcile_alerts([FAULT], NOW)
    reconcile.reconcile_alerts([], later(minutes=1))
    reconcile.reconcile_alerts([], later(minutes=20))
    reconcile.reconcile_alerts([FAULT], later(days=1))
    assert sorted(Alert.objects.values_list("state", flat=True)) == ["cleared", "open"]
    assert messages() == ["cleared", "raised", "raised"]


@pytest.mark.parametrize("blind", [{"unread": ["temperatures"]}, {"complete": False}])
def test_nothing_clears_while_its_source_is_silent(blind):
    reconcile.reconcile_alerts([FAULT], NOW)
    for hour in range(1, 5):
        reconcile.reconcile_alerts([], later(hours=hour), **blind)
    assert Alert.objects.get().state == "open"


def test_one_silent_source_does_not_keep_another_from_clearing():
    reconcile.reconcile_alerts([FAULT, Fault("hook.missing", "zed", "x")], NOW)
    for minute in (1, 20):
        reconcile.reconcile_alerts([], later(minutes=minute), unread=["temperatures"])
    assert dict(Alert.objects.values_list("kind", "state")) == {"disk.failing": "open", "hook.missing": "cleared"}


def test_a_clock_set_back_neither_clears_at_once_nor_never():
    reconcile.reconcile_alerts([FAULT], NOW)
    reconcile.reconcile_alerts([], later(minutes=1))
    reconcile.reconcile_alerts([], later(days=-300))
    assert Alert.objects.get().state == "open"
    reconcile.reconcile_alerts([], later(days=-300, minutes=11))
    assert Alert.objects.get().state == "cleared"


def test_an_acknowledged_alert_stays_quiet_until_it_gets_worse():
    reconcile.reconcile_alerts([FAULT], NOW)
    Alert.objects.update(state="acknowledged", mark_seen=312)
    reconcile.reconcile_alerts([FAULT], later(days=1))
    assert (Alert.objects.get().state, messages()) == ("acknowledged", ["raised"])
    for _ in range(3):
        reconcile.reconcile_alerts([replace(FAULT, mark=320, summary="320 sectors")], later(days=2))
    assert (Alert.objects.get().state, messages()) == ("open", ["raised", "raised"])


def test_what_gets_as_bad_as_once_before_is_told_again():
    reconcile.reconcile_alerts([FAULT], NOW)
    for day, (seen, now) in enumerate([(312, 320), (300, 320)]):
        reconcile.reconcile_alerts([replace(FAULT, mark=seen)], later(days=day, hours=1))
        Alert.objects.update(state="acknowledged", mark_seen=seen)
        reconcile.reconcile_alerts([replace(FAULT, mark=now)], later(days=day, hours=2))
        assert Alert.objects.get().state == "open"
    assert messages() == ["raised", "raised", "raised"]


def test_what_gets_worse_takes_the_place_of_the_lesser_alert_without_an_all_clear():
    reconcile.reconcile_alerts([replace(FAULT, kind="disk.watch")], NOW)
    reconcile.reconcile_alerts([FAULT], later(minutes=5))
    assert dict(Alert.objects.values_list("kind", "state")) == {"disk.watch": "cleared", "disk.failing": "open"}
    assert messages() == ["raised", "raised"]


def test_the_end_of_what_nobody_heard_of_is_not_told():
    MailSettings.objects.update(host="")
    reconcile.reconcile_alerts([FAULT], NOW)
    MailSettings.objects.update(host="mail.example")
    reconcile.reconcile_alerts([], later(minutes=1))
    reconcile.reconcile_alerts([], later(minutes=20))
    assert messages() == []


def silence() -> None:
    Alert.objects.update(quiet_until=later(days=7), quiet_reason="a new one is ordered")


def test_what_is_silenced_and_comes_again_stays_silent():
    reconcile.reconcile_alerts([FAULT], NOW)
    silence()
    reconcile.reconcile_alerts([], later(hours=1))
    reconcile.reconcile_alerts([], later(hours=2))
    reconcile.reconcile_alerts([FAULT], later(days=1))
    assert messages() == ["raised"]
    assert Alert.objects.get(state="open").quiet_reason == "a new one is ordered"
    reconcile.reconcile_alerts([replace(FAULT, subject="ata-WDC_2")], later(days=2))
    assert messages() == ["raised", "raised"]  # another disk is not silenced


def test_a_silence_asked_for_while_the_clock_was_years_ahead_is_none():
    reconcile.reconcile_alerts([FAULT], NOW)
    Alert.objects.update(quiet_until=later(days=1500), quiet_reason="x")
    assert not Alert.objects.get().is_silent(NOW)


def test_what_outlasts_its_silence_is_told_once_more():
    reconcile.reconcile_alerts([FAULT], NOW)
    silence()
    for day in (1, 6, 8, 9):
        reconcile.reconcile_alerts([FAULT], later(days=day))
    assert messages() == ["raised", "raised"]
    assert "The silence is over." in [note.text for note in AlertNote.objects.all()]


def test_what_was_acknowledged_meanwhile_is_not():
    reconcile.reconcile_alerts([FAULT], NOW)
    silence()
    Alert.objects.update(state="acknowledged", mark_seen=312)
    reconcile.reconcile_alerts([FAULT], later(days=8))
    assert messages() == ["raised"]


def test_mail_that_fails_is_not_told_by_mail():
    reconcile.reconcile_alerts([Fault("mail.failing", "mail", "x")], NOW)
    assert messages() == []


def test_the_owner_decides_how_grave_a_kind_is():
    KindSeverity.objects.create(kind="disk.failing", severity="notice")
    reconcile.reconcile_alerts([FAULT], NOW)
    assert Alert.objects.get().severity == "notice"


@pytest.mark.parametrize(
    ("severity", "hour", "wanted"),
    [
        ("critical", 23, (10, 23)),
        ("warning", 12, (10, 12)),
        ("warning", 23, (11, 7)),
        ("warning", 3, (10, 7)),
        ("notice", 12, (11, 8)),
        ("notice", 3, (10, 8)),
    ],
)
def test_quiet_hours_hold_everything_but_what_is_critical(severity, hour, wanted):
    mail = MailSettings(quiet_from=22, quiet_to=7, digest_hour=8)
    at = outbox.send_time(severity, NOW.replace(hour=hour), mail, UTC)
    assert (at.day, at.hour) == wanted


def test_what_ended_while_the_clock_was_years_ahead_takes_nothing_away_of_what_is_over(monkeypatch):
    def begin_and_end(at: datetime) -> None:
        reconcile.reconcile_alerts([FAULT], at)
        for minutes in (0, 30):
            reconcile.reconcile_alerts([], at + timedelta(minutes=minutes))

    begin_and_end(NOW)
    begin_and_end(NOW + timedelta(days=4 * 365))
    assert Alert.objects.filter(state="cleared").count() == 2
    monkeypatch.setattr(row_retention, "ALERTS_ANYWAY", 1)
    begin_and_end(NOW + timedelta(days=4 * 365, hours=1))
    assert [row.first_seen.year for row in Alert.objects.filter(state="cleared")] == [2030, 2030]


def test_nothing_clears_of_a_disk_that_has_said_nothing_since_the_box_started():
    reconcile.reconcile_alerts([FAULT], NOW)
    reconcile.reconcile_alerts([], later(minutes=1), unheard=["ata-WDC_1"])
    reconcile.reconcile_alerts([], later(minutes=30), unheard=["ata-WDC_1"])
    assert Alert.objects.get().state == "open"
    reconcile.reconcile_alerts([], later(minutes=31))
    reconcile.reconcile_alerts([], later(minutes=42))
    assert Alert.objects.get().state == "cleared"


@pytest.mark.parametrize(
    ("kind", "subject"),
    [("pool.stopped", "12"), ("pool.errors", "12/5"), ("pool.full90", "12"), ("policy.overdue", "12")],
)
def test_nothing_clears_of_a_pool_that_is_missing(kind, subject):
    reconcile.reconcile_alerts([Fault(kind, subject, "x"), Fault("pool.degraded", "123", "x")], NOW)
    for minute in (1, 30):
        reconcile.reconcile_alerts([], later(minutes=minute), missing=["12"])
    assert dict(Alert.objects.values_list("kind", "state")) == {kind: "open", "pool.degraded": "cleared"}
    for minute in (31, 60):
        reconcile.reconcile_alerts([], later(minutes=minute))
    assert not Alert.objects.exclude(state="cleared").exists()


def test_alerts_and_levels_go_on_under_the_codes_of_today():
    fault = Fault("pool.degraded", "tank", "tank has lost a disk.")
    reconcile.reconcile_alerts([fault], NOW)
    Alert.objects.update(kind="pool.weakened")
    KindSeverity.objects.create(kind="pool.bare", severity="warning")
    migration = import_module("web.alerts.migrations.0003_codes_of_the_field")
    migration.rename(apps, connection.schema_editor())
    assert Alert.objects.get().kind in KINDS
    assert KindSeverity.objects.get().kind in KINDS
    reconcile.reconcile_alerts([fault], later(minutes=1))
    assert Alert.objects.count() == 1
    assert messages() == ["raised"]
