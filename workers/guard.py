"""The guard around every part of the background work: a failure is logged and noted under the part's name for the alert
rules, and stops no other part. The note is cleared when the part works again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from appliance.errors import LarderError, Refused, explain_error
from appliance.message import Message, join_messages
from web.inventory import store
from web.inventory.models import Source

log = logging.getLogger(__name__)
Item = TypeVar("Item")
MOST_NAMED = 5
# Current failures by name. The alert rules read this too, in case a note could not be written.
failing: dict[str, str] = {}
# Parts of which no error stands in the database, as far as this process knows: the clock asks once, not at every tick.
_noted_well: set[str] = set()
_logged: dict[str, str] = {}


class PartlyFailed(LarderError):
    """Some items failed, the others are done. ``changed``: whether any of those changed something."""

    def __init__(self, errors: list[str], *, changed: bool = False) -> None:
        self.errors, self.changed = errors, changed
        left = len(errors) - MOST_NAMED
        self.text = join_messages([*errors[:MOST_NAMED], Message("And {count} more.", count=left) if left > 0 else ""])
        super().__init__(str(self.text))


def explain_problem(problem: Exception) -> str:
    return problem.text if isinstance(problem, PartlyFailed) else explain_error(problem)


def run_guarded(name: str, work: Callable[[], object]) -> bool:
    """Run ``work`` and note its outcome; whether it ended without an exception. Raises nothing."""
    error = ""
    try:
        work()
    except Exception as problem:
        error = explain_problem(problem)
        log_failure(name, problem)
    note_outcome(name, error)
    return not error


def log_failure(name: str, problem: Exception) -> None:
    """Log a failure once, with its trace where it is a bug of Larder."""
    said = f"{type(problem).__name__}: {problem}"
    if _logged.get(name) != said:
        _logged[name] = said
        log.warning("%s failed: %s", name, explain_problem(problem), exc_info=not isinstance(problem, LarderError))


@contextmanager
def refusals_logged(name: str) -> Iterator[None]:
    """Log a refusal of the body, once until the body is refused no more: what is due is looked at every few seconds."""
    try:
        yield
    except Refused as refusal:
        log_failure(name, refusal)
    else:
        _logged.pop(name, None)


def note_outcome(name: str, error: str) -> None:
    """Store a part's error, or clear it. Writes nothing while all is well."""
    remember_error(name, error)
    try:
        if error:
            _noted_well.discard(name)
            store.checked(name, changed=False, error=error)
        elif name not in _noted_well:
            if Source.objects.filter(name=name).exclude(error="").exists():
                store.checked(name, changed=False)
            _noted_well.add(name)
    except Exception as problem:
        log.warning("how %s went could not be noted: %s", name, explain_problem(problem))


def remember_error(name: str, error: str) -> None:
    if error:
        failing[name] = error
    else:
        failing.pop(name, None)
        _logged.pop(name, None)


class Parts:
    """Several lookups for one purpose. One that fails is None and named in ``errors``."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def get(self, name: str, work: Callable[[], Item]) -> Item | None:
        try:
            return work()
        except Exception as problem:
            log_failure(name, problem)
            error = join_messages([name, explain_problem(problem)], ": ")
            if error not in self.errors:  # several look-ups may need the same row
                self.errors.append(error)
            return None


def for_each(items: Iterable[Item], work: Callable[[Item], object], label: Callable[[Item], str] = str) -> bool:
    """Run ``work`` for every item; whether any returned something true.
    Raises PartlyFailed after the last, naming those that failed."""
    errors, changed = [], False
    for item in items:
        try:
            changed = bool(work(item)) or changed
        except Exception as problem:
            called = label(item)
            log_failure(called, problem)
            errors.append(join_messages([called, explain_problem(problem)], ": "))
    if errors:
        raise PartlyFailed(errors, changed=changed)
    return changed
