"""The worker carries a burn-in on, a job at a time, whatever becomes of its jobs and of the disk."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from appliance import agent_client
from appliance.burn_in.regions import RegionResult
from appliance.disks import query, smart_answer
from appliance.errors import Failed
from tests.reasons import codes_on_page
from tests.unit.made import OLD, disk, path_of, recorded
from tests.web import rows
from tests.web.disks import burn_ins_made
from tests.web.disks.burn_ins_made import PASSED, ended, reading
from web.disks.models import BurnIn
from web.inventory import store
from web.inventory.models import DiskRow, Source
from web.jobs.models import Job
from workers import burn_in, burn_in_readings
from workers.interval import Interval
from workers.run_job import is_long

State = BurnIn.State
ANSWER = recorded("smartctl-qemu-ata-7.4.json")
READ_DUE = burn_in_readings.read_due
FAILING = {"smartctl": {"exit_status": 2, "messages": [{"string": "Smartctl open device failed", "severity": "error"}]}}
HUNG = smart_answer.no_answer(str(query.Silent(timezone.now())))
ASLEEP = {"smartctl": {"exit_status": 2, "messages": [{"string": "Device is in STANDBY mode, exit(2)"}]}}


@pytest.fixture(autouse=True)
def box(calm, monkeypatch):
    rows.empty_box(4)
    monkeypatch.setattr(burn_in_readings, "read_due", lambda: None)
    for name in ("pools", "disks"):
        store.checked(name, changed=True)


def advance(row: BurnIn) -> BurnIn:
    burn_in.advance_burn_ins()
    row.refresh_from_db()
    return row


def asked(row: BurnIn) -> dict:
    """What the job of now does."""
    row.refresh_from_db()
    assert row.job is not None
    return json.loads(Job.objects.get(pk=row.job).operation)


def writing(**changes) -> BurnIn:
    """A burn-in whose self-tests are done, at its first job."""
    row = burn_ins_made.made(stage="write", tests={"short": {"passed": True}, "long": {"passed": True}}, **changes)
    return advance(row)


def well(*numbers: int) -> list[RegionResult]:
    return [RegionResult(number=number, written=10**8, read=10**8) for number in numbers]


def test_a_disk_tests_itself_then_is_written_to_then_has_a_verdict():
    row = advance(burn_ins_made.made(size=400 * 2**20))
    DiskRow.objects.filter(key=row.disk).delete()
    store.replace(DiskRow, [disk(1, size=400 * 2**20)], lambda one: one.path.rsplit("/", 1)[-1])
    assert Job.objects.count() == 0  # the first reading is waited for
    reading(row)
    log: list[dict[str, object]] = []
    for kind in ("short", "long"):
        advance(row)
        assert asked(row).items() >= {"kind": "start-self-test", "disk": path_of(1)}.items()
        assert asked(row).get("test", "short") == kind
        ended(row)
        advance(row)
        reading(row, tests=log, left=90)
        assert advance(row).job is None  # it runs
        log = [{**PASSED, "kind": kind}, *log]
        reading(row, tests=log)
        advance(row)
        assert row.tests[kind]["passed"]
        reading(row, tests=log)
        advance(row)
        if kind == "short":
            reading(row, tests=log)
    assert row.stage == "write"
    while row.stage == "write":
        advance(row)
        told = asked(row)
        ended(row, "done", *well(*range(told.get("first", 0), told.get("first", 0) + told["count"])))
        burn_in.continue_after_job(str(row.job))
        row.refresh_from_db()
    reading(row, tests=log)
    assert advance(row).state == State.DONE
    assert (row.verdict, row.findings) == ("clean", [])
    assert row.finished
    assert [result.number for result in row.tested] == list(range(len(row.regions)))


def test_a_failed_selftest_spares_the_disk_the_rest():
    row = burn_ins_made.made(attempts=1, log=[], wanted=timezone.now())
    reading(row, tests=[{**PASSED, "passed": False, "text": "read failure"}])
    assert advance(row).stage == "last"
    reading(row)
    assert advance(row).verdict == "failed"
    assert Job.objects.count() == 0
    assert "read failure" in row.findings[0][1]


def test_a_selftest_that_left_nothing_is_started_again_and_given_up_in_the_end():
    row = burn_ins_made.made(attempts=1, log=[], wanted=timezone.now())
    for _again in range(2):
        reading(row)
        assert asked(advance(row))["kind"] == "start-self-test"
        ended(row)
        advance(row)
    reading(row)
    assert advance(row).stage == "long"
    assert row.tests["short"]["passed"] is None


def test_a_running_selftest_is_awaited_although_the_disk_does_not_say_what_is_left():
    row = burn_ins_made.made(attempts=1, stage="long", log=[], wanted=timezone.now())
    for _later in range(3):
        reading(row, testing=True)
        advance(row)
        assert (row.stage, row.job, row.is_testing, row.left) == ("long", None, True, None)
    assert Job.objects.count() == 0
    reading(row, tests=[{**PASSED, "kind": "long"}])
    assert advance(row).stage == "write"


def test_a_selftest_that_a_sas_disk_runs_is_kept_with_its_reading(answers):
    sas = recorded("smartctl-published.json")["answers"]["sas-hitachi-7.3"]
    row = burn_ins_made.made(wanted=timezone.now())
    answers(sas | {"scsi_self_test_0": {"result": {"value": 15}, "self_test_in_progress": True}})
    assert advance(row).is_testing
    assert Job.objects.count() == 0


def test_a_disk_without_selftests_is_written_to_all_the_same():
    row = burn_ins_made.made(wanted=timezone.now())
    reading(row, able=False)
    advance(row)
    reading(row, able=False)
    advance(row)
    reading(row, able=False)
    assert advance(row).stage == "write"
    assert not any(test["able"] for test in row.tests.values())


def test_jobs_write_bounded_pieces_and_leave_room():
    row = writing(rate=50 * 10**6)
    assert asked(row).items() >= {"kind": "burn-in-disk", "size": row.size, "count": 6, "rate": 50 * 10**6}.items()
    assert is_long(str(row.job))
    ended(row, "done", *well(0, 1, 2, 3, 4, 5))
    assert asked(advance(row))["first"] == 6
    burn_in.advance_burn_ins()
    assert Job.objects.count() == 2


def test_an_interrupted_job_goes_on_with_the_first_region_without_a_result():
    row = writing()
    job = ended(row, "interrupted", *well(0, 1), text="It was interrupted after 0 of 6 steps.")
    advance(row)
    assert asked(row)["first"] == 2
    assert row.state == State.RUNNING
    job.refresh_from_db()
    assert not job.needs_attention


def test_one_that_is_interrupted_again_and_again_without_a_result_waits():
    row = writing()
    for _again in range(3):
        ended(row, "interrupted", text="It was interrupted.")
        advance(row)
    assert (row.state, row.text) == (State.PAUSED, "It was interrupted.")
    assert Job.objects.count() == 3


def test_a_job_that_says_it_is_done_and_has_no_results_does_not_go_on_for_ever():
    row = writing()
    for _again in range(3):
        ended(row)
        advance(row)
    assert row.state == State.PAUSED


@pytest.mark.parametrize("state", ["failed", "refused"])
def test_what_a_failed_job_found_counts_and_the_reason_is_told(state):
    row = writing()
    ended(row, state, *well(0), text="The disk no longer answers.")
    advance(row)
    assert (row.state, row.text, row.job) == (State.PAUSED, "The disk no longer answers.", None)
    assert [one.number for one in row.tested] == [0]


def test_many_bad_regions_end_it_before_the_days_are_spent():
    row = writing()
    bad = [RegionResult(number=number, problem="read", at=number) for number in range(6)]
    ended(row, "done", *bad)
    advance(row)
    ended(row, "done", *(replace_number(bad[0], number) for number in range(6, 12)))
    assert advance(row).stage == "last"
    reading(row)
    assert advance(row).verdict == "failed"


def replace_number(result: RegionResult, number: int) -> RegionResult:
    return RegionResult(number=number, problem=result.problem, at=result.at)


def test_a_disk_that_is_in_use_meanwhile_is_not_written_to():
    row = burn_ins_made.made(stage="write")
    store.replace(DiskRow, [disk(1, uses=(OLD,))], lambda one: one.path.rsplit("/", 1)[-1])
    assert advance(row).state == State.PAUSED
    assert "ext4" in row.text
    assert Job.objects.count() == 0


def test_a_disk_that_is_gone_waits_but_not_before_anything_is_known():
    row = burn_ins_made.made(stage="write")
    DiskRow.objects.all().delete()
    Source.objects.all().delete()
    assert advance(row).state == State.RUNNING
    for name in ("pools", "disks"):
        store.checked(name, changed=True)
    assert advance(row).state == State.PAUSED
    assert "Put it back" in row.text


def test_pause_and_stop_ask_the_job_and_wait_for_its_end(monkeypatch):
    told = []
    monkeypatch.setattr(agent_client, "send_request", lambda request, **_more: told.append(request) or {})
    for wanted, reached in ((State.PAUSING, State.PAUSED), (State.STOPPING, State.STOPPED)):
        Job.objects.all().delete()
        BurnIn.objects.all().delete()
        row = writing()
        Job.objects.update(state="running")
        BurnIn.objects.update(state=wanted)
        assert advance(row).state == wanted
        assert told[-1]["verb"] == "stop"
        ended(row, "cancelled", *well(0), text="It was asked to stop.")
        assert advance(row).state == reached
        assert [one.number for one in row.tested] == [0]
        assert row.text == ""


def test_a_job_stopped_on_its_own_page_pauses_it():
    row = writing()
    ended(row, "cancelled", text="It was asked to stop.")
    assert advance(row).state == State.PAUSED


def test_other_long_work_gets_a_seat():
    first = writing()
    for number in (2, 3, 4):
        burn_ins_made.made(number, pk=None, stage="write")
    rows.job(state=Job.State.QUEUED)
    burn_in.advance_burn_ins()
    assert Job.objects.filter(kind="burn-in-disk").count() == 3
    Job.objects.exclude(kind="burn-in-disk").update(state="done")
    burn_in.advance_burn_ins()
    assert Job.objects.filter(kind="burn-in-disk").count() == 4
    assert first.state == State.RUNNING


def test_one_that_cannot_go_on_holds_up_no_other(monkeypatch):
    broken = burn_ins_made.made(2, pk=None, stage="write", results=[{"number": "x"}])
    row = writing()
    broken.refresh_from_db()
    assert broken.state == State.PAUSED
    assert row.job


def test_after_a_crash_between_row_and_job_the_job_is_made():
    row = writing()
    Job.objects.all().delete()
    advance(row)
    assert Job.objects.count() == 1


def test_a_disk_that_does_not_tell_its_figures_is_not_waited_for_for_ever():
    row = burn_ins_made.made(stage="last", wanted=timezone.now() - timedelta(hours=1))
    assert advance(row).state == State.PAUSED
    assert "figures" in row.text


def test_readings_are_kept_with_the_first_of_them_and_the_temperatures(monkeypatch):
    monkeypatch.undo()
    row = burn_ins_made.made()
    answer = recorded("smartctl-qemu-ata-7.4.json")
    monkeypatch.setattr(
        agent_client, "send_request", lambda request, **_more: {"facts": dict.fromkeys(request["disks"], answer)}
    )
    burn_in_readings.read_due()
    row.refresh_from_db()
    assert row.before == row.reading
    assert row.reading["able"]
    assert row.temperatures == [[0, row.reading["temperature"]]]
    assert not burn_in_readings.is_due(row)
    row.wanted = timezone.now()
    assert burn_in_readings.is_due(row)


def test_readings_that_failed_are_no_fault_once_no_burn_in_asks_for_any(monkeypatch):
    def no_agent() -> None:
        raise Failed("The agent does not answer")

    def noted() -> str:
        return Source.objects.get(name="run-burn-in-readings").error

    monkeypatch.setattr(burn_in_readings, "read_due", no_agent)
    monkeypatch.setattr(burn_in_readings, "asking", Interval(0))
    row = burn_ins_made.made()
    advance(row)
    assert noted()
    monkeypatch.setattr(burn_in_readings, "asking", Interval(1_000_000, after=float("inf")))
    advance(row)
    assert noted(), "it is asked again a little later"
    BurnIn.objects.update(state=State.PAUSED)
    advance(row)
    assert noted() == ""


def test_a_curve_over_days_stays_small_and_keeps_its_peak():
    points = [[minute, 60 if minute == 333 else 30] for minute in range(burn_in_readings.MOST_TEMPERATURES * 2 + 1)]
    thin: list[list[int]] = []
    for point in points:
        thin = burn_in_readings.thin_out([*thin, point])
    assert len(thin) <= burn_in_readings.MOST_TEMPERATURES
    assert [333, 60] in thin
    assert thin[-1] == points[-1]


# --- a disk that stops answering --------------------------------------------------------------------------------
@pytest.fixture
def clock(monkeypatch):
    """Moves the time on: ``clock(minutes=5)``."""
    now, passed = timezone.now(), timedelta()

    def move(**step: float) -> None:
        nonlocal passed
        passed += timedelta(**step)

    monkeypatch.setattr(timezone, "now", lambda: now + passed)
    return move


@pytest.fixture
def answers(monkeypatch, clock):
    """Has every disk that is due answer with this, five seconds later."""

    def answer(what: object) -> None:
        clock(seconds=5)
        monkeypatch.setattr(
            agent_client, "send_request", lambda request, **_more: {"facts": dict.fromkeys(request["disks"], what)}
        )
        READ_DUE()
        clock(seconds=5)

    return answer


def answer_with_left(left: int) -> dict:
    """The disk's answer while it tests itself."""
    status = {"value": 0xF0 + left // 10, "remaining_percent": left}
    return {**ANSWER, "ata_smart_data": {**ANSWER["ata_smart_data"], "self_test": {"status": status}}}


def in_a_long_test(answers, **changes) -> BurnIn:
    """A burn-in whose long self-test has begun: 90 % are left."""
    row = burn_ins_made.made(stage="long", tests={"short": {"passed": True}}, **changes)
    advance(row)
    answers(ANSWER)
    assert asked(advance(row))["test"] == "long"
    ended(row)
    advance(row)
    answers(answer_with_left(90))
    assert advance(row).left == 90
    return row


@pytest.mark.parametrize("answer", [HUNG, FAILING], ids=["hangs", "fails"])
def test_a_disk_that_stops_answering_in_its_selftest_is_not_waited_for_for_ever(answers, clock, answer):
    row = in_a_long_test(answers)
    for _minute in range(25):
        clock(minutes=1)
        answers(answer)
        advance(row)
    assert row.state == State.PAUSED
    assert "does not answer" in row.text
    assert row.left is None
    assert Job.objects.count() == 1  # nothing is begun on a disk whose test may still run


def test_a_disk_that_fails_to_answer_once_goes_on_with_its_selftest(answers, clock):
    row = in_a_long_test(answers)
    clock(minutes=2)
    answers(FAILING)
    assert advance(row).state == State.RUNNING
    clock(minutes=2)
    answers(answer_with_left(80))
    assert (advance(row).left, Job.objects.count()) == (80, 1)


def test_after_hours_without_power_a_selftest_has_time_to_answer(answers, clock):
    row = in_a_long_test(answers)
    clock(hours=9)
    assert advance(row).state == State.RUNNING
    answers(answer_with_left(80))
    assert (advance(row).state, row.left) == (State.RUNNING, 80)


def test_a_sleeping_disk_has_no_selftest_under_way(answers, clock):
    row = in_a_long_test(answers)
    clock(minutes=2)
    answers(ASLEEP)
    row.refresh_from_db()
    assert row.left is None


@pytest.mark.parametrize("last", [[FAILING], [HUNG], [ASLEEP, FAILING], [{**ANSWER, "ata_smart_attributes": {}}]])
def test_figures_of_the_beginning_are_not_compared_with_themselves(answers, clock, last):
    """The disk told its figures at first and no longer does: that is no reading that says it counts no new faults."""
    row = burn_ins_made.made(stage="write")
    answers(ANSWER)
    burn_in.change(row, stage="last", wanted=timezone.now())
    for answer in last:
        answers(answer)
        assert advance(row).state == State.RUNNING
    clock(minutes=16)
    answers(last[-1])
    assert (advance(row).state, row.verdict) == (State.PAUSED, "")
    assert "figures" in row.text


def test_a_disk_that_never_told_figures_has_a_verdict_all_the_same(answers):
    row = burn_ins_made.made(stage="last", tests={"short": {"passed": True}}, wanted=timezone.now())
    answers(FAILING)
    assert (advance(row).state, row.verdict) == (State.DONE, "clean")


def test_a_disk_whose_figures_fail_while_it_is_written_to_is_not_asked_at_every_tick(answers, clock):
    row = burn_ins_made.made(stage="write")
    answers(ANSWER)
    clock(minutes=6)
    answers(FAILING)
    row.refresh_from_db()
    assert not burn_in_readings.is_due(row)
    clock(minutes=6)
    assert burn_in_readings.is_due(row)


# --- pausing in a self-test ---------------------------------------------------------------------------------------
LONG_PASSED = {"type": {"value": 2}, "status": {"value": 0, "string": "Completed without error", "passed": True}}
TESTED = {**ANSWER, "ata_smart_self_test_log": {"standard": {"table": [LONG_PASSED]}}}


def act(web, row: BurnIn, what: str) -> None:
    assert web.post(f"/disks/burn-ins/{row.pk}/act/{what}/").status_code == 302
    row.refresh_from_db()


def test_a_selftest_that_ends_during_a_pause_counts(web, answers, clock):
    row = in_a_long_test(answers)
    act(web, row, "pause")
    assert advance(row).state == State.PAUSED
    clock(hours=14)
    act(web, row, "resume")
    advance(row)
    answers(TESTED)
    assert advance(row).stage == "write"
    assert row.tests["long"] == {"passed": True, "text": "Completed without error"}
    assert Job.objects.filter(kind="start-self-test").count() == 1


def test_a_selftest_that_still_runs_after_a_pause_is_waited_for(web, answers, clock):
    row = in_a_long_test(answers)
    act(web, row, "pause")
    advance(row)
    clock(hours=1)
    act(web, row, "resume")
    advance(row)
    answers(answer_with_left(80))
    assert (advance(row).left, Job.objects.count()) == (80, 1)


def test_a_selftest_that_ends_while_the_disk_does_not_answer_counts(web, answers, clock):
    row = in_a_long_test(answers)
    for _minute in range(25):
        clock(minutes=1)
        answers(HUNG)
        advance(row)
    assert row.state == State.PAUSED
    act(web, row, "resume")
    advance(row)
    answers(TESTED)
    assert advance(row).stage == "write"
    assert row.tests["long"]["passed"]


def test_resume_gives_a_selftest_its_tries_again(web, answers, clock):
    row = in_a_long_test(answers)
    BurnIn.objects.update(attempts=burn_in.MOST_ATTEMPTS, state=State.PAUSED)
    act(web, row, "resume")
    advance(row)
    answers(ANSWER)
    assert asked(advance(row))["kind"] == "start-self-test"


def test_limit_chosen_at_resume_holds_for_the_regions_that_are_left(web):
    row = writing()
    ended(row, "done", *well(0, 1, 2, 3, 4, 5))
    BurnIn.objects.update(state=State.PAUSING)
    assert advance(row).state == State.PAUSED
    assert web.post(f"/disks/burn-ins/{row.pk}/act/resume/", {"rate": "20000000"}).status_code == 302
    row.refresh_from_db()
    assert asked(advance(row)).items() >= {"first": 6, "rate": 20 * 10**6}.items()


def test_resume_gives_regions_their_tries_again(web):
    row = writing()
    for _again in range(3):
        ended(row, "interrupted", text="It was interrupted.")
        advance(row)
    act(web, row, "resume")
    assert (row.state, row.attempts) == (State.RUNNING, 0)


@pytest.mark.parametrize("given", [{}, {"rate": "20000000"}])
def test_resume_before_the_job_has_ended_is_refused_and_says_why(web, monkeypatch, given):
    """The job is stopping already: resumed now, the burn-in would pause again and blame
    somebody for stopping its job."""
    monkeypatch.setattr(agent_client, "send_request", lambda _request, **_more: {})
    row = writing()
    Job.objects.update(state="running")
    act(web, row, "pause")
    assert advance(row).state == State.PAUSING
    page = web.get(f"/disks/burn-ins/{row.pk}/").content.decode()
    assert "The pause has not taken effect yet" in page and "act/resume/" not in page
    reply = web.post(f"/disks/burn-ins/{row.pk}/act/resume/", given)
    assert codes_on_page(reply) == ["burn-in-still-pausing"]
    ended(row, "cancelled", *well(0), text="It was asked to stop.")
    advance(row)
    assert (row.state, row.text) == (State.PAUSED, "")
    act(web, row, "resume")
    assert asked(advance(row))["first"] == 1


def test_pause_without_a_job_can_be_taken_back(web):
    row = burn_ins_made.made()
    act(web, row, "pause")
    assert "act/resume/" in web.get(f"/disks/burn-ins/{row.pk}/").content.decode()
    act(web, row, "resume")
    assert row.state == State.RUNNING
