"""The contract of every change: an operation is typed fields that can be checked, planned, probed and run.

An operation is made from a form (web), stored as JSON in a job, and decoded again by the agent, whose decoding is
the validation that counts. ``check`` and ``plan`` are pure functions of facts: the web process calls them with the
inventory's rows, the agent with what it reads at that moment. The plan's digest says whether both mean the same.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Protocol

import msgspec

from appliance import command, passphrases
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.strict_struct import StrictStruct


class Work(Protocol):
    """What a running step may use of its surroundings."""

    def progress(self, percent: int, phrase: str) -> None:
        """Tell how far the step is, in whole percent, and what it is doing."""

    def note(self, text: str) -> None:
        """Add a line to the job's log."""

    def secret(self) -> str:
        """The passphrase or password that belongs to this job; it can be had once. Raises Refused where it is gone."""

    def stop_if_asked(self) -> None:
        """Raise Cancelled where the person asked to stop."""


class Step(msgspec.Struct, frozen=True):
    """One thing that will be done: shown to the person, run by the agent, recorded in the journal by its name."""

    name: str
    title: str
    command_text: str  # the exact commands, a line each, or words where none runs
    run: Callable[[Work], None]
    affects: tuple[str, ...] = ()  # disks, datasets or files
    undo: str = ""


class Loss(msgspec.Struct, frozen=True):
    """Something that will be gone afterwards; ``size`` in bytes, 0 where unknown."""

    what: str
    size: int = 0


class Plan(msgspec.Struct, frozen=True):
    """What an operation would do, in sentences and steps. ``identity`` is what the digest covers."""

    summary: str
    steps: tuple[Step, ...]
    identity: dict[str, object]
    losses: tuple[Loss, ...] = ()
    warnings: tuple[str, ...] = ()
    undo: str = ""
    type_to_confirm: str = ""
    details: dict[str, str] = msgspec.field(default_factory=dict)
    title: str = ""  # the review's heading and button, where the operation's own would promise more than will be done
    key_file: bool = False  # the secret that goes with it is a key file, not something to type

    def digest(self) -> str:
        """Sixteen hexadecimal digits over identities: equal as long as the same things would
        happen to the same things."""
        covered = {
            "identity": self.identity,
            "steps": [step.name for step in self.steps],
            "losses": [loss.what for loss in self.losses],
        }
        return hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()[:16]


class Operation(StrictStruct, tag_field="kind"):
    """Base of all operations. Subclasses validate their fields in ``__post_init__`` through ``appliance.names``."""

    # What the record says where the effect is there although Larder was ended meanwhile.
    settled: ClassVar[str] = Message("Larder was interrupted meanwhile. A check afterwards found everything in place.")

    @property
    def title(self) -> str:
        """A heading for the job: ``Create the pool tank``."""
        raise NotImplementedError

    @property
    def subject(self) -> str:
        """The pool, dataset, share or account it is about."""
        raise NotImplementedError

    @property
    def backup(self) -> str:
        """The key of the backup that it works on; empty for everything else."""
        return ""

    def locks(self) -> tuple[str, ...]:
        """Names of what no other job may touch meanwhile."""
        return (self.subject.split("/", 1)[0],)

    def files_used(self) -> tuple[str, ...]:
        """The datasets whose files it works on, which must stay where and as they are until it has ended."""
        return ()

    def files_taken(self) -> tuple[str, ...]:
        """The datasets that it takes away or puts back, with all below: nobody may work on their files.
        Empty name: all."""
        return ()

    def disks_taken(self) -> tuple[str, ...]:
        """By-id paths of whole disks that it writes to: each is read before, to see whether
        it is as empty as it seems."""
        return ()

    def disks_found(self, facts: Facts) -> tuple[str, ...]:
        """By-id paths of disks that it needs for itself and that only the facts name; to be locked like the others."""
        return ()

    def wants_secret(self) -> bool:
        """Whether a passphrase or password goes with this very operation."""
        return False

    def check_secret(self, text: str) -> str:
        """The secret, if it can be one. Raises Refused. The grammar of passphrases is the wider one of those
        that are made here: a password is one line of at least 8 characters too. One that was made up
        elsewhere may be shorter."""
        return passphrases.check_passphrase(text)

    def snapshot_datasets(self) -> tuple[str, ...]:
        """The datasets whose snapshots it looks at, to be read with the other facts."""
        return ()

    def record_read(self) -> tuple[str, str]:
        """The pool and the id of a box whose record it reads; empty where it reads none."""
        return ("", "")

    def lasts(self) -> bool:
        """Whether it can go on for hours: such jobs leave room for others."""
        return False

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        """Whether it destroys something, or lays it open, so that it waits unless the
        administrator's password goes with it.

        Every registered operation says so itself (``never``, ``always``, ``if_lost``); one that does not, waits.
        """
        return True

    def load_extra_facts(self, facts: Facts) -> Facts:
        """The facts with what only this operation asks about the system; called where it runs, before it is planned."""
        return facts

    def check(self, facts: Facts) -> Iterable[Reason]:
        """Everything that speaks against it; empty where nothing does."""
        raise NotImplementedError

    def plan(self, facts: Facts) -> Plan:
        """The steps, given that ``check`` found nothing."""
        raise NotImplementedError

    def probe(self, step: str, facts: Facts) -> bool:
        """Whether the step's effect is there now: the probe that settles an interrupted job."""
        raise NotImplementedError

    def recovery_hint(self, step: str, facts: Facts) -> str:
        """The state after an interruption or failure in ``step``, and what to do next."""
        return Message("Look at the page, then start it again if something is missing.")

    def clean_up(self, work: Work) -> None:
        """Remove what it has made so far, because the person asked to stop. Called under its locks."""

    def again(self, facts: Facts) -> Operation:
        """What to start after it did not end well: itself, or only what is missing of it."""
        return self


def kind_of(operation: Operation | type[Operation]) -> str:
    """The tag of an operation: what jobs, journals and requests call it, whatever its class is called."""
    return str(operation.__struct_config__.tag)


def never(_operation: Operation, facts: Facts, plan: Plan) -> bool:  # noqa: ARG001
    """For ``needs_proof``: nothing is lost by it, or it can be set back."""
    return False


def always(_operation: Operation, facts: Facts, plan: Plan) -> bool:  # noqa: ARG001
    """For ``needs_proof``: something is lost or laid open by it whatever the facts."""
    return True


def if_lost(_operation: Operation, facts: Facts, plan: Plan) -> bool:  # noqa: ARG001
    """For ``needs_proof``: where the plan names something that will be gone."""
    return bool(plan.losses)


def checked_plan(operation: Operation, facts: Facts) -> Plan:
    """The plan of an operation that nothing speaks against. Raises Refused with every reason."""
    Refused.unless_empty(operation.check(facts))
    return operation.plan(facts)


def command_step(
    name: str,
    title: str,
    argv: Sequence[str],
    *,
    affects: Iterable[str] = (),
    undo: str = "",
    secret_on_stdin: str = "",
    timeout: float = 300,
    runner: Callable[..., command.Result] | None = None,
) -> Step:
    """A step that is one command. ``secret_on_stdin`` is a format such as ``{}\\n`` for the job's secret."""
    words = tuple(argv)

    def run(work: Work) -> None:
        given = secret_on_stdin.replace("{}", work.secret()) if secret_on_stdin else None
        result = (runner or command.run)(words, timeout=timeout, given=given)
        for line in (result.stdout + result.stderr).splitlines():
            work.note(line)

    return Step(name, title, shlex.join(words), run, tuple(affects), undo)


def as_json(operation: Operation) -> str:
    return msgspec.json.encode(operation).decode()
