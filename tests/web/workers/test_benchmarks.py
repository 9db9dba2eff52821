"""The worker carries a sweep on, a case at a time, whatever becomes of its jobs."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.benchmarks.cleanup import CleanUpBenchmark
from appliance.facts.box import LongWork, Use
from tests.unit.made import disk, path_of
from tests.unit.pools import shapes
from tests.web import rows
from tests.web.benchmarks import sweeps_made
from web.benchmarks.models import CaseRow, ResultRow, SweepRow
from web.inventory import store
from web.inventory.models import PoolRow, Source
from web.jobs import confirm
from web.jobs.models import Job
from web.pools.models import WorkReport
from workers import benchmarks, work_reports
from workers.alerts import evaluate_alerts
from workers.run_job import is_long

BEEN_REBUILT = LongWork("resilver", "finished", None, datetime(2026, 11, 20, tzinfo=UTC), 100, 100)
State, Its = SweepRow.State, CaseRow.State


@pytest.fixture(autouse=True)
def box(calm):
    rows.empty_box(4)


def states(row: SweepRow) -> list[str]:
    return [str(case.state) for case in row.cases.all()]


def state(row: SweepRow) -> tuple[str, str]:
    row.refresh_from_db()
    return str(row.state), row.text


def current() -> CaseRow:
    return CaseRow.objects.get(state__in=(Its.RUNNING, Its.CLEARING))


def job_now() -> uuid.UUID:
    job = current().job
    assert job is not None
    return job


def kinds() -> list[str]:
    return list(Job.objects.order_by("created").values_list("kind", flat=True))


def test_a_sweep_is_measured_a_case_at_a_time_to_its_end(calm):
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    assert states(row) == ["running", "waiting"]
    job = Job.objects.get()
    assert is_long(str(job.pk))
    assert ("workers.run_job", str(job.pk)) in calm
    benchmarks.advance_benchmarks()
    assert Job.objects.count() == 1
    sweeps_made.ended(current())
    benchmarks.continue_after_job(str(job.pk))
    assert states(row) == ["done", "running"]
    sweeps_made.ended(current())
    benchmarks.advance_benchmarks()
    assert state(row) == ("done", "")
    assert kinds() == ["run-benchmark-case", "run-benchmark-case"]
    assert ResultRow.objects.count() == 4
    assert row.versions == '{"ZFS": "2.3.9"}'
    assert row.finished


def test_an_update_in_the_middle_of_a_sweep_is_kept_with_the_case():
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    sweeps_made.ended(current())
    benchmarks.advance_benchmarks()
    sweeps_made.ended(current(), zfs="2.4.0")
    benchmarks.advance_benchmarks()
    row.refresh_from_db()
    assert json.loads(row.versions) == {"ZFS": "2.3.9", "ZFS since case 2": "2.4.0"}


def test_each_case_is_made_for_a_name_of_its_own():
    sweeps_made.made()
    benchmarks.advance_benchmarks()
    first = current().token
    sweeps_made.ended(current())
    benchmarks.advance_benchmarks()
    assert current().token != first
    assert json.loads(Job.objects.latest("created").operation)["token"] == current().token


def test_an_interrupted_case_is_cleared_up_after_and_measured_anew():
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    token = current().token
    sweeps_made.ended(current(), "interrupted", text="It was interrupted after 3 of 6 steps.")
    benchmarks.advance_benchmarks()
    assert kinds() == ["run-benchmark-case", "clean-up-benchmark"]
    assert json.loads(Job.objects.latest("created").operation)["token"] == token
    assert not Job.objects.get(kind="run-benchmark-case").needs_attention
    sweeps_made.ended(current())
    benchmarks.advance_benchmarks()
    assert kinds() == ["run-benchmark-case", "clean-up-benchmark", "run-benchmark-case"]
    assert states(row) == ["running", "waiting"]
    assert ResultRow.objects.count() == 0


def test_a_case_that_fails_again_and_again_is_given_up_and_the_next_is_measured():
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    for _ in range(benchmarks.MOST_ATTEMPTS):
        sweeps_made.ended(current(), "failed", text="fio ended with status 1")
        benchmarks.advance_benchmarks()
        sweeps_made.ended(current())
        benchmarks.advance_benchmarks()
    assert states(row) == ["failed", "running"]
    assert row.cases.get(number=0).text == "fio ended with status 1"
    assert row.cases.get(number=0).measured.reasons == ("fio ended with status 1",)


def test_a_disk_that_holds_something_meanwhile_stops_the_sweep_with_the_reason_and_it_goes_on_when_asked():
    row = sweeps_made.made()
    taken = disk(1, uses=(Use("old", "holds ext4 data called photos", "1"),))
    rows.put(disks=[taken, disk(2)])
    benchmarks.advance_benchmarks()
    assert Job.objects.count() == 0
    found, text = state(row)
    assert found == "paused"
    assert "holds ext4 data called photos" in text
    assert states(row) == ["waiting", "waiting"]
    rows.put(disks=[disk(1), disk(2)])
    SweepRow.objects.update(state=State.RUNNING)
    benchmarks.advance_benchmarks()
    assert states(row) == ["running", "waiting"]


def test_a_disk_that_comes_back_with_its_part_of_the_scratch_pool_is_cleared_first():
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    name = f"larder-sweep-{current().token}"
    rows.put(disks=[disk(1)])
    sweeps_made.ended(current(), "failed", text="a disk left")
    benchmarks.advance_benchmarks()
    sweeps_made.ended(current())
    benchmarks.advance_benchmarks()
    assert "no longer there" in state(row)[1]
    back = disk(2, uses=(Use("exported", f"holds the pool {name}, which is not in use here", "42", name),))
    rows.put(disks=[disk(1), back])
    SweepRow.objects.update(state=State.RUNNING)
    benchmarks.advance_benchmarks()
    benchmarks.advance_benchmarks()
    assert kinds() == ["run-benchmark-case", "clean-up-benchmark", "clean-up-benchmark"]
    assert name.endswith(json.loads(Job.objects.latest("created").operation)["token"])
    rows.put(disks=[disk(1), disk(2)])
    sweeps_made.ended(current())
    benchmarks.advance_benchmarks()
    assert kinds()[-1] == "run-benchmark-case"


def test_what_the_agent_refuses_stops_the_sweep_too():
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    sweeps_made.ended(current(), "refused", text="Something changed since you looked at the plan.")
    benchmarks.advance_benchmarks()
    sweeps_made.ended(current())
    benchmarks.advance_benchmarks()
    assert state(row) == ("paused", "Something changed since you looked at the plan.")
    assert states(row) == ["waiting", "waiting"]


def test_what_cannot_be_cleared_away_is_said_and_tried_again_when_the_person_goes_on():
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    sweeps_made.ended(current(), "failed", text="a disk left")
    benchmarks.advance_benchmarks()
    sweeps_made.ended(current(), "failed", text="Put the disk back, or restart the box.")
    benchmarks.advance_benchmarks()
    assert state(row) == ("paused", "Put the disk back, or restart the box.")
    benchmarks.advance_benchmarks()
    assert kinds() == ["run-benchmark-case", "clean-up-benchmark"]
    SweepRow.objects.update(state=State.RUNNING)
    benchmarks.advance_benchmarks()
    assert kinds() == ["run-benchmark-case", "clean-up-benchmark", "clean-up-benchmark"]


def test_pausing_lets_the_case_end():
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    SweepRow.objects.update(state=State.PAUSING)
    benchmarks.advance_benchmarks()
    assert state(row)[0] == "pausing"
    sweeps_made.ended(current())
    benchmarks.advance_benchmarks()
    assert state(row) == ("paused", "")
    assert states(row) == ["done", "waiting"]


def test_a_case_that_is_stopped_to_pause_at_once_is_measured_anew_and_is_no_failure():
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    for _ in range(4):
        SweepRow.objects.update(state=State.PAUSING)
        sweeps_made.ended(current(), "cancelled", text="It was asked to stop.")
        benchmarks.advance_benchmarks()
        sweeps_made.ended(current())
        benchmarks.advance_benchmarks()
        assert state(row) == ("paused", "")
        assert states(row) == ["waiting", "waiting"]
        assert row.cases.filter(attempts=0).count() == 2
        SweepRow.objects.update(state=State.RUNNING)
        benchmarks.advance_benchmarks()
    assert states(row) == ["running", "waiting"]


def test_a_sweep_that_is_resumed_while_its_case_stops_blames_nobody():
    """Whoever pauses now and resumes at once was never on the page of the job."""
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    sweeps_made.ended(current(), "cancelled", text="It was asked to stop.")
    benchmarks.advance_benchmarks()
    sweeps_made.ended(current())
    benchmarks.advance_benchmarks()
    assert state(row) == ("paused", "A case was stopped before its end. It is repeated when you resume.")


def test_cancelling_stops_the_case_clears_up_and_keeps_what_was_measured(monkeypatch):
    asked = []
    monkeypatch.setattr("web.jobs.confirm.request_stop", lambda job: asked.append(job.pk))
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    sweeps_made.ended(current())
    benchmarks.advance_benchmarks()
    Job.objects.filter(pk=job_now()).update(state=Job.State.RUNNING)
    SweepRow.objects.update(state=State.CANCELLING)
    benchmarks.advance_benchmarks()
    assert asked == [job_now()]
    sweeps_made.ended(current(), "cancelled", text="It was asked to stop.")
    benchmarks.advance_benchmarks()
    assert kinds()[-1] == "clean-up-benchmark"
    sweeps_made.ended(current())
    benchmarks.advance_benchmarks()
    assert state(row)[0] == "cancelled"
    assert states(row) == ["done", "waiting"]
    assert ResultRow.objects.count() == 2


def test_a_worker_that_dies_between_noting_a_job_and_making_it_makes_that_very_one():
    sweeps_made.made()
    benchmarks.advance_benchmarks()
    Job.objects.all().delete()
    benchmarks.advance_benchmarks()
    assert Job.objects.count() == 1
    assert Job.objects.get().pk == current().job


def test_one_sweep_at_a_time_for_a_set_of_disks_and_others_beside_it():
    first = sweeps_made.made()
    benchmarks.advance_benchmarks()
    same = sweeps_made.create.store_sweep(
        sweeps_made.spec(disks=[path_of(2), path_of(3)]), title="x", preset="", pk=str(uuid.uuid4()), user="admin"
    )
    other = sweeps_made.create.store_sweep(
        sweeps_made.spec(disks=[path_of(3), path_of(4)]), title="y", preset="", pk=str(uuid.uuid4()), user="admin"
    )
    benchmarks.advance_benchmarks()
    assert [state(row)[0] for row in (first, same, other)] == ["running", "queued", "running"]


def test_right_after_a_start_nothing_is_begun_before_the_box_is_known():
    row = sweeps_made.made()
    Source.objects.all().delete()
    benchmarks.advance_benchmarks()
    assert Job.objects.count() == 0
    assert states(row) == ["waiting", "waiting"]


@pytest.mark.parametrize("note", ["Result: {", "Result: 5", 'Result: {"number": "x"}', "nothing"])
def test_a_job_that_told_no_figure_is_no_result(note):
    row = sweeps_made.made()
    benchmarks.advance_benchmarks()
    Job.objects.filter(pk=job_now()).update(state="done", log=[note])
    benchmarks.advance_benchmarks()
    assert states(row) == ["failed", "running"]


def test_a_sweep_stored_twice_is_one():
    assert sweeps_made.made().pk == sweeps_made.made().pk
    assert CaseRow.objects.count() == 2


def test_a_pool_that_is_only_there_to_be_measured_raises_no_alert_and_keeps_no_report():
    weak = replace(shapes.mirror("ONLINE", "OFFLINE"), name="larder-sweep-0123456789ab", work=(BEEN_REBUILT,))
    store.replace(PoolRow, [weak], lambda pool: str(pool.guid))
    assert evaluate_alerts.gather_facts(timezone.now(), {}).pools == ()
    assert not work_reports.store_reports([weak])
    assert not WorkReport.objects.exists()
    assert evaluate_alerts.gather_facts(timezone.now(), {}).pools == ()
    store.replace(PoolRow, [replace(weak, name="larder-sweep-mine")], lambda pool: str(pool.guid))
    assert len(evaluate_alerts.gather_facts(timezone.now(), {}).pools) == 1


def test_what_a_disk_brings_back_after_the_end_is_cleared_away_once(calm, monkeypatch):
    row = sweeps_made.finished()
    CaseRow.objects.filter(sweep=row).update(token="")
    CaseRow.objects.filter(sweep=row, number=0).update(token="0123456789ab")
    traces = Use("exported", "holds the pool larder-sweep-0123456789ab", "42", "larder-sweep-0123456789ab")
    rows.empty_box(3, disk(4, uses=(traces,)))
    # That the case itself was cleared up after, when the disk went away, is no reason to wait.
    confirm.start_without_review(CleanUpBenchmark(token="0123456789ab"), user="admin")
    benchmarks.clean_up_leftovers()
    benchmarks.clean_up_leftovers()
    assert kinds() == ["clean-up-benchmark", "clean-up-benchmark"]
    Job.objects.all().delete()
    SweepRow.objects.update(state=State.RUNNING)
    benchmarks.clean_up_leftovers()
    assert kinds() == []


def test_what_a_disk_brings_back_after_its_benchmark_was_deleted_is_cleared_away(calm):
    name = "larder-sweep-0123456789ab"
    traces = Use("exported", f"holds the pool {name}, which is not in use here", "42", name)
    rows.empty_box(3, disk(4, uses=(traces,)))
    PoolRow.objects.create(key="odd", name="odd", facts="{")  # which is nothing of this
    benchmarks.clean_up_leftovers()
    (job,) = Job.objects.all()
    assert decode_operation(job.operation) == CleanUpBenchmark(token="0123456789ab", disks=(path_of(4),))
    # Failed, it is tried again. Done although the traces are still there, it was another box's.
    Job.objects.update(state="failed", created=timezone.now() - timedelta(hours=2))
    benchmarks.clean_up_leftovers()
    assert kinds() == ["clean-up-benchmark"] * 2
    Job.objects.update(state="done", created=timezone.now() - timedelta(hours=2))
    benchmarks.clean_up_leftovers()
    assert kinds() == ["clean-up-benchmark"] * 2
    # Another disk of it may come back later.
    rows.empty_box(3, disk(5, uses=(traces,)))
    benchmarks.clean_up_leftovers()
    assert kinds() == ["clean-up-benchmark"] * 3
