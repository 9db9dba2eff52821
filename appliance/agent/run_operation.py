"""Run one operation under its job's id, or tell what became of an earlier run of it."""

from __future__ import annotations

import json
import logging
import os
import stat
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from appliance import passphrases
from appliance.agent import delayed_jobs, journal, proof
from appliance.agent.journal import OUTDATED, AlreadyKnown, Journal
from appliance.command import CommandTimedOut
from appliance.disks import probe
from appliance.errors import Cancelled, LarderError, Reason, Refused, explain_error
from appliance.facts.box import Facts
from appliance.message import Message, join_messages, messages_by_text, shorten
from appliance.operation import Operation, Plan, checked_plan
from appliance.request import Send
from appliance.system import atomic_file, locks, paths

SECONDS_BETWEEN_LOOKS = 0.3
LARGEST_SECRET = 4096
LONGEST_NOTE = 2000
LOOK_FIRST = Message("Look at what is there before you start it again.")
SECRET_GONE = Reason(
    "secret-gone", "The passphrase or password is no longer at hand. Start again and type it once more."
)
log = logging.getLogger(__name__)


class PlanOutdated(Exception):
    """The plan is another than the one that the job was made with, and nobody has confirmed that one."""


def take_secret(job: str, owners: frozenset[int], check: Callable[[str], str] = passphrases.check_passphrase) -> str:
    """Read the job's secret and remove it: it can be had once.
    Raises Refused where there is none or none that may be."""
    path = paths.SECRETS / job
    try:
        # Without O_NONBLOCK a pipe put there would hold the agent, and the locks of its job, for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(SECRET_GONE) from error
    try:
        found = os.fstat(handle)
        if (
            not stat.S_ISREG(found.st_mode)
            or found.st_uid not in owners
            or found.st_mode & 0o077
            or found.st_size > LARGEST_SECRET
        ):
            raise Refused(
                Reason(
                    "secret-not-larders",
                    "The passphrase's file is not what Larder wrote. Start again and type it once more.",
                )
            )
        text = os.read(handle, LARGEST_SECRET).decode()
    except UnicodeDecodeError:
        raise Refused(
            Reason("secret-not-text", "The passphrase or password is not text. Start again and type it once more.")
        ) from None
    finally:
        os.close(handle)
        atomic_file.remove_if_possible(path)
    return check(text)


class Running:
    """The Work of one job: progress goes to the client and to a file, notes go to the journal."""

    def __init__(
        self, record: Journal, send: Send, check_secret: Callable[[str], str] = passphrases.check_passphrase
    ) -> None:
        self.journal, self.send = record, send
        self.file = paths.JOBS / record.job
        self.asked = paths.JOBS / f"{record.job}.stop"
        self.span = (0, 100)
        self.told: tuple[int, str] = (-1, "")
        self.step = ""  # the one that has begun and not ended
        self.check_secret = check_secret

    def within(self, start: int, end: int) -> None:
        """Scale what a step reports into its part of the whole."""
        self.span = (start, end)

    def progress(self, percent: int, phrase: str, *, waits: bool = False) -> None:
        """``waits``: another job holds what this one needs.
        The worker cannot tell from the phrase, which is for people."""
        start, end = self.span
        now = (start + (end - start) * max(0, min(percent, 100)) // 100, phrase)
        if now != self.told:
            self.told = now
            beside = self.file.with_suffix(".new")
            told = {"percent": now[0], "phrase": phrase, "messages": messages_by_text(phrase), "waits": waits}
            beside.write_text(json.dumps(told))
            beside.rename(self.file)
            self.send(told)

    def note(self, text: str) -> None:
        self.journal.write("note", text=shorten(text, LONGEST_NOTE))
        self.send({"note": text[:LONGEST_NOTE]})

    def secret(self) -> str:
        owners = frozenset({0, paths.RUN.stat().st_uid, paths.SECRETS.stat().st_uid})
        return take_secret(self.journal.job, owners, self.check_secret)

    def wait_for_lock(self, name: str) -> None:
        """Tell that another job holds what this one needs. Raises Cancelled."""
        doing = locks.holder_text(name)
        self.progress(
            0,
            Message("Waiting for another job: {doing}", doing=doing)
            if doing
            else Message("Waiting: another job is at work on {name}", name=locks.words_for(name)),
            waits=True,
        )
        self.stop_if_asked()

    def stop_if_asked(self) -> None:
        if self.asked.exists():
            raise Cancelled

    def end(self) -> None:
        self.file.unlink(missing_ok=True)
        self.asked.unlink(missing_ok=True)
        atomic_file.remove_if_possible(proof.proof_file(self.journal.job))
        atomic_file.remove_if_possible(paths.SECRETS / self.journal.job)


def execute(
    job: str, operation: Operation, digest: str, read_facts: Callable[[], Facts], send: Send, *, plan_seen: bool = True
) -> None:
    """Run the operation once under this id, or follow the run that is under way. The last thing sent is the outcome.

    One that needs a proof and has none waits: it runs when it is asked for again after that time. Where
    the plan is no longer that of ``digest``, it is refused if somebody has seen that one; else it is as if
    it had never been asked for.
    """
    waited: Journal | None = None
    try:
        record = Journal.begin(job)
    except AlreadyKnown:
        waited = delayed_jobs.take_up(job, operation, digest)
        if waited is None:
            follow(job, read_facts, send)
            return
        record = waited
    paths.JOBS.mkdir(parents=True, exist_ok=True, mode=0o700)
    work = Running(record, send, operation.check_secret)
    try:
        encoded = json.loads(msgspec.json.encode(operation))
        record.write("began", operation=encoded, steps=[], digest=digest)

        def look() -> Facts:
            work.progress(0, Message("Looking at the system"))
            facts = operation.load_extra_facts(read_facts())
            return probe.with_uses(facts, probe.probe_disks(facts, operation.disks_taken()))

        with locked(operation, look, work.wait_for_lock) as facts, cleaned_up_if_cancelled(operation, work):
            plan = plan_of_today(operation, facts, digest, plan_seen or bool(waited))
            if operation.wants_secret() and not (paths.SECRETS / job).exists():
                # It is in memory alone, and the power may have gone since. Without it no first step is half of a job.
                raise Refused(SECRET_GONE)
            if not waited and operation.needs_proof(facts, plan) and not proof.redeem(job, operation, digest):
                raise delayed_jobs.JobDelayed
            record.write("began", operation=encoded, steps=[item.name for item in plan.steps])
            run_steps(plan, record, work)
        finish(record, work, "done", "")
    except delayed_jobs.JobDelayed:
        work.file.unlink(missing_ok=True)
        delayed_jobs.hold(record, operation, digest)
    except PlanOutdated:
        # The secret stays: the same job comes back with the plan of today.
        work.file.unlink(missing_ok=True)
        record.forget()
        send({"outcome": {"state": OUTDATED}})
        return
    except Refused as refusal:
        finish(record, work, "failed" if work.step else "refused", explain_error(refusal))
    except Cancelled:
        finish(record, work, "cancelled", explain_error(Cancelled()))
    except Exception as error:
        finish(record, work, "failed", explain_failure(operation, work.step, error, read_facts))
    finally:
        record.close()
        journal.prune()
    send({"outcome": journal.outcome(journal.read_journal(job))})


def plan_of_today(operation: Operation, facts: Facts, digest: str, seen: bool) -> Plan:
    """The plan, which is that of ``digest``. Raises Refused where it is another, or
    PlanOutdated if nobody has seen that."""
    plan = checked_plan(operation, facts)
    if plan.digest() == digest:
        return plan
    if not seen:
        raise PlanOutdated
    raise Refused(
        Reason(
            "plan-changed",
            "Something changed since you looked at the plan: a disk, a pool or what is on them. Nothing was "
            "done. Look at the new plan.",
        )
    )


def run_steps(plan: Plan, record: Journal, work: Running) -> None:
    """Run the steps in their order, each written into the journal before and after.
    One that fails stays ``work.step``."""
    for at, item in enumerate(plan.steps):
        work.stop_if_asked()
        work.within(at * 100 // len(plan.steps), (at + 1) * 100 // len(plan.steps))
        record.write("step begun", step=item.name)
        work.step = item.name
        work.progress(0, item.title)
        item.run(work)
        record.write("step done", step=item.name)
        work.step = ""


@contextmanager
def locked(operation: Operation, look: Callable[[], Facts], waiting: Callable[[str], None]) -> Iterator[Facts]:
    """Hold every lock of an operation, and read the facts under them. Disks that only the facts name are locked by
    beginning anew with them, so that all are taken together."""
    names = (*operation.locks(), *map(locks.files_of, operation.files_taken()))
    shared = tuple(map(locks.files_of, operation.files_used()))
    disks: tuple[str, ...] = ()
    while True:
        with locks.hold_locks((*names, *disks), waiting, shared=shared, who=operation.title):
            facts = look()
            found = operation.disks_found(facts)
            if {*found} <= {*names, *disks}:
                yield facts
                return
        disks = found


@contextmanager
def cleaned_up_if_cancelled(operation: Operation, work: Running) -> Iterator[None]:
    try:
        yield
    except Cancelled:
        operation.clean_up(work)
        raise


def finish(record: Journal, work: Running, state: str, text: str) -> None:
    record.write("ended", state=state, text=text)
    work.end()


def explain_failure(operation: Operation, step: str, error: Exception, read_facts: Callable[[], Facts]) -> str:
    """What went wrong in a step and what to do now. A fault of Larder's own leaves its
    traceback in the system's journal."""
    if not isinstance(error, LarderError):
        traceback.print_exception(error)
    # Where a command hangs in the kernel, reading the facts would leave another that hangs.
    hangs = isinstance(error, CommandTimedOut) and error.pid
    advice = "" if hangs else recovery_hint(operation, step, read_facts)
    return join_messages([explain_error(error), advice])


def recovery_hint(operation: Operation, step: str, read_facts: Callable[[], Facts]) -> str:
    """The operation's own advice; silent where even the facts cannot be read."""
    if not step:
        return ""
    try:
        return operation.recovery_hint(step, operation.load_extra_facts(read_facts()))
    except LarderError:
        return ""


def follow(job: str, read_facts: Callable[[], Facts], send: Send) -> None:
    """Send the progress of a run under way until it ends; settle it where its process has died."""
    last = ""
    while journal.alive(job) or not settle(job, read_facts):
        try:
            now = (paths.JOBS / job).read_text()
        except FileNotFoundError:
            now = ""
        if now and now != last:
            last = now
            send(json.loads(now))
        time.sleep(SECONDS_BETWEEN_LOOKS)
    send({"outcome": journal.outcome(journal.read_journal(job))})


def settle(job: str, read_facts: Callable[[], Facts]) -> bool:
    """Give an interrupted job its true end, from its journal and from what the system shows.

    False where it has none yet: its process lives, or another is settling it. An end once written is never changed.
    """
    from appliance.agent.registry import decode_operation

    known = journal.read_journal(job)
    if known is None or known.ended or known.waiting:
        return True
    with journal.taken_over(job) as record:
        if record is None:
            return False
        known = journal.read_journal(job)
        if known is None or known.ended or known.waiting:
            return True
        work = Running(record, lambda _message: None)
        if not known.operation:
            finish(record, work, "interrupted", Message("It was interrupted before it began. Nothing was changed."))
            return True
        if not known.begun:
            finish(
                record, work, "interrupted", Message("It was interrupted before its first step. Nothing was changed.")
            )
            return True
        try:
            operation = decode_operation(json.dumps(known.operation))
        except Refused:
            # Written by another version of Larder, whose probes are not here any more.
            finish(
                record,
                work,
                "interrupted",
                join_messages([words_for_steps(len(known.done), len(known.steps)), LOOK_FIRST]),
            )
            return True
        done, hint = look_back(operation, known.steps, read_facts())
        if done == len(known.steps):
            finish(record, work, "done", operation.settled)
            return True
        finish(record, work, "interrupted", join_messages([words_for_steps(done, len(known.steps)), hint]))
        return True


def words_for_steps(done: int, steps: int) -> Message:
    return Message("It was interrupted after {done} of {steps} steps.", done=done, steps=steps)


def look_back(operation: Operation, steps: Sequence[str], facts: Facts) -> tuple[int, str]:
    """How many steps of a job that was interrupted have their effect, and what to do about the first that has not.

    What the job was about may be gone since: a step that cannot be looked at counts as not done.
    Otherwise the job would never end. Raises CommandTimedOut where the system does not answer now.
    """
    try:
        facts = operation.load_extra_facts(facts)
    except CommandTimedOut:
        raise
    except Exception as error:
        log.warning("%s: %s", operation.title, explain_error(error), exc_info=not isinstance(error, LarderError))
    missing = [step for step in steps if not has_happened(operation, step, facts)]
    if not missing:
        return len(steps), ""
    try:
        hint = operation.recovery_hint(missing[0], facts)
    except Exception:
        log.exception("%s: no advice", operation.title)
        hint = LOOK_FIRST
    return len(steps) - len(missing), hint


def has_happened(operation: Operation, step: str, facts: Facts) -> bool:
    """Whether a step has its effect; False where that cannot be seen. Raises CommandTimedOut."""
    try:
        return operation.probe(step, facts)
    except CommandTimedOut:
        raise
    except Exception as error:
        log.warning(
            "%s, %s: %s", operation.title, step, explain_error(error), exc_info=not isinstance(error, LarderError)
        )
        return False


def ask_to_stop(job: str) -> bool:
    """Ask a job under way to stop before its next step; one that waits ends. False where none of that id runs."""
    if delayed_jobs.cancel(job):
        return True
    if journal.read_journal(job) is None or not journal.alive(job):
        return False
    (paths.JOBS / f"{job}.stop").touch(mode=0o600)
    return True
