"""What the worker does with a job, with the agent's answers made up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from appliance import agent_client
from appliance.agent import journal
from appliance.datasets.create import CreateDataset
from appliance.disks.erase import EraseDisk
from appliance.errors import Failed, Reason, Refused
from appliance.operation import as_json
from appliance.system import paths
from tests.unit.made import dataset, disk
from tests.web import rows
from tests.web.reading import text_of
from web.inventory.models import Event, Progress, Source
from web.jobs import confirm
from web.jobs.models import Job
from workers import (
    background,
    collect_box,
    collect_dataset,
    collect_importable,
    collect_snapshots,
    collectors,
    housekeeping,
    maintenance,
    run_job,
    selftests,
    spool,
    tick,
)
from workers.celery import TOKEN

State = Job.State
DONE = {"outcome": {"state": "done", "text": "", "done": ["create"], "steps": ["create"], "notes": ["made it"]}}
CANARY = "canary-passphrase-77"


class Agent:
    """Answers each request with the next list of messages; an exception in it is raised at its place."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answers: list[list[Any]] = []

    def ask(self, request: dict[str, Any], **_more: Any) -> Iterator[dict[str, Any]]:
        self.asked.append(request)
        for message in self.answers.pop(0):
            if isinstance(message, Exception):
                raise message
            if callable(message):
                message()
            else:
                yield message

    @property
    def verbs(self) -> list[str]:
        return [request["verb"] for request in self.asked]


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Agent:
    stand_in = Agent()
    monkeypatch.setattr(agent_client, "stream_replies", stand_in.ask)
    monkeypatch.setattr(run_job, "_mine", set())
    monkeypatch.setattr(run_job, "_sent", {})
    monkeypatch.setattr(run_job, "check_queue", lambda: None)
    return stand_in


@pytest.fixture(autouse=True)
def collected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """When the facts were read again: the state that the job's row had then."""
    seen: list[str] = []
    monkeypatch.setattr(collectors, "collect_now", lambda: seen.append(str(Job.objects.get().state)))
    return seen


@pytest.fixture
def job(agent: Agent) -> Job:
    made = rows.job()
    agent_client.leave_secret(str(made.pk), CANARY)
    return made


def run(job: Job) -> Job:
    run_job.run_job(str(job.pk))
    job.refresh_from_db()
    return job


def secrets() -> list[Any]:
    return list(paths.SECRETS.iterdir())


def test_a_job_is_claimed_run_and_done(job, agent, collected):
    agent.answers = [[{"percent": 50, "phrase": "Half"}, {"note": "made it"}, DONE]]
    run(job)
    assert agent.asked == [
        {
            "verb": "run",
            "job": str(job.pk),
            "digest": job.digest,
            "operation": json.loads(job.operation),
            "plan_seen": True,
        }
    ]
    assert (job.state, job.done, job.log, job.worker) == (State.DONE, ["create"], ["made it"], TOKEN)
    assert job.started <= job.finished <= timezone.now()
    assert secrets() == []


OUTDATED = {"outcome": {"state": journal.OUTDATED}}


@pytest.fixture
def unseen(agent: Agent) -> Job:
    """A job whose plan nobody has seen."""
    rows.put(datasets=[dataset("tank", mountpoint="/tank")])
    return confirm.start_without_review(CreateDataset(parent="tank", name="films"), user="admin")


def test_a_plan_that_nobody_has_seen_is_made_anew_where_the_box_has_changed(unseen, agent, monkeypatch):
    """Somebody plugs a disk in and presses Back up now: there is no plan that he has looked
    at and could look at again."""
    before = unseen.digest
    now = [dataset("tank", guid=7, mountpoint="/elsewhere")]
    monkeypatch.setattr(collectors, "collect_now", lambda: rows.put(datasets=now))
    agent.answers = [[OUTDATED], [DONE]]
    run(unseen)
    assert unseen.state == State.DONE and unseen.digest != before and "/elsewhere/films" in json.dumps(unseen.plan)
    assert [(one["job"], one["digest"], one["plan_seen"]) for one in agent.asked] == [
        (str(unseen.pk), before, False),
        (str(unseen.pk), unseen.digest, False),
    ]


def test_a_box_that_keeps_changing_ends_with_the_agents_refusal(unseen, agent):
    refused = {"outcome": {"state": "refused", "text": "Something changed.", "done": [], "steps": [], "notes": []}}
    agent.answers = [[OUTDATED]] * (run_job.MOST_PLANS - 1) + [[refused]]
    run(unseen)
    assert [one["plan_seen"] for one in agent.asked] == [False] * (run_job.MOST_PLANS - 1) + [True]
    assert (unseen.state, unseen.text) == (State.REFUSED, "Something changed.")


def test_what_cannot_be_planned_any_more_is_refused_with_the_reason(unseen, agent, monkeypatch):
    monkeypatch.setattr(collectors, "collect_now", lambda: rows.put(datasets=[dataset("pond")]))
    agent.answers = [[OUTDATED]]
    run(unseen)
    assert unseen.state == State.REFUSED and "tank" in unseen.text


def test_the_facts_are_read_again_before_the_job_counts_as_done(job, agent, collected):
    agent.answers = [[DONE]]
    run(job)
    assert collected == ["running"]


def test_while_it_runs_its_row_and_its_progress_say_so(job, agent):
    seen = []

    def look() -> None:
        job.refresh_from_db()
        progress = Progress.objects.get(job=job.pk)
        seen.append((job.state, progress.percent, progress.phrase, Source.objects.get(name="jobs").version))

    first, second = {"percent": 1, "phrase": "Begin"}, {"percent": 70, "phrase": "x" * 400}
    agent.answers = [[first, look, second, look, DONE]]
    run(job)
    assert [entry[:3] for entry in seen] == [(State.RUNNING, 1, "Begin"), (State.RUNNING, 70, "x" * 300)]
    assert seen[0][3] < seen[1][3] < Source.objects.get(name="jobs").version
    assert not Progress.objects.exists()


@pytest.mark.parametrize("state", ["failed", "refused", "cancelled", "interrupted"])
def test_every_other_end_is_recorded_with_its_words(job, agent, state):
    agent.answers = [[{"outcome": {"state": state, "text": "The disk vanished.", "done": [], "notes": ["said"]}}]]
    run(job)
    assert (job.state, job.text, job.log) == (state, "The disk vanished.", ["said"])
    assert job.finished
    assert secrets() == []


def test_a_refusal_of_the_agent_ends_the_job_with_its_sentences(job, agent, collected):
    agent.answers = [[Refused(Reason("", "The plan changed."), Reason("", "Look again."))]]
    run(job)
    assert (job.state, job.text) == (State.REFUSED, "The plan changed. Look again.")
    assert secrets() == []
    assert collected == []


@pytest.mark.parametrize(
    "breaks",
    [
        [Failed("Larder's agent does not answer")],
        [{"percent": 50, "phrase": "Half"}, Failed("Larder's agent does not answer")],
        [{"percent": 50, "phrase": "Half"}],
        [],
        [{"percent": 50}],
        [{"percent": 50, "phrase": "Half"}, RuntimeError("the database is locked")],
        [{"outcome": {"state": "stopping"}}],
        [{"outcome": {}}],
    ],
    ids=["no connection", "cut off", "silent", "empty", "odd", "fault of the worker", "no end", "nothing"],
)
def test_a_connection_that_breaks_leaves_the_job_to_the_next_look_which_asks_and_never_begins_anew(job, agent, breaks):
    agent.answers = [breaks, [DONE]]
    run(job)
    assert (job.state, job.worker, job.finished) == (State.RUNNING, "", None)
    assert [path.name for path in secrets()] == [str(job.pk)]
    run(job)
    assert agent.verbs == ["run", "follow"]
    assert agent.asked[1] == {"verb": "follow", "job": str(job.pk)}
    assert (job.state, secrets()) == (State.DONE, [])


@pytest.mark.parametrize(
    "broken",
    [
        (collectors, "collect_now"),
        (collect_importable, "search_after_job"),
        (collect_dataset, "reread_after_job"),
        (collect_box, "reread_after_job"),
        (collect_snapshots, "doubt_snapshots"),
    ],
    ids=lambda one: one[0].__name__,
)
def test_a_job_ends_although_what_follows_it_fails(job, agent, monkeypatch, broken):
    def fail(*_args: Any) -> None:
        raise RuntimeError("no")

    agent.answers = [[DONE]]
    monkeypatch.setattr(*broken, fail)
    assert run(job).state == State.DONE


@pytest.mark.parametrize(("kind", "looks"), [("try-mtu", 1), ("set-host-name", 1), ("set-share", 0)])
def test_after_a_job_that_changes_the_system_its_page_is_current(monkeypatch, kind, looks):
    asked: list[str] = []
    monkeypatch.setattr(collect_box.reading, "request_run", lambda: asked.append("look"))
    collect_box.reread_after_job(str(rows.job(kind=kind).pk))
    assert len(asked) == looks


def test_a_job_ends_although_reading_the_facts_hangs(monkeypatch):
    """The real wait, with a reading that never comes back."""
    monkeypatch.undo()
    released = threading.Event()
    assert not background.wait_for(released.wait, 0.01)
    released.set()
    assert background.wait_for(lambda: None, 60)


def test_a_job_that_the_agent_never_heard_of_was_interrupted_and_nothing_was_changed(job, agent):
    Job.objects.update(state=State.RUNNING, worker="a worker that died")
    agent.answers = [[{"outcome": {"state": "unknown", "text": "", "done": [], "notes": []}}]]
    run(job)
    assert agent.verbs == ["follow"]
    assert (job.state, job.text) == (State.INTERRUPTED, "It was interrupted before it began. Nothing was changed.")
    assert secrets() == []


def test_called_twice_a_job_runs_once(job, agent):
    agent.answers = [[DONE]]
    run(job)
    first = job.finished
    assert run(job).finished == first
    assert agent.verbs == ["run"]


def test_called_while_it_runs_here_nothing_is_asked(job, agent):
    agent.answers = [[lambda: run_job.run_job(str(job.pk)), DONE]]
    run(job)
    assert agent.verbs == ["run"]


@pytest.mark.parametrize("state", [State.DONE, State.FAILED, State.REFUSED, State.CANCELLED, State.INTERRUPTED])
def test_nothing_leaves_an_end_state(job, agent, state):
    Job.objects.update(state=state, text="As it was.")
    run(job)
    run_job.finish_job(str(job.pk), DONE["outcome"])
    job.refresh_from_db()
    assert (job.state, job.text, agent.asked) == (state, "As it was.", [])


def test_a_job_that_was_stopped_while_it_waited_is_never_begun(web, calm, job, agent):
    web.post(f"/jobs/{job.pk}/stop/")
    run(job)
    assert (job.state, agent.asked) == (State.CANCELLED, [])


@pytest.mark.parametrize("name", ["6b1f6a5e-3f0c-4c2e-9a53-0d5b8f9f6a11"])
def test_a_job_that_does_not_exist_is_no_fault(agent, name):
    run_job.run_job(name)
    assert agent.asked == []


def test_a_secret_that_cannot_be_removed_does_not_keep_the_job_open(job, agent, monkeypatch):
    def fail(_job: str) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(agent_client, "forget_secret", fail)
    agent.answers = [[DONE]]
    assert run(job).state == State.DONE


def test_the_secret_is_in_no_request_to_the_agent(job, agent):
    agent.answers = [[DONE]]
    run(job)
    assert CANARY not in json.dumps(agent.asked)


def test_what_waits_and_what_lost_its_worker_is_sent_again_and_nothing_else(monkeypatch, agent):
    sent: list[str] = []
    monkeypatch.setattr(run_job.run_job, "delay", sent.append)
    waiting, lost = rows.job(), rows.job(state=State.RUNNING, worker="a worker that died")
    let_go = rows.job(state=State.RUNNING, worker="")
    run_job._mine.add(str(rows.job(state=State.RUNNING, worker=TOKEN).pk))
    for state in State:
        if state not in Job.OPEN:
            rows.job(state=state)
    run_job.send_waiting()
    assert sorted(sent) == sorted(str(job.pk) for job in (waiting, lost, let_go))


def test_a_job_that_ends_while_the_settings_disk_is_full_is_followed_once_there_is_space(monkeypatch, agent, job):
    """Neither its outcome nor that nobody follows it could be stored: its row still names this very worker."""
    sent: list[str] = []
    monkeypatch.setattr(run_job.run_job, "delay", sent.append)

    def refuse_writes(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("UPDATE"):
            raise OperationalError("database or disk is full")
        return execute(sql, params, many, context)

    with ExitStack() as disk_is_full:
        agent.answers = [[lambda: disk_is_full.enter_context(connection.execute_wrapper(refuse_writes)), DONE]]
        with pytest.raises(OperationalError, match="full"):
            run_job.run_job(str(job.pk))
    transaction.set_rollback(False)  # of the test's own transaction, which real workers do not have
    job.refresh_from_db()
    assert (job.state, job.worker) == (State.RUNNING, TOKEN)
    run_job.send_waiting()
    assert sent == [str(job.pk)]
    agent.answers = [[DONE]]
    assert run(job).state == State.DONE
    assert agent.verbs == ["run", "follow"]


def test_what_was_just_sent_is_not_sent_again_until_it_must_be_lost(monkeypatch, agent):
    sent: list[str] = []
    monkeypatch.setattr(run_job.run_job, "delay", sent.append)
    waiting = str(rows.job().pk)
    run_job.send_waiting()
    run_job.send_waiting()
    assert sent == [waiting]
    run_job._sent[waiting] -= run_job.SECONDS_BEFORE_SENDING_AGAIN + 1
    run_job.send_waiting()
    assert sent == [waiting, waiting]


def test_work_of_many_hours_leaves_room_for_what_somebody_waits_for(monkeypatch, agent):
    monkeypatch.setattr(run_job, "_long", threading.BoundedSemaphore(1))
    wipe = as_json(EraseDisk(disk=disk().path, how="full"))
    going, waiting, short = rows.job(operation=wipe), rows.job(operation=wipe), rows.job()

    def others_try() -> None:
        run_job.run_job(str(waiting.pk))
        run_job.run_job(str(short.pk))
        waiting.refresh_from_db()
        short.refresh_from_db()
        assert (waiting.state, short.state) == (State.QUEUED, State.DONE)

    agent.answers = [[others_try, DONE], [DONE], [DONE]]
    monkeypatch.setattr(collectors, "collect_now", lambda: None)
    assert run(going).state == State.DONE
    assert run(waiting).state == State.DONE


def test_jobs_never_take_all_threads(monkeypatch, agent):
    """So many at once as there are threads: six are begun, the others wait for one of them."""
    monkeypatch.setattr(collectors, "collect_now", lambda: None)
    made = [rows.job() for _thread in range(8)]
    states: list[str] = []

    def begin_next() -> None:
        if len(agent.asked) < 6:
            run_job.run_job(str(made[len(agent.asked)].pk))
        else:
            run_job.run_job(str(made[6].pk))
            states.extend(str(job.state) for job in Job.objects.order_by("created"))

    agent.answers = [[begin_next, DONE] for _job in made]
    run(made[0])
    assert states == ["running"] * 6 + ["queued"] * 2
    agent.answers = [[DONE]]
    assert run(made[6]).state == State.DONE


def test_a_job_that_waits_for_another_gives_its_thread_back_and_is_followed_later(monkeypatch, agent):
    sent: list[str] = []
    monkeypatch.setattr(collectors, "collect_now", lambda: None)
    monkeypatch.setattr(run_job.run_job, "delay", sent.append)
    waits = {"percent": 0, "phrase": "Waiting for another job: Export tank", "waits": True}
    jobs = [rows.job() for _job in range(4)]

    def others_come() -> None:
        if len(agent.asked) < 3:
            run_job.run_job(str(jobs[len(agent.asked)].pk))

    agent.answers = [[waits, others_come, {"percent": 10, "phrase": "At it"}, DONE] for _job in range(2)] + [[waits]]
    run(jobs[0])
    states = [Job.objects.get(pk=job.pk) for job in jobs]
    assert [str(job.state) for job in states] == ["done", "done", "running", "queued"]
    assert states[2].worker == ""
    assert Progress.objects.get(job=jobs[2].pk).phrase == waits["phrase"]
    assert Progress.objects.get(job=jobs[2].pk).waits
    run_job.send_waiting()
    assert str(jobs[2].pk) not in sent  # not at once: each time costs the agent a process
    run_job._sent[str(jobs[2].pk)] -= run_job.SECONDS_BEFORE_SENDING_AGAIN + 1
    run_job.send_waiting()
    assert str(jobs[2].pk) in sent
    agent.answers = [[DONE]]
    assert run(jobs[2]).state == State.DONE
    assert agent.verbs[-1] == "follow"


def test_a_job_that_stops_waiting_makes_room_for_another_that_waits(monkeypatch, agent):
    monkeypatch.setattr(collectors, "collect_now", lambda: None)
    monkeypatch.setattr(run_job, "_blocked", threading.BoundedSemaphore(1))
    waits, works = (
        {"percent": 0, "phrase": "Waiting for another job: Export tank", "waits": True},
        {"percent": 1, "phrase": "At it"},
    )
    first, second = rows.job(), rows.job()
    agent.answers = [[waits, waits, works, lambda: run_job.run_job(str(second.pk)), waits, DONE], [waits, works, DONE]]
    assert run(first).state == State.DONE
    second.refresh_from_db()
    assert second.state == State.DONE


def test_a_job_that_could_not_be_looked_up_is_not_taken_for_one_under_way(monkeypatch, agent, job):
    def fail(_job_id: str) -> bool:
        raise OSError("database is locked")

    with monkeypatch.context() as broken:
        broken.setattr(run_job, "is_long", fail)
        with pytest.raises(OSError, match="locked"):
            run_job.run_job(str(job.pk))
    agent.answers = [[DONE]]
    assert run(job).state == State.DONE


def test_what_became_of_it_is_on_its_page(web, calm, job, agent):
    agent.answers = [
        [{"outcome": {"state": "failed", "text": "No space left.", "done": ["create"], "notes": ["out of space"]}}]
    ]
    run(job)
    text = text_of(web.get(f"/jobs/{job.pk}/"))
    assert all(words in text for words in ("No space left.", "out of space", "Try again"))


def test_a_tick_takes_in_sends_and_reads_only_what_is_due(monkeypatch):
    done: list[str] = []
    monkeypatch.setattr(spool, "ingest_events", lambda: done.append("spool") or [])
    monkeypatch.setattr(tick, "send_waiting", lambda: done.append("jobs"))
    monkeypatch.setattr(background, "start_thread", lambda name, _work: done.append(name.removeprefix("run-")) or True)
    monkeypatch.setattr(maintenance.looks, "claim_turn", lambda: not done.count("schedules") and len(done) > 3)
    monkeypatch.setattr(maintenance, "begin_due_maintenance", lambda: done.append("schedules"))
    monkeypatch.setattr(selftests.looks, "claim_turn", lambda: False)
    monkeypatch.setattr(housekeeping.looks, "claim_turn", lambda: done[-1] == "schedules")
    tick.tick()
    assert done == ["spool", "facts", "temperatures", "alerts", "jobs", "schedules", "housekeeping"]
    for name in ("pools", "temperatures", "alerts"):
        Source.objects.create(name=name, checked=timezone.now())
    done.clear()
    tick.tick()
    assert done == ["spool", "jobs"]
    monkeypatch.setattr(spool, "ingest_events", lambda: [Event(source="zed", subject="tank")])
    done.clear()
    tick.tick()
    assert done == ["facts", "jobs"]
    rows.put(disks=[disk(1)])
    tick.tick()
    assert "temperatures" not in done
    Source.objects.filter(name="temperatures").update(checked=timezone.now() - 2 * collectors.NEW_DISK_WITHIN)
    tick.tick()
    assert done.count("temperatures") == 1
