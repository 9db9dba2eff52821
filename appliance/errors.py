"""The one tree of errors: what the person can mend, what the system said, what is our own fault.

The three kinds follow stratis-cli's ``_errors.py``: each is shown differently and only the last is a bug.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from appliance.message import Message, join_messages


class Reason:
    """Why something was refused: a sentence that says what to do, and the form's field it
    belongs to (empty: the whole form).

    ``code`` names the reason for programs and tests, such as ``pool-missing``; the sentence may change, the code stays.
    """

    __slots__ = ("code", "field", "message")

    def __init__(self, code: str, template: str, /, *, field: str = "", **arguments: object) -> None:
        self.code, self.message, self.field = code, Message(template, **arguments), field

    @property
    def text(self) -> str:
        return str(self.message)

    def with_field(self, field: str) -> Reason:
        """The same reason, for another field of a form."""
        return Reason(self.code, self.message.template, **{**self.message.arguments, "field": field})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reason) and self.as_json() == other.as_json()

    def __hash__(self) -> int:
        return hash((self.code, self.message, self.field))

    def __repr__(self) -> str:
        return f"Reason({self.code!r}, {self.text!r}, field={self.field!r})"

    def as_json(self) -> dict[str, object]:
        """As it travels from the agent to who asked."""
        return {"code": self.code, **self.message.as_json(), "field": self.field}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Reason:
        """Read ``as_json``. Raises what ``Message.from_json`` does for anything else."""
        message = Message.from_json(given)
        return cls(given["code"], message.template, **{**message.arguments, "field": given["field"]})


class LarderError(Exception):
    """Base of every error that Larder raises on purpose."""


class Refused(LarderError):
    """Nothing was changed, and the reasons say what would have to be different."""

    def __init__(self, *reasons: Reason) -> None:
        self.reasons = reasons
        super().__init__(" ".join(reason.text for reason in self.reasons))

    @classmethod
    def unless_empty(cls, reasons: Iterable[Reason]) -> None:
        """Raise with all reasons at once where there is any."""
        if found := tuple(reasons):
            raise cls(*found)


class Failed(LarderError):
    """Something was tried and the system said no; ``said`` is the system's own text."""

    def __init__(self, what: str, said: str = "") -> None:
        self.what, self.said = what, said if isinstance(said, Message) else said.strip()
        super().__init__(f"{what}: {self.said}" if self.said else what)


class Cancelled(LarderError):
    """The person asked to stop, and it stopped between two steps."""


class Bug(LarderError):
    """Larder contradicted itself; nothing the person did."""


def explain_error(error: BaseException) -> str:
    """One sentence or two for a page or a mail, from an error and what caused it. Never a stack trace."""
    if isinstance(error, Refused):
        return join_messages([reason.message for reason in error.reasons])
    if isinstance(error, Failed):
        return join_messages([error.what, error.said], ": ")
    if isinstance(error, Cancelled):
        return Message("It was asked to stop.")
    cause = error.__cause__
    if isinstance(cause, LarderError):
        return explain_error(cause)
    return Message(
        "Something went wrong in Larder ({error}). The details are in the system's journal.", error=type(error).__name__
    )
