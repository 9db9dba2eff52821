"""One part of the background work that fails is told under its name and stops nothing else."""

from __future__ import annotations

import os
import smtplib
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import DatabaseError, OperationalError, connections
from django.utils import timezone
from msgspec.structs import replace

from appliance import agent_client
from appliance.alerts import fault, rules, sources
from appliance.disks import smart, smart_values
from appliance.disks.health import SINCE_FIRST_SEEN
from appliance.errors import Failed
from appliance.system import system_disk
from appliance.system.system_disk import SystemDisk
from appliance.zfs import kernel_module
from tests.unit.made import disk
from tests.web import rows
from tests.web.benchmarks import sweeps_made
from web import row_retention
from web.alerts import outbox, pool_usage, reconcile
from web.alerts.models import LARGEST, Accepted, Alert, DiskDay, MailSettings, Message
from web.benchmarks.models import CaseRow, SweepRow
from web.disks import smart_history
from web.inventory import store
from web.inventory.models import DiskRow, Event, PoolRow, Source
from web.jobs.models import Job
from workers import (
    background,
    backups,
    benchmarks,
    burn_in,
    collectors,
    database_health,
    guard,
    housekeeping,
    imports,
    maintenance,
    received_copies,
    selftests,
    snapshot_policies,
    spool,
    tick,
)
from workers.alerts import deliver, direct_mail, evaluate_alerts, mail_text, missed_schedules, pending_faults
from workers.interval import Interval

FAULTS = [RuntimeError("no"), Failed("zpool said no"), OperationalError("database is locked"), RecursionError()]


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_args: Any, **_more: Any) -> None:
        raise error

    return fail


def long_enough() -> None:
    """Whatever waits to become an alert has waited for long."""
    pending_faults.store_pending("faults", dict.fromkeys(pending_faults.read_pending("faults"), -100_000.0))


def told(kind: str = "source.stopped") -> dict[str, str]:
    """Subject and summary of the open alerts of a kind, once all waits are over."""
    for _look in range(3):
        guard.run_guarded("alerts", evaluate_alerts.evaluate_alerts)
        long_enough()
    rows_of = Alert.objects.filter(kind=kind).exclude(state="cleared")
    return {row.subject: row.summary for row in rows_of}


# --- the guard ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_guard_notes_what_fails_and_clears_the_note_when_it_works(fault):
    assert not guard.run_guarded("tick-mail", failing(fault))
    assert Source.objects.get(name="tick-mail").error
    assert guard.run_guarded("tick-mail", lambda: None)
    assert Source.objects.get(name="tick-mail").error == ""
    assert guard.failing == {}


def test_guard_writes_nothing_while_all_is_well():
    guard.run_guarded("tick-mail", lambda: None)
    assert not Source.objects.exists()


def test_guard_logs_the_same_failure_once(caplog):
    for _time in range(3):
        guard.run_guarded("tick-mail", failing(RuntimeError("no")))
    assert len(caplog.records) == 1
    guard.run_guarded("tick-mail", lambda: None)
    guard.run_guarded("tick-mail", failing(RuntimeError("no")))
    assert len(caplog.records) == 2


def test_guard_survives_notes_that_cannot_be_written(monkeypatch):
    monkeypatch.setattr(store, "checked", failing(DatabaseError("malformed")))
    assert not guard.run_guarded("tick-mail", failing(RuntimeError("no")))
    assert list(guard.failing) == ["tick-mail"]


def test_each_does_all_items_and_names_those_that_failed():
    done = []

    def work(number: int) -> bool:
        if number % 2:
            raise Failed(f"no {number}")
        done.append(number)
        return True

    with pytest.raises(guard.PartlyFailed) as raised:
        guard.for_each(range(20), work)
    assert done == list(range(0, 20, 2))
    assert raised.value.changed
    assert str(raised.value).startswith("1: no 1 3: no 3")
    assert str(raised.value).endswith("And 5 more.")


# --- stages of the clock --------------------------------------------------------------------------------------------
@pytest.fixture
def due(monkeypatch) -> list[str]:
    """Everything is due in each tick; what was done, by the name of its stage."""
    done: list[str] = []

    def note(name: str, answer: Any = None) -> Callable[..., Any]:
        return lambda *_args, **_more: done.append(name) or answer

    started = {
        "run-facts": "tick-facts",
        "run-temperatures": "tick-temperatures",
        "run-alerts": "tick-alerts",
        "run-mail": "tick-mail",
        "run-housekeeping": "tick-housekeeping",
    }
    monkeypatch.setattr(background, "start_thread", lambda name, _work: done.append(started[name]) or True)
    monkeypatch.setattr(collectors, "is_due", lambda *_args: True)
    monkeypatch.setattr(housekeeping.looks, "claim_turn", lambda: True)
    monkeypatch.setattr(deliver, "has_waiting", lambda _now: True)
    monkeypatch.setattr(spool, "ingest_events", note("tick-events", []))
    monkeypatch.setattr(tick, "send_waiting", note("tick-jobs"))
    monkeypatch.setattr(benchmarks, "advance_benchmarks", note("tick-sweeps"))
    monkeypatch.setattr(burn_in, "advance_burn_ins", note("tick-burn-ins"))
    for name, part, does in (
        ("tick-scrubs", maintenance, "begin_due_maintenance"),
        ("tick-self-tests", selftests, "begin_due_selftests"),
        ("tick-policies", snapshot_policies, "run_due_policies"),
        ("tick-backups", backups, "start_due_backups"),
        ("tick-received", received_copies, "prune_received"),
        ("tick-imports", imports, "resume_imports"),
    ):
        monkeypatch.setattr(part, does, note(name))
        monkeypatch.setattr(part.looks, "claim_turn", lambda: True)
    return done


# Where each stage is made to fail: the first thing that it calls.
BREAKS: dict[str, tuple[Any, str]] = {
    "tick-events": (spool, "ingest_events"),
    "tick-facts": (collectors, "collect_soon"),
    "tick-temperatures": (collectors, "collect_temperatures"),
    "tick-alerts": (collectors, "judge_alerts"),
    "tick-mail": (deliver, "has_waiting"),
    "tick-jobs": (tick, "send_waiting"),
    "tick-sweeps": (benchmarks, "advance_benchmarks"),
    "tick-burn-ins": (burn_in, "advance_burn_ins"),
    "tick-scrubs": (maintenance, "begin_due_maintenance"),
    "tick-self-tests": (selftests, "begin_due_selftests"),
    "tick-policies": (snapshot_policies, "run_due_policies"),
    "tick-backups": (backups, "start_due_backups"),
    "tick-received": (received_copies, "prune_received"),
    "tick-imports": (imports, "resume_imports"),
    "tick-housekeeping": (housekeeping, "run_housekeeping"),
}
STARTS = {
    "tick-housekeeping": "run-housekeeping",
    "tick-facts": "run-facts",
    "tick-temperatures": "run-temperatures",
    "tick-alerts": "run-alerts",
}


def test_every_stage_is_made_to_fail_here():
    assert [stage.name for stage in tick.STAGES] == list(BREAKS)


def test_what_failed_only_because_a_database_could_not_be_used_is_not_told_afterwards(monkeypatch):
    guard.remember_error("latency", "database is locked")
    with monkeypatch.context() as patch:
        locked = database_health.database_fault("inventory", "database is locked")
        patch.setattr(database_health, "database_faults", lambda: iter([locked]))
        assert told() == {}
        assert told("records.failing") == {"inventory": "Larder cannot use its database of inventory."}
    assert told() == {}
    guard.remember_error("latency", "it cannot be read")
    assert told() == {"latency": sources.SOURCES["latency"].failing}


def test_reading_that_met_a_database_that_could_not_be_used_is_not_told_when_it_ends_after_it(monkeypatch):
    with monkeypatch.context() as patch:
        locked = database_health.database_fault("inventory", "database is locked")
        patch.setattr(database_health, "database_faults", lambda: iter([locked]))
        assert told("records.failing")
    store.checked("latency", changed=False, seconds=30, error="database is locked")
    assert told() == {}
    for minutes in (2, -2):
        at = timezone.now() + timedelta(minutes=minutes)
        store.checked("latency", changed=False, error="it cannot be read", at=at)
        assert told() == {"latency": sources.SOURCES["latency"].failing}, f"{minutes} minutes after it"


def test_a_tick_does_every_stage(due):
    tick.tick()
    assert due == list(BREAKS)


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_stage_that_fails_stops_no_other_and_is_told_by_name(due, monkeypatch, broken, fault):
    if broken in STARTS:
        start = background.start_thread

        def unable(name: str, work: Callable[[], object]) -> bool:
            if name == STARTS[broken]:
                raise fault
            return start(name, work)

        monkeypatch.setattr(background, "start_thread", unable)
    else:
        monkeypatch.setattr(*BREAKS[broken], failing(fault))
    for _beat in range(3):
        tick.tick()
    assert set(due) == set(BREAKS) - {broken}
    assert due.count("tick-policies") == (0 if broken == "tick-policies" else 3)
    assert told() == {broken: sources.SOURCES[broken].failing}


def test_a_stage_that_works_again_is_over(due, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(benchmarks, "advance_benchmarks", failing(RuntimeError("no")))
        tick.tick()
        assert set(told()) == {"tick-sweeps"}
    tick.tick()
    Alert.objects.update(gone=timezone.now() - timedelta(days=1))
    assert told() == {}
    assert [row.state for row in Alert.objects.filter(kind="source.stopped")] == ["cleared"]


def test_a_part_that_is_well_is_asked_about_once_and_not_at_every_tick(django_assert_num_queries):
    store.checked("tick-mail", changed=False, error="noted by the worker before")
    guard.run_guarded("tick-mail", lambda: None)
    assert not Source.objects.exclude(error="").exists()
    with django_assert_num_queries(0, using="inventory"):
        guard.run_guarded("tick-mail", lambda: None)
    guard.run_guarded("tick-mail", failing(RuntimeError("no")))
    guard.run_guarded("tick-mail", lambda: None)
    assert not Source.objects.exclude(error="").exists()


def test_events_that_come_during_a_reading_have_another_follow_it(due, monkeypatch):
    monkeypatch.setattr(collectors, "is_due", lambda *_args: False)
    monkeypatch.setattr(spool, "ingest_events", lambda: [Event(source="zed", subject="tank")])
    monkeypatch.setattr(background, "start_thread", lambda _name, _work: False)  # one is under way
    tick.start_collecting()
    tick.ingest_events()
    tick.start_collecting()
    asked = []
    monkeypatch.setattr(background, "start_thread", lambda name, _work: asked.append(name) or True)
    tick.start_collecting()
    tick.start_collecting()
    assert asked == ["run-facts"]


# --- collectors -----------------------------------------------------------------------------------------------------
def test_every_source_that_is_noted_has_words(monkeypatch):
    """Whatever collectors note is told when it fails, but for what a person asks for and sees the error of."""
    noted: list[str] = []
    monkeypatch.setattr(collectors, "note_result", lambda name, **_more: noted.append(name))
    collectors.collect_all()
    collectors.collect_smart()
    collectors.set_sleep_timers()
    assert len(set(noted)) > 15
    assert set(noted) <= set(sources.SOURCES)


@pytest.mark.parametrize("name", ["shares", "accounts", "addresses", "latency", "zfs"])
def test_a_source_that_fails_is_told_whatever_it_is(name):
    collectors.note_result(name, error="It is odd.")
    assert told() == {name: sources.SOURCES[name].failing}


def test_a_table_that_cannot_be_written_ends_no_reading(monkeypatch):
    read: list[str] = []
    monkeypatch.setattr(store, "replace", failing(OperationalError("database or disk is full")))
    monkeypatch.setattr(store, "checked", failing(OperationalError("database or disk is full")))
    monkeypatch.setattr(evaluate_alerts, "evaluate_alerts", lambda: read.append("alerts") or False)
    collectors.collect_all()
    assert read == ["alerts"]
    assert "accounts" in guard.failing


def test_a_process_that_belongs_to_somebody_else_by_now_is_not_waited_for(monkeypatch):
    def not_ours(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", not_ours)
    monkeypatch.setattr(collectors, "_stuck", {"pools": 4711})
    read = []
    assert collectors.update_source("pools", lambda: bool(read.append(1)))
    assert read == [1]


def test_a_disk_with_an_odd_answer_leaves_the_others_judged(monkeypatch):
    rows.put(disks=[disk(1), disk(2), disk(3)])
    answers = {disk(number).path: {"smart_status": {"passed": False}} for number in (1, 2, 3)}
    monkeypatch.setattr(agent_client, "send_request", lambda *_args, **_more: {"facts": answers})
    read = smart.read_smart

    def odd(raw: Any) -> smart_values.Reading:
        if raw is answers[disk(2).path]:
            raise TypeError("unhashable type: 'list'")
        return read(raw)

    monkeypatch.setattr(smart, "read_smart", odd)
    collectors.collect_temperatures()
    verdicts = {row.fact.path: row.verdict for row in DiskRow.objects.all()}
    assert verdicts == {disk(1).path: "failing", disk(2).path: "", disk(3).path: "failing"}
    assert disk(2).path.rsplit("/", 1)[-1] in Source.objects.get(name="temperatures").error
    assert "temperatures" in told()
    assert Alert.objects.filter(kind="disk.failing").count() == 2


@pytest.mark.parametrize("fault", [OperationalError("database or disk is full"), DatabaseError("malformed")])
@pytest.mark.parametrize("unwritable", ["store_day", "Accepted"])
def test_a_failing_disk_is_told_although_its_history_cannot_be_written(monkeypatch, fault, unwritable):
    rows.put(disks=[disk(1), disk(2)])
    pending = {"raw": {"value": 300}, "id": 197, "name": "Current_Pending_Sector"}
    crc = {"raw": {"value": 3}, "id": 199, "name": "UDMA_CRC_Error_Count"}
    answers = {
        disk(number).path: {"smart_status": {"passed": True}, "ata_smart_attributes": {"table": table}}
        for number, table in ((1, [crc, pending]), (2, [crc]))
    }
    monkeypatch.setattr(agent_client, "send_request", lambda *_args, **_more: {"facts": answers})
    if unwritable == "Accepted":
        monkeypatch.setattr(Accepted.objects, "get_or_create", failing(fault))
    else:
        monkeypatch.setattr(smart_history, "store_day", failing(fault))
    version = Source.objects.get(name="disks").version
    collectors.collect_temperatures()
    verdicts = {row.fact.path: row.verdict for row in DiskRow.objects.all()}
    assert verdicts == {disk(1).path: "failing", disk(2).path: "healthy"}
    assert not any("silent" in row.reading for row in DiskRow.objects.all())
    assert Source.objects.get(name="disks").version > version  # pages show it
    assert type(fault).__name__ in Source.objects.get(name="temperatures").error
    told()
    assert Alert.objects.filter(kind="disk.failing").count() == 1


@pytest.mark.parametrize("fault", [OperationalError("unable to open database file"), DatabaseError("malformed")])
def test_disks_are_judged_although_what_was_accepted_cannot_be_read_which_is_told_once(monkeypatch, fault):
    rows.put(disks=[disk(1), disk(2), disk(3)])
    answers = {disk(number).path: {"smart_status": {"passed": False}} for number in (1, 2, 3)}
    monkeypatch.setattr(agent_client, "send_request", lambda *_args, **_more: {"facts": answers})
    written: list[str] = []
    monkeypatch.setattr(smart_history, "accepted_of", failing(fault))
    monkeypatch.setattr(smart_history, "store_day", lambda key, *_more: written.append(key))
    version = Source.objects.get(name="disks").version
    collectors.collect_temperatures()
    assert {row.verdict for row in DiskRow.objects.all()} == {"failing"}
    error = Source.objects.get(name="temperatures").error
    assert error.count(type(fault).__name__) == 1
    assert Source.objects.get(name="disks").version > version  # pages show it
    assert written == []  # it would wait for the same database once more with every disk


def test_history_that_one_disk_alone_cannot_have_written_names_that_disk(monkeypatch):
    rows.put(disks=[disk(1), disk(2), disk(3)])
    answers = {disk(number).path: {"smart_status": {"passed": True}} for number in (1, 2, 3)}
    monkeypatch.setattr(agent_client, "send_request", lambda *_args, **_more: {"facts": answers})
    odd, written = disk(2).path.rsplit("/", 1)[-1], list[str]()

    def store(key: str, *_more: Any) -> None:
        if key == odd:
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        written.append(key)

    monkeypatch.setattr(smart_history, "store_day", store)
    collectors.collect_temperatures()
    assert len(written) == 2
    assert f"{odd}: " in Source.objects.get(name="temperatures").error


@pytest.mark.parametrize("fault", [OperationalError("database or disk is full"), OverflowError("too large")])
def test_a_slow_disk_is_known_although_its_history_cannot_be_written(monkeypatch, fault):
    rows.put(disks=[disk(1), disk(2)])
    store.checked("latency", changed=False)
    version = Source.objects.get(name="latency").version
    monkeypatch.setattr(smart_history, "store_day", failing(fault))
    for row in DiskRow.objects.all():
        with pytest.raises(type(fault)):
            smart_history.note_latency(row, {disk(number).name: 26.0 for number in (1, 2)})
    assert set(DiskRow.objects.values_list("latency", flat=True)) == {26.0}
    assert Source.objects.get(name="latency").version > version  # pages show it


def test_a_day_of_latency_is_written_whole_or_not_at_all(monkeypatch):
    rows.put(disks=[disk(1)])
    row, today = DiskRow.objects.get(), timezone.now().date()
    kept = row_retention.DAYS_OF_DISK
    days = [
        DiskDay(disk=row.key, day=today - timedelta(days=ago), written=timezone.now()) for ago in range(1, kept + 2)
    ]
    DiskDay.objects.bulk_create(days)
    monkeypatch.setattr(DiskDay, "save", failing(OperationalError("database or disk is full")))
    with pytest.raises(OperationalError):
        smart_history.note_latency(row, {row.fact.name: 26.0})
    assert DiskDay.objects.count() == len(days)  # the oldest is not given up for a day that was not written


def test_a_verdict_that_cannot_be_written_is_no_answer_that_could_not_be_understood(monkeypatch):
    rows.put(disks=[disk(1), disk(2)])
    first, second = DiskRow.objects.order_by("pk")
    write = smart_history.update_row

    def full(row: DiskRow, now: Any) -> bool:
        if row.key == first.key and now["verdict"] == "failing":
            raise OperationalError("database or disk is full")
        return write(row, now)

    monkeypatch.setattr(smart_history, "update_row", full)
    with pytest.raises(OperationalError):
        smart_history.store_answers(dict.fromkeys((first, second), smart_values.Reading(answered=True, passed=False)))
    assert list(DiskRow.objects.order_by("pk").values_list("verdict", flat=True)) == ["", "failing"]


# --- numbers that no column holds -----------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [2**63, 2**64 - 1, 10**30])
def test_a_count_beyond_all_bounds_is_told_and_hides_no_other_disk(count):
    rows.put(disks=[disk(1), disk(2)])
    first, second = DiskRow.objects.order_by("pk")
    smart_history.store_answers(
        {first: smart_values.Reading(answered=True, passed=True, counts={"media_errors": count, "grown": count})}
    )
    smart_history.store_answers({second: smart_values.Reading(answered=True, passed=False)})
    evaluate_alerts.evaluate_alerts()
    failed = Alert.objects.filter(kind__in=["disk.failing", "disk.watch"])
    assert second.key in {row.subject for row in failed}


def test_a_mark_beyond_all_bounds_is_kept_as_the_largest():
    now = timezone.now()
    odd, usual = fault.Fault("disk.failing", "a", "A", mark=2**64), fault.Fault("disk.failing", "b", "B", mark=1)
    for _look in range(2):
        reconcile.reconcile_alerts([odd, usual], now)
    assert dict(Alert.objects.values_list("subject", "mark")) == {"a": LARGEST, "b": 1}


def test_what_is_accepted_of_a_disk_fits_its_column():
    rows.put(disks=[disk(1)])
    row = DiskRow.objects.get()
    reading = smart_values.Reading(answered=True, passed=True, counts=dict.fromkeys(SINCE_FIRST_SEEN, 2**64))
    smart_history.store_answers({row: reading})
    assert set(Accepted.objects.values_list("value", flat=True)) == {LARGEST}


# --- alerts ---------------------------------------------------------------------------------------------------------
def test_an_alert_that_cannot_be_written_stops_no_other(monkeypatch):
    begin = reconcile.raise_alert

    def odd(fault: fault.Fault, *more: Any) -> bool:
        if fault.subject == "odd":
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        return begin(fault, *more)

    monkeypatch.setattr(reconcile, "raise_alert", odd)
    found = [fault.Fault("disk.failing", name, name) for name in ("a", "odd", "b")]
    with pytest.raises(reconcile.PartlyWritten, match="odd"):
        reconcile.reconcile_alerts(found, timezone.now())
    assert set(Alert.objects.values_list("subject", flat=True)) == {"a", "b"}


PARTS = {
    "facts_of_pools": (store, "facts_of_pools"),
    "bays": (evaluate_alerts, "list_bays"),
    "homes": (evaluate_alerts, "read_known_bays"),
    "slow_ones": (evaluate_alerts, "slow_disks"),
    "untested": (selftests, "untested_disks"),
    "overdue": (missed_schedules, "update_overdue"),
    "fullness": (pool_usage, "usage_of_pools"),
    "mail": (deliver, "delivery_error"),
    "module": (kernel_module, "read_version"),
    "hooks": (evaluate_alerts, "services_without_hook"),
    "system disk": (system_disk, "read_filesystems"),
    "remember": (evaluate_alerts, "store_pool_days"),
    "missing": (evaluate_alerts, "note_missing_pools"),
    "weekly": (outbox, "queue_weekly_report"),
    "silent disks": (evaluate_alerts, "silent_disks"),
}


@pytest.mark.parametrize("broken", PARTS)
def test_alerts_are_judged_although_one_part_cannot_be_looked_up(monkeypatch, broken):
    rows.recorded_box()
    collectors.note_result("shares", error="It is odd.")
    Alert.objects.create(
        kind="pool.errors",
        subject="x",
        severity="warning",
        summary="Open before.",
        first_seen=timezone.now(),
        gone=rows.LONG_AGO,
    )
    monkeypatch.setattr(*PARTS[broken], failing(RuntimeError("no")))
    assert {"shares", "alerts"} <= set(told())
    assert Alert.objects.get(kind="pool.errors").state == "open"  # not to see a fault is not its end


def test_a_rule_that_breaks_for_one_pool_still_tells_of_the_others():
    good, odd = rows.recorded_box(), object()
    found, complete = rules.find_faults(
        fault.AlertInput(now=timezone.now(), pools=(odd, good), spaces=(odd, fault.Space(1, "tank", 97, 1)))  # type: ignore[arg-type]
    )
    assert "pool.full96" in {fault.kind for fault in found}
    assert not complete


def test_a_wait_goes_on_over_a_restart_of_the_worker(monkeypatch):
    collectors.note_result("shares", error="It is odd.")
    evaluate_alerts.evaluate_alerts()
    pending_faults._kept.clear()  # another process
    begun = pending_faults.read_pending("faults")
    assert len(begun) == 1
    monkeypatch.setattr(time, "monotonic", lambda: min(begun.values()) + 301)
    evaluate_alerts.evaluate_alerts()
    assert Alert.objects.filter(kind="source.stopped").count() == 1


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"x": "y"}', "\x00"])
def test_a_file_of_waits_that_cannot_be_read_begins_anew(text):
    pending_faults.pending_file("faults").write_text(text)
    assert pending_faults.read_pending("faults") == {}


# --- benchmarks -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_benchmark_that_cannot_be_understood_is_held_and_others_go_on(calm, state):
    rows.empty_box(4)
    first = sweeps_made.made(state=state)
    CaseRow.objects.filter(sweep=first).update(spec='{"workload":"tape"}', state="waiting")
    SweepRow.objects.filter(pk=first.pk).update(id="11111111-1111-4111-8111-111111111111")
    CaseRow.objects.filter(sweep=first).update(sweep="11111111-1111-4111-8111-111111111111")
    second = sweeps_made.made(sweeps_made.spec(disks=["/dev/disk/by-id/another"], layouts=["stripe"]))
    benchmarks.advance_benchmarks()
    held = SweepRow.objects.exclude(pk=second.pk).get()
    assert held.state == "paused"
    assert held.text.startswith("Larder cannot continue this benchmark: ")
    second.refresh_from_db()
    assert second.state != "queued"


def test_a_paused_benchmark_that_cannot_be_understood_holds_up_no_other(calm):
    rows.empty_box(4)
    first = sweeps_made.made(state="paused")
    SweepRow.objects.filter(pk=first.pk).update(id="11111111-1111-4111-8111-111111111111", spec='{"where":"tape"}')
    CaseRow.objects.update(sweep="11111111-1111-4111-8111-111111111111")
    second = sweeps_made.made()
    benchmarks.advance_benchmarks()
    second.refresh_from_db()
    assert second.state == "running"


@pytest.mark.parametrize("note", ["{", "[]", "7", '{"ZFS": ["x"]}'])
def test_versions_that_cannot_be_read_cost_no_result(calm, note):
    rows.empty_box(4)
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    case = row.cases.get(state="running")
    sweeps_made.ended(case)
    case.refresh_from_db()
    job = Job.objects.get(pk=str(case.job))
    job.log = [sweeps_made.VERSIONS + note, *job.log[1:]]
    job.save()
    benchmarks.advance_benchmarks()
    case.refresh_from_db()
    assert case.state == "done"
    assert case.results.count() == 2


# --- messages -------------------------------------------------------------------------------------------------------
@pytest.fixture
def sent(monkeypatch) -> list[str]:
    """Subjects of what goes out."""
    MailSettings.objects.create(
        pk=1, host="mail.example", critical="anna@example.org", warning="anna@example.org", notice="anna@example.org"
    )
    found: list[str] = []

    class Smtp:
        def __init__(self, *_args: Any, **_more: Any) -> None: ...
        def starttls(self, **_more: Any) -> None: ...
        def quit(self) -> None: ...
        def close(self) -> None: ...
        def send_message(self, message: Any, **_more: Any) -> dict[str, Any]:
            found.append(str(message["Subject"]).removeprefix(f"Larder {settings.BOX_NAME}: "))
            return {}

    monkeypatch.setattr(smtplib, "SMTP", Smtp)
    return found


def test_an_alert_of_a_kind_that_is_gone_is_still_sent_and_stops_none_behind_it(sent):
    now = timezone.now()
    reconcile.reconcile_alerts(
        [fault.Fault("disk.failing", name, f"{name} is failing.") for name in ("sda", "sdb")], now
    )
    Alert.objects.filter(subject="sda").update(kind="tape.torn")
    assert deliver.send_due(now) == 2
    assert sorted(sent) == ["sda is failing", "sdb is failing"]


def test_a_message_that_cannot_be_written_is_tried_later_and_stops_none_behind_it(sent, monkeypatch):
    now = timezone.now()
    reconcile.reconcile_alerts(
        [fault.Fault("disk.failing", name, f"{name} is failing.") for name in ("sda", "sdb")], now
    )
    letter = mail_text.build_alert_mail

    def odd(told: list[tuple[Alert, str]], **more: Any) -> Any:
        if told[0][0].subject == "sda":
            raise KeyError("tape.torn")
        return letter(told, **more)

    monkeypatch.setattr(mail_text, "build_alert_mail", odd)
    with pytest.raises(guard.PartlyFailed):
        deliver.send_due(now)
    assert sent == ["sdb is failing"]
    odd_one = Message.objects.get(alert__subject="sda")
    assert (odd_one.state, odd_one.tries) == ("waiting", 1)
    assert odd_one.next_try > now


@pytest.fixture
def odd_mail(sent, monkeypatch) -> Callable[[], str]:
    """A message that could not be written, so that sending has an error; what the clock's
    next tick makes of the error."""
    now = timezone.now()
    reconcile.reconcile_alerts([fault.Fault("disk.failing", "sda", "sda is failing.")], now)
    with monkeypatch.context() as broken:
        broken.setattr(mail_text, "build_alert_mail", failing(KeyError("tape.torn")))
        tick.start_mail()

    def error() -> str:
        tick.start_mail()
        return guard.failing.get("run-mail", "") or Source.objects.get(name="run-mail").error

    assert error()
    return error


def test_an_error_of_sending_stays_while_its_message_waits_to_be_tried_again(odd_mail):
    Message.objects.update(next_try=timezone.now() + timedelta(hours=1))
    assert odd_mail()


def test_an_error_of_sending_ends_once_the_message_went_out_by_another_way(odd_mail, sent):
    Message.objects.update(next_try=timezone.now())
    deliver.deliver_messages()  # as the task that a page asks for
    assert sent == ["sda is failing"]
    assert odd_mail() == ""


@pytest.mark.parametrize("end", ["given-up", "deleted"])
def test_an_error_of_sending_ends_when_nothing_is_left_to_send(odd_mail, monkeypatch, end):
    if end == "deleted":
        Alert.objects.all().delete()
    else:
        Message.objects.update(state="given-up")
    monkeypatch.setattr(guard, "failing", {})  # the worker was started anew, and knows only what was noted
    assert odd_mail() == ""


# --- where nothing can be written -----------------------------------------------------------------------------------
@pytest.fixture
def unwritable(monkeypatch) -> None:
    """As on a system disk that takes no writes: what is stored can be read."""
    monkeypatch.setattr(reconcile, "raise_alert", failing(OperationalError("attempt to write a readonly database")))
    monkeypatch.setattr(
        evaluate_alerts, "store_pool_days", failing(OperationalError("attempt to write a readonly database"))
    )


def stopped_pool() -> None:
    rows.recorded_box()
    row = PoolRow.objects.get()
    store.replace(PoolRow, [replace(row.fact, state="SUSPENDED")], lambda pool: str(pool.guid))


def test_critical_faults_are_sent_once_although_no_alert_can_be_stored(sent, unwritable):
    stopped_pool()
    for _look in range(3):
        guard.run_guarded("alerts", evaluate_alerts.evaluate_alerts)
    assert Alert.objects.count() == 0
    assert sorted(sent) == ["Larder cannot use its database of settings", "tank has stopped"]


def test_what_was_sent_before_is_not_sent_again_when_nothing_can_be_stored(sent, monkeypatch):
    stopped_pool()
    evaluate_alerts.evaluate_alerts()
    deliver.send_due(timezone.now())
    assert sent == ["tank has stopped"]
    monkeypatch.setattr(reconcile, "update_alert", failing(OperationalError("attempt to write a readonly database")))
    guard.run_guarded("alerts", evaluate_alerts.evaluate_alerts)
    assert sent == ["tank has stopped", "Larder cannot use its database of settings"]


def test_mail_settings_that_were_read_before_serve_when_they_cannot_be_read(sent, unwritable, monkeypatch):
    stopped_pool()
    direct_mail.remember_settings()
    monkeypatch.setattr(MailSettings, "load_row", failing(DatabaseError("database disk image is malformed")))
    guard.run_guarded("alerts", evaluate_alerts.evaluate_alerts)
    assert "tank has stopped" in sent


def test_a_mail_past_the_database_that_failed_is_no_fault_once_alerts_can_be_stored(sent, monkeypatch):
    stopped_pool()
    with monkeypatch.context() as patch:
        patch.setattr(reconcile, "raise_alert", failing(OperationalError("attempt to write a readonly database")))
        patch.setattr(smtplib, "SMTP", failing(OSError("no route")))
        guard.run_guarded("alerts", evaluate_alerts.evaluate_alerts)
    assert Source.objects.get(name="run-straight-mail").error
    guard.run_guarded("alerts", evaluate_alerts.evaluate_alerts)
    assert Source.objects.get(name="run-straight-mail").error == ""
    assert "run-straight-mail" not in guard.failing


def test_a_database_that_cannot_be_used_is_one_alert_whatever_else_fails_for_it(sent, monkeypatch):
    trouble = database_health.database_error
    monkeypatch.setattr(
        database_health, "database_error", lambda alias: "disk I/O error" if alias == "inventory" else trouble(alias)
    )
    for name in ("tick-jobs", "tick-mail", "pools"):
        guard.remember_error(name, "disk I/O error")
    assert told() == {}
    assert told("records.failing") == {"inventory": "Larder cannot use its database of inventory."}
    deliver.send_due(timezone.now())
    assert sent == ["Larder cannot use its database of inventory"]


def test_an_inventory_that_cannot_be_read_is_told_and_mailed_by_the_clock(sent, monkeypatch):
    """Also when the alerts were judged last stands in the inventory."""
    trouble = database_health.database_error
    monkeypatch.setattr(
        database_health,
        "database_error",
        lambda alias: "file is not a database" if alias == "inventory" else trouble(alias),
    )
    monkeypatch.setattr(tick, "unread", Interval(0))
    monkeypatch.setattr(background, "start_thread", lambda name, work: guard.run_guarded(name, work) or True)
    with connections["inventory"].execute_wrapper(failing(DatabaseError("file is not a database"))):
        for _beat in range(3):
            guard.run_guarded("tick-alerts", tick.start_alerts)
            long_enough()
        guard.run_guarded("tick-mail", tick.start_mail)
    rows_of = Alert.objects.exclude(state="cleared")
    assert [(row.kind, row.subject) for row in rows_of] == [("records.failing", "inventory")]
    assert sent == ["Larder cannot use its database of inventory"]


def test_an_inventory_that_cannot_be_read_has_the_alerts_judged_once_a_minute(monkeypatch):
    started: list[str] = []
    monkeypatch.setattr(tick, "unread", Interval(60))
    monkeypatch.setattr(background, "start_thread", lambda name, _work: started.append(name) or True)
    with connections["inventory"].execute_wrapper(failing(DatabaseError("file is not a database"))):
        for _beat in range(3):
            tick.start_alerts()
    assert started == ["run-alerts"]


def test_the_system_disk_is_told_when_it_is_nearly_full_or_takes_no_writes(monkeypatch):
    found = [SystemDisk("/var/lib/larder", 90, 10**9)]
    monkeypatch.setattr(system_disk, "read_filesystems", lambda: tuple(found))
    assert told("system.full") == {"/var/lib/larder": "The system disk is 90 % full (/var/lib/larder)."}
    found[:] = [SystemDisk("/var/lib/larder", 88, 10**9)]
    assert told("system.full")  # so that it does not flap
    found[:] = [SystemDisk("/var/lib/larder", 20, 10**9, read_only=True)]
    assert told("system.readonly") == {"/var/lib/larder": "The system disk cannot be written to (/var/lib/larder)."}
