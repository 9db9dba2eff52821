"""The worker begins what is due, as a job like any other."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from msgspec.structs import replace

from appliance import schedule as pure
from appliance.facts.box import LongWork, Pool
from appliance.pools import progress
from tests.unit.made import dataset, disk, recorded_pool
from tests.web import rows
from web.jobs.models import Job
from web.pools.models import CareSchedule, WorkReport
from workers import maintenance

NIGHT = datetime(2027, 1, 10, 2, tzinfo=UTC)
GUID = recorded_pool().guid


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch, calm: object) -> None:
    monkeypatch.setattr(pure, "box_zone", lambda: UTC)


def work(state: str = "finished", *, kind: str = "scrub", days: float = 40) -> LongWork:
    began = NIGHT - timedelta(days=days)
    ended = began + timedelta(hours=1) if state in {"finished", "stopped"} else None
    return LongWork(kind, state, None if kind == "trim" and ended else began, ended, 1, 10)


def tank(*found: LongWork, **changes: Any) -> Pool:
    return replace(recorded_pool(), **{"work": found, "scan": None, **changes})


def look(*pools: Pool, at: datetime = NIGHT) -> list[str]:
    """What is begun at that time."""
    with time_machine.travel(at, tick=False):
        made = [dataset(pool.name, created=rows.LONG_AGO) for pool in pools]
        rows.put(pools=pools, datasets=made, disks=[disk(1)], accounts=[], shares=[])
        begun = maintenance.begin_due_maintenance()
    return [f"{job.kind} {job.subject}" for job in begun]


def test_a_pool_that_is_due_is_checked_by_a_job_of_the_schedule(calm):
    assert look(tank(work())) == ["start-scrub tank"]
    job = Job.objects.get()
    assert (job.created_by, job.state) == ("the schedule", Job.State.QUEUED)
    assert ("workers.run_job", str(job.pk)) in calm
    assert CareSchedule.objects.get().tried == NIGHT


@pytest.mark.parametrize(
    ("found", "at"),
    [
        (work(days=10), NIGHT),
        (work(), NIGHT.replace(hour=12)),
        (work("running", days=1), NIGHT),
        (work("paused", days=1), NIGHT),
        (work("running", kind="resilver"), NIGHT),
        (work("running", kind="expand"), NIGHT),
    ],
    ids=["not due", "by day", "at it", "paused by a person", "rebuilding", "growing"],
)
def test_otherwise_nothing_is_begun_and_nothing_written(found, at):
    assert look(tank(found), at=at) == []
    assert not CareSchedule.objects.exists()


def test_a_pool_that_does_not_work_is_left_alone():
    assert look(tank(work(), state="SUSPENDED")) == []


def test_while_the_job_waits_it_is_not_begun_again():
    assert look(tank(work()))
    assert look(tank(work())) == []
    assert Job.objects.count() == 1


def test_a_job_that_hangs_on_one_pool_leaves_the_others_their_schedule():
    attic = tank(work(days=50), name="attic", guid=7)
    assert look(attic) == ["start-scrub attic"]
    assert look(tank(work()), attic) == []  # two pools are never at it at once
    Job.objects.update(created=NIGHT - timedelta(hours=1))
    assert look(tank(work()), attic) == ["start-scrub tank"]


def test_odd_row_of_one_pool_leaves_the_others_their_schedule(calm):
    from web.inventory.models import PoolRow

    other = replace(tank(work()), name="other", guid=GUID + 1)
    put_odd = PoolRow.objects.filter(key=str(GUID))
    look(tank(work(days=1)), replace(other, work=(work(days=1),)))
    rows.put(pools=(tank(work()), other))
    put_odd.update(facts="{}")
    with time_machine.travel(NIGHT, tick=False):
        assert [job.subject for job in maintenance.begin_due_maintenance()] == ["other"]


def test_a_start_that_failed_is_tried_again_the_next_night():
    look(tank(work()))
    Job.objects.update(state=Job.State.FAILED)
    assert look(tank(work()), at=NIGHT + timedelta(hours=1)) == []
    assert look(tank(work()), at=NIGHT + timedelta(days=1)) == ["start-scrub tank"]


def test_a_rebuilding_since_does_not_make_the_last_check_forgotten():
    WorkReport.objects.create(
        key="x", pool_key=str(GUID), pool="tank", kind="scrub", outcome="finished", ended=NIGHT - timedelta(days=5)
    )
    assert look(tank(work("finished", kind="resilver", days=1))) == []


def test_a_stopped_check_does_not_count():
    WorkReport.objects.create(
        key="x", pool_key=str(GUID), pool="tank", kind="scrub", outcome="stopped", ended=NIGHT - timedelta(days=5)
    )
    assert look(tank(work("stopped", days=5))) == ["start-scrub tank"]


def test_of_two_pools_only_one_is_begun_at_a_time():
    other = tank(work(days=50), name="attic", guid=7)
    assert look(tank(work()), other) == ["start-scrub attic"]
    Job.objects.update(state=Job.State.DONE)
    running = replace(other, work=(work("running", days=0),))
    assert look(tank(work()), running, at=NIGHT + timedelta(hours=1)) == []
    ended = replace(other, work=(LongWork("scrub", "finished", NIGHT, NIGHT + timedelta(hours=2), 1, 1),))
    assert look(tank(work()), ended, at=NIGHT + timedelta(hours=3)) == ["start-scrub tank"]


def test_no_pool_is_begun_while_another_is_rebuilding():
    other = tank(work("running", kind="resilver", days=0), name="attic", guid=7)
    assert look(tank(work()), other) == []


def test_solid_state_disks_are_trimmed_by_the_schedule():
    one = tank(work(days=1), work(kind="trim"), can_trim=True)
    with time_machine.travel(NIGHT, tick=False):
        solid = [disk(path=device.path.rsplit("-part", 1)[0], rotational=False) for device in one.devices()]
        rows.put(pools=[one], datasets=[dataset("tank")], disks=solid)
        assert [job.kind for job in maintenance.begin_due_maintenance()] == ["start-trim"]


def test_what_ends_outside_its_hours_is_paused_and_goes_on_in_the_next_night():
    CareSchedule.objects.create(pool_key=str(GUID), kind="scrub", every="month", first=1, last=6, inside=True)
    running = work("running", days=0.1)
    assert look(tank(running), at=NIGHT.replace(hour=7)) == ["pause-scrub tank"]
    assert CareSchedule.objects.get().held == progress.work_key(tank(), running)
    Job.objects.update(state=Job.State.DONE)
    paused = replace(running, state="paused")
    assert look(tank(paused), at=NIGHT.replace(hour=8)) == []
    assert look(tank(paused), at=NIGHT + timedelta(days=1)) == ["start-scrub tank"]
    assert json.loads(Job.objects.filter(state=Job.State.QUEUED).get().operation)["kind"] == "start-scrub"
    assert CareSchedule.objects.get().held == ""


def test_before_the_pools_were_read_nothing_is_begun():
    assert maintenance.begin_due_maintenance() == []


def test_the_clock_is_given_time_to_be_set_after_a_start_and_looks_are_a_minute_apart(monkeypatch):
    now = [10.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(maintenance.looks, "last", -maintenance.SECONDS_BETWEEN_LOOKS)
    found = []
    for now[0] in (10, 299, 301, 330, 362):
        found.append(maintenance.looks.claim_turn())
    assert found == [False, False, True, False, True]
