"""A sentence with named arguments: text where it is used as text, and still known by its template."""

from __future__ import annotations

from collections.abc import Mapping


class Message(str):
    """A sentence in English, made from a template such as ``The pool {pool} is not here.`` and the names in it.

    It is a string, so it can be shown, joined and compared as one. Its template and arguments stay beside it for where it
    is stored or put into another language. Names that come from the box are always arguments, never part of a template.
    """

    template: str
    arguments: Mapping[str, str]

    __slots__ = ("arguments", "template")

    def __new__(cls, template: str, /, **arguments: object) -> Message:
        values = {name: str(value) for name, value in arguments.items()}
        message = super().__new__(cls, template.format_map(values) if values else template)
        message.template, message.arguments = template, values
        return message
