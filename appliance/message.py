"""A sentence with named arguments: text where it is used as text, and still known by its template."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class Message(str):
    """A sentence in English, made from a template such as ``The pool {pool} is not here.`` and the names in it.

    It is a string, so it can be shown, logged, joined and compared as one. Its template and arguments stay beside it
    for where it is stored or put into another language. Names that come from the box are always arguments, never part
    of a template. An argument may be a message itself. What is made of it by string operations is plain text again.
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


# Templates without words: a message as it opens a sentence, as it goes on after a colon, and
# after the name of its thing.
OPENING, CONTINUED, REST = "{text:opening}", "{text:continued}", "{text:rest}"


class Argument(str):
    """What stands in a template. There its first letter can be made large (``opening``) or small (``continued``), or
    what makes it a sentence of its own be left out (``rest``)."""

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


def words_of(text: str, look_up: Callable[[str], str]) -> str:
    """A text as a catalogue has it where it is a message, with its arguments; else as it is."""
    if not isinstance(text, Message):
        return text
    return fill_template(look_up(text.template), {name: words_of(one, look_up) for name, one in text.arguments.items()})


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


def reason_after_name(line: str) -> str:
    """A stored line such as ``photos/a.jpg: has other contents`` as a message again, with
    what follows the name in it."""
    name, colon, reason = line.rpartition(": ")
    return Message("{name}: {reason}", name=name, reason=Message(reason)) if colon else line


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
    """For msgspec, which takes nothing derived from ``str``: a message as its English text.
    Raises NotImplementedError."""
    if isinstance(value, Message):
        return str(value)
    raise NotImplementedError(type(value).__name__)


class PlainText:
    """``plain_text`` that keeps in ``said`` what it has met, as ``messages_by_text``."""

    def __init__(self) -> None:
        self.said: dict[str, dict[str, object]] = {}

    def __call__(self, value: object) -> object:
        if isinstance(value, Message):
            self.said[str(value)] = value.as_json()
        return plain_text(value)


def as_said(value: Any, said: Mapping[str, Any]) -> Any:
    """The value with its texts as messages again, where ``said`` (``messages_by_text``) has one for them."""
    if isinstance(value, str):
        return message_of(value, said)
    if isinstance(value, dict):
        return {as_said(name, said): as_said(one, said) for name, one in value.items()}
    if isinstance(value, list):
        return [as_said(one, said) for one in value]
    return value


def message_of(text: str, said: Mapping[str, Any]) -> str:
    """The message with this text; the text itself where none is known, or what is stored does not say the same."""
    try:
        message = Message.from_json(said[text])
    except (KeyError, TypeError, IndexError, ValueError, AttributeError):
        return text
    return message if message == text else text
