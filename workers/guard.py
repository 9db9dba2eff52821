"""The guard around every part of the background work. What fails is logged and noted under its name, which alert rules
read, and stops nothing else; when it works again the note is cleared."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from appliance.errors import LarderError, explain
from web.inventory import store
from web.inventory.models import Source

log = logging.getLogger(__name__)
Item = TypeVar("Item")
MOST_NAMED = 5
# What fails now, by its name. The alert rules read this too, so that a note that could not be written is not lost.
failing: dict[str, str] = {}
_logged: dict[str, str] = {}


class PartlyFailed(LarderError):
    """Some items could not be done, the others were. ``changed``: whether any of those changed something."""

    def __init__(self, errors: list[str], *, changed: bool = False) -> None:
        self.errors, self.changed = errors, changed
        more = f" And {len(errors) - MOST_NAMED} more." if len(errors) > MOST_NAMED else ""
        super().__init__(f"{' '.join(errors[:MOST_NAMED])}{more}")


def words_of(problem: Exception) -> str:
    return str(problem) if isinstance(problem, PartlyFailed) else explain(problem)


def run_guarded(name: str, work: Callable[[], object]) -> bool:
    """Run ``work``; whether it ended without an exception. Nothing is raised."""
    error = ""
    try:
        work()
    except Exception as problem:
        error = words_of(problem)
        log_failure(name, problem)
    note_outcome(name, error)
    return not error


def log_failure(name: str, problem: Exception) -> None:
    """Log a failure, with its trace where it is a fault of Larder's own. The same again, every few seconds, is one line."""
    said = f"{type(problem).__name__}: {problem}"
    if _logged.get(name) != said:
        _logged[name] = said
        log.warning("%s failed: %s", name, words_of(problem), exc_info=not isinstance(problem, LarderError))


def note_outcome(name: str, error: str) -> None:
    """Keep how a part went, in memory and as a row. Writes nothing while all is well."""
    remember_error(name, error)
    try:
        if error:
            store.checked(name, changed=False, error=error)
        elif Source.objects.filter(name=name).exclude(error="").exists():
            store.checked(name, changed=False)
    except Exception as problem:
        log.warning("how %s went could not be noted: %s", name, words_of(problem))


def remember_error(name: str, error: str) -> None:
    if error:
        failing[name] = error
    else:
        failing.pop(name, None)
        _logged.pop(name, None)


class Parts:
    """Several things that are looked up for one end. One that fails is None, and named in ``errors``."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def get(self, name: str, work: Callable[[], Item]) -> Item | None:
        try:
            return work()
        except Exception as problem:
            log_failure(name, problem)
            self.errors.append(f"{name}: {words_of(problem)}")
            return None


def for_each(items: Iterable[Item], work: Callable[[Item], object], label: Callable[[Item], str] = str) -> bool:
    """Do ``work`` for every item; whether any returned something true. Raises PartlyFailed after the last where one or
    more could not be done, naming them."""
    errors, changed = [], False
    for item in items:
        try:
            changed = bool(work(item)) or changed
        except Exception as problem:
            called = label(item)
            log_failure(called, problem)
            errors.append(f"{called}: {words_of(problem)}")
    if errors:
        raise PartlyFailed(errors, changed=changed)
    return changed
