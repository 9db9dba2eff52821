"""Work by schedule that did not happen is told, and only then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from appliance import schedule
from appliance.alerts.fault import Fault
from appliance.facts.box import LongWork, Pool, Scan
from appliance.facts.datasets import Snapshot
from appliance.snapshots.policy import Policy
from appliance.snapshots.set_policy import SetSnapshotPolicy
from tests.web import rows
from web.alerts import reconcile
from web.inventory import store
from web.inventory.dataset_models import SnapshotReading
from web.pools.models import CareSchedule
from web.snapshots import adoption
from web.snapshots.models import MadeSnapshot
from workers import clock, collect_snapshots, unrecorded_snapshots
from workers.alerts import missed_schedules

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def box(calm, monkeypatch) -> None:
    monkeypatch.setattr(schedule, "box_zone", lambda: UTC)


def told(ended: datetime | None, *, state: str = "finished", every: str = "") -> list[str]:
    """What is said of a pool whose last check ended then, or is paused or running."""
    pool: Pool = rows.recorded_box()
    begun = (ended or NOW) - timedelta(hours=5)
    done = ended if state == "finished" else None
    work = LongWork("scrub", state, begun, done, 1, 2)
    rows.put(datasets=[rows.dataset("tank", created=NOW - timedelta(days=400))])
    rows.put(pools=[replace(pool, scan=Scan("scrub", "finished", begun, done, 1, 1, 1, 0), work=(work,))])
    if every:
        CareSchedule.objects.create(pool_key=str(pool.guid), kind="scrub", every=every, first=1, last=6)
    return [fault.summary for fault in missed_schedules.update_overdue(store.facts(), NOW)]


def test_a_pool_that_was_checked_as_its_schedule_wants_is_no_alert():
    assert told(NOW - timedelta(days=30)) == []
    assert told(NOW - timedelta(days=40)) == []  # due, and there are two weeks for it


def test_a_check_that_did_not_happen_is_told():
    assert told(NOW - timedelta(days=60)) == ["tank was not scrubbed in time."]


def test_a_schedule_that_was_switched_off_misses_nothing():
    assert told(NOW - timedelta(days=600), every="never") == []


def test_a_check_under_way_is_not_missed_but_one_that_somebody_paused_and_forgot_is():
    assert told(None, state="running") == []
    assert told(None, state="paused") == ["tank was not scrubbed in time."]


FOLDER = rows.dataset(
    "tank/photos",
    policy=SetSnapshotPolicy(dataset="tank/photos", policy=Policy(daily=7, first=2, last=4)).property_value,
    policy_source="local",
)


@pytest.fixture
def folder() -> missed_schedules.OverdueSnapshots:
    """A folder of which a snapshot is taken each day between two and four."""
    rows.recorded_box()
    store.checked("snapshots", changed=True)
    rows.put(datasets=[rows.dataset("tank"), FOLDER])
    return missed_schedules.OverdueSnapshots(seconds=0)


def taken(at: datetime) -> None:
    """Made up: the policy has taken one of the folder then."""
    made = Snapshot(f"tank/photos@s{at:%d%H}", 2**63 + at.day, at.day, at, run="r")
    row = collect_snapshots.row_of(str(FOLDER.guid), made)
    row.save()
    MadeSnapshot.objects.create(dataset_key=str(FOLDER.guid), guid=row.guid, grains="daily")


def missed(watch: missed_schedules.OverdueSnapshots, *, day: int, hour: int) -> list[str]:
    return [fault.detail for fault in watch.update_faults(store.facts(), NOW.replace(day=day, hour=hour))]


def test_a_policy_that_runs_each_day_misses_nothing(folder):
    for day in (10, 11, 12):
        assert missed(folder, day=day, hour=1) == []
        taken(NOW.replace(day=day, hour=2))
        assert missed(folder, day=day, hour=12) == []


def test_a_snapshot_that_was_not_taken_in_its_hours_is_told_until_one_is(folder):
    taken(NOW.replace(hour=2))
    assert missed(folder, day=11, hour=0) == []  # a new day, whose hour has not come
    assert missed(folder, day=11, hour=2) == []  # an hour is left for trying again
    assert missed(folder, day=11, hour=3) == ["A snapshot of tank/photos was due."]
    assert missed(folder, day=11, hour=20) == ["A snapshot of tank/photos was due."]
    taken(NOW.replace(day=12, hour=2))
    assert missed(folder, day=12, hour=3) == []


def test_a_policy_that_was_just_set_has_its_time_to_begin(folder):
    assert missed(folder, day=10, hour=12) == []
    assert missed(folder, day=11, hour=1) == []
    assert missed(folder, day=11, hour=4) == ["A snapshot of tank/photos was due."]


def test_what_was_told_stays_so_when_the_worker_begins_anew(folder):
    taken(NOW.replace(hour=2))
    pool = store.facts().pools[0]
    reconcile.reconcile_alerts(
        [Fault("policy.overdue", str(pool.guid), "tank: snapshots were not taken.")], NOW.replace(day=11)
    )
    assert missed(folder, day=11, hour=13) == ["A snapshot of tank/photos was due."]


def test_a_folder_in_which_nothing_changed_misses_nothing(folder):
    text = SetSnapshotPolicy(dataset="tank/photos", policy=Policy(daily=7, skip_unchanged=True)).property_value
    rows.put(datasets=[rows.dataset("tank"), replace(FOLDER, policy=text, written=0)])
    taken(NOW.replace(hour=2))
    SnapshotReading.objects.create(dataset_key=str(FOLDER.guid), at=NOW, count=1)
    for day in (12, 13):
        assert missed(folder, day=day, hour=12) == []


def test_snapshots_that_cannot_be_read_are_told_as_that_and_not_twice(folder):
    store.checked("snapshots", changed=False, error="It hangs.")
    for day in (10, 11, 12):
        assert missed(folder, day=day, hour=12) == []


def test_a_look_that_fails_clears_nothing_and_is_repeated_at_once(folder, monkeypatch):
    watch = missed_schedules.OverdueSnapshots(seconds=1_000_000)
    taken(NOW.replace(hour=2))
    missed(watch, day=11, hour=2)
    watch.looks.last = -watch.looks.seconds
    assert missed(watch, day=11, hour=3) == ["A snapshot of tank/photos was due."]
    watch.looks.last = -watch.looks.seconds
    with monkeypatch.context() as patch:
        patch.setattr(missed_schedules, "datasets_due", broken)
        for _evaluation in range(2):
            with pytest.raises(RuntimeError):
                missed(watch, day=11, hour=4)
        assert watch.late == {"tank": ["tank/photos"]}
    assert missed(watch, day=11, hour=5) == ["A snapshot of tank/photos was due."]


def broken(*_args: object) -> None:
    raise RuntimeError("no")


def test_a_look_for_snapshots_without_record_that_fails_is_repeated_at_once(folder, monkeypatch):
    watch = unrecorded_snapshots.UnrecordedSnapshots(seconds=1_000_000)
    key = str(FOLDER.guid)
    with monkeypatch.context() as patch:
        patch.setattr(adoption, "count_unrecorded", broken)
        for _evaluation in range(2):
            with pytest.raises(RuntimeError):
                list(watch.update_faults())
    monkeypatch.setattr(adoption, "count_unrecorded", lambda _keys: {key: 2})
    assert [fault.kind for fault in watch.update_faults()] == ["policy.unrecorded"]
    monkeypatch.setattr(adoption, "count_unrecorded", broken)
    assert [fault.kind for fault in watch.update_faults()] == ["policy.unrecorded"], "it looks every few minutes"


def test_a_clock_that_was_ahead_tells_nothing_once_it_is_back(folder):
    taken(NOW.replace(hour=2))
    assert missed(folder, day=25, hour=1) == []
    assert missed(folder, day=11, hour=2) == []
    assert missed(folder, day=11, hour=3) == ["A snapshot of tank/photos was due."]


class Box:
    """A box that has run for some hours, and whether a time server has answered."""

    def __init__(self, monkeypatch) -> None:
        self.hours, self.asked = 0.0, 0
        self.synced: bool | None = False  # None: nobody can tell
        monkeypatch.setattr("workers.interval.time.monotonic", lambda: self.hours * 3600)
        monkeypatch.setattr("appliance.system.clock.is_synced", self.is_synced)
        monkeypatch.setattr(clock, "network_clock", clock.NetworkClock())

    def is_synced(self) -> bool | None:
        self.asked += 1
        return self.synced

    def told(self, hours: float) -> list[str]:
        self.hours = hours
        return [fault.kind for fault in missed_schedules.update_overdue(store.facts(), NOW)]


def test_a_clock_that_no_server_sets_is_told_after_a_day_and_its_alert_ends(monkeypatch):
    rows.put(pools=[])
    box = Box(monkeypatch)
    assert [box.told(hours) for hours in (0.1, 12, 23.9)] == [[], [], []]
    assert box.asked == 0
    assert box.told(24.1) == ["clock.unset"]
    box.synced = True
    assert box.told(24.2) == ["clock.unset"]
    assert box.asked == 1, "it is asked once an hour"
    assert box.told(25.2) == []


def test_a_clock_of_which_nobody_can_tell_keeps_the_last_answer(monkeypatch):
    """In a container there is no ``timedatectl``, and on a busy box it may not answer in time."""
    rows.put(pools=[])
    box = Box(monkeypatch)
    box.synced = None
    assert box.told(24.1) == []
    box.synced = False
    assert box.told(25.2) == ["clock.unset"]
    box.synced = None
    assert box.told(26.3) == ["clock.unset"]
    box.synced = True
    assert box.told(27.4) == []
