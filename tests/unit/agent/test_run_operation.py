from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from appliance import command
from appliance.agent import journal, run_operation
from appliance.agent.journal import Journal
from appliance.agent.registry import Registered
from appliance.agent.run_operation import execute, follow, settle, take_secret
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.operation import Operation, Plan, Step, Work, as_json, never
from appliance.pools.create import CreatePool
from appliance.system import locks, paths
from tests.unit.made import JOB, OTHER_JOB, box, disk, path_of
from tests.unit.pools.test_create import made

pytestmark = pytest.mark.usefixtures("folders")

ME = frozenset({os.getuid()})
SECRET = "correct horse battery"


class Errand(Operation):
    """An operation whose steps are what the test wants them to be."""

    needs_proof = never

    subject_name: str = "tank"

    @property
    def title(self) -> str:
        return "Run an errand"

    @property
    def subject(self) -> str:
        return self.subject_name

    def check(self, facts: Facts) -> Iterable[Reason]:
        return [Reason("", "There is no ZFS.")] if facts.zfs == "missing" else []

    def plan(self, facts: Facts) -> Plan:
        steps = tuple(Step(name, f"Do {name}", name, act) for name, act in ACTS.items())
        return Plan("An errand.", steps, {"disks": [disk.identity for disk in facts.disks]})

    def probe(self, step: str, facts: Facts) -> bool:
        return step in HAPPENED

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return f"Begin again at {step}."


ACTS: dict[str, Callable[[Work], None]] = {}
HAPPENED: set[str] = set()
ERRAND = Errand()


@pytest.fixture(autouse=True)
def errands(monkeypatch):
    ACTS.clear()
    HAPPENED.clear()
    monkeypatch.setattr(run_operation, "SECONDS_BETWEEN_LOOKS", 0)
    monkeypatch.setattr("appliance.agent.registry.decode_operation", decode)


def decode(text: str | bytes) -> Operation:
    try:
        operation: Operation = msgspec.json.decode(text, type=Registered | Errand)
        return operation
    except msgspec.MsgspecError as error:
        raise Refused(Reason("operation-malformed", str(error))) from error


def run(job: str = JOB, digest: str | None = None, facts: Facts | None = None) -> list[dict[str, Any]]:
    facts = facts or box()
    sent: list[dict[str, Any]] = []
    execute(job, ERRAND, ERRAND.plan(facts).digest() if digest is None else digest, lambda: facts, sent.append)
    return sent


def steps(*names: str) -> list[str]:
    """Steps that note their own name when they are done."""
    done: list[str] = []

    def noting(name: str) -> Callable[[Work], None]:
        return lambda _work: done.append(name)

    ACTS.update({name: noting(name) for name in names})
    return done


def test_it_does_every_step_in_order_and_ends_done():
    done = steps("one", "two")
    outcome = run()[-1]["outcome"]
    assert done == ["one", "two"]
    assert (outcome["state"], outcome["done"], outcome["steps"]) == ("done", ["one", "two"], ["one", "two"])


def test_a_job_whose_secret_went_with_the_power_begins_nothing(monkeypatch):
    """A user would be made without a password, and stay so."""
    monkeypatch.setattr(Errand, "wants_secret", lambda _self: True)
    done = steps("one")
    outcome = run()[-1]["outcome"]
    assert (outcome["state"], done) == ("refused", [])
    assert "no longer at hand" in outcome["text"]


def test_an_id_runs_once_and_asked_again_tells_its_end():
    done = steps("one")
    first, second = run(), run()
    assert done == ["one"]
    assert second[-1] == first[-1]


def test_an_outdated_plan_that_nobody_has_seen_is_forgotten_and_may_come_again():
    """The id is free again and the secret is still there; with a plan that was seen it is refused instead."""
    done = steps("one")
    sent: list[dict[str, Any]] = []
    (paths.SECRETS / JOB).write_text("a secret")
    execute(JOB, ERRAND, "older", box, sent.append, plan_seen=False)
    assert sent[-1] == {"outcome": {"state": journal.OUTDATED}}
    assert done == [] and journal.read_journal(JOB) is None and not (paths.JOBS / JOB).exists()
    assert (paths.SECRETS / JOB).exists()
    assert run()[-1]["outcome"]["state"] == "done" and done == ["one"]


def test_an_outdated_plan_that_was_seen_is_refused_for_good():
    done = steps("one")
    assert run(digest="older")[-1]["outcome"]["state"] == "refused"
    assert run()[-1]["outcome"]["state"] == "refused" and done == []


def test_the_same_id_with_another_operation_runs_nothing():
    done = steps("one")
    run()
    sent: list[dict[str, Any]] = []
    execute(JOB, Errand(subject_name="pond"), "whatever", box, sent.append)
    assert done == ["one"]
    assert sent[-1]["outcome"]["state"] == "done"


def test_two_ids_run_twice():
    done = steps("one")
    run(JOB)
    run(OTHER_JOB)
    assert done == ["one", "one"]


@pytest.mark.parametrize("digest", ["", "0" * 16, "x\n", "0" * 5000])
def test_another_digest_refuses_and_does_nothing(digest):
    done = steps("one")
    outcome = run(digest=digest)[-1]["outcome"]
    assert (outcome["state"], done, outcome["done"]) == ("refused", [], [])
    assert "changed since" in outcome["text"]


def test_a_disk_swapped_since_the_plan_was_seen_refuses():
    done = steps("one")
    seen = ERRAND.plan(box()).digest()
    assert run(digest=seen, facts=box(disk(1, serial="swapped")))[-1]["outcome"]["state"] == "refused"
    assert done == []


def test_what_speaks_against_it_now_refuses():
    done = steps("one")
    outcome = run(facts=box(zfs="missing"))[-1]["outcome"]
    assert (outcome["state"], outcome["text"], done) == ("refused", "There is no ZFS.", [])


def test_a_failing_step_ends_it_with_what_the_system_said_and_the_way_on():
    done = steps("one", "two", "three")

    def fail(_work: Work) -> None:
        raise Failed("zpool ended with status 1", "cannot create: device busy")

    ACTS["two"] = fail
    outcome = run()[-1]["outcome"]
    assert done == ["one"]
    assert (outcome["state"], outcome["done"]) == ("failed", ["one"])
    assert "device busy" in outcome["text"]
    assert "Begin again at two." in outcome["text"]


def test_a_step_that_refuses_has_failed_since_something_was_begun():
    def refuse(_work: Work) -> None:
        raise Refused(Reason("", "The passphrase is gone."))

    ACTS["one"] = refuse
    assert run()[-1]["outcome"]["state"] == "failed"


def test_a_fault_of_larders_own_ends_it_without_a_stack_trace_for_the_person():
    def blunder(_work: Work) -> None:
        raise KeyError("canary")

    ACTS["one"] = blunder
    outcome = run()[-1]["outcome"]
    assert outcome["state"] == "failed"
    assert "went wrong in Larder (KeyError)" in outcome["text"]
    assert "Traceback" not in outcome["text"] and "canary" not in outcome["text"]


def test_facts_that_cannot_be_read_fail_it_before_any_step():
    done = steps("one")

    def hung() -> Facts:
        raise Failed("zpool did not answer within 20 seconds")

    sent: list[dict[str, Any]] = []
    execute(JOB, ERRAND, "x", hung, sent.append)
    assert (sent[-1]["outcome"]["state"], done) == ("failed", [])


def test_it_stops_between_two_steps_when_asked():
    done = steps("one", "two")

    def ask(_work: Work) -> None:
        assert run_operation.ask_to_stop(JOB)
        done.append("one")

    ACTS["one"] = ask
    outcome = run()[-1]["outcome"]
    assert (outcome["state"], done, outcome["done"]) == ("cancelled", ["one"], ["one"])
    assert list(paths.JOBS.iterdir()) == []


def test_what_was_made_is_removed_under_its_locks_when_it_stops(monkeypatch):
    removed = []
    monkeypatch.setattr(Errand, "clean_up", lambda _self, _work: removed.append(locks.is_taken(locks.path_of("tank"))))
    ACTS["one"] = lambda _work: None
    run(OTHER_JOB)
    assert removed == []

    def ask(_work: Work) -> None:
        assert run_operation.ask_to_stop(JOB)

    ACTS.update(one=ask, two=lambda _work: None)
    assert run()[-1]["outcome"]["state"] == "cancelled"
    assert removed == [True]


def test_it_stops_while_it_waits_for_another_job():
    done = steps("one")

    def send(message: dict[str, Any]) -> None:
        if "Waiting" in message.get("phrase", ""):
            assert run_operation.ask_to_stop(JOB)
        sent.append(message)

    sent: list[dict[str, Any]] = []
    with locks.hold_locks(["tank"], lambda _name: None):
        execute(JOB, ERRAND, ERRAND.plan(box()).digest(), box, send)
    assert (sent[-1]["outcome"]["state"], done) == ("cancelled", [])


@pytest.mark.parametrize("who", ["Export tank", ""])
def test_client_hears_whether_the_job_waits_for_another(who):
    """The words for it are for people and change with what the other job says of itself."""
    steps("one")

    def send(message: dict[str, Any]) -> None:
        if "Waiting" in message.get("phrase", ""):
            assert run_operation.ask_to_stop(JOB)
        sent.append(message)

    sent: list[dict[str, Any]] = []
    with locks.hold_locks(["tank"], who=who):
        execute(JOB, ERRAND, ERRAND.plan(box()).digest(), box, send)
    assert [message.get("waits") for message in sent if "percent" in message] == [True]
    assert {message.get("waits") for message in run(OTHER_JOB) if "percent" in message} == {False}


def test_a_command_that_cannot_be_ended_fails_its_job_and_is_left_behind(monkeypatch):
    left, kill = [], command.kill_process

    def end(process):
        left.append(process)
        return process.pid

    monkeypatch.setattr(command, "kill_process", end)

    def hang(_work: Work) -> None:
        command.run(["sleep", "60"], timeout=0.1)

    ACTS["one"] = hang
    asked = []

    def look() -> Facts:
        asked.append(True)
        return box()

    sent: list[dict[str, Any]] = []
    execute(JOB, ERRAND, ERRAND.plan(box()).digest(), look, sent.append)
    outcome = sent[-1]["outcome"]
    assert outcome["state"] == "failed"
    assert "could not be ended: it waits in the kernel" in outcome["text"]
    assert (found := journal.read_journal(JOB)) is not None and found.ended
    assert len(asked) == 1  # nothing more is asked of what hangs
    # What was left behind holds the job's lock until it ends.
    assert locks.is_taken(locks.path_of("tank"))
    kill(left[0])
    assert not locks.is_taken(locks.path_of("tank"))


def test_there_is_nothing_to_stop_where_nothing_runs():
    assert not run_operation.ask_to_stop(JOB)
    steps("one")
    run()
    assert not run_operation.ask_to_stop(JOB)
    assert list(paths.JOBS.iterdir()) == []


def test_progress_is_a_rising_whole_percent_sent_only_when_it_changes():
    def work(working: Work) -> None:
        for percent in (0, 50, 50, 120, -5 + 105):
            working.progress(percent, "at it")

    ACTS.update({"one": work, "two": work})
    told = [message for message in run() if "percent" in message]
    percents = [message["percent"] for message in told]
    assert percents == sorted(percents)
    assert all(isinstance(percent, int) and 0 <= percent <= 100 for percent in percents)
    assert {25, 50, 75, 100} <= set(percents)
    assert all(one != other for one, other in pairwise(told))


def test_notes_are_kept_with_the_job_and_bounded():
    def talk(work: Work) -> None:
        for number in range(300):
            work.note(f"{number} " + "x" * 5000)

    ACTS["one"] = talk
    notes = run()[-1]["outcome"]["notes"]
    assert len(notes) == 200
    assert notes[-1].startswith("299 ")
    assert max(map(len, notes)) == 2000


def test_the_last_thing_sent_is_the_only_outcome():
    steps("one", "two")
    sent = run()
    assert [("outcome" in message) for message in sent] == [False] * (len(sent) - 1) + [True]


def test_no_operation_runs_while_another_has_its_lock():
    def look(_work: Work) -> None:
        assert locks.any_held()

    ACTS["one"] = look
    assert run()[-1]["outcome"]["state"] == "done"


# What became of a job whose process died


def died(
    *, begun: tuple[str, ...] = (), done: tuple[str, ...] = (), operation: Any = ERRAND, tail: bytes = b""
) -> None:
    """The journal that a killed process leaves."""
    record = Journal.begin(JOB)
    if operation is not None:
        told = operation if isinstance(operation, dict) else json.loads(as_json(operation))
        record.write("began", operation=told, steps=["one", "two"])
    for step in begun:
        record.write("step begun", step=step)
        if step in done:
            record.write("step done", step=step)
    record.close()
    with journal.file_of(JOB).open("ab") as file:
        file.write(tail)


def settled() -> dict[str, Any]:
    sent: list[dict[str, Any]] = []
    follow(JOB, box, sent.append)
    assert len(sent) == 1
    found = sent[0]["outcome"]
    assert isinstance(found, dict)
    return found


def test_a_job_that_died_before_its_first_line_changed_nothing():
    died(operation=None)
    outcome = settled()
    assert (outcome["state"], "Nothing was changed" in outcome["text"]) == ("interrupted", True)


def test_a_job_that_died_before_its_first_step_changed_nothing():
    died()
    HAPPENED.update({"one", "two"})
    outcome = settled()
    assert (outcome["state"], "Nothing was changed" in outcome["text"]) == ("interrupted", True)


def test_a_job_that_died_with_everything_there_is_done():
    died(begun=("one", "two"), done=("one",))
    HAPPENED.update({"one", "two"})
    assert settled()["state"] == "done"


def test_a_job_that_died_half_way_says_how_far_it_came_and_the_way_on():
    died(begun=("one", "two"), done=("one",))
    HAPPENED.add("one")
    outcome = settled()
    assert outcome["state"] == "interrupted"
    assert "after 1 of 2 steps" in outcome["text"]
    assert "Begin again at two." in outcome["text"]


def test_a_half_written_last_line_is_passed_over():
    died(
        begun=("one", "two"), done=("one",), tail=b'{"at": "2026-11-20T22:52:00.000+00:00", "entry": "step done", "ste'
    )
    HAPPENED.add("one")
    outcome = settled()
    assert (outcome["state"], outcome["done"]) == ("interrupted", ["one"])
    assert settled() == outcome


def test_an_end_once_told_stays_as_it_is():
    died(begun=("one",))
    first = settled()
    size = journal.file_of(JOB).stat().st_size
    HAPPENED.update({"one", "two"})
    assert settled() == first
    assert run()[-1]["outcome"] == first
    assert journal.file_of(JOB).stat().st_size == size


def test_the_journal_of_another_version_is_settled_too():
    died(begun=("one", "two"), done=("one",), operation={"kind": "OfYesterday"})
    outcome = settled()
    assert (outcome["state"], "after 1 of 2 steps" in outcome["text"]) == ("interrupted", True)


def test_a_job_that_cannot_be_looked_at_yet_is_settled_later():
    died(begun=("one",))

    def hung() -> Facts:
        raise Failed("zpool did not answer within 20 seconds")

    with pytest.raises(Failed):
        settle(JOB, hung)
    assert settled()["state"] == "interrupted"


def test_a_step_that_cannot_be_looked_at_does_not_keep_its_job_open_for_ever(monkeypatch):
    """What it was about may be gone with the power: a folder that is not mounted, a dataset that was destroyed."""
    died(begun=("one", "two"), done=("one",))
    HAPPENED.add("one")
    happened, advice = Errand.probe, Errand.recovery_hint

    def probe(self: Errand, step: str, facts: Facts) -> bool:
        if step == "two":
            raise FileNotFoundError(2, "No such file or directory")
        return happened(self, step, facts)

    def load(_self: Errand, _facts: Facts) -> Facts:
        raise Refused(Reason("", "The folder is no longer there."))

    monkeypatch.setattr(Errand, "probe", probe)
    monkeypatch.setattr(Errand, "load_extra_facts", load)
    outcome = settled()
    assert (outcome["state"], outcome["text"]) == (
        "interrupted",
        "It was interrupted after 1 of 2 steps. Begin again at two.",
    )
    assert advice(ERRAND, "two", box()) in outcome["text"]


def test_advice_that_cannot_be_had_does_not_keep_a_job_open_for_ever(monkeypatch):
    died(begun=("one",))

    def hint(_self: Errand, _step: str, _facts: Facts) -> str:
        raise KeyError("tank")

    monkeypatch.setattr(Errand, "recovery_hint", hint)
    assert settled()["text"] == f"It was interrupted after 0 of 2 steps. {run_operation.LOOK_FIRST}"


def test_a_probe_that_is_not_answered_in_time_is_tried_again_later(monkeypatch):
    died(begun=("one",))

    def hang(_self: Errand, _step: str, _facts: Facts) -> bool:
        raise command.CommandTimedOut(["systemctl"], 20, None)

    with monkeypatch.context() as patch:
        patch.setattr(Errand, "probe", hang)
        with pytest.raises(Failed):
            settle(JOB, box)
    HAPPENED.update({"one", "two"})
    assert settled()["state"] == "done"


def test_settling_takes_the_secret_and_the_progress_away():
    died(begun=("one",))
    for path in (paths.SECRETS / JOB, paths.JOBS / JOB, paths.JOBS / f"{JOB}.stop"):
        path.write_text("{}")
    settled()
    assert [*paths.SECRETS.iterdir(), *paths.JOBS.iterdir()] == []


def test_a_second_follower_waits_until_the_first_has_settled_it():
    died(begun=("one",))
    answers: list[bool] = []

    def while_first_looks() -> Facts:
        answers.append(settle(JOB, box))
        return box()

    assert settle(JOB, while_first_looks)
    assert answers == [False]


CHILD = """
import signal, sys
from appliance import command; from appliance.agent import run_operation
from appliance.pools.create import CreatePool
from tests.unit.made import box, path_of

def stuck(argv, **more):
    if argv[0] in {"blkid", "cmp"}:  # the disks are looked at first, and are empty
        return command.Result(tuple(argv), 0, "", "", 0.0)
    print(argv[0], flush=True)
    signal.pause()

command.run = stuck
facts = box()
operation = CreatePool(name="tank", layout="mirror", groups=((path_of(1), path_of(2)),), encrypted=True)
run_operation.execute(sys.argv[1], operation, operation.plan(facts).digest(), lambda: facts, lambda message: None)
"""


@pytest.fixture
def killed(folders):
    """A real process of the agent's, killed while its command runs."""
    secret = paths.SECRETS / JOB
    secret.write_text(SECRET)
    secret.chmod(0o600)
    surroundings = os.environ | {"LARDER_RUN": str(paths.RUN), "LARDER_AGENT_STATE": str(paths.AGENT_STATE)}
    child = subprocess.Popen([sys.executable, "-c", CHILD, JOB], stdout=subprocess.PIPE, env=surroundings, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "zpool\n"
        assert journal.alive(JOB)
        assert (found := journal.read_journal(JOB)) is not None and found.state == "running"
    finally:
        child.kill()
        assert child.wait() == -signal.SIGKILL
        child.stdout.close()
    assert not journal.alive(JOB)


MIRROR = CreatePool(name="tank", layout="mirror", groups=((path_of(1), path_of(2)),), encrypted=True)


def test_after_kill_9_with_nothing_made_it_is_interrupted_and_the_name_is_free(killed):
    sent: list[dict[str, Any]] = []
    follow(JOB, box, sent.append)
    outcome = sent[-1]["outcome"]
    assert (outcome["state"], outcome["done"]) == ("interrupted", [])
    assert "tank was not created" in outcome["text"]
    assert [*paths.SECRETS.iterdir(), *paths.JOBS.iterdir()] == []


def test_after_kill_9_with_the_pool_made_it_is_done(killed):
    sent: list[dict[str, Any]] = []
    follow(JOB, lambda: box(pools=(made(MIRROR),)), sent.append)
    assert sent[-1]["outcome"]["state"] == "done"


def test_after_kill_9_the_id_does_not_run_again(killed, commands):
    sent: list[dict[str, Any]] = []
    execute(JOB, MIRROR, MIRROR.plan(box()).digest(), box, sent.append)
    assert commands.ran == []
    assert sent[-1]["outcome"]["state"] == "interrupted"


def test_after_kill_9_another_job_gets_the_locks(killed):
    with locks.hold_locks(MIRROR.locks(), lambda name: pytest.fail(f"{name} is still held")):
        assert locks.any_held()


def test_after_kill_9_the_secret_stands_in_no_file(killed, folders):
    settle(JOB, box)
    for path in folders.rglob("*"):
        assert not path.is_file() or SECRET not in path.read_text()


# Secrets


@pytest.fixture
def secret():
    path = paths.SECRETS / JOB
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


def test_a_secret_is_had_once(secret):
    assert take_secret(JOB, ME) == SECRET
    assert not secret.exists()
    with pytest.raises(Refused, match="no longer at hand"):
        take_secret(JOB, ME)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601, 0o777])
def test_a_secret_that_others_could_read_or_write_is_refused_and_removed(secret, mode):
    secret.chmod(mode)
    with pytest.raises(Refused):
        take_secret(JOB, ME)
    assert not secret.exists()


def test_a_secret_of_another_owner_is_refused_and_removed(secret):
    with pytest.raises(Refused):
        take_secret(JOB, frozenset({os.getuid() + 1}))
    assert not secret.exists()


def test_a_symlink_is_not_followed(secret, tmp_path):
    target = tmp_path / "shadow"
    secret.rename(target)
    secret.symlink_to(target)
    with pytest.raises(Refused):
        take_secret(JOB, ME)
    assert target.read_text() == SECRET


def test_a_pipe_does_not_hold_the_agent(secret):
    secret.unlink()
    os.mkfifo(secret, 0o600)
    with pytest.raises(Refused):
        take_secret(JOB, ME)
    assert not secret.exists()


def test_a_folder_in_its_place_is_refused(secret):
    secret.unlink()
    secret.mkdir(0o700)
    with pytest.raises(Refused):
        take_secret(JOB, ME)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        b"a" * 5000,
        b"a" * 513,
        b"\xff\xfe" * 8,
        b"one line\nand canary",
        b"with a NUL\0inside",
        b"with a return\r",
    ],
)
def test_what_is_no_passphrase_is_refused_and_removed(secret, content):
    secret.write_bytes(content)
    with pytest.raises(Refused) as caught:
        take_secret(JOB, ME)
    assert not secret.exists()
    assert "canary" not in str(caught.value)


def test_a_job_that_ends_leaves_no_secret_whether_it_used_it_or_not(secret):
    steps("one")
    run()
    assert not secret.exists()


def test_a_step_can_have_the_secret_once_and_the_journal_never_holds_it(secret, folders):
    def use(work: Work) -> None:
        assert work.secret() == SECRET
        with pytest.raises(Refused):
            work.secret()

    ACTS["one"] = use
    assert run()[-1]["outcome"]["state"] == "done"
    for path in folders.rglob("*"):
        assert not path.is_file() or SECRET not in path.read_text()


def test_a_folder_in_place_of_the_secret_does_not_hide_the_end():
    (paths.SECRETS / JOB).mkdir()
    steps("one")
    assert run()[-1]["outcome"]["state"] == "done"
