"""Jobs that wait because nobody gave the administrator's password for them: how long, who
hears it, how they are cancelled.

Nothing runs meanwhile: the wait is an entry in the job's journal. It counts only time in which the box is on, by a
clock that nobody can set (CLOCK_BOOTTIME), and begins anew after a restart of the box.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from appliance import command, schedule
from appliance.agent import journal
from appliance.agent.journal import Journal, Record
from appliance.errors import Failed, LarderError
from appliance.message import Message, words_of
from appliance.names import job_id
from appliance.operation import Operation
from appliance.system import atomic_file, language, locks, paths

MINUTES = 10
SECONDS_BETWEEN_TRIES = 0.02
COMMAND = "sudo larder-jobs cancel"
ISSUE = Path("/run/issue.d/larder-waiting.issue")
CANCELLED = Message("Cancelled while it waited. Nothing was changed.")


class JobDelayed(Exception):
    """The job needs a proof and has none: it is to wait."""


class Waiting(msgspec.Struct, frozen=True):
    """A job that waits, as pages, mails and the console tell of it."""

    job: str
    title: str
    subject: str
    until: datetime

    @property
    def at(self) -> str:
        return f"{self.until.astimezone(schedule.box_zone()):%H:%M}"


def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def clock() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def jobs_folder() -> Path:
    return paths.AGENT_STATE / "waiting"


def told_file() -> Path:
    """The list for web and worker, who may read it and not write it."""
    return paths.RUN / "waiting.json"


def hold(record: Journal, operation: Operation, digest: str) -> None:
    """Have the job of that journal wait from now on, and tell of it."""
    until = datetime.now(UTC) + timedelta(minutes=MINUTES)
    record.write("waiting", until=until.isoformat(timespec="seconds"), digest=digest, boot=boot(), since=clock())
    jobs_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    said = as_told(operation.title, operation.subject, until)
    atomic_file.write_atomically(jobs_folder() / record.job, json.dumps(said).encode())
    announce(new=operation.title)


def take_up(job: str, operation: Operation, digest: str) -> Journal | None:
    """The journal of a job that has waited long enough, locked for running it; None for every other.

    A wait that a restart of the box has interrupted begins anew.
    """
    known = journal.read_journal(job)
    if known is None or not known.waiting or not means(known, operation, digest):
        return None
    record = journal.take(job)
    if record is None:
        return None
    known = journal.read_journal(job)
    if known is None or not known.waiting:
        record.close()
        return None
    if known.waiting["boot"] != boot():
        hold(record, operation, digest)
    elif clock() - float(known.waiting["since"]) >= MINUTES * 60:
        drop(job)
        return record
    record.close()
    return None


def means(known: Record, operation: Operation, digest: str) -> bool:
    """Whether the job waits for this very operation and plan."""
    wanted = json.loads(msgspec.json.encode(operation))
    return known.operation == wanted and known.waiting.get("digest") == digest


def cancel(job: str) -> bool:
    """End a job that waits; False where it does not, or no longer."""
    while (known := journal.read_journal(job)) and known.waiting:
        # Whoever asks again and again whether it may start holds the journal for a moment each time.
        with journal.taken_over(job) as record:
            known = journal.read_journal(job) if record else None
            if record and known and known.waiting:
                record.write("ended", state="cancelled", text=CANCELLED)
                break
        time.sleep(SECONDS_BETWEEN_TRIES)
    else:
        return False
    atomic_file.remove_if_possible(paths.SECRETS / job)  # the web process may have put something else in its place
    drop(job)
    return True


def drop(job: str) -> None:
    """Tell no longer of a job that does not wait any more."""
    (jobs_folder() / job_id(job)).unlink(missing_ok=True)
    announce()


def read_waiting() -> list[Waiting]:
    """What waits, the next first; for root."""
    found = []
    for path in sorted(jobs_folder().glob("*")) if jobs_folder().is_dir() else ():
        known = journal.read_journal(path.name) if not path.name.startswith(".") else None
        if known is None or not known.waiting:
            path.unlink(missing_ok=True)
            continue
        found.append(waiting(path.name, json.loads(path.read_text())))
    return sorted(found, key=lambda one: one.until)


def as_told(title: str, subject: str, until: datetime) -> dict[str, Any]:
    """What is written down of a job that waits; ``message`` is what its title was made from."""
    told = {"title": title, "subject": subject, "until": until.isoformat(timespec="seconds")}
    return told | ({"message": title.as_json()} if isinstance(title, Message) else {})


def waiting(job: str, said: dict[str, Any]) -> Waiting:
    title = Message.from_json(said["message"]) if "message" in said else said["title"]
    return Waiting(job, title, said["subject"], datetime.fromisoformat(said["until"]))


def waiting_jobs() -> tuple[Waiting, ...]:
    """What waits, as the agent told it last; for web and worker. Raises Failed where that cannot be read."""
    try:
        return tuple(waiting(one["job"], one) for one in json.loads(told_file().read_text()))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise Failed(Message("The list of jobs that wait cannot be read"), str(error)) from error


def announce(*, new: str = "") -> None:
    """Have pages, mail and the console tell what waits now. What cannot be told in one place is told in the others."""
    with locks.hold_locks([str(told_file())]):
        found = read_waiting()
        rows = [{"job": one.job, **as_told(one.title, one.subject, one.until)} for one in found]
        look_up = language.box_catalogue()
        for path, content in ((told_file(), json.dumps(rows)), (ISSUE, issue(found, look_up))):
            try:
                atomic_file.write_atomically(path, content.encode(), mode=0o644)
            except OSError:
                pass
    starts = Message(
        "Larder: {title} starts in {minutes} minutes. To stop it: {command}",
        title=plain(words_of(new, look_up)),
        minutes=MINUTES,
        command=COMMAND,
    )
    tell_terminals(words_of(starts, look_up) if new else "")


def tell_terminals(text: str) -> None:
    """Write a line to everybody signed in at a terminal, and have the console's sign-in prompt drawn anew."""
    for argv in ([["wall", text]] if text else []) + [["agetty", "--reload"]]:
        try:
            command.run(argv, timeout=10, accept=range(256))
        except (LarderError, OSError):
            pass


def issue(found: list[Waiting], look_up: Callable[[str], str] = str) -> str:
    """For the console's sign-in prompt (agetty(8)), in the words of a catalogue; empty where nothing waits."""
    if not found:
        return ""
    head = Message("Larder was asked for this without the administrator's password:")
    lines = [
        Message("at {time}: {title}", time=one.at, title=plain(words_of(one.title, look_up))) for one in found[:10]
    ]
    if more := len(found) - len(lines):
        lines.append(Message("{count} more: {command}", count=more, command="sudo larder-jobs"))
    stop = Message("To stop it: {command}", command=COMMAND)
    said = "".join(f"  {words_of(line, look_up)}\n" for line in lines)
    return f"\n{words_of(head, look_up)}\n{said}{words_of(stop, look_up)}\n\n"


def plain(text: str) -> str:
    """Text that a terminal takes as text: agetty gives a backslash a meaning, terminals give
    one to control characters."""
    return "".join(letter if letter.isprintable() and letter != "\\" else "?" for letter in text)[:200]


def job_ids(words: list[str]) -> list[str]:
    return [job_id(word) for word in words] or [one.job for one in read_waiting()]


def is_root() -> bool:
    return os.geteuid() == 0
