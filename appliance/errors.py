"""The one tree of errors: what the person can mend, what the system said, what is our own fault.

The three kinds follow stratis-cli's ``_errors.py``: each is shown differently and only the last is a bug.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """A sentence the person can act on, and the form field it belongs to (empty: the whole form)."""

    text: str
    field: str = ""


class LarderError(Exception):
    """Base of every error that Larder raises on purpose."""


class Refused(LarderError):
    """Nothing was changed, and the reasons say what would have to be different."""

    def __init__(self, *reasons: Reason | str) -> None:
        self.reasons = tuple(Reason(reason) if isinstance(reason, str) else reason for reason in reasons)
        super().__init__(" ".join(reason.text for reason in self.reasons))

    @classmethod
    def unless_empty(cls, reasons: Iterable[Reason]) -> None:
        """Raise with all reasons at once where there is any."""
        if found := tuple(reasons):
            raise cls(*found)


class Failed(LarderError):
    """Something was tried and the system said no; ``said`` is the system's own text."""

    def __init__(self, what: str, said: str = "") -> None:
        self.what, self.said = what, said.strip()
        super().__init__(f"{what}: {self.said}" if self.said else what)


class Cancelled(LarderError):
    """The person asked to stop, and it stopped between two steps."""


class Bug(LarderError):
    """Larder contradicted itself; nothing the person did."""


def explain(error: BaseException) -> str:
    """One sentence or two for a page or a mail, from an error and what caused it. Never a stack trace."""
    if isinstance(error, (Refused, Failed)):
        return str(error)
    if isinstance(error, Cancelled):
        return "Stopped because you asked for it."
    cause = error.__cause__
    if isinstance(cause, LarderError):
        return explain(cause)
    return f"Larder has a fault of its own ({type(error).__name__}). The details are in the system's journal."
