from __future__ import annotations

import json
import stat
import typing
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from appliance.agent import console, delayed_jobs, journal, proof, run_operation
from appliance.agent.registry import Registered
from appliance.agent.request_registry import RegisteredRequest
from appliance.agent.run_operation import execute
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.operation import Operation, Plan, always, as_json, kind_of
from appliance.pools.create import CreatePool
from appliance.shares.approve import ApproveShares
from appliance.shares.set_share import SetShare
from appliance.system import paths
from tests.unit.agent import test_run_operation
from tests.unit.agent.test_run_operation import ACTS, Errand, steps
from tests.unit.made import JOB, OLD, OTHER_JOB, box, dataset, disk, path_of

pytestmark = pytest.mark.usefixtures("folders", "commands")
PASSWORD = "correct horse battery"


class Grave(Errand):
    """An errand that needs a proof."""

    needs_proof = always


GRAVE = Grave()


@pytest.fixture(autouse=True)
def clock(monkeypatch, tmp_path):
    """A clock that the test moves, a boot that it changes."""
    now = {"clock": 100.0, "boot": "one"}

    def decode(text: str | bytes) -> Operation:
        try:
            return msgspec.json.decode(text, type=Registered | Errand | Grave)
        except msgspec.MsgspecError as error:
            raise Refused(Reason("operation-malformed", str(error))) from error

    ACTS.clear()
    test_run_operation.HAPPENED.clear()
    monkeypatch.setattr("appliance.agent.registry.decode_operation", decode)
    monkeypatch.setattr(run_operation, "SECONDS_BETWEEN_LOOKS", 0)
    monkeypatch.setattr(proof, "COST", {"n": 2, "r": 8, "p": 1})
    monkeypatch.setattr(delayed_jobs, "clock", lambda: now["clock"])
    monkeypatch.setattr(delayed_jobs, "boot", lambda: now["boot"])
    monkeypatch.setattr(delayed_jobs, "ISSUE", tmp_path / "waiting.issue")
    return now


def run(
    job: str = JOB, facts: Facts | None = None, operation: Operation = GRAVE, seen: Facts | None = None
) -> dict[str, Any]:
    facts = facts or box()
    sent: list[dict[str, Any]] = []
    execute(job, operation, operation.plan(seen or box()).digest(), lambda: facts, sent.append)
    return dict(sent[-1]["outcome"])


def prove(job: str = JOB) -> None:
    if not proof.is_set():
        proof.store_hash(PASSWORD)
    proof.grant(job, GRAVE, GRAVE.plan(box()).digest(), PASSWORD)


def pass_by(clock: dict[str, Any], minutes: float) -> None:
    clock["clock"] += minutes * 60


def test_without_a_proof_it_waits_and_nothing_is_done():
    done = steps("one")
    outcome = run()
    assert (outcome["state"], outcome["steps"], done) == ("waiting", [], [])
    assert outcome["until"]
    assert not journal.alive(JOB)  # no process is held for it


def test_with_a_proof_it_runs_at_once():
    done = steps("one")
    prove()
    assert run()["state"] == "done"
    assert done == ["one"]


def test_what_loses_nothing_does_not_wait():
    done = steps("one")
    assert run(operation=Errand())["state"] == "done"
    assert done == ["one"]


def test_the_proof_of_another_job_does_not_help():
    done = steps("one")
    prove(OTHER_JOB)
    assert run(JOB)["state"] == "waiting"
    assert done == []


def test_after_its_time_it_runs_when_it_is_asked_for_again(clock):
    done = steps("one")
    run()
    pass_by(clock, delayed_jobs.MINUTES + 0.1)
    assert run()["state"] == "done"
    assert done == ["one"]
    assert delayed_jobs.read_waiting() == []


@pytest.mark.parametrize("times", [1, 3])
def test_asking_again_does_not_shorten_the_wait(clock, times):
    done = steps("one")
    until = run()["until"]
    for _time in range(times):
        pass_by(clock, (delayed_jobs.MINUTES - 1) / times)
        assert run()["until"] == until
    assert done == []
    pass_by(clock, 2)
    assert run()["state"] == "done"


def test_following_tells_that_it_waits_and_starts_nothing(clock):
    done = steps("one")
    run()
    pass_by(clock, 100)
    sent: list[dict[str, Any]] = []
    run_operation.follow(JOB, box, sent.append)
    assert (sent[-1]["outcome"]["state"], done) == ("waiting", [])


def test_another_operation_under_the_waiting_id_runs_nothing(clock):
    done = steps("one")
    run()
    pass_by(clock, 100)
    assert run(operation=Grave(subject_name="pond"))["state"] == "waiting"
    assert done == []


def test_at_its_end_the_facts_are_read_and_the_plan_is_made_again(clock):
    done = steps("one")
    run()
    pass_by(clock, 100)
    swapped = box(disk(1, serial="swapped"))
    assert run(facts=swapped)["state"] == "refused"
    assert done == []


def test_what_is_refused_or_changed_already_is_refused_at_once():
    assert run(facts=box(disk(1, serial="swapped")))["state"] == "refused"
    assert run(OTHER_JOB, facts=box(zfs="missing"))["state"] == "refused"


def test_a_restart_of_the_box_begins_the_wait_anew(clock):
    done = steps("one")
    run()
    clock.update(boot="two", clock=5000.0)
    paths.RUN.joinpath("waiting.json").unlink()
    assert run()["state"] == "waiting"
    assert [one.job for one in delayed_jobs.waiting_jobs()] == [JOB]  # and it is told again
    pass_by(clock, delayed_jobs.MINUTES + 1)
    assert run()["state"] == "done"
    assert done == ["one"]


def test_a_process_that_dies_after_the_wait_is_told_as_interrupted(clock):
    steps("one")
    run()
    pass_by(clock, 100)
    record = delayed_jobs.take_up(JOB, GRAVE, GRAVE.plan(box()).digest())
    assert record is not None
    record.write("began", operation=json.loads(as_json(GRAVE)), steps=["one"])
    record.close()
    assert run()["state"] == "interrupted"


def test_two_who_ask_after_the_wait_run_it_once(clock):
    run()
    pass_by(clock, 100)
    first = delayed_jobs.take_up(JOB, GRAVE, GRAVE.plan(box()).digest())
    assert first is not None
    assert delayed_jobs.take_up(JOB, GRAVE, GRAVE.plan(box()).digest()) is None
    first.close()


def test_it_is_cancelled_by_asking_to_stop_and_never_runs(clock):
    done = steps("one")
    (paths.SECRETS / JOB).write_text(PASSWORD)
    run()
    assert run_operation.ask_to_stop(JOB)
    pass_by(clock, 100)
    outcome = run()
    assert (outcome["state"], outcome["text"], done) == ("cancelled", delayed_jobs.CANCELLED, [])
    assert not (paths.SECRETS / JOB).exists()
    assert not run_operation.ask_to_stop(JOB)


def test_cancelling_waits_for_whoever_asks_again_at_that_moment(monkeypatch):
    run()
    asking = journal.take(JOB)
    assert asking is not None
    monkeypatch.setattr("time.sleep", lambda _seconds: asking.close())
    assert delayed_jobs.cancel(JOB)
    assert run()["state"] == "cancelled"


def test_the_secret_of_a_job_outlives_its_wait():
    (paths.SECRETS / JOB).write_text(PASSWORD)
    run()
    assert (paths.SECRETS / JOB).exists()


def test_it_is_told_to_pages_and_worker_to_the_console_and_to_terminals(commands):
    run()
    told = delayed_jobs.waiting_jobs()
    assert [(one.job, one.title, one.subject) for one in told] == [(JOB, "Run an errand", "tank")]
    assert stat.S_IMODE(delayed_jobs.told_file().stat().st_mode) == 0o644
    assert "Run an errand" in delayed_jobs.ISSUE.read_text()
    assert delayed_jobs.COMMAND in delayed_jobs.ISSUE.read_text()
    assert [argv[0] for argv in commands.ran] == ["wall", "agetty"]
    assert "Run an errand" in commands.ran[0][1]
    delayed_jobs.cancel(JOB)
    assert (delayed_jobs.waiting_jobs(), delayed_jobs.ISSUE.read_text()) == ((), "")


def test_a_console_that_cannot_be_written_stops_no_wait(monkeypatch, tmp_path):
    monkeypatch.setattr(delayed_jobs, "ISSUE", tmp_path / "missing" / "folder" / "issue")
    assert run()["state"] == "waiting"
    assert len(delayed_jobs.waiting_jobs()) == 1


def test_what_a_terminal_takes_for_a_command_is_not_sent_to_it():
    assert delayed_jobs.plain("a\\4\x1b[2Jb\n") == "a?4?[2Jb?"


def test_root_lists_and_cancels_at_the_console(clock):
    done = steps("one")
    run(JOB)
    run(OTHER_JOB)
    assert console.run([]).count("Run an errand") == 2
    assert "cancelled" in console.run(["cancel", JOB])
    assert "is not waiting" in console.run(["cancel", JOB])
    assert console.run(["cancel"]).count("cancelled") == 1
    assert console.run([]) == console.run(["cancel"]) == "No job is waiting.\n"
    pass_by(clock, 100)
    assert {run(JOB)["state"], run(OTHER_JOB)["state"]} == {"cancelled"}
    assert done == []


def test_nothing_that_lies_where_a_secret_would_keeps_root_from_cancelling():
    run(JOB)
    run(OTHER_JOB)
    (paths.SECRETS / JOB).mkdir(parents=True)
    assert console.run(["cancel"]).count("cancelled") == 2
    assert delayed_jobs.waiting_jobs() == ()


def test_job_that_cannot_be_cancelled_keeps_no_other_waiting(monkeypatch):
    run(JOB)
    run(OTHER_JOB)
    real = delayed_jobs.cancel

    def cancel(job: str) -> bool:
        if job == JOB:
            raise OSError("Read-only file system")
        return real(job)

    monkeypatch.setattr(delayed_jobs, "cancel", cancel)
    said = console.run(["cancel"])
    assert f"{JOB}: could not be cancelled (Read-only file system)" in said
    assert f"{OTHER_JOB}: cancelled" in said


def test_sign_in_prompt_says_how_many_more_jobs_wait():
    waiting = [delayed_jobs.waiting(JOB, delayed_jobs.as_told(f"Errand {n}", "", datetime.now(UTC))) for n in range(12)]
    said = delayed_jobs.issue(waiting)
    assert said.count("Errand") == 10
    assert "2 more: sudo larder-jobs\n" in said
    assert "more" not in delayed_jobs.issue(waiting[:10])


def test_root_can_have_the_password_forgotten_and_nobody_else_through_the_agent():
    proof.store_hash(PASSWORD)
    console.run(["forget-password"])
    assert not proof.is_set()
    assert not any("forget" in str(verb) for verb in typing.get_args(RegisteredRequest))


@pytest.mark.parametrize("words", [["stop"], ["forget-password", "x"], ["list"]])
def test_the_console_explains_itself(words):
    with pytest.raises(ValueError, match="larder-jobs cancel"):
        console.run(words)


# --- which operations ---------------------------------------------------------------------------------------------
OPERATIONS = typing.get_args(Registered)
# What destroys or lays open whatever the facts are. Taking one out of this list is a decision about the threat model.
ALWAYS = {
    "destroy-pool",
    "destroy-dataset",
    "destroy-snapshots",
    "destroy-bookmark",
    "erase-disk",
    "roll-back",
    "rewind-checkpoint",
    "discard-checkpoint",
    "release-snapshot",
    "change-key",
    "delete-key",
    "set-password",
    "set-time-servers",
    "confirm-host-key",
    "confirm-import-key",
    "remove-remote",
    "take-place",
    "pair-box",
    "receive-copies",
}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda kind: kind.__name__)
def test_every_operation_says_itself_whether_it_needs_a_proof(operation):
    assert "needs_proof" in vars(operation)


def test_what_says_nothing_waits():
    class Silent(Errand, frozen=True, kw_only=True):
        needs_proof = Operation.needs_proof

    assert Silent().needs_proof(box(), Silent().plan(box()))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda kind: kind.__name__)
def test_what_always_destroys_always_needs_a_proof(operation):
    assert (operation.needs_proof is always) is (kind_of(operation) in ALWAYS)


def needs(operation: Operation, facts: Facts) -> bool:
    return operation.needs_proof(facts, operation.plan(facts))


def test_a_pool_on_disks_with_data_needs_a_proof_and_on_empty_ones_none():
    made = CreatePool(name="tank", layout="mirror", groups=((path_of(1), path_of(2)),))
    assert not needs(made, box())
    assert needs(made, box(disk(1), disk(2, uses=(OLD,))))


@pytest.mark.parametrize(("root", "needed"), [(True, True), (False, False)])
def test_an_export_whose_root_is_root_here_needs_a_proof(root, needed):
    part = {"hosts": ["192.168.1.0/24"], "root": root}
    facts = box(datasets=(dataset(),))
    share = msgspec.convert({"dataset": "tank/photos", "protocol": "nfs", "nfs": part}, SetShare)
    plan = Plan("", (), {})
    assert share.needs_proof(facts, plan) is needed
    off = SetShare(dataset="tank/photos", protocol="nfs")
    assert not off.needs_proof(facts, plan)
    brought = box(datasets=(dataset(share=json.dumps({"nfs": part}), share_source="local"),))
    assert ApproveShares(pool="tank", guid=1).needs_proof(brought, plan) is needed
