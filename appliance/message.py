"""A sentence with named arguments: text where it is used as text, and still known by its template."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class Message(str):
    """A sentence in English, made from a template such as ``The pool {pool} is not here.`` and the names in it.

    It is a string, so it can be shown, logged, joined and compared as one. Its template and arguments stay beside it for
    where it is stored or put into another language. Names that come from the box are always arguments, never part of a
    template. An argument may be a message itself. What is made of it by string operations is plain text again.
    """

    template: str
    arguments: Mapping[str, str]

    __slots__ = ("arguments", "template")

    def __new__(cls, template: str, /, **arguments: object) -> Message:
        values = {name: value if isinstance(value, Message) else str(value) for name, value in arguments.items()}
        message = super().__new__(cls, fill_template(template, values))
        message.template, message.arguments = template, values
        return message

    def __html__(self) -> str:
        """For templates of pages: as its reader reads it, escaped."""
        return html.escape(_reader(self))

    def as_json(self) -> dict[str, object]:
        """As it is stored and as it travels, beside its English text."""
        arguments = {name: as_json_argument(value) for name, value in self.arguments.items()}
        return {"template": self.template, "arguments": arguments}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Message:
        """Read ``as_json``. Raises KeyError, TypeError, IndexError, ValueError or AttributeError for anything else."""
        arguments = {name: from_json_argument(value) for name, value in given["arguments"].items()}
        return cls(given["template"], **arguments)


_reader: Callable[[Message], str] = str


def set_reader(reader: Callable[[Message], str]) -> None:
    """Have messages on pages put into words by this function; ``str`` for English."""
    global _reader  # one for the process, as the switch of languages is
    _reader = reader


# Templates without words: a message as it opens a sentence, as it goes on after a colon, and after the name of its thing.
OPENING, CONTINUED, REST = "{text:opening}", "{text:continued}", "{text:rest}"


class Argument(str):
    """What stands in a template. There its first letter can be made large (``opening``) or small (``continued``), or what
    makes it a sentence of its own be left out (``rest``)."""

    __slots__ = ()

    def __format__(self, how: str) -> str:
        if how == "opening":
            return self[:1].upper() + self[1:]
        if how == "continued":
            return self[:1].lower() + self[1:]
        if how == "rest":
            return self.removeprefix("It ").rstrip(".")
        return super().__format__(how)


def message_template(text: str) -> str:
    """Mark a text as the template of messages that are made from it elsewhere, so that catalogues have it."""
    return text


def fill_template(template: str, values: Mapping[str, str]) -> str:
    return template.format_map({name: Argument(value) for name, value in values.items()}) if values else template


def as_json_argument(value: str) -> object:
    return value.as_json() if isinstance(value, Message) else value


def from_json_argument(value: Any) -> Any:
    return Message.from_json(value) if isinstance(value, dict) else value


def join_messages(parts: Sequence[str], separator: str = " ") -> str:
    """The parts that say something, one after the other; each can still be put into another language."""
    found = [part for part in parts if part]
    if len(found) == 1:
        return found[0]
    if not any(isinstance(part, Message) for part in found):
        return separator.join(found)
    numbered = {f"part_{number}": part for number, part in enumerate(found)}
    return Message(separator.join(f"{{{name}}}" for name in numbered), **numbered)


def shorten(text: str, most: int) -> str:
    """A text of at most so many letters; still a message where it is short enough."""
    return text if len(text) <= most else text[:most]


def messages_by_text(value: object) -> dict[str, dict[str, object]]:
    """Every message in a value, however deep in lists and mappings, as JSON under its English text."""
    if isinstance(value, Message):
        return {str(value): value.as_json()}
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if not isinstance(value, list | tuple):
        return {}
    return {text: said for one in value for text, said in messages_by_text(one).items()}


def plain_text(value: object) -> object:
    """For msgspec, which takes nothing derived from ``str``: a message as its English text. Raises NotImplementedError."""
    if isinstance(value, Message):
        return str(value)
    raise NotImplementedError(type(value).__name__)
